"""The views of past runs: pages of them, a single one, and its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from agent_core.loop.trajectory import Message, ModelRequest
from agent_core.session import LeftTo, Question, Session, StepRecord
from bot.desk.views import RunStatus, RunView, SweepView


@dataclass(frozen=True, slots=True)
class HistoryAsked:
    """A filter of past runs. A field that is not given filters nothing.

    words: words of the task, the outcome, a question or an answer, or the whole name of a contact or a phone.
    since, until: as in ``AnswersAsked``. status: a ``RunStatus``, or "" for any.
    """

    words: str = ""
    contact: str = ""
    status: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run in a list.

    number: never changes. phone: its name. at: when it was made, in the owner's zone.
    seconds: how long it took; None if it has not started or not ended.
    schedule_id: of the schedule that started it, or its sweep.
    sent: contact and text of each answer that was sent, the oldest first; once if it answered several messages.
    held: a person holds it, until Resume.
    unanswered: the contact whose question is open because the run was stopped.
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
    unanswered: str = ""
    sweep: SweepView | None = None  # None if it is no sweep
    plan: int = 0  # the number of the plan that it is a part of
    left_to: LeftTo = ""  # see ``left_now``
    cut_off: bool = False  # a plan that ended with its process, and so has no message


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of runs, the newest first. ``total``: all that match. ``older``, ``newer``: whether there are more."""

    runs: tuple[PastRun, ...] = ()
    total: int = 0
    older: bool = False
    newer: bool = False


@dataclass(frozen=True, slots=True)
class ReplayView:
    """A run to look at again.

    pictures: how many there are. gone: there were some, but they are no longer kept.
    parts: the runs of a plan or a sweep, the oldest first. They have the steps.
    events: by the index of a step, the event with its picture.
    """

    number: int
    run: RunView
    steps: tuple[StepRecord, ...] = ()
    pictures: int = 0
    gone: bool = False
    parts: tuple[PastRun, ...] = ()
    events: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FrameView:
    """A picture (JPEG) of a run with its event: a step, a question to a person, or the end of an answer.

    state: as in the answer log, "" if it is not of an answer. contact, text: those of the answer.
    """

    picture: bytes
    step: StepRecord | None = None
    question: Question | None = None
    state: str = ""
    contact: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class MediaView:
    """The pictures of a run in their order.

    left_out: the steps whose pictures there was no room for. gone: the steps whose pictures are no longer kept.
    """

    number: int
    run: RunView
    frames: tuple[FrameView, ...] = ()
    left_out: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step with the request to the model.

    asked: None if the model was not asked, or the request is not kept. stored: its size on disk in bytes.
    messages: name the picture by its digest.
    picture: the JPEG that the model was shown. shown: if that is not kept, the one for people, with the action in it.
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
    """All that is kept of a run. ``session``: as it was saved last. ``parts``: as in ``ReplayView``."""

    number: int
    run: RunView
    session: Session
    steps: tuple[RecordedStep, ...]
    parts: tuple[PastRun, ...] = ()

    @property
    def recorded(self) -> tuple[RecordedStep, ...]:
        """The steps whose request to the model is kept."""
        return tuple(step for step in self.steps if step.asked is not None)


MediaKind = Literal["gif", "album", "sheet"]


def spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of the indexes 0 … ``count`` - 1, evenly spread, including the first and the last."""
    if most < 1:
        return []
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
