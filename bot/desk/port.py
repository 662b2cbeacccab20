"""What a channel can ask of the product. ``bot.desk`` implements it; ``bot.chat`` and the channels are written to it.

Every call that does something names its actor; the desk checks the actor's rights and raises ``AccessDenied``. Times
are aware datetimes. Pictures are encoded JPEG.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from agent_core.errors import PhonedeskError, SecurityError
from agent_core.session import Question, ReplyRecord, StepRecord


class AccessDenied(SecurityError):
    """A wrong pairing code, or a role that may not do this."""

    kind = "security.access"


class NotFound(PhonedeskError):
    """No run, schedule, phone or question of this name."""

    kind = "desk.not_found"


class BadRequest(PhonedeskError):
    """What was asked for cannot be read: a schedule's expression, an empty task."""

    kind = "desk.bad_request"


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"
    OWNER = "owner"


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
    """A paired person as one channel knows them. ``id`` is ours, ``user_id`` the channel's."""

    id: str
    channel: str
    user_id: str
    name: str
    lang: Literal["zh", "en"]
    role: Role


@dataclass(frozen=True, slots=True)
class ChatRef:
    """Where something was asked, and where its card is shown. ``thread_id`` is a forum's topic, empty for none."""

    channel: str
    chat_id: str
    thread_id: str = ""
    kind: Literal["private", "group"] = "private"


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A message of ours in a chat, by the channel's own ids. ``picture``: it carries one (edited as a caption)."""

    chat: ChatRef
    message_id: str
    picture: bool = False


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
    position: int = 0
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """An asked question. ``then`` is a text key under ``question.then``: what happens at the deadline.

    ``answer`` is the choice's value or the words, ``by`` a person's name; both empty while it is open.
    """

    id: str
    run_id: str
    question: Question
    chat: ChatRef | None = None
    lang: Literal["zh", "en"] = "zh"
    deadline: datetime | None = None
    then: Literal["", "fail", "skip", "wait"] = ""
    open: bool = True
    answer: str = ""
    by: str = ""


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


class Desk(Protocol):
    async def pair(self, channel: str, user_id: str, name: str, lang: str, code: str) -> Actor:
        """Take a stranger in by a pairing code; the first person becomes the owner.

        AccessDenied on a wrong code, RateLimited after too many wrong ones.
        """

    async def actor(self, channel: str, user_id: str) -> Actor | None:
        """The paired person; None for a stranger."""

    async def start_run(
        self, actor: Actor, task: str, *, chat: ChatRef, serial: str | None = None, key: str = ""
    ) -> RunView:
        """Queue a run. ``key`` names the request: asked again with the same one, the run that it started is given.

        A channel hands a message on again where it cannot know whether the first time took effect.
        """

    async def stop_run(self, actor: Actor, run_id: str | None = None) -> RunView | None:
        """Stop a run; without an id the newest unfinished one of this person. None where there is nothing to stop."""

    async def status(self, actor: Actor) -> StatusView: ...

    async def screenshot(self, actor: Actor, serial: str | None = None) -> bytes:
        """What the phone shows now, as JPEG."""

    async def answer(self, actor: Actor, question_id: str, *, choice: str = "", text: str = "") -> AnswerResult:
        """The first answer wins. The same answer by the same person again is ``accepted``, not ``late``."""

    async def add_schedule(
        self, actor: Actor, expression: str, task: str, *, chat: ChatRef, key: str = ""
    ) -> ScheduleView:
        """BadRequest where the expression cannot be read. ``key`` as with ``start_run``."""

    async def list_schedules(self, actor: Actor) -> Sequence[ScheduleView]: ...

    async def pause_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def resume_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    async def remove_schedule(self, actor: Actor, schedule_id: str) -> ScheduleView: ...

    def events(self, consumer: str) -> AsyncIterator[EventView]:
        """The log from the consumer's own position on, then what comes, for ever. An async generator."""

    async def confirm(self, consumer: str, event_id: int) -> None:
        """Everything up to ``event_id`` is dealt with; the consumer's position moves there."""

    async def run(self, run_id: str) -> RunView | None: ...

    async def question(self, question_id: str) -> QuestionView | None: ...

    async def card_ref(self, run_id: str) -> MessageRef | None:
        """The message that is the run's card, remembered across restarts."""

    async def set_card_ref(self, run_id: str, ref: MessageRef) -> None: ...

    async def question_ref(self, question_id: str) -> MessageRef | None: ...

    async def set_question_ref(self, question_id: str, ref: MessageRef) -> None: ...

    async def question_at(self, ref: MessageRef) -> str | None:
        """The id of the question that this message shows (``picture`` is not compared)."""
