"""The agent's interfaces to the outside, as protocols and data.

``storage``, ``knowledge`` and ``scheduler`` implement them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from agent_core.apps.learnt import LearntApp
from agent_core.session import Answer, Elsewhere, Question, RowMark, Session
from agent_core.texts.clean import clean_text, is_clean


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the knowledge base.

    text: what a customer receives, word for word.
    aliases: other ways to ask its ``question``.
    score: 0–1 by the provider's own measure; None if it gives none.
    sure: the score is above the provider's threshold. Whether the record answers a customer's words is decided by code.
    unclean: the provider's text contained invisible characters, which ``text`` omits (see ``clean_text``). Such a
    record is never sure, and is sent only if a person has looked at it.
    """

    id: str
    text: str
    question: str = ""
    score: float | None = None
    sure: bool = False
    source: str = ""  # provider and document, for a person: "dify:returns.csv"
    aliases: tuple[str, ...] = ()
    unclean: bool = False

    def __post_init__(self) -> None:
        unclean = self.unclean or not is_clean(self.text)
        object.__setattr__(self, "text", clean_text(self.text))
        object.__setattr__(self, "unclean", unclean)
        object.__setattr__(self, "sure", self.sure and not unclean)

    @property
    def wordings(self) -> tuple[str, ...]:
        """The question and its aliases; () if it is a passage of a text, which asks nothing."""
        return tuple(wording for wording in (self.question, *self.aliases) if wording.strip())


class KnowledgeBase(Protocol):
    """The source of answers."""

    @property
    def name(self) -> str: ...

    async def retrieve(self, query: str) -> Sequence[Record]:
        """Return records, the best first; empty if nothing fits. Raises KnowledgeError if it could not be asked."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen answer. ``record`` is its source; for a composed text it is the first of its ``sources``."""

    text: str
    record: Record
    composed: bool = False
    sources: Sequence[Record] = ()  # of a composed text: every record that it was made of


class Chooser(Protocol):
    """A chooser among the records of the knowledge base. Code checks its choice before it is sent."""

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        """Return the answer to the customer's ``words`` as they wrote them; ``query`` is what the base was asked.

        Returns None if no record answers or the chooser cannot be asked. It raises nothing.
        """


class ReplyState(StrEnum):
    """The state of a ledger row."""

    PLANNED = "planned"
    TYPING = "typing"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED = "skipped"  # nobody will answer it
    # Nothing is due, because the message was recalled or a colleague answered. It reopens if it is asked again.
    WITHDRAWN = "withdrawn"


class Provenance(StrEnum):
    """The origin of a reply's text."""

    KNOWLEDGE = "knowledge"  # word for word from a record
    COMPOSED = "composed"  # made of records; its figures and links were checked against them
    PERSON = "person"  # written or chosen by a person


