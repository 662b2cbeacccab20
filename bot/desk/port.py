"""What a channel can ask of the product. ``bot.desk`` implements it; ``bot.chat`` and the channels are written to it.

Every call that does something names its actor; the desk checks the actor's rights and raises ``AccessDenied``. Times
are aware datetimes. Pictures are encoded JPEG.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from agent_core.errors import PhonedeskError, RateLimited, SecurityError
from agent_core.ports import Record
from agent_core.session import Question, ReplyRecord, StepRecord
from agent_core.tasks import NO_RULES, TaskRules
from knowledge.entries import Entry, Found, Stats
from knowledge.importing import ImportPlan

if TYPE_CHECKING:
    from bot.desk.digest_port import DigestDesk
    from bot.desk.history_port import HistoryDesk


class AccessDenied(SecurityError):
    """A wrong pairing code, or a role that may not do this."""

    kind = "security.access"


class StillLimited(RateLimited):
    """This person has been told already that they ask too much: a chat says nothing until it is over."""


class NotFound(PhonedeskError):
    """No run, schedule, phone or question of this name."""

    kind = "desk.not_found"


class BadRequest(PhonedeskError):
    """What was asked for cannot be read: a schedule's expression, an empty task."""

    kind = "desk.bad_request"


class DoubleEntry(BadRequest):
    """The knowledge base has an entry for this question already."""

    kind = "desk.double"


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    OWNER = "owner"

    def covers(self, least: Role) -> bool:
        """Whether this role may do what ``least`` may."""
        ranks = list(Role)
        return ranks.index(self) >= ranks.index(least)


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def final(self) -> bool:
        return self in {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.STOPPED}


@dataclass(frozen=True, slots=True)
class Actor:
    """A paired person as one channel knows them. ``id`` is ours, ``user_id`` the channel's.

    ``phones`` (serials) and ``chats`` (their keys) are all that the person may use, empty for every one.
    ``chat`` is where they ask from. ``request`` names what they asked: desk calls for one request count once.
    ``streams``: they want to see what the model thinks while it thinks, where the channel can show it.
    """

    id: str
    channel: str
    user_id: str
    name: str
    lang: Literal["zh", "en"]
    role: Role
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()
    chat: ChatRef | None = None
    request: str = ""
    streams: bool = True


def role_denied(actor: Actor, least: Role) -> AccessDenied:
    """What somebody is told whose role does not reach ``least``."""
    said, advice = f"This is for the role {least}; yours is {actor.role}.", "Ask an owner for it."
    return AccessDenied(said, advice=advice, key="role_denied", role=actor.role, least=least)


