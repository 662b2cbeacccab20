"""Every setting: command line > environment > ``phonedesk.toml`` > defaults, each value checked.

Environment names are ``PHONEDESK_`` and the path with ``__`` between levels: ``PHONEDESK_MODEL__BASE_URL``. The names
``PHONE_AGENT_KNOWLEDGE_…`` are aliases for the knowledge base. The file ``PHONEDESK_CONFIG`` takes the place of
``phonedesk.toml`` and has to be there. Secrets are masked wherever they are shown.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from tzlocal import get_localzone_name

from agent_core import extras
from agent_core.errors import ConfigInvalid
from agent_core.proxies import ProxySetting, environment_secrets, secrets_of
from agent_core.texts import Lang, system_language, toml_problem
from bot.app.settings.files import CONFIG_NAME, ENV_FILE, PREFIX, config_file, is_missing, written
from bot.app.settings.masking import secrets_of_section
from bot.app.settings.sections import (
    AlertSettings,
    ChooserSettings,
    DeviceSettings,
    DigestSettings,
    KnowledgeSettings,
    LimitSettings,
    McpSettings,
    ModelSettings,
    NotifySettings,
    ObserveSettings,
    PicturesSettings,
    PlannerSettings,
    PriceSettings,
    QuestionSettings,
    QueueSettings,
    QuietSettings,
    RunSettings,
    SweepSettings,
    TelegramSettings,
    TrajectorySettings,
    WatchSettings,
    WebhookSettings,
    WebSettings,
)
from bot.app.settings.values import DatabaseUrl, ZoneName, password_of

ALIAS_PREFIX = "PHONE_AGENT_KNOWLEDGE_"
ALIAS_SECONDS = f"{ALIAS_PREFIX}TIMEOUT_SECONDS"
ALIASES = {
    "BASE_URL": "base_url",
    "DATASET_ID": "dataset_id",
    "TIMEOUT_SECONDS": "timeout_seconds",
    "TOKEN": "token",
    "AUTH_TOKEN": "token",
}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value  # INFO, as most programs write it


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_file=ENV_FILE,
        env_ignore_empty=True,
        extra="ignore",  # .env holds names of other programs too
        frozen=True,
    )

    data_dir: Path = Path("data")
    own_dir: str = ""  # the owner's prompts, profiles and tools; "": phonedesk.d beside the TOML file, if it is there
    database_url: DatabaseUrl = Field(default="", repr=False)  # "": SQLite in data_dir
    lang: Lang = Field(default_factory=system_language)
    timezone: ZoneName = Field(default_factory=get_localzone_name)
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    log_file: str = ""  # "": none; {host} in it is this process's name
    log_file_mb: float = Field(default=10.0, gt=0, le=1000)  # over it the file is put aside
    log_files_kept: int = Field(default=5, ge=0, le=100)  # old files, besides the current one
    keep_days: int = Field(default=30, ge=2, le=3650)  # how long events, pictures and messages are kept
    model: ModelSettings = ModelSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    chooser: ChooserSettings = ChooserSettings()
    planner: PlannerSettings = PlannerSettings()
    device: DeviceSettings = DeviceSettings()
    observe: ObserveSettings = ObserveSettings()
    pictures: PicturesSettings = PicturesSettings()
    trajectory: TrajectorySettings = TrajectorySettings()
    run: RunSettings = RunSettings()
    sweep: SweepSettings = SweepSettings()
    watch: WatchSettings = WatchSettings()
    questions: QuestionSettings = QuestionSettings()
    digest: DigestSettings = DigestSettings()
    alerts: AlertSettings = AlertSettings()
    notify: NotifySettings = NotifySettings()
    quiet: QuietSettings = QuietSettings()
    price: PriceSettings = PriceSettings()
    limits: LimitSettings = LimitSettings()
    telegram: TelegramSettings = TelegramSettings()
    web: WebSettings = WebSettings()
    webhooks: WebhookSettings = WebhookSettings()
    mcp: McpSettings = McpSettings()
    queue: QueueSettings = QueueSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (
            init_settings,
            env_settings,
            dotenv_settings,
            KnowledgeAliases(settings_cls),
            ConfigFile(settings_cls),
        )

    @property
    def url(self) -> str:
        return self.database_url or f"sqlite:///{self.data_dir / 'phonedesk.sqlite3'}"

    @property
    def queue_url(self) -> str:
        usual = self.queue.executor_id == QueueSettings().executor_id
        file = "queue.sqlite3" if usual else f"queue-{self.queue.executor_id}.sqlite3"
        return self.queue.database_url or f"sqlite:///{self.data_dir / file}"

    @property
    def log_path(self) -> Path | None:
        """The log file of `serve` and `worker`, which they write besides standard error; None for none."""
        return Path(self.log_file.replace("{host}", self.queue.executor_id)).expanduser() if self.log_file else None

    @property
    def telegram_proxy(self) -> ProxySetting:
        return ProxySetting(f"{PREFIX}TELEGRAM__PROXY", self.telegram.proxy)

    @property
    def model_proxy(self) -> ProxySetting:
        """The proxy of every model, including fallbacks, chooser, planner and helper."""
        return ProxySetting(f"{PREFIX}MODEL__PROXY", self.model.proxy)

    @property
    def knowledge_proxy(self) -> ProxySetting:
        return ProxySetting(f"{PREFIX}KNOWLEDGE__PROXY", self.knowledge.proxy)

    @property
    def webhook_proxy(self) -> ProxySetting:
        return ProxySetting(f"{PREFIX}WEBHOOKS__PROXY", self.webhooks.proxy)

    def secrets(self) -> list[str]:
        """Return every value that must not be shown, as plain text: tokens, keys, passwords of the databases and
        proxies.
        """
        passwords = [password_of(url) for url in (self.database_url, self.queue.database_url) if url]
        proxies = secrets_of(self.telegram.proxy, self.model.proxy, self.knowledge.proxy, self.webhooks.proxy)
        secrets = (*secrets_of_section(self), *self.notify.addresses, *passwords, *proxies, *environment_secrets())
        return [value for value in secrets if value]


class ConfigFile(TomlConfigSettingsSource):
    """The TOML file.

    Unknown names in it are left to ``loading``, which reports them with all other problems. Raises ConfigInvalid if the
    file cannot be read, or is named and does not exist.
    """

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        file = config_file()
        if is_missing(file):
            raise ConfigInvalid(
                f"{CONFIG_NAME} names {file}, which is no file.",
                advice="Correct the path, or unset it.",
                key="config_not_there",
                name=CONFIG_NAME,
                file=file,
            )
        try:
            super().__init__(settings_cls, toml_file=file)
        except (OSError, ValueError) as error:
            raise unread(file, error) from None


def unread(file: Path, error: Exception) -> ConfigInvalid:
    """Return the error of a TOML file that cannot be read."""
    why = toml_problem(error) if isinstance(error, tomllib.TOMLDecodeError) else error
    return ConfigInvalid(
        f"{file} cannot be read: {why}.", advice="Mend the file.", key="file_unread", file=file, why=why
    )


class KnowledgeAliases(PydanticBaseSettingsSource):
    """The aliases ``PHONE_AGENT_KNOWLEDGE_BASE_URL``, ``…_DATASET_ID``, ``…_TIMEOUT_SECONDS``, ``…_AUTH_TOKEN`` or
    ``…_TOKEN``.

    An address means the Dify form. If the time-out is not a number of seconds, the default is used, see ``no_seconds``.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False  # the values come all at once, from __call__

    def __call__(self) -> dict[str, Any]:
        return aliases({**written(), **os.environ})


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the knowledge settings that the alias names give, in their section."""
    found: dict[str, Any] = {
        ours: environment[ALIAS_PREFIX + theirs]
        for theirs, ours in ALIASES.items()
        if environment.get(ALIAS_PREFIX + theirs) and theirs != "TIMEOUT_SECONDS"
    }
    seconds = environment.get(ALIAS_SECONDS, "")
    if (number := _seconds(seconds)) is not None:
        found["timeout_seconds"] = number
    if "base_url" in found:
        found["provider"] = "dify"
    return {"knowledge": found} if found else {}


def no_seconds(environment: Mapping[str, str]) -> bool:
    """Tell whether the alias of the time-out is given but has no effect."""
    text = environment.get(ALIAS_SECONDS, "")
    return bool(text) and _seconds(text) is None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def lines_of_file(text: str) -> Callable[[tuple[str, ...]], int] | None:
    """Return a function that finds the line of a setting in a TOML text, or of its table if the setting is not there.

    None if the extra [lab] is not installed; then only the file is named.
    """
    if not extras.installed("lab"):
        return None
    from agent_core.owner.file_lines import line_of, lines_of

    lines = lines_of(text, "toml")
    return lambda path: line_of(lines, path)