@dataclass(frozen=True, slots=True)
class MessageKey:
    """The key of a customer's question: ledger rows are unique by these four fields.

    ``fingerprint`` is made of the message's normalised words, its neighbours and its place after our last bubble.
    """

    serial: str
    app: str
    contact: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the ledger.

    question: what this row answers.
    cluster: the messages around it, as they were read.
    parts: a long text is sent in parts; () means one part.
    part: the index of the part that ``state`` describes.
    """

    id: int
    key: MessageKey
    run_id: str
    question: str
    text: str = ""
    state: ReplyState = ReplyState.PLANNED
    provenance: Provenance | None = None
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    person: str = ""
    cluster: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    part: int = 0
    app_version: str = ""

    @property
    def part_text(self) -> str:
        """The text that is planned, typed or sent now."""
        return self.parts[min(self.part, len(self.parts) - 1)] if self.parts else self.text


class Ledger(Protocol):
    """One row for each customer message, so that each is answered exactly once.

    Every write is on disk when it returns. A write of an attempt that has lost its run raises LeaseLost and changes
    nothing.
    """

    async def find(self, key: MessageKey) -> LedgerRow | None:
        """Return the row of this message, or None."""

    async def open(
        self, key: MessageKey, *, run_id: str, question: str, cluster: Sequence[str] = (), app_version: str = ""
    ) -> LedgerRow:
        """Return the row of this message. Create it if there is none."""

    async def plan(
        self,
        row_id: int,
        *,
        run_id: str,
        text: str,
        provenance: Provenance,
        record_id: str = "",
        record_source: str = "",
        score: float | None = None,
        person: str = "",
        parts: Sequence[str] = (),
    ) -> LedgerRow:
        """Set the text that will be sent. Allowed only while nothing of it can have been sent.

        That is in the states planned, typing, failed, skipped and withdrawn, with no part sent.
        """

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        """Set ``state`` if the row is in one of ``expected``. Raises LedgerConflict (a LookupError) if it is not."""

    async def next_part(self, row_id: int, *, part: int) -> LedgerRow:
        """Record that ``part`` was sent, and plan the next one. Raises LedgerConflict if it was not being sent."""

    async def version_known(self, serial: str, app: str, version: str) -> bool:
        """Tell whether a reply was seen to arrive on this phone in this version of the app before."""

    async def learnt(self, serial: str, app: str, version: str) -> LearntApp | None:
        """Return the learnt facts about this version of the app on this phone, or None."""

    async def learn(self, serial: str, learnt: LearntApp) -> None:
        """Store ``learnt`` for this phone, replacing earlier facts about that version."""

    async def chosen_row(self, serial: str, app: str, contact: str) -> RowMark | None:
        """Return how a person distinguished the contact's row from others of its name; None if nobody ever had to."""

    async def choose_row(self, serial: str, app: str, contact: str, row: RowMark) -> None:
        """Store ``row`` as the contact's, replacing an earlier one."""

    async def labelled(self, serial: str, label: str) -> str | None:
        """Return the package that an icon with this label (see ``apps.names.bare``) opened on this phone, or None."""

    async def keep_label(self, serial: str, label: str, package: str) -> None:
        """Store the app that an icon with this label opened on this phone, replacing an earlier one."""

    async def keep_waiting(self, serial: str, app: str, contact: str, state: str) -> None:
        """Record a waiting contact whose chat was opened by mistake, so that sweeps know; the list no longer does."""

    async def claim(self, row_id: int, run_id: str) -> bool:
        """Make ``run_id`` the run that has this row. Return False if another run has it and waits."""

    async def waits(self, run_id: str) -> Elsewhere | None:
        """Return what this run, which has a row, waits for; None if it no longer waits."""

    async def unfinished(self, serial: str) -> Sequence[LedgerRow]:
        """Return this phone's rows in typing or sending, oldest first: a dead run may have left them."""

    async def recent(self, serial: str, app: str, contact: str) -> Sequence[LedgerRow]:
        """Return a contact's newest rows, at most 50, newest first: a message may have been identified differently."""


class LedgerConflict(LookupError):
    """The row is in no state from which this step may be taken, because somebody else changed it."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, for every consumer. ``data`` is plain JSON data.

    Kinds: started, step, thinking, question (by Human), answered, reply, note, resumed, outcome, and ``answer``, which
    says what became of one question of a customer; it is repeated at each change, with the fields of ``AnswerEvent``.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """The data of an ``answer`` event. The answer log has one row for each ``ledger_id``; the newest event wins.

    state: planned (it was read and the knowledge base asked; the picture is from before), sent, skipped, failed,
    unknown (the picture is from after).
    records: what the knowledge base gave; None if the event does not say.
    """

    ledger_id: int
    app: str
    contact: str
    question: str  # the customer's words
    state: ReplyState
    query: str = ""
    records: Sequence[Record] | None = None
    sent: str = ""
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    person: str = ""

    def data(self) -> dict[str, Any]:
        """Return plain data, without ``records`` if it is None."""
        plain = {**asdict(self), "state": self.state.value}
        if self.records is None:
            del plain["records"]
        else:
            plain["records"] = [asdict(record) for record in self.records]
        return plain


class RunStore(Protocol):
    """The store of sessions and events."""

    async def save(self, session: Session) -> None:
        """Store the session, with which another process can continue."""

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        """Append to the run's event log.

        picture: an encoded JPEG shown with it, stored beside the row.
        session: the run's session, stored together with the event of a step: after a crash both are there, or neither.
        """


class TrajectoryStore(Protocol):
    """The store of requests to models."""

    async def asked(self, run_id: str, step: int, data: str, *, digest: str = "", picture: bytes | None = None) -> None:
        """Store ``data`` (JSON text, see ``agent_core.loop.trajectory``): what the model was asked at this step.

        It replaces what was stored for the step. ``picture``: a JPEG, stored once for each run and ``digest``.
        """


class Human(Protocol):
    """The people who answer the questions of a run."""

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        """Ask a person. The question is stored before anybody sees it. ``picture`` is the screen as a JPEG.

        Returns None if nobody answered here and now: the run waits (is parked) and continues with a later attempt.
        """


class Lease(Protocol):
    """The lease of the run's phone."""

    async def check(self) -> None:
        """Raise LeaseLost if another owner has taken the phone. Called before every act."""


class StopGuard(Protocol):
    """A stop cancels the run, but waits until a ``shielded`` block has ended."""

    def shielded(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which a stop has to wait."""
