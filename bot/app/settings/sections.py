"""The settings by subject."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from agent_core.model.profile import BY_NAME
from agent_core.planner.tools import EXTRA
from bot.app.settings.values import (
    HOST_NAME,
    Addresses,
    BotToken,
    DatabaseUrl,
    DatasetId,
    Filled,
    HostNames,
    KnownProviders,
    Named,
    Pins,
    Proxy,
    PublicUrl,
    Tagged,
    ToolNames,
    WdaAddresses,
    WebAddress,
    WebAddressOrNone,
    checked_by,
)
from knowledge.config import Provider, Template, providers_of
from scheduler.times import parse_quiet
from scheduler.times.shop import parse_digest_time


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EndpointSettings(Section):
    """An OpenAI-compatible endpoint that can drive a phone."""

    base_url: WebAddress = "http://localhost:8000/v1"
    api_key: SecretStr = SecretStr("EMPTY")
    name: Filled = "autoglm-phone-9b"
    max_tokens: int = Field(default=3000, gt=0)
    temperature: float = Field(default=0.0, ge=0, le=2)
    top_p: float = Field(default=0.85, ge=0, le=1)
    frequency_penalty: float = Field(default=0.2, ge=-2, le=2)
    extra_body: dict[str, Any] = Field(default_factory=dict, repr=False)
    timeout_seconds: float = Field(default=60.0, gt=0)
    profile: Filled = BY_NAME  # how the model is asked; one of ours or of the owner's
    dialect: Literal["", "autoglm", "json", "gelab", "auto"] = ""  # how it is read; "": as its profile says
    vision: bool = True  # False: it is sent no pictures, whatever its profile says


class FallbackSettings(EndpointSettings):
    """A model that is asked where those before it fail. Address and name are its own, all else has the defaults."""

    base_url: WebAddress
    name: Filled


class ModelSettings(EndpointSettings):
    """The first model, and the models that are asked in this order if it fails."""

    fallbacks: tuple[FallbackSettings, ...] = ()
    fallback_seconds: float = Field(default=60.0, ge=0, le=86400)  # until a model that failed is asked again
    proxy: Proxy = Field(default="", repr=False)  # of every model, also chooser, planner and helper; "": environment


class RemoteSettings(Section):
    """The settings of one remote provider; an empty one is taken from the common settings.

    If it has its own address, dataset and token must also be its own.
    """

    base_url: WebAddressOrNone = ""
    dataset_id: DatasetId = ""
    token: SecretStr = SecretStr("")
    timeout_seconds: float | None = Field(default=None, gt=0)
    min_score: float | None = Field(default=None, ge=0, le=1)


class TemplateSettings(RemoteSettings, Template):
    """The template of the provider ``http``: the request, and the place of the records in the answer."""


class KnowledgeSettings(Section):
    """The knowledge base.

    ``embedded``: the entries in this machine's own store. ``dify``: a Dify dataset, or a service with the same form.
    ``ragflow``: datasets of RAGFlow. ``http``: any service, by template. Several with commas are asked in this order.
    """

    provider: KnownProviders = "embedded"
    base_url: WebAddressOrNone = ""
    dataset_id: DatasetId = ""
    token: SecretStr = SecretStr("")
    timeout_seconds: float = Field(default=10.0, gt=0)
    min_score: float = Field(default=0.6, ge=0, le=1)  # under it a person is asked
    sample: bool = False  # an empty embedded store begins with the sample shop's entries, for trying out
    proxy: Proxy = Field(default="", repr=False)  # of every remote provider; "": as the environment says
    dify: RemoteSettings = RemoteSettings()
    ragflow: RemoteSettings = RemoteSettings()
    http: TemplateSettings = TemplateSettings()

    @property
    def providers(self) -> tuple[Provider, ...]:
        return providers_of(self.provider)


class OtherModelSettings(Section):
    """A model that has another work than driving the phone."""

    base_url: WebAddressOrNone = ""  # "": none
    name: str = ""
    api_key: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _is_whole(self) -> OtherModelSettings:
        if bool(self.base_url.strip()) != bool(self.name.strip()):
            raise PydanticCustomError("half_given", "base_url and name belong together: set both or none")
        return self


class ChooserSettings(OtherModelSettings):
    """The text model that chooses among records. Without one only a sure record is sent."""

    timeout_seconds: float = Field(default=20.0, gt=0)
    compose: bool = False  # it may write a short reply from several records; code checks it against them
    max_records: int = Field(default=5, ge=1, le=10)
    min_score: float = Field(default=0.3, ge=0, le=1)  # a record under it is not chosen


class PlannerSettings(OtherModelSettings):
    """The text model that plans tasks of several parts, and has phones do them. Without one there are no plans."""

    timeout_seconds: float = Field(default=60.0, gt=0)
    layered_max_turns: int = Field(default=50, ge=1, le=500)  # how often it is asked for one plan
    executor_steps: int = Field(default=5, ge=1, le=100)  # of one part, on the phone
    busy_wait_seconds: float = Field(default=0.0, ge=0, le=600)  # for a phone that another task has
    tools: ToolNames = EXTRA  # its tools besides the phones: ours, and the owner's


class DeviceSettings(Section):
    here: bool = True  # False: this server has no phones, workers on other machines do
    serial: str = ""  # "": the only phone that is attached
    connect: Addresses = ()  # addresses host:port that are connected to at the start
    wda: WdaAddresses = ()  # host:port of WebDriverAgent on each iPhone
    names: Named = Field(default_factory=dict)  # people's names for the phones, by serial
    tags: Tagged = Field(default_factory=dict)  # words that group the phones, by serial
    pins: Pins = Field(default_factory=dict)  # of the screen locks, by serial
    adb_path: str = ""
    adb_host: str = "127.0.0.1"
    adb_port: int | None = Field(default=None, gt=0, lt=65536)  # None: ANDROID_ADB_SERVER_PORT, or 5037
    hdc_path: str = ""  # "": HarmonyOS phones are not looked for


class ObserveSettings(Section):
    elements: bool = True  # texts of the screen in the prompt; a text-only model can work by them
    tree: Literal["auto", "on", "off"] = "auto"
    ocr: Literal["auto", "off"] = "auto"  # auto: if the extra [ocr] is installed
    model: bool = True  # the model may transcribe a screen that neither tree nor OCR can read


class PicturesSettings(Section):
    blur: bool = True  # codes, passwords, balances and card numbers are covered in pictures for people


class TrajectorySettings(Section):
    """The records of each step for ``phonedesk replay``: the model's requests and pictures."""

    record: bool = True
    # covered: without what pictures.blur covers; raw: as they were sent, with customers' secrets; off: none
    pictures: Literal["covered", "raw", "off"] = "covered"
    picture_days: int = Field(default=3, ge=1, le=3650)  # from the end of the run; never longer than keep_days


