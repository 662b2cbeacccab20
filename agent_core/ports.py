"""What the agent needs from outside, by shape. ``storage``, ``knowledge`` and ``scheduler`` fit these."""

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
    """One record of the knowledge base. ``text`` is what a customer gets, word for word.

    ``aliases``: other ways to ask its ``question``. ``score`` 0–1 by the provider's own measure, None if it gives none.
    ``sure``: the score is above the provider's threshold. Whether it answers a customer's words is told by code.
    ``unclean``: the provider's text held what nobody sees, which is left out of ``text`` (see ``clean_text``). No such
    record is sure, and none is sent unless a person has looked at it.
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
    @property
    def name(self) -> str: ...

    async def retrieve(self, query: str) -> Sequence[Record]:
        """The best records first; empty where nothing fits. KnowledgeError where it could not be asked."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is going to be sent. ``record`` is what it comes from; of a composed text the first of its ``sources``."""

    text: str
    record: Record
    composed: bool = False
    sources: Sequence[Record] = ()  # of a composed text: every record that it was made of


class Chooser(Protocol):
    """Picks among what the knowledge base gave. What it picks is checked by code before it is sent."""

    async def choose(self, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
        """Return the answer to the customer's ``words`` (as they wrote them; ``query`` is what was asked).

        None if none answers, and if the chooser cannot be asked; it raises nothing.
        """


class ReplyState(StrEnum):
    PLANNED = "planned"
    TYPING = "typing"
    SENDING = "sending"
    SENT = "sent"
    UNKNOWN = "unknown"
    FAILED = "failed"
    SKIPPED = "skipped"  # nobody is going to answer it
    WITHDRAWN = "withdrawn"  # nothing is due: taken back, or answered by a colleague; asked again it is open again


class Provenance(StrEnum):
    KNOWLEDGE = "knowledge"  # word for word from a record
    COMPOSED = "composed"  # made of records, its figures and links checked against them
    PERSON = "person"  # written or chosen by a person


@dataclass(frozen=True, slots=True)
class MessageKey:
    """What a customer asked, once: ledger rows are unique by these four.

    ``fingerprint`` is of the message's normalised words, its neighbours and its place after our last bubble.
    """

    serial: str
    app: str
    contact: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """``question`` is what this row answers, ``cluster`` the messages that it stands among, as they were read.

    A long text goes out in ``parts``; ``part`` is the index of the one that ``state`` speaks of. () is one part.
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
    """One row for each customer message: what is answered, exactly once. Every write is on the disk when it returns.

    A write of an attempt that has lost its run raises LeaseLost and changes nothing.
    """

    async def find(self, key: MessageKey) -> LedgerRow | None: ...

    async def open(
        self, key: MessageKey, *, run_id: str, question: str, cluster: Sequence[str] = (), app_version: str = ""
    ) -> LedgerRow:
        """The row of this message, made where there is none."""

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
        """Set what is going to be sent; only while nothing of it can have left (planned, typing, failed, skipped,
        withdrawn, and no part sent).
        """

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        """Move on to ``state`` if the row is in one of ``expected``; LedgerConflict (a LookupError) where it is not."""

    async def next_part(self, row_id: int, *, part: int) -> LedgerRow:
        """``part``, which was sending, is seen as sent: the next one is planned. LedgerConflict where it was not."""

    async def version_known(self, serial: str, app: str, version: str) -> bool:
        """Return whether a reply was seen to arrive on this phone in this version of the app before."""

    async def learnt(self, serial: str, app: str, version: str) -> LearntApp | None:
        """Return what was learnt of this version of the app on this phone; None if nothing was."""

    async def learn(self, serial: str, learnt: LearntApp) -> None:
        """Remember ``learnt`` for this phone, in the place of what was known of that version."""

    async def chosen_row(self, serial: str, app: str, contact: str) -> RowMark | None:
        """Return how a person told the contact's row from others of its name; None if nobody ever had to."""

    async def choose_row(self, serial: str, app: str, contact: str, row: RowMark) -> None:
        """Remember ``row`` as the contact's, in the place of what was known."""

    async def keep_waiting(self, serial: str, app: str, contact: str, state: str) -> None:
        """Somebody waits whose chat was opened by mistake: the list does not show it any more, sweeps know it so."""

    async def claim(self, row_id: int, run_id: str) -> bool:
        """Make ``run_id`` the run that has this row. False where another one has it and waits."""

    async def waits(self, run_id: str) -> Elsewhere | None:
        """What this run, which has a row, waits with; None where it does not wait any more."""

    async def unfinished(self, serial: str) -> Sequence[LedgerRow]:
        """Rows of this phone in typing or sending, oldest first: what a dead run may have left behind."""

    async def recent(self, serial: str, app: str, contact: str) -> Sequence[LedgerRow]:
        """The newest rows of a contact (50 at most), the newest first: a message may have been known differently."""


class LedgerConflict(LookupError):
    """The row is not in a state from which this step may be taken; somebody else moved it."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, for every consumer. ``data`` is plain JSON data.

    Kinds: started, step, thinking, question (by Human), answered, reply, note, resumed, outcome, and ``answer``: what
    became of one question of a customer, told each time it changes, with the fields of ``AnswerEvent``.
    """

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """The data of an ``answer`` event, for the answer log; one log row for each ``ledger_id``, the newest event wins.

    ``state``: planned (it was read and the knowledge base asked; the picture is of before), sent, skipped, failed,
    unknown (the picture is of after). ``records`` are what the knowledge base gave, None where the event does not tell.
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
        """As plain data; ``records`` is left out where it is None."""
        plain = {**asdict(self), "state": self.state.value}
        if self.records is None:
            del plain["records"]
        else:
            plain["records"] = [asdict(record) for record in self.records]
        return plain


class RunStore(Protocol):
    async def save(self, session: Session) -> None:
        """Store the session; it is what another process goes on with."""

    async def event(self, run_id: str, event: Event, *, picture: bytes | None = None) -> None:
        """Append to the run's event log. ``picture`` is an encoded JPEG shown with it, kept beside the row."""


class TrajectoryStore(Protocol):
    async def asked(self, run_id: str, step: int, data: str, *, digest: str = "", picture: bytes | None = None) -> None:
        """Keep ``data`` (JSON text, see ``agent_core.loop.trajectory``) as what the model was asked at this step.

        What was kept of it before is replaced. ``picture``: a JPEG, kept once for each run and ``digest``.
        """


class Human(Protocol):
    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        """Ask a person; the question is stored before anybody sees it. ``picture`` is the screen as JPEG.

        None: nobody answered here and now; the run waits (is parked) and goes on with a later attempt.
        """


class Lease(Protocol):
    async def check(self) -> None:
        """LeaseLost where the phone is no longer ours. Called before every act."""


class StopGuard(Protocol):
    """Stop cancels the run; inside ``shielded`` it waits until the block has ended."""

    def shielded(self) -> AbstractAsyncContextManager[None]: ...
