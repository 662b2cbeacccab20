"""The base of the desk's services: their shared parts, and the check of rights, which is the same in every channel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar
from zoneinfo import ZoneInfo

from agent_core.devices.base import Device, DeviceEntry
from agent_core.errors import PhonedeskError, RateLimited
from agent_core.model.usage import Prices
from agent_core.perception.observer import SeenPage, read_for_people, screen_for_people
from agent_core.texts import Lang, Listed
from bot.desk.actors import AccessDenied, Actor, ChatRef, MessageRef, Role, StillLimited, role_denied
from bot.desk.live_screens import LiveScreens
from bot.desk.phonebook import PhoneBook, book_of
from bot.desk.request_limits import RepeatedLooks, RequestLimit
from bot.desk.webhook_client import WebhookClient
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.host import Fleet
from scheduler.runs.service import RunService
from scheduler.times import parse_zone
from storage.engine import Database
from storage.hosts import HostPhone
from storage.messages import CardRow, Cards
from storage.people import Audit, People, PersonRow
from storage.questions import Questions
from storage.runs import RunRow

if TYPE_CHECKING:  # they import the desk's views
    from bot.app.learning import CoreLearning
    from bot.app.phones import OwnPhones
    from bot.app.plans.service import PlanService
    from bot.app.settings.origin import ShownSetting
    from bot.app.take_over import TakeOvers

TELEGRAM = "telegram"
API = "api"  # the channel of programs with a key
CONSOLE = "console"  # the channel of people in a browser
FAILED = "failed"  # in an entry of the audit log: the error that came after the call was allowed


@dataclass
class DeskContext:
    """The parts that the desk's services share. If the settings of a running server change, the server changes some of
    them.

    entries: returns the phones that adb knows.
    device: returns one of them by its serial ("" for the only one).
    """

    db: Database
    runs: RunService
    entries: Callable[[], Awaitable[Sequence[DeviceEntry]]]
    device: Callable[[str], Awaitable[Device]]
    timezone: str
    serial: str = ""  # the phone that is meant if none is named
    store: EmbeddedKnowledge | None = None  # the shop's own entries; None if a command does not use them
    provider: str = "embedded"  # the knowledge bases that answer customers, as the settings write them
    escalate_chat: str = ""  # the Telegram chat for questions that nobody answers; "" for every other owner's own
    pace: RequestLimit = field(default_factory=RequestLimit)  # how often a person may ask
    looks: RepeatedLooks = field(default_factory=RepeatedLooks)  # the repeated views of programs
    # When the daily and the weekly digest are sent, as the settings write it.
    digest_at: tuple[str, str] = ("", "")
    alert_chat: str = ""  # the Telegram chat for alerts; "" for every owner's own
    lang: Lang = "zh"  # the language of chats that belong to nobody
    keep: timedelta | None = None  # how long events are kept; None for ever
    prices: Prices = field(default_factory=Prices)
    screens: LiveScreens = field(default_factory=lambda: LiveScreens(screen_for_people))  # of phones, secrets covered
    page: Callable[[Device], Awaitable[SeenPage]] = read_for_people  # returns the reading of the screen
    names: Mapping[str, str] = field(default_factory=dict)  # the phones' names in the settings, by serial
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # their tags there
    # Like ``entries``, but returns at once and connects to nothing. None if this process does not know the phones.
    glance: Callable[[], Awaitable[Sequence[DeviceEntry]]] | None = None
    fleet: Fleet | None = None  # the phones of all hosts; None for those of this database, with the default times
    host: str = ""  # this process's name as a host of phones; "" if it has no phones
    planning: PlanService | None = None  # makes plans; None if this process has no phones
    learning: CoreLearning | None = None  # learns apps on phones; None if this process has no phones
    own_phones: OwnPhones | None = None  # connects and sets up phones; None if this process has no phones
    webhook_client: WebhookClient = field(default_factory=WebhookClient)
    take_overs: TakeOvers | None = None  # phones in people's hands; None if this process has no phones
    console_url: str = ""  # where people open the console
    settings: Callable[[], Sequence[ShownSetting]] | None = None  # returns them as they may be shown

    def log_in_link(self, code: str) -> str:
        """Return the link of a code. The code is behind the #, which a browser sends to nobody."""
        return f"{self.console_url}/login#{code}"

    @property
    def whole_fleet(self) -> Fleet:
        """The phones of all hosts."""
        return self.fleet or Fleet(self.db)

    @property
    def uses_entries(self) -> bool:
        """True if the shop's own entries are among the knowledge bases that answer customers."""
        return "embedded" in {name.strip() for name in self.provider.split(",")}


# The entry of the audit log for the present call, and its detail; None before ``_allow`` has written one.
_entry: ContextVar[tuple[int, dict[str, Any]] | None] = ContextVar("audit_entry", default=None)
P = ParamSpec("P")
T = TypeVar("T")