@dataclass(frozen=True, slots=True)
class ChatRef:
    """Where something was asked, and where its card is shown. ``thread_id`` is a forum's topic, empty for none."""

    channel: str
    chat_id: str
    thread_id: str = ""
    kind: Literal["private", "group"] = "private"

    @property
    def key(self) -> str:
        """How the chat stands in a person's limits; its topics belong to it."""
        return f"{self.channel}:{self.chat_id}"


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of ours in a chat, by the channel's own ids. ``picture``: it carries one (edited as a caption)."""

    chat: ChatRef
    message_id: str
    picture: bool = False


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One customer's question and what became of it. ``records``: what the knowledge base gave, best first.

    ``sent`` is what was chosen to be sent, ``state`` (as in the ledger) tells whether it was. ``person``: who wrote or
    chose it; ``rated_by``: who gave the thumb (1 up, -1 down, 0 none). Times are in the owner's zone. ``before`` and
    ``after``: whether there was a picture.
    """

    id: str
    run_id: str
    serial: str
    app: str
    contact: str
    question: str
    state: str
    asked_at: datetime
    changed_at: datetime
    query: str = ""
    records: tuple[Record, ...] = ()
    sent: str = ""
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    person: str = ""
    rating: int = 0
    rated_by: str = ""
    rated_at: datetime | None = None
    before: bool = False
    after: bool = False


@dataclass(frozen=True, slots=True)
class AnswersAsked:
    """Which answers are asked for; what is not given matters not.

    ``words``: a contact by the whole name, else words of question or answer. ``since`` and ``until`` in the owner's
    zone: ``7d``, ``12h``, ``today``, ``week``, ``month``, ``2026-11-01`` or ``2026-11-01 18:30``; until a day is with
    that day. ``rating`` 1, -1 or 0. ``unanswered``: skipped, failed, unknown, or under way for over an hour.
    """

    words: str = ""
    contact: str = ""
    text: str = ""
    since: str = ""
    until: str = ""
    state: str = ""
    rating: int | None = None
    provenance: str = ""
    unanswered: bool = False
    app: str = ""
    serial: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class AnswersPage:
    """The newest first. ``total``: how many there are in all; ``older`` and ``newer``: whether there are some."""

    answers: tuple[AnswerView, ...] = ()
    total: int = 0
    older: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class UnansweredView:
    """Questions that are one question, to which the knowledge base had no answer.

    ``answer_id`` and ``example`` are of the newest one. ``answer``: the newest words that a person sent for it, empty
    where nobody did. ``contacts``: who asked.
    """

    answer_id: str
    example: str
    count: int
    newest: datetime
    contacts: tuple[str, ...] = ()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ContactView:
    """A customer who is known beforehand. ``serial`` "" is any phone; ``number`` is the account's in the app."""

    app: str
    name: str
    serial: str = ""
    number: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a person sees it, made from its rows.

    ``steps`` counts the steps done, ``last_step`` is the newest of them (its ``action`` is what was done after the
    gate). ``position`` is the place in the phone's queue, 1 for the next, 0 where it is not queued.
    """

    id: str
    task: str
    status: RunStatus
    lang: Literal["zh", "en"] = "zh"
    serial: str = ""
    phone: str = ""  # the phone's name for a person
    chat: ChatRef | None = None
    by: str = ""  # who started it
    steps: int = 0
    max_steps: int = 100
    last_step: StepRecord | None = None
    message: str = ""
    error_kind: str = ""  # of the error that ended it, see agent_core.errors
    replies: tuple[ReplyRecord, ...] = ()
    answers: tuple[AnswerView, ...] = ()  # those of the log that were sent, the oldest first: to be rated
    position: int = 0
    stopped_by: str = ""  # who was the first to stop it
    held: bool = False  # by a person, until Resume; while it is running it is about to park
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """An asked question. ``then`` is a text key under ``then``: what happens at the deadline, which is in the owner's
    zone.

    ``answer`` is the choice's value or the words, ``by`` a person's name; both empty while it is open, and where nobody
    answered. ``serial``: the phone that it is about.
    """

    id: str
    run_id: str
    question: Question
    chat: ChatRef | None = None
    lang: Literal["zh", "en"] = "zh"
    deadline: datetime | None = None
    then: Literal["", "skip", "deny", "no", "stop", "told", "wait"] = ""
    open: bool = True
    answer: str = ""
    by: str = ""
    asked_at: datetime | None = None
    serial: str = ""


@dataclass(frozen=True, slots=True)
class PhoneView:
    serial: str
    name: str
    state: Literal["free", "busy", "offline", "unauthorized"]


@dataclass(frozen=True, slots=True)
class StatusView:
    """``runs``: running, waiting and queued ones, oldest first."""

    phones: tuple[PhoneView, ...] = ()
    runs: tuple[RunView, ...] = ()
    questions: tuple[QuestionView, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """``by`` and ``answer`` are those of the answer that counts (on ``late`` somebody else's)."""

    state: Literal["accepted", "late", "unknown"]
    by: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleView:
    id: str
    expression: str
    task: str
    next_times: tuple[datetime, ...] = ()  # the next three, in the schedule's time zone
    paused: bool = False
    rules: TaskRules = NO_RULES
    chat: ChatRef | None = None


@dataclass(frozen=True, slots=True)
class EventView:
    """One row of the event log. ``kind`` and ``data`` are those of ``agent_core.ports.Event``."""

    id: int
    run_id: str
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    picture: bytes | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EntryText:
    """What a person writes of a knowledge entry; None is what they left alone."""

    question: str | None = None
    answer: str | None = None
    aliases: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeFile:
    """A file to import, or an export. ``name`` is a plain name; its ending says the form."""

    name: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ImportView:
    """What an import would do, or did (``done``). ``mark`` names the plan: another one, another mark."""

    plan: ImportPlan
    mark: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class KnowledgeStats:
    """``provider``: the knowledge base that answers customers; ``used``: the store's own entries are a part of it."""

    entries: Stats
    provider: str
    used: bool


@dataclass(frozen=True, slots=True)
class PersonView:
    """Who is in. ``phones`` and ``chats`` as in ``Actor``; ``seen``: when the desk was last asked by them, if ever."""

    id: str
    name: str
    role: Role
    lang: Literal["zh", "en"]
    user_id: str
    since: datetime
    seen: datetime | None = None
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()


OWN_CHAT = "own"  # in an invitation: the private chat of whoever uses it


@dataclass(frozen=True, slots=True)
class InviteView:
    """A code that nobody has used yet. ``code`` is there once, when it is made: only its hash is kept.

    ``phones`` and ``chats`` as in ``Actor``, for whoever uses it; OWN_CHAT is their own private one.
    """

    id: str
    role: Role
    by: str
    created_at: datetime
    expires_at: datetime
    code: str = field(default="", repr=False)
    phones: tuple[str, ...] = ()
    chats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedView:
    """Something that was refused. ``who``: a person's name, or the channel's id of a stranger and what they call
    themselves. ``why``: stranger, code, role, phone, chat, rate, or what kind of message it was."""

    at: datetime
    who: str
    command: str
    why: str


class TeamDesk(Protocol):
    """Who may do what; all but ``speak`` and ``stream`` is for owners.

    ``who`` means a person by ``#id``, or by a name that only one has.
    """

    async def people(self, actor: Actor) -> Sequence[PersonView]: ...

    async def invite(
        self, actor: Actor, role: Role, hours: float = 24, *, phones: Sequence[str] = (), chats: Sequence[str] = ()
    ) -> InviteView:
        """A code for one person, which can be used once. BadRequest for a time that is none (up to 30 days).

        ``phones`` and ``chats`` are the person's limits from the first moment. BadRequest for an owner.
        """

    async def invites(self, actor: Actor) -> Sequence[InviteView]:
        """Those that are open, the newest first."""

    async def revoke(self, actor: Actor, invite_id: str) -> InviteView: ...

    async def set_role(self, actor: Actor, who: str, role: Role) -> PersonView:
        """BadRequest for the last owner. What an owner had invited while they were one is void once they are not."""

    async def limit(
        self, actor: Actor, who: str, *, phones: Sequence[str] | None = None, chats: Sequence[str] | None = None
    ) -> PersonView:
        """What is given from now on, empty for every one. BadRequest for an owner, who is never limited."""

    async def find(self, actor: Actor, who: str) -> PersonView: ...

    async def remove(self, actor: Actor, who: str) -> PersonView:
        """BadRequest for the last owner. Runs and schedules of theirs go on."""

    async def undo_remove(self, actor: Actor, person_id: str) -> PersonView:
        """Take back this owner's newest removal; BadRequest where that was of another person."""

    async def refused(self, actor: Actor, limit: int = 20) -> Sequence[RefusedView]:
        """What was refused, the newest first."""

    async def speak(self, actor: Actor, lang: str) -> Actor:
        """A person's own language."""

    async def stream(self, actor: Actor, wanted: bool) -> Actor:
        """Whether a person wants to see what the model thinks while it thinks."""


class KnowledgeDesk(Protocol):
    """The entries of the shop's own store. An id may be written with a number sign; NotFound for one that is none.

    A viewer searches; an operator adds (waiting for approval), edits what waits, approves and rejects; an owner also
    edits what is live, deletes, imports and exports.
    """

    async def search(self, actor: Actor, words: str) -> Sequence[Found]:
        """The live entries that fit, best first."""

    async def entry(self, actor: Actor, entry_id: str) -> Entry:
        """One entry; a waiting one is for operators."""

    async def add(self, actor: Actor, text: EntryText, *, key: str = "") -> Entry:
        """An owner's is live, an operator's waits. DoubleEntry where it is there. ``key`` as ``start_run``."""

    async def edit(self, actor: Actor, entry_id: str, text: EntryText) -> Entry:
        """Change what is not None."""

    async def delete(self, actor: Actor, entry_id: str) -> Entry:
        """The entry that was there."""

    async def pending(self, actor: Actor) -> Sequence[Entry]:
        """What waits for approval, oldest first."""

    async def approve(self, actor: Actor, entry_id: str) -> Entry:
        """The entry that is live now: of another wording for one, that one."""

    async def reject(self, actor: Actor, entry_id: str) -> Entry:
        """The waiting entry that was thrown away."""

    async def undo(self, actor: Actor, entry_id: str) -> Entry:
        """Take back this person's newest edit, deletion or rejection; BadRequest where that was of another entry."""

    async def allow_import(self, actor: Actor) -> None:
        """AccessDenied for who may not import; asked before a file is fetched."""

    async def plan_import(self, actor: Actor, files: Sequence[KnowledgeFile]) -> ImportView:
        """What would be added and changed, what doubles and what is refused; nothing is written."""

    async def carry_out(
        self, actor: Actor, files: Sequence[KnowledgeFile], *, replace_doubles: bool = False, mark: str = ""
    ) -> ImportView:
        """Import. Where the plan is not the one of ``mark`` any more, nothing is done and the new plan is given."""

    async def export(self, actor: Actor, form: str) -> KnowledgeFile:
        """Every entry. BadRequest for a form that is none."""

    async def stats(self, actor: Actor) -> KnowledgeStats: ...


class Desk(Protocol):
    @property
    def kb(self) -> KnowledgeDesk: ...

    @property
    def digest(self) -> DigestDesk: ...

    @property
    def history(self) -> HistoryDesk: ...

    @property
    def team(self) -> TeamDesk: ...

    async def pair(self, channel: str, user_id: str, name: str, lang: str, code: str) -> Actor:
        """Take a stranger in by a pairing code; the first person becomes the owner.

        AccessDenied on a wrong code, RateLimited after too many wrong ones.
        """

    async def actor(self, channel: str, user_id: str) -> Actor | None:
        """The paired person; None for a stranger. A channel adds where they ask from, and the request's name."""

    async def members(self, channel: str) -> Sequence[Actor]:
        """Everybody who is paired in this channel, for what it shows to each of them."""

    async def admit(self, actor: Actor) -> None:
        """Count what somebody asks. RateLimited where it is too much, StillLimited once that has been said."""

    async def turned_away(self, channel: str, user_id: str, name: str, what: str) -> None:
        """Write down what somebody tried that no desk call stands for: ``what`` is a word of a few letters."""

    async def start_run(
        self,
        actor: Actor,
        task: str,
        *,
        chat: ChatRef,
        serial: str | None = None,
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> RunView:
        """Queue a run. InputRejected where ``rules`` do not fit the task.

        ``key`` names the request: asked again with the same one, the run that it started is given.

        A channel hands a message on again where it cannot know whether the first time took effect.
        """

    async def stop_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Stop a run; without an id the newest unfinished one of this person. None where there is nothing to stop."""

    async def hold_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Park a run until ``resume_run``; its phone is free meanwhile. Without an id as with ``stop_run``.

        None where there is nothing to hold: over, or unknown. One that is held already stays so.
        """

    async def resume_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Let a held run go on; without an id the newest held one of this person, else of anybody. None: none is."""

    async def status(self, actor: Actor) -> StatusView: ...

    async def screenshot(self, actor: Actor, serial: str | None = None, *, full: bool = False) -> bytes:
        """What the phone shows now, as JPEG; ``full``: every pixel of it."""

    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerResult:
        """The first answer wins. The same answer by the same person again is ``accepted``, not ``late``."""

    async def add_schedule(
        self,
        actor: Actor,
        expression: str,
        task: str,
        *,
        chat: ChatRef,
        serial: str = "",
        rules: TaskRules = NO_RULES,
        key: str = "",
    ) -> ScheduleView:
        """BadRequest where the expression cannot be read. ``key`` as with ``start_run``."""

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]: ...

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def answers(
        self, actor: Actor, asked: AnswersAsked, *, before: str = "", after: str = "", limit: int = 10
    ) -> AnswersPage:
        """The answer log. ``before`` and ``after``: an answer's id, for the page of older and of newer ones.

        BadRequest where a time or a state cannot be read.
        """

    async def answer_entry(self, actor: Actor, answer_id: str) -> AnswerView:
        """NotFound where there is none."""

    async def answer_pictures(self, actor: Actor, answer_id: str) -> tuple[bytes | None, bytes | None]:
        """The screen before and after, as JPEG; None for one that was not kept, or not for so long."""

    async def rate_answer(
        self, actor: Actor, answer_id: str, rating: int, *, toggle: bool = True, key: str = ""
    ) -> AnswerView:
        """A thumb: 1, -1, or 0 for none. With ``toggle`` the same again takes it away. ``key`` as with ``start_run``.

        Another person's thumb is changed by an owner only.
        """

    async def unanswered(self, actor: Actor, since: str = "") -> Sequence[UnansweredView]:
        """What the knowledge base had no answer to (``since``: as in ``AnswersAsked``), the most frequent first."""

    async def contacts(self, actor: Actor, *, app: str = "", text: str = "", tag: str = "") -> Sequence[ContactView]:
        """By app and name. ``text``: words in name, number or note."""

    async def add_contact(self, actor: Actor, contact: ContactView) -> ContactView:
        """BadRequest where it is there already, or something in it cannot be right."""

    async def edit_contact(
        self,
        actor: Actor,
        name: str,
        *,
        app: str = "qq",
        serial: str = "",
        rename: str | None = None,
        number: str | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> ContactView:
        """Change what is given of the contact with this name, app and phone."""

    async def remove_contact(self, actor: Actor, name: str, *, app: str = "qq", serial: str = "") -> ContactView: ...

    def events(self, consumer: str) -> AsyncIterator[EventView]:
        """The log from the consumer's own position on, then what comes, for ever. An async generator."""

    async def confirm(self, consumer: str, event_id: int) -> None:
        """Everything up to ``event_id`` is dealt with; the consumer's position moves there."""

    async def chat_moved(self, channel: str, old_id: str, new_id: str) -> Sequence[tuple[str, str]]:
        """A chat goes on under another id: all that names it follows.

        Gives what was shown there, to be shown anew: ``run`` or ``question``, and its id as the refs know it.
        """

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> Sequence[tuple[str, str]]:
        """A topic was deleted, and the cards in it. Gives what was shown there, as ``chat_moved``."""

    async def run(self, run_id: str) -> RunView | None: ...

    async def question_to_answer(self, actor: Actor, question_id: str) -> QuestionView | None:
        """The question for somebody who is about to answer it, rights as with ``answer``; None where there is none."""

    async def question(self, question_id: str) -> QuestionView | None: ...

    async def list_questions(self, actor: Actor) -> Sequence[QuestionView]:
        """The open ones, the oldest first."""

    async def questions_of(self, run_id: str) -> Sequence[QuestionView]:
        """All that a run asked, for the channels."""

    async def show_question(self, actor: Actor, question_id: str, *, chat: ChatRef, name: str) -> QuestionView:
        """Have a further card of it in ``chat``, called ``name``. NotFound for no such question."""

    async def question_picture(self, question_id: str) -> bytes | None:
        """The screen when it was asked, as JPEG; None where it is not kept (any more)."""

    async def escalate_question(self, question_id: str) -> Sequence[ChatRef]:
        """The chats that see it besides the run's from now on, remembered as further cards."""

    async def question_copies(self, question_id: str) -> Sequence[tuple[str, ChatRef]]:
        """Its further cards: a name, unique among the question's, and where. ``question_ref`` knows them as
        ``<question>@<name>``.
        """

    async def card_ref(self, run_id: str) -> MessageRef | None:
        """The message that is the run's card, remembered across restarts."""

    async def set_card_ref(self, run_id: str, ref: MessageRef) -> None: ...

    async def question_ref(self, question_id: str) -> MessageRef | None: ...

    async def set_question_ref(self, question_id: str, ref: MessageRef) -> None: ...

    async def question_at(self, ref: MessageRef) -> str | None:
        """The id of the question that this message shows (``picture`` is not compared)."""
