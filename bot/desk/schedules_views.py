"""The parameters and results of the desk's service for schedules and watches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_core.loop.tasks import NO_RULES, TaskRules
from agent_core.session import LeftTo
from bot.desk.actors import ChatRef
from bot.desk.regular_times import RegularChange
from bot.desk.views import RunStatus
from scheduler.sweeps.order import SweepOrder

What = Literal["started", "busy", "queued", "quiet", "limit", "missed", "by_hand"]


@dataclass(frozen=True, slots=True)
class ScheduleWish:
    """The options of a schedule besides its times and its task. None leaves one as it is, or takes the default.

    serial: a phone by its serial or name, "" for any.
    missed: ``skip`` or ``catch_up``. overlap: ``skip`` or ``queue``.
    quiet: ``22:00-07:00``, "" for none.
    """

    serial: str | None = None
    timezone: str | None = None
    missed: str | None = None
    overlap: str | None = None
    quiet: str | None = None
    jitter_seconds: int | None = None


NO_WISH = ScheduleWish()


@dataclass(frozen=True, slots=True)
class SweepWhom:
    """Whom a sweep is to answer: everybody who has unread messages, or saved contacts by name and by tag."""

    app: str
    everybody: bool = False
    names: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepChange:
    """What to change of a sweep. None leaves a part as it is.

    app, everybody, names, tags: as in ``SweepWhom``. Names and tags are of one app: with another app, those that are
        not given are none.
    expression: its times as a person writes them. regular: some parts of regular times.
    """

    app: str | None = None
    everybody: bool | None = None
    names: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    expression: str | None = None
    regular: RegularChange | None = None


@dataclass(frozen=True, slots=True)
class LastTick:
    """The newest tick and its run. Times are in the schedule's time zone.

    what: the outcome of the tick. at: when it was planned.
    status: of the run; None if there is none.
    """

    what: What
    at: datetime
    run_id: str = ""
    status: RunStatus | None = None
    ended_at: datetime | None = None
    message: str = ""
    left_to: LeftTo = ""  # see ``left_now``
    not_found: tuple[str, ...] = ()  # contacts that the sweep was to answer and that nobody knows


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule or a watch.

    expression: as the person wrote it. means: the form that is stored. Both are "" for a watch, which has no times.
    windows: for each, its beginning and the last time in it.
    sweep: whom it answers; None if it is no sweep.
    started, skipped_busy, skipped_missed, skipped_quiet: how many ticks had this outcome.
    """

    id: str
    expression: str
    task: str
    next_times: tuple[datetime, ...] = ()  # the next three, in the schedule's time zone
    paused: bool = False
    rules: TaskRules = NO_RULES
    chat: ChatRef | None = None
    kind: str = "run"
    means: str = ""
    windows: tuple[tuple[str, str], ...] = ()
    sweep: SweepOrder | None = None
    timezone: str = ""
    elsewhere: bool = False  # the time zone is not the owner's
    serial: str = ""
    phone: str = ""  # its name; "" for any
    missed: str = "skip"
    overlap: str = "skip"
    quiet: str = ""
    jitter_seconds: int = 0
    last: LastTick | None = None
    started: int = 0
    skipped_busy: int = 0
    skipped_missed: int = 0
    skipped_quiet: int = 0

    @property
    def next_said(self) -> tuple[str, ...]:
        """The next times as people are shown them: with seconds if one of them is not at a full minute."""
        form = "%m-%d %H:%M:%S" if any(time.second for time in self.next_times) else "%m-%d %H:%M"
        return tuple(time.strftime(form) for time in self.next_times)


@dataclass(frozen=True, slots=True)
class ScheduleNews:
    """Missed ticks: how many, from when until when, and whether the newest was caught up."""

    schedule: ScheduleView
    lang: Literal["zh", "en"]
    chat: ChatRef
    count: int
    since: datetime
    until: datetime
    caught_up: bool