class RunSettings(Section):
    max_steps: int = Field(default=100, gt=0, le=1000)
    max_tokens: int = Field(default=0, ge=0)  # then a person is asked whether it may go on; 0: never
    max_cost: float = Field(default=0.0, ge=0)  # the same, by the prices
    hold_seconds: float = Field(default=60.0, ge=0)  # how long the phone is held while a person is asked
    phone_wait_seconds: float = Field(default=0.0, ge=0)  # for a phone that is away, then the run fails; 0: for ever
    part_chars: int = Field(default=500, ge=50, le=4000)  # a longer answer goes out in parts
    checked_versions: tuple[str, ...] = ()  # "qq 9.1.30": replies were seen to arrive there


class SweepSettings(Section):
    cool_down_seconds: float = Field(default=60.0, ge=0, le=86400)  # after our answer, unless they write again


class WatchSettings(Section):
    """The timing of a watch on a phone's notifications, in seconds."""

    every_seconds: float = Field(default=2.0, ge=0.2, le=60)  # from one look to the next
    settle_seconds: float = Field(default=2.0, ge=0, le=60)  # since the newest message: they have stopped typing
    longest_settle_seconds: float = Field(default=15.0, ge=0, le=600)  # since the first; then they are answered anyway


class QuestionSettings(Section):
    """The treatment of a question that nobody answers. Minutes; 0 is never."""

    deadline_minutes: float = Field(default=240.0, ge=0, le=43200)
    remind_minutes: float = Field(default=30.0, ge=0, le=43200)  # the first; then after twice and four times as long
    escalate_minutes: float = Field(default=0.0, ge=0, le=43200)  # until somebody else is shown it, too
    escalate_chat: str = Field(default="", pattern=r"^(-?[0-9]{1,19})?$")  # a Telegram chat; "": every other owner


class DigestSettings(Section):
    """The times of the summaries, in the owner's zone; "off", or "" in the file, is off."""

    daily: Annotated[str, checked_by(parse_digest_time)] = "09:00"
    weekly: Annotated[str, checked_by(lambda text: parse_digest_time(text, weekly=True))] = "mon 09:00"


class AlertSettings(Section):
    """The alerts to people when a phone, the model or the knowledge base is down."""

    after_minutes: float = Field(default=5.0, ge=0, le=1440)  # how long it must be down; 0: no alerts
    poll_minutes: float = Field(default=10.0, ge=1, le=1440)  # between two questions to the model or knowledge service
    chat: str = Field(default="", pattern=r"^(-?[0-9]{1,19})?$")  # a Telegram chat; "": every owner's own


