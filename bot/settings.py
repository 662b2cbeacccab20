"""Every setting: command line > environment > ``phonedesk.toml`` > defaults, each value checked.

Environment names are ``PHONEDESK_`` and the path with ``__`` between levels: ``PHONEDESK_MODEL__BASE_URL``. The names
``PHONE_AGENT_KNOWLEDGE_…`` are aliases for the knowledge base. The file ``PHONEDESK_CONFIG`` takes the place of
``phonedesk.toml`` and has to be there. Secrets are masked wherever they are shown.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import structlog
from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)
from sqlalchemy.engine.url import make_url
from sqlalchemy.exc import ArgumentError
from tzlocal import get_localzone_name

from agent_core.errors import ConfigInvalid, InputRejected
from agent_core.model.profile import BY_NAME, model_profile
from knowledge.factory import Provider, providers_of
from knowledge.template import Template
from scheduler.digests import parse_digest_time
from scheduler.times import parse_quiet
from storage.engine import database_url

log = structlog.get_logger(__name__)

CONFIG_FILE = "phonedesk.toml"
PREFIX = "PHONEDESK_"
CONFIG_NAME = f"{PREFIX}CONFIG"
OF_COMMANDS = {f"{PREFIX}EVAL_MODEL_KEY"}  # options of commands that are not settings
ENV_FILE = ".env"
HOST_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
ALIAS_PREFIX = "PHONE_AGENT_KNOWLEDGE_"


def _usable_database(url: str) -> str:
    """The message never repeats the URL, which may hold a password."""
    if url:
        try:
            database_url(url)
        except (ValueError, ArgumentError):
            raise ValueError("a database is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME") from None
    return url


def _listed(value: object) -> object:
    """``a:1,b:2`` from the environment, as well as a JSON list."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def _named(value: object) -> object:
    """``S1=Counter,S2=Back office`` from the environment, as well as a JSON object."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return json.loads(value)
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(serial.strip() and name.strip() for serial, _, name in pairs):
        raise ValueError("write it as SERIAL=Name,SERIAL=Name")
    return {serial.strip(): name for serial, _, name in pairs}


def _told_apart(names: dict[str, str]) -> dict[str, str]:
    """One line of 1 to 40 letters each, and no two alike."""
    plain = {serial: " ".join(name.split()) for serial, name in names.items()}
    if not all(0 < len(name) <= 40 for name in plain.values()):
        raise ValueError("a phone's name has 1 to 40 letters")
    if len({name.casefold() for name in plain.values()}) < len(plain):
        raise ValueError("two phones have the same name")
    return plain


DatabaseUrl = Annotated[str, AfterValidator(_usable_database)]
Listed = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
Named = Annotated[dict[str, str], NoDecode, BeforeValidator(_named), AfterValidator(_told_apart)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _known_profile(name: str) -> str:
    if name != BY_NAME:
        model_profile(name)
    return name


class ModelSettings(_Section):
    """The OpenAI-compatible endpoint that drives the phone."""

    base_url: str = "http://localhost:8000/v1"
    api_key: SecretStr = SecretStr("EMPTY")
    name: str = "autoglm-phone-9b"
    max_tokens: int = Field(default=3000, gt=0)
    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=0.85, ge=0, le=1)
    frequency_penalty: float = Field(default=0.2, ge=-2, le=2)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    timeout_seconds: float = Field(default=60.0, gt=0)
    profile: Annotated[str, AfterValidator(_known_profile)] = BY_NAME  # how the model is asked
    dialect: Literal["", "autoglm", "json", "gelab", "auto"] = ""  # how it is read; "": as its profile says
    vision: bool = True  # False: it is sent no pictures, whatever its profile says


def _known_providers(written: str) -> str:
    return ",".join(providers_of(written))


class RemoteSettings(_Section):
    """One remote provider's own; what is empty is as the settings of all say. With an address of its own, dataset and
    token are its own, too."""

    base_url: str = ""
    dataset_id: str = ""
    token: SecretStr = SecretStr("")
    timeout_seconds: float | None = Field(default=None, gt=0)
    min_score: float | None = Field(default=None, ge=0, le=1)


class TemplateSettings(RemoteSettings, Template):
    """The template of the provider ``http``: what is sent, and where the records stand in the answer."""


class KnowledgeSettings(_Section):
    """``embedded``: the entries in this machine's own store. ``dify``: a Dify dataset, or what speaks its form.
    ``ragflow``: datasets of RAGFlow. ``http``: any service, by template. Several with commas are asked in this order.
    """

    provider: Annotated[str, AfterValidator(_known_providers)] = "embedded"
    base_url: str = ""
    dataset_id: str = ""
    token: SecretStr = SecretStr("")
    timeout_seconds: float = Field(default=10.0, gt=0)
    min_score: float = Field(default=0.6, ge=0, le=1)  # under it a person is asked
    sample: bool = False  # an empty embedded store begins with the sample shop's entries, for trying out
    dify: RemoteSettings = RemoteSettings()
    ragflow: RemoteSettings = RemoteSettings()
    http: TemplateSettings = TemplateSettings()

    @property
    def providers(self) -> tuple[Provider, ...]:
        return providers_of(self.provider)


class ChooserSettings(_Section):
    """The text model that chooses among records. Without one only a sure record is sent."""

    base_url: str = ""  # "": none
    name: str = ""
    api_key: SecretStr = SecretStr("")
    timeout_seconds: float = Field(default=20.0, gt=0)
    compose: bool = False  # it may write a short reply from several records; code checks it against them
    max_records: int = Field(default=5, ge=1, le=10)
    min_score: float = Field(default=0.3, ge=0, le=1)  # a record under it is not chosen

    @model_validator(mode="after")
    def _is_whole(self) -> ChooserSettings:
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url must begin with http:// or https://")
        if bool(self.base_url.strip()) != bool(self.name.strip()):
            raise ValueError("base_url and name belong together: set both or none")
        return self


class DeviceSettings(_Section):
    here: bool = True  # False: this server has no phones, workers on other machines do
    serial: str = ""  # "": the only phone that is attached
    connect: Listed = ()  # addresses host:port that are connected to at the start
    names: Named = Field(default_factory=dict)  # what people call the phones, by serial
    adb_path: str = ""
    adb_host: str = "127.0.0.1"
    adb_port: int | None = Field(default=None, gt=0, lt=65536)  # None: ANDROID_ADB_SERVER_PORT, or 5037


class ObserveSettings(_Section):
    elements: bool = True  # texts of the screen in the prompt; a text-only model can work by them
    tree: Literal["auto", "on", "off"] = "auto"
    ocr: Literal["auto", "off"] = "auto"  # auto: where the extra [ocr] is installed
    model: bool = True  # the model may transcribe a screen that neither tree nor OCR can read


class PicturesSettings(_Section):
    blur: bool = True  # codes, passwords, balances and card numbers are covered in pictures for people


class RunSettings(_Section):
    max_steps: int = Field(default=100, gt=0, le=1000)
    hold_seconds: float = Field(default=60.0, ge=0)  # how long the phone is held while a person is asked
    phone_wait_seconds: float = Field(default=0.0, ge=0)  # for a phone that is away, then the run fails; 0: for ever
    part_chars: int = Field(default=500, ge=50, le=4000)  # a longer answer goes out in parts


class SweepSettings(_Section):
    cool_down_seconds: float = Field(default=60.0, ge=0, le=86400)  # after our answer, unless they write again


class WatchSettings(_Section):
    """How closely the notifications of a phone are followed for which a watch is on. Seconds."""

    every_seconds: float = Field(default=2.0, ge=0.2, le=60)  # from one look to the next
    settle_seconds: float = Field(default=2.0, ge=0, le=60)  # since the newest message: they have stopped typing
    longest_settle_seconds: float = Field(default=15.0, ge=0, le=600)  # since the first; then they are answered anyway


class QuestionSettings(_Section):
    """What happens to a question that nobody answers. Minutes; 0 is never."""

    deadline_minutes: float = Field(default=240.0, ge=0, le=43200)
    remind_minutes: float = Field(default=30.0, ge=0, le=43200)  # the first; then after twice and four times as long
    escalate_minutes: float = Field(default=0.0, ge=0, le=43200)  # until somebody else is shown it, too
    escalate_chat: str = Field(default="", pattern=r"^(-?[0-9]{1,19})?$")  # a Telegram chat; "": every other owner


def _checked_by(read: Callable[[str], object]) -> AfterValidator:
    """A text that ``read`` can read, or "off"; its InputRejected becomes the setting's error."""

    def check(text: str) -> str:
        try:
            read("" if text.strip().lower() == "off" else text)
        except InputRejected as error:
            raise ValueError(str(error)) from None
        return "" if text.strip().lower() == "off" else text.strip()

    return AfterValidator(check)


