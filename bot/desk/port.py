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

from agent_core.session import KeptNote, Question, ReplyRecord, Spent, StepRecord
from agent_core.tasks import NO_RULES, TaskRules
from bot.desk.actors import Actor, ChatRef, MessageRef
from bot.desk.answers_port import AnswersDesk, AnswerView
from bot.desk.contacts_port import ContactsDesk
from bot.desk.knowledge_port import KnowledgeDesk
from bot.desk.learning_port import LearningDesk
from bot.desk.plans_port import PlansDesk, PlanView
from bot.desk.schedules_port import SchedulesDesk
from bot.desk.sweeps_port import SweepsDesk, SweepView
from bot.desk.team_port import TeamDesk
from knowledge.entries import Entry

if TYPE_CHECKING:
    from agent_core.observer import SeenPage
    from bot.desk.digest_port import DigestDesk
    from bot.desk.history_port import HistoryDesk


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # for a person; what waits for its phone is queued
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def final(self) -> bool:
        return self in {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.STOPPED}


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as a person sees it, made from its rows.

    ``steps`` counts the steps done, ``last_step`` is the newest of them (its ``action`` is what was done after the
    gate). ``position`` is the place in the phone's queue, 1 for the next, 0 where it is not queued. ``away``: why the
    phone that a queued run waits for cannot be used ("none": it may have any, and there is none; "host": its host
    ``away_host`` is not heard since ``away_since``), until when it waits (``away_until``; both in the owner's zone).
    """

    id: str
    task: str
    status: RunStatus
    lang: Literal["zh", "en"] = "zh"
    serial: str = ""
    phone: str = ""  # the phone's name for a person
    chat: ChatRef | None = None
    by: str = ""  # who started it
    schedule_id: str = ""  # of the schedule that started it
    steps: int = 0
    max_steps: int = 100
    last_step: StepRecord | None = None
    message: str = ""
    error_kind: str = ""  # of the error that ended it, or put it off, see agent_core.errors
    again_at: datetime | None = None  # it is queued since it was put off, and goes on then (in the owner's zone)
    spent: Spent = field(default_factory=Spent)
    replies: tuple[ReplyRecord, ...] = ()
    notes: tuple[KeptNote, ...] = ()  # what the model kept of pages, and its summaries
    answers: tuple[AnswerView, ...] = ()  # those of the log that were sent, the oldest first: to be rated
    position: int = 0
    stopped_by: str = ""  # who was the first to stop it
    held: bool = False  # by a person, until Resume; while it is running it is about to park
    away: Literal["", "offline", "unauthorized", "none", "host"] = ""
    away_until: datetime | None = None
    away_host: str = ""
    away_since: datetime | None = None
    parent: str = ""  # the sweep or plan that it belongs to, whose card tells of it
    sweep: SweepView | None = None  # None: it is no sweep
    plan: PlanView | None = None  # None: it is no plan
    in_plan: bool = False  # ``parent`` is a plan
    watch: bool = False  # a watch has started it: nobody waits for its card
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """An asked question. ``then`` is a text key under ``then``: what happens at the deadline, which is in the owner's
    zone.

    ``answer`` is the choice's value or the words, ``by`` a person's name; both empty while it is open, and where nobody
    answered. ``asked_at`` and ``answered_at`` are in the owner's zone, too. ``serial``: the phone that it is about.
    ``learnt``: the entry that its answer has become, while that waits for approval.
    """

    id: str
    run_id: str
    question: Question
    chat: ChatRef | None = None
    lang: Literal["zh", "en"] = "zh"
    deadline: datetime | None = None
    then: Literal["", "skip", "leave", "deny", "no", "stop", "told", "wait"] = ""
    open: bool = True
    answer: str = ""
    by: str = ""
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    serial: str = ""
    learnt: Entry | None = None


@dataclass(frozen=True, slots=True)
class PhoneView:
    serial: str
    name: str
    state: Literal["free", "busy", "offline", "unauthorized", "away"]  # away: with its host, which is not heard
    run_id: str = ""  # of the run that has it; "" if none has, or if it is held for something else
    host: str = ""  # the machine that it is at, "" for this one
    since: datetime | None = None  # away since then, in the owner's zone


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
class EventView:
    """One row of the event log. ``kind`` and ``data`` are those of ``agent_core.ports.Event``."""

    id: int
    run_id: str
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)
    picture: bytes | None = None
    created_at: datetime | None = None


OWN_CHAT = "own"  # in an invitation: the private chat of whoever uses it


class Desk(AnswersDesk, ContactsDesk, SchedulesDesk, SweepsDesk, Protocol):
    @property
    def kb(self) -> KnowledgeDesk: ...

    @property
    def digest(self) -> DigestDesk: ...

    @property
    def history(self) -> HistoryDesk: ...

    @property
    def team(self) -> TeamDesk: ...

    @property
    def plans(self) -> PlansDesk: ...

    @property
    def learning(self) -> LearningDesk: ...

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
        """Stop a run; without an id the one at work of this person, else their newest in line, else a schedule's, else
        the only one at work. None where there is nothing to stop, NotFound where the id names no run.

        Stop and Hold are never too much: no limit of how often somebody may ask counts them.
        """

    async def hold_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Park a run until ``resume_run``; its phone is free meanwhile. Without an id as with ``stop_run``.

        None where there is nothing to hold. One that is held already stays so.
        """

    async def resume_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Let a held run go on; without an id the newest held one of this person, else of anybody. None: none is."""

    async def going(self, actor: Actor) -> Sequence[RunView]:
        """The runs that are not over, the oldest first, at once: no phone is looked for. Counted as little as Stop."""

    async def run_at(self, ref: MessageRef) -> str | None:
        """The id of the run whose card, or question, this message shows."""

    async def status(self, actor: Actor) -> StatusView:
        """With the phones that are expected (by the settings, or by a run) and not attached, as offline."""

    async def phone_names(self, serials: Sequence[str]) -> tuple[str, ...]:
        """What people call these phones."""

    async def screenshot(self, actor: Actor, serial: str | None = None, *, full: bool = False) -> bytes:
        """What the phone shows now, as JPEG; ``full``: every pixel of it."""

    async def screen_page(self, actor: Actor, serial: str | None = None) -> SeenPage:
        """What is read of what the phone shows now. BadRequest for a phone of another host."""

    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerResult:
        """The first answer wins. The same answer by the same person again is ``accepted``, not ``late``."""

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

    async def questions_here(self, actor: Actor, chat: ChatRef) -> Sequence[QuestionView]:
        """The open ones with a card in ``chat``, the newest first."""

    async def list_questions(self, actor: Actor) -> Sequence[QuestionView]:
        """The open ones, the oldest first."""

    async def alike_questions(
        self, question_id: str, *, actor: Actor | None = None, chat: ChatRef | None = None
    ) -> Sequence[QuestionView]:
        """The open questions of other contacts that ask nearly the same as this one, open or not, the oldest first.

        Only those that ``actor`` may see, and that may be seen in ``chat``.
        """

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

    async def asks_for_words(self, ref: MessageRef) -> bool:
        """Whether this message asked for own words as a question's answer: its card's name is ``own:…``."""