class NotifySettings(Section):
    """The addresses for alerts and digests besides Telegram, in the form of Apprise, with blanks between them."""

    urls: SecretStr = SecretStr("")

    @property
    def addresses(self) -> list[str]:
        return self.urls.get_secret_value().split()


class QuietSettings(Section):
    """Quiet hours: digests wait until they end, and of the messages during them only urgent ones make a sound."""

    hours: Annotated[str, checked_by(parse_quiet)] = ""  # 22:00-08:00 in the owner's zone; "": never


class ModelPrice(Section):
    """The price of a million tokens of one model. ``tokens_cached``: those of its cache; None: the same as others."""

    tokens_in: float = Field(ge=0)
    tokens_out: float = Field(ge=0)
    tokens_cached: float | None = Field(default=None, ge=0)


class PriceSettings(Section):
    """The price of a million tokens of any model that ``models`` does not name. Without prices, no costs are shown."""

    tokens_in: float | None = Field(default=None, ge=0)
    tokens_out: float | None = Field(default=None, ge=0)
    tokens_cached: float | None = Field(default=None, ge=0)
    models: dict[str, ModelPrice] = Field(default_factory=dict)
    currency: str = Field(default="CNY", max_length=8)


class LimitSettings(Section):
    """The limits on calls to models, for all runs together; 0 means no limit.

    At a limit by the minute, calls wait for the next minute; at a limit by the day, runs end. Costs are in the prices'
    currency.
    """

    minute_calls: int = Field(default=0, ge=0)
    minute_cost: float = Field(default=0.0, ge=0)
    day_calls: int = Field(default=0, ge=0)
    day_tokens: int = Field(default=0, ge=0)
    day_cost: float = Field(default=0.0, ge=0)


BOT_API = "https://api.telegram.org"


class TelegramSettings(Section):
    token: BotToken = SecretStr("")  # "": no bot
    api_base_url: WebAddress = BOT_API
    proxy: Proxy = Field(default="", repr=False)  # "": as the environment says
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = ""  # the public address of this server, with https
    webhook_secret: SecretStr = SecretStr("")
    per_minute: int = Field(default=30, ge=0, le=1000)  # commands of one person; an owner's four times; 0: no limit
    topics: bool = True  # in a forum each phone has a topic of its own

    @property
    def is_other_server(self) -> bool:
        """True if a Bot API server other than Telegram's own is asked."""
        return self.api_base_url.rstrip("/") != BOT_API

    @model_validator(mode="after")
    def _webhook_is_whole(self) -> TelegramSettings:
        if self.mode == "webhook" and not self.webhook_url.startswith("https://"):
            raise PydanticCustomError(
                "webhook_url", "mode webhook needs webhook_url, the public https address of this server"
            )
        return self


class WebSettings(Section):
    host: str = "127.0.0.1"
    port: int = Field(default=8737, ge=0, lt=65536)
    hosts: HostNames = ()  # further names, addresses and networks under which it is reached, as in the Host header
    public_url: PublicUrl = ""  # the URL that people open, as SCHEME://HOST[:PORT]; "": derived from the other settings


class WebhookSettings(Section):
    """The network settings of webhooks."""

    allow_private: HostNames = ()  # names, addresses and networks that may be asked though private, also over http
    proxy: Proxy = Field(default="", repr=False)  # "": as the environment says


class HelperSettings(OtherModelSettings):
    """The vision model that describes screens, and answers if a client asks for auto_reply.

    Without one, the model that operates the phone does it.
    """

    timeout_seconds: float = Field(default=30.0, gt=0)


class McpSettings(Section):
    """Phones as tools for other programs."""

    enabled: bool = False  # serve answers MCP clients, too
    host: str = "127.0.0.1"
    port: int = Field(default=8738, ge=0, lt=65536)
    hosts: HostNames = ()  # as those of the web server
    max_steps: int = Field(default=40, gt=0, le=1000)  # of one call, whatever it asks for
    low_level: bool = True  # single taps and texts are offered, too, which no policy looks at
    person_at_client: bool = False  # a person answers at the client, so it may decide about customers' answers
    helper: HelperSettings = HelperSettings()


class QueueSettings(Section):
    executor_id: str = Field(default="phonedesk-1", pattern=HOST_NAME.pattern)  # the host's name
    database_url: DatabaseUrl = Field(default="", repr=False)  # "": beside ours
    lost_after_seconds: float = Field(default=30.0, ge=1, le=600)  # a host that is not heard for so long is gone
    drain_seconds: float = Field(default=5.0, ge=0, le=3600)  # at the end, runs at work may end by themselves