class DigestSettings(_Section):
    """When a summary is sent, in the owner's zone; "off", or "" in the file, is off."""

    daily: Annotated[str, _checked_by(parse_digest_time)] = "09:00"
    weekly: Annotated[str, _checked_by(lambda text: parse_digest_time(text, weekly=True))] = "mon 09:00"


class AlertSettings(_Section):
    """What people are told when a phone, the model or the knowledge base is down."""

    after_minutes: float = Field(default=5.0, ge=0, le=1440)  # how long it must be down; 0: no alerts
    poll_minutes: float = Field(default=10.0, ge=1, le=1440)  # between two questions to the model or knowledge service
    chat: str = Field(default="", pattern=r"^(-?[0-9]{1,19})?$")  # a Telegram chat; "": every owner's own


class QuietSettings(_Section):
    """Digests wait until the end of these hours, and what is said in them makes no sound."""

    hours: Annotated[str, _checked_by(parse_quiet)] = ""  # 22:00-08:00 in the owner's zone; "": never


class PriceSettings(_Section):
    """What a million tokens cost. Without any, digests name no costs."""

    tokens_in: float | None = Field(default=None, ge=0)
    tokens_out: float | None = Field(default=None, ge=0)
    currency: str = Field(default="CNY", max_length=8)


class TelegramSettings(_Section):
    token: SecretStr = SecretStr("")  # "": no bot
    api_base_url: str = "https://api.telegram.org"
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = ""  # the public address of this server, with https
    webhook_secret: SecretStr = SecretStr("")
    per_minute: int = Field(default=30, ge=0, le=1000)  # commands of one person; an owner's four times; 0: no limit
    topics: bool = True  # in a forum each phone has a topic of its own

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> TelegramSettings:
        if self.mode == "webhook" and not self.webhook_url.startswith("https://"):
            raise ValueError("mode webhook needs webhook_url, the public https address of this server")
        return self


