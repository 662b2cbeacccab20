"""Every setting: command line > environment > ``phonedesk.toml`` > defaults, each value checked.

Environment names are ``PHONEDESK_`` and the path with ``__`` between levels: ``PHONEDESK_MODEL__BASE_URL``. The names
``PHONE_AGENT_KNOWLEDGE_…`` are aliases for the knowledge base. The file ``PHONEDESK_CONFIG`` takes the place of
``phonedesk.toml`` and has to be there. Secrets are masked wherever they are shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict
from tzlocal import get_localzone_name

from agent_core.proxies import ProxySetting, environment_secrets, secrets_of
from agent_core.texts import system_language
from bot.app.settings.files import ENV_FILE, PREFIX
from bot.app.settings.free import secrets_in
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
from bot.app.settings.sources import ConfigFile, KnowledgeAliases
from bot.app.settings.values import DatabaseUrl, ZoneName, password_of


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
    lang: Literal["zh", "en"] = Field(default_factory=system_language)
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
        secrets = (*_secrets(self), *self.notify.addresses, *passwords, *proxies, *environment_secrets())
        return [value for value in secrets if value]


def _secrets(section: BaseModel) -> Iterator[str]:
    for _, value in section:
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, BaseModel):
            yield from _secrets(value)
        elif isinstance(value, tuple):
            yield from (secret for part in value if isinstance(part, BaseModel) for secret in _secrets(part))
        elif isinstance(value, dict):  # headers, free tables; a short one would blot out whole messages
            found = (*map(_header_secret, value.values()), *secrets_in(value))
            yield from (secret for secret in found if len(secret) >= 6)


def _header_secret(value: object) -> str:
    """Return the secret part of a header: all of it, except templates and values that everybody knows."""
    plain = value.get_secret_value() if isinstance(value, SecretStr) else ""
    return "" if "{" in plain or plain == "application/json" else plain
