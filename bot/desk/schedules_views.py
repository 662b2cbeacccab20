"""The parameters and results of the desk's service for schedules and watches, and regular times by their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from agent_core.loop.tasks import NO_RULES, TaskRules
from agent_core.session import LeftTo
from agent_core.texts import Lang
from bot.desk.actors import BadRequest, ChatRef
from bot.desk.views import RunStatus
from scheduler.sweeps.order import SweepOrder

WEEK = (1, 2, 3, 4, 5, 6, 7)  # Monday is 1
MOST_MINUTES = 720  # that a form offers between two
_REGULAR = re.compile(r"every (\d+)([mh])(?: (\d\d:\d\d)-(\d\d:\d\d)(?: \* \* ([1-7](?:[-,][1-7])*))?)?")


@dataclass(frozen=True, slots=True)
class RegularTimes:
    """Times by their parts, as a form asks for them.

    minutes: between two. start, end: such as ``09:00``, the hours of the day; both "" for all of it.
    days: of the week, Monday is 1.
    """

    minutes: int
    start: str = ""
    end: str = ""
    days: tuple[int, ...] = WEEK

    @property
    def expression(self) -> str:
        """The expression of a schedule. Raises BadRequest if there is no such time."""
        if bool(self.start) != bool(self.end) or (self.start and self.start == self.end):
            said = "The hours need a beginning and another end."
            raise BadRequest(said, advice="Give both, or none for the whole day.", key="regular_hours")
        if not self.days:
            raise BadRequest("There is no day.", advice="Choose at least one.", key="regular_days")
        every = f"every {self.minutes}m" if self.minutes % 60 else f"every {self.minutes // 60}h"
        days = sorted(set(self.days))
        if not self.start and tuple(days) == WEEK:
            return every
        hours = f"{self.start or '00:00'}-{self.end or '24:00'}"
        return f"{every} {hours}" + ("" if tuple(days) == WEEK else f" * * {','.join(map(str, days))}")

    @classmethod
    def of(cls, expression: str) -> RegularTimes | None:
        """Return the parts of such an expression; None for any other."""
        found = _REGULAR.fullmatch(expression)
        if found is None:
            return None
        start, end = ("", "") if (found[3], found[4]) == ("00:00", "24:00") else (found[3] or "", found[4] or "")
        days = _days(found[5]) if found[5] else WEEK
        return cls(int(found[1]) * (60 if found[2] == "h" else 1), start, end, days)


def _days(written: str) -> tuple[int, ...]:
    """Return the days of ``1-5,7``."""
    ranges = [tuple(map(int, part.split("-"))) for part in written.split(",")]
    return tuple(sorted({day for each in ranges for day in range(each[0], each[-1] + 1)}))


@dataclass(frozen=True, slots=True)
class RegularChange:
    """What to change of regular times, by the parts of ``RegularTimes``. None leaves one as it is."""

    minutes: int | None = None
    start: str | None = None
    end: str | None = None
    days: tuple[int, ...] | None = None

    def of(self, expression: str) -> str | None:
        """Return what becomes of the times of a schedule; None if they stay. Raises BadRequest if it cannot be."""
        old = RegularTimes.of(expression)
        if old is None and self.minutes is None:
            said = "These times are none of every few minutes or hours."
            raise BadRequest(said, advice="Say how often, too.", key="regular_every")
        given = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        new = replace(old or RegularTimes(0), **given)
        return None if new == old else new.expression


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
    lang: Lang
    chat: ChatRef
    count: int
    since: datetime
    until: datetime
    caught_up: bool