class WebSettings(_Section):
    host: str = "127.0.0.1"
    port: int = Field(default=8737, ge=0, lt=65536)


class QueueSettings(_Section):
    executor_id: str = Field(default="phonedesk-1", pattern=HOST_NAME.pattern)  # the host's name
    database_url: DatabaseUrl = Field(default="", repr=False)  # "": beside ours
    lost_after_seconds: float = Field(default=30.0, ge=1, le=600)  # a host that is not heard for so long is gone
    drain_seconds: float = Field(default=5.0, ge=0, le=3600)  # at the end, runs at work may end by themselves


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
    database_url: DatabaseUrl = Field(default="", repr=False)  # "": SQLite in data_dir
    lang: Literal["zh", "en"] = "zh"
    timezone: str = Field(default_factory=get_localzone_name)
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    keep_days: int = Field(default=30, ge=2, le=3650)  # how long events, pictures and messages are kept
    model: ModelSettings = ModelSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    chooser: ChooserSettings = ChooserSettings()
    device: DeviceSettings = DeviceSettings()
    observe: ObserveSettings = ObserveSettings()
    pictures: PicturesSettings = PicturesSettings()
    run: RunSettings = RunSettings()
    sweep: SweepSettings = SweepSettings()
    watch: WatchSettings = WatchSettings()
    questions: QuestionSettings = QuestionSettings()
    digest: DigestSettings = DigestSettings()
    alerts: AlertSettings = AlertSettings()
    quiet: QuietSettings = QuietSettings()
    price: PriceSettings = PriceSettings()
    telegram: TelegramSettings = TelegramSettings()
    web: WebSettings = WebSettings()
    queue: QueueSettings = QueueSettings()

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        from zoneinfo import ZoneInfo

        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError) as error:
            raise ValueError(f"no time zone named {name!r}; use a name such as Asia/Shanghai") from error
        return name

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

    def secrets(self) -> list[str]:
        """Every value that must not be shown, as plain text: tokens, keys, passwords of the databases."""
        passwords = [make_url(url).password for url in (self.database_url, self.queue.database_url) if url]
        return [value for value in (*_secrets(self), *passwords) if value]


def _secrets(section: BaseModel) -> Iterator[str]:
    for _, value in section:
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, BaseModel):
            yield from _secrets(value)
        elif isinstance(value, dict):  # headers; a short one would blot out whole messages
            yield from (secret for secret in map(_header_secret, value.values()) if len(secret) >= 6)


def _header_secret(value: object) -> str:
    """What is secret in a header: all of it, but a template of words that everybody knows."""
    plain = value.get_secret_value() if isinstance(value, SecretStr) else ""
    return "" if "{" in plain or plain == "application/json" else plain


def config_file() -> Path:
    """The TOML file that is read where it is there."""
    return Path(os.environ.get(CONFIG_NAME) or CONFIG_FILE).expanduser()


def _written() -> dict[str, str]:
    """The values of ``.env`` in the folder that we were started from; empty ones count for nothing."""
    return {name: value for name, value in dotenv_values(ENV_FILE).items() if value}


