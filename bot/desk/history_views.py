"""What the desk returns of past runs: pages of them, one of them, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_core.loop.trajectory import Message, ModelRequest
from agent_core.session import LeftTo, Question, Session, StepRecord
from bot.desk.views import RunStatus, RunView


@dataclass(frozen=True, slots=True)
class HistoryAsked:
    """Which runs are asked for; what is not given matters not.

    ``words`` stand in the task, the outcome, a question or an answer, or are a contact's or a phone's whole name.
    ``since`` and ``until`` as in ``AnswersAsked``. ``status``: a ``RunStatus``, or "" for any.
    """

    words: str = ""
    contact: str = ""
    status: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in a list. ``number`` stays the run's own. ``at`` is in the person's zone; ``seconds`` it took, or None.

    ``sent``: contact and text of what was sent, the oldest first. ``schedule_id``: of the schedule that started it.
    ``phone`` is its name. ``held``: by a person, until Resume.
    """

    number: int
    id: str
    task: str
    status: RunStatus
    phone: str
    by: str
    at: datetime
    seconds: float | None = None
    schedule_id: str = ""
    message: str = ""
    sent: tuple[tuple[str, str], ...] = ()
    held: bool = False
    plan: int = 0  # the number of the plan that it is a part of
    left_to: LeftTo = ""  # as of its session
    cut_off: bool = False  # a plan that ended with its process: it could leave no word


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The newest first. ``total``: how many there are in all; ``older`` and ``newer``: whether there are some."""

    runs: tuple[PastRun, ...] = ()
    total: int = 0
    older: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class ReplayView:
    """A run to be looked at again. ``pictures``: how many there are; ``gone``: they were kept, but not for so long.

    ``parts``: the runs that belong to it, the oldest first, where it is a plan or a sweep: the steps are theirs.
    """

    number: int
    run: RunView
    steps: tuple[StepRecord, ...] = ()
    pictures: int = 0
    gone: bool = False
    parts: tuple[PastRun, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameView:
    """A picture (JPEG) of a run with what happened at it: a step, a question to a person, or how an answer ended.

    ``state`` as in the answer log, empty where it is no answer; ``contact`` and ``text`` of that answer.
    """

    picture: bytes
    step: StepRecord | None = None
    question: Question | None = None
    state: str = ""
    contact: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class MediaView:
    """The pictures of a run in their order. ``left_out``: steps whose picture there was no room for.

    ``gone``: steps whose picture is not kept any more.
    """

    number: int
    run: RunView
    frames: tuple[FrameView, ...] = ()
    left_out: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step with what the model was asked; ``asked`` None: it was not, or nothing is kept of it.

    ``picture``: the JPEG that the model was shown, ``shown`` the one for people, with the action drawn in, where there
    is no other. ``messages`` name the picture by its digest. ``stored``: bytes of what was asked, on the disk.
    """

    record: StepRecord
    asked: ModelRequest | None = None
    messages: tuple[Message, ...] = ()
    picture: bytes | None = None
    shown: bytes | None = None
    at: datetime | None = None
    stored: int = 0


@dataclass(frozen=True, slots=True)
class RecordingView:
    """All that is kept of a run. ``session``: as it was saved last. ``parts`` as of a ``ReplayView``."""

    number: int
    run: RunView
    session: Session
    steps: tuple[RecordedStep, ...]
    parts: tuple[PastRun, ...] = ()

    @property
    def recorded(self) -> tuple[RecordedStep, ...]:
        """The steps of which it is known what the model was asked."""
        return tuple(step for step in self.steps if step.asked is not None)


MediaKind = Literal["gif", "album", "sheet"]
