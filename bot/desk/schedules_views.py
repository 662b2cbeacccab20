"""What the desk takes and returns of schedules and watches."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from agent_core.loop.tasks import NO_RULES, TaskRules
from agent_core.session import LeftTo
from bot.desk.actors import ChatRef
from bot.desk.views import RunStatus

What = Literal["started", "busy", "queued", "quiet", "limit", "missed", "by_hand"]


@dataclass(frozen=True, slots=True)
class ScheduleWish:
    """What may be said of a schedule besides its time and its task; None is as it is, or as usual.

    ``serial``: a phone by its serial or name, "" for any. ``missed``: ``skip`` or ``catch_up``. ``overlap``: ``skip``
    or ``queue``. ``quiet``: ``22:00-07:00``, "" for none.
    """

    serial: str | None = None
    timezone: str | None = None
    missed: str | None = None
    overlap: str | None = None
    quiet: str | None = None
    jitter_seconds: int | None = None


NO_WISH = ScheduleWish()


@dataclass(frozen=True, slots=True)
class LastTick:
    """The newest tick, planned for ``at``: what became of it, and of the newest run (``status`` None: there is none).

    Times are in the schedule's time zone.
    """

    what: What
    at: datetime
    run_id: str = ""
    status: RunStatus | None = None
    ended_at: datetime | None = None
    message: str = ""
    left_to: LeftTo = ""  # as of the run's session
    not_found: tuple[str, ...] = ()  # contacts that the sweep was to answer and that nobody knows


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """``expression`` is as the person wrote it, ``means`` the form that is kept of it; "" for a watch: it has no times.

    ``windows``: from and until of each, and the last time in it. The last four count the ticks.
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


@dataclass(frozen=True, slots=True)
class ScheduleNews:
    """Ticks that nobody was there for: how many, from and until when, and whether the newest was made up for."""

    schedule: ScheduleView
    lang: Literal["zh", "en"]
    chat: ChatRef
    count: int
    since: datetime
    until: datetime
    caught_up: bool