class ConfigFile(TomlConfigSettingsSource):
    """The TOML file. ConfigInvalid where it cannot be read, names what is no setting, or was named and is not there."""

    def __init__(self, settings_cls: type[BaseSettings]) -> None:
        file = config_file()
        if os.environ.get(CONFIG_NAME) and not file.is_file():
            raise ConfigInvalid(
                f"{CONFIG_NAME} names {file}, which is no file.", advice="Correct the path, or unset it."
            )
        try:
            super().__init__(settings_cls, toml_file=file)
        except (OSError, ValueError) as error:
            raise ConfigInvalid(f"{file} cannot be read: {error}.", advice="Mend the file.") from None
        unknown = sorted(self.toml_data.keys() - settings_cls.model_fields.keys())
        if unknown:
            raise ConfigInvalid(f"{file} holds what is no setting: {', '.join(unknown)}.", advice="Correct the names.")


class KnowledgeAliases(PydanticBaseSettingsSource):
    """``PHONE_AGENT_KNOWLEDGE_BASE_URL``, ``…_DATASET_ID``, ``…_TIMEOUT_SECONDS``, ``…_AUTH_TOKEN`` or ``…_TOKEN``.

    An address means the Dify form. A time-out that is no number of seconds is reported and the default kept.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False  # the values come all at once, from __call__

    def __call__(self) -> dict[str, Any]:
        found = aliases({**_written(), **os.environ})
        return {"knowledge": found} if found else {}


def aliases(environment: Mapping[str, str]) -> dict[str, Any]:
    """The knowledge settings that the alias names give."""
    names = {"BASE_URL": "base_url", "DATASET_ID": "dataset_id", "TOKEN": "token", "AUTH_TOKEN": "token"}
    found: dict[str, Any] = {
        ours: environment[ALIAS_PREFIX + theirs]
        for theirs, ours in names.items()
        if environment.get(ALIAS_PREFIX + theirs)
    }
    seconds = environment.get(ALIAS_PREFIX + "TIMEOUT_SECONDS", "")
    if seconds:
        if (number := _seconds(seconds)) is not None:
            found["timeout_seconds"] = number
        else:
            log.warning("setting_ignored", name=ALIAS_PREFIX + "TIMEOUT_SECONDS", reason="not a number; default kept")
    if "base_url" in found:
        found["provider"] = "dify"
    return found


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def unknown_names() -> dict[str, str]:
    """Names of the environment and of ``.env`` that are meant for us and set nothing: each with the setting that may be
    meant, "" where none is near. A wrong name inside a section is not among them, ``load`` refuses it.
    """
    names = tuple(_names(Settings, PREFIX))
    known = {*names, CONFIG_NAME, *OF_COMMANDS}
    sections = {name.split("__")[0] for name in names if "__" in name}
    given = {name.upper() for name in (*os.environ, *dotenv_values(ENV_FILE)) if name.upper().startswith(PREFIX)}
    return {name: _nearest(name, names) for name in sorted(given - known) if name.split("__")[0] not in sections}


def _names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from _names(info.annotation, f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}"


def _nearest(name: str, names: Iterable[str]) -> str:
    """By the letters behind the prefix: what is most often wrong is the number of underscores."""
    by_letters = {known.removeprefix(PREFIX).replace("_", ""): known for known in names}
    near = difflib.get_close_matches(name.removeprefix(PREFIX).replace("_", ""), by_letters, n=1, cutoff=0.5)
    return by_letters[near[0]] if near else ""


def load(**overrides: Any) -> Settings:
    """The settings; ``overrides`` come from the command line. ConfigInvalid names each wrong one and why."""
    try:
        return Settings(**{name: value for name, value in overrides.items() if value is not None})
    except ValidationError as error:
        lines = [_line(wrong["loc"], wrong["type"], wrong["msg"]) for wrong in error.errors(include_input=False)]
        raise ConfigInvalid(
            "Settings are not usable. " + "; ".join(lines) + ".",
            advice=f"Change them in the environment, in {ENV_FILE} or in {config_file()}.",
        ) from None
    except SettingsError as error:  # a value of the environment that is to be JSON; its message holds no value
        raise ConfigInvalid(
            f"The environment is not usable: {error}.",
            advice="Set single values, such as PHONEDESK_MODEL__NAME; a table is written as JSON.",
        ) from None


def _line(location: tuple[int | str, ...], kind: str, message: str) -> str:
    """What is wrong with one setting. A name that does not exist is given as it was written, where it was written; one
    that does, under its name in the environment and in the file.
    """
    parts = [str(part) for part in location]
    name, key = PREFIX + "__".join(part.upper() for part in parts), ".".join(parts)
    if kind != "extra_forbidden":
        return f"{name} ({key} in {config_file()}): {message}"
    in_environment = name in {given.upper() for given in (*os.environ, *_written())}
    where = f"{key} (in {config_file()})" if _in_file(parts) and not in_environment else name
    return f"{where}: there is no such setting"


def _in_file(parts: list[str]) -> bool:
    file = config_file()
    found: object = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for part in parts:
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True