def _with_failure(call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Let the audit log say why a call failed after it was allowed: its entry is written before."""

    @wraps(call)
    async def called(*args: P.args, **kwargs: P.kwargs) -> T:
        before = _entry.set(None)
        try:
            return await call(*args, **kwargs)
        except PhonedeskError as error:
            written, service = _entry.get(), args[0]
            if written is not None and isinstance(service, DeskService):
                await service._audit.failed(written[0], {**written[1], FAILED: _failure(error)})
            raise
        finally:
            _entry.reset(before)

    return called


def _failure(error: PhonedeskError) -> dict[str, Any]:
    """Return an error as the audit log keeps it, so that it can be told in either language."""
    values = {name: value if isinstance(value, int) else str(value) for name, value in error.values.items()}
    return {"kind": error.kind, "message": error.message, "key": error.key, "values": values}


class DeskService:
    """Base class of the desk's services. Each serves the requests about one subject, and checks their rights.

    If a public method raises an error after ``_allow``, the entry in the audit log says so.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in vars(cls).copy().items():
            if not name.startswith("_") and iscoroutinefunction(method):
                setattr(cls, name, _with_failure(method))

    def __init__(self, context: DeskContext) -> None:
        self.context = context
        self._db = context.db
        self._audit = Audit(context.db)

    async def _allow(
        self,
        actor: Actor,
        least: Role,
        command: str,
        *,
        phone: str | None = None,
        chat: ChatRef | None = None,
        paced: bool = True,
        **detail: Any,
    ) -> None:
        """Check the actor's rights, and write the audit log. Rights are checked nowhere else.

        least: the role that the call needs.
        phone: the serial that the call is about; None if it is about none.
        chat: the chat that the call names. The chat that the actor asks from is checked in any case.
        paced: False if the call does not count towards the limit of requests. Views by a program or a page never do,
        and
            the same view is in the audit log once a minute.
        Raises AccessDenied if a right is missing, and RateLimited or StillLimited if the actor asks too often.
        """
        looks = actor.looks or (least is Role.VIEWER and actor.channel in (API, CONSOLE))
        if paced and not looks:
            await self._count(actor, command)
        refusal = _refusal(actor, least, phone, chat)
        if refusal is not None:
            detail["why"], error = refusal
            if error is None:
                error = _other_phone(phone or "", await self._book(), actor)
            await self._audit.write(actor.id, actor.channel, command, detail, allowed=False)
            raise error
        if not looks or self.context.looks.is_new(actor, command, detail, self._db.now()):
            entry = await self._audit.write(actor.id, actor.channel, command, detail)
            _entry.set((entry, detail))

    async def _newest_change(self, actor: Actor, *commands: str) -> Mapping[str, Any]:
        """Return what the audit log keeps of this actor's newest change by one of these commands; {} for none."""
        rows = await self._audit.done_by(actor.id, commands)
        return next((row.detail for row in rows if row.detail.get("before")), {})

    async def _count(self, actor: Actor, command: str) -> None:
        """Count a request. Raises RateLimited at the first one too many and writes the audit log, then StillLimited."""
        try:
            self.context.pace.count(actor, self._db.now())
        except StillLimited:
            raise
        except RateLimited:
            await self._audit.write(actor.id, actor.channel, command, {"why": "rate"}, allowed=False)
            raise

    def _phone_for(self, actor: Actor, serial: str | None, book: PhoneBook) -> str:
        """Return the serial of the named phone, else of the default one, else of the only one that the person may use.

        "" means any phone, which ``_allow`` refuses to people who are limited to certain phones.
        """
        wanted = serial or book.serial(self.context.serial)
        if serial or not actor.phones or wanted in actor.phones:
            return wanted
        return actor.phones[0] if len(actor.phones) == 1 else ""

    async def _book(self, attached: Sequence[DeviceEntry] = ()) -> PhoneBook:
        """Return the names of the phones. ``attached``: the phones attached now, besides earlier ones."""
        return await book_of(self._db, self.context.names, attached, usual=self.context.serial)

    async def _names(self) -> dict[str, str]:
        """Return the names of all people by id."""
        return {str(person.id): person.name for person in await People(self._db).all()}

    async def _person_of(self, actor_id: str) -> PersonRow | None:
        """Return the person with this id; None if they are gone, or it is a program's or the terminal's."""
        return await People(self._db).get(int(actor_id)) if actor_id.isdecimal() else None

    async def _owners(self) -> list[PersonRow]:
        return [person for person in await People(self._db).all() if person.role == Role.OWNER.value]

    async def _elsewhere(self) -> list[HostPhone]:
        """Return the phones of the other hosts, including hosts that have stopped reporting."""
        return [phone for phone in (await self._fleet.phones()).values() if phone.host not in {"", self.context.host}]

    @property
    def _fleet(self) -> Fleet:
        return self.context.whole_fleet

    @property
    def _zone(self) -> ZoneInfo:
        return parse_zone(self.context.timezone)

    async def chat_of(self, run: RunRow) -> ChatRef | None:
        """Return the chat that shows a run: the chat of its request, or the first owner's once it has asked a question.

        If the person who asked for the run is gone, or may no longer see its phone, it is shown in the chat that the
        settings name for unanswered questions, else in the first owner's. Returns None if no chat shows it.
        """
        chat = chat_ref(run.chat)
        if chat is not None:
            if await self._is_seen_in(chat, run.serial or run.wanted):
                return chat
            if wanted := self.context.escalate_chat:
                return telegram_chat(wanted)
            return chat_ref(await self._owners_chat())
        asked = await Questions(self._db).find(run_id=run.id, limit=1)
        return chat_ref(await self._owners_chat()) if asked else None

    async def _is_seen_in(self, chat: ChatRef, serial: str) -> bool:
        """Tell whether a chat may show this phone ("" for none yet). A private chat has the limits of its person."""
        if chat.channel not in (TELEGRAM, CONSOLE) or chat.kind != "private" or not chat.chat_id.isdecimal():
            return True
        people, number = People(self._db), int(chat.chat_id)
        person = await (people.get(number) if chat.channel == CONSOLE else people.by_telegram(number))
        return person is not None and (not serial or not person.serials or serial in person.serials)

    async def _owners_chat(self) -> dict[str, str] | None:
        """Return the first owner's own chat, for requests from outside any chat; None if there is no owner."""
        owners = await self._owners()
        return chat_data(own_chat(owners[0])) if owners else None


def sees(actor: Actor, serial: str) -> bool:
    """Tell whether the person may see this phone; "" means no phone yet."""
    return not actor.phones or serial in actor.phones


def _refusal(
    actor: Actor, least: Role, phone: str | None, chat: ChatRef | None
) -> tuple[Literal["role", "chat", "phone"], AccessDenied | None] | None:
    """Return why a call is refused, and the error; None if it is allowed.

    The error for a phone is None here: it names the person's own phones, which only the caller knows.
    """
    if not actor.role.covers(least):
        return "role", role_denied(actor, least)
    places = {place.key for place in (actor.chat, chat) if place is not None}
    if actor.chats and not (places and places <= set(actor.chats)):
        said, advice = "You may not do this in this chat.", "Use the chat that you were given."
        return "chat", AccessDenied(said, advice=advice, key="not_this_chat")
    if phone is not None and not sees(actor, phone):
        return "phone", None
    return None


def _other_phone(phone: str, book: PhoneBook, actor: Actor) -> AccessDenied:
    said = "This is on a phone that is not yours to use." if phone else "Which phone is meant?"
    phones = Listed(book.list(actor.phones))
    key = "not_your_phone" if phone else "which_phone"
    return AccessDenied(said, advice=f"Yours: {phones}.", key=key, phones=phones)


def telegram_chat(chat_id: str) -> ChatRef:
    """Return the Telegram chat with this id. Groups have negative ids."""
    return ChatRef(TELEGRAM, chat_id, kind="group" if chat_id.startswith("-") else "private")


def own_chat(person: PersonRow) -> ChatRef:
    """Return a person's own chat: in Telegram, or in the console if they have no Telegram."""
    if person.telegram_id is None:
        return ChatRef(CONSOLE, str(person.id))
    return ChatRef(TELEGRAM, str(person.telegram_id))


def own_chats(person: PersonRow) -> set[str]:
    """Return the keys of a person's own chats: everybody has one in the console."""
    return {own_chat(person).key, ChatRef(CONSOLE, str(person.id)).key}


def chat_data(chat: ChatRef) -> dict[str, str]:
    """Return a chat in the form in which it is stored."""
    return {"channel": chat.channel, "chat_id": chat.chat_id, "thread_id": chat.thread_id, "kind": chat.kind}


def chat_ref(data: Mapping[str, Any] | None) -> ChatRef | None:
    """Return a chat from its stored form; None if there is none."""
    if not data:
        return None
    return ChatRef(
        str(data["channel"]),
        str(data["chat_id"]),
        str(data.get("thread_id") or ""),
        "group" if data.get("kind") == "group" else "private",
    )


def card_message(row: CardRow | None) -> MessageRef | None:
    """Return the message of a card; None if it was not sent or its chat is no longer known."""
    chat = chat_ref(row.chat) if row else None
    return MessageRef(chat, row.message_id, row.picture) if row and chat else None


async def put_card(db: Database, subject: str, subject_id: str, ref: MessageRef) -> None:
    """Store which message is the card of a run or a question."""
    await Cards(db).put(subject, subject_id, chat=chat_data(ref.chat), message_id=ref.message_id, picture=ref.picture)
