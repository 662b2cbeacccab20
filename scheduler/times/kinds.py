"""The kinds of times that a schedule can have, but for cron's."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

from scheduler.times.zones import instant

SEARCHED_DAYS = 366 * 50  # how far a day that fits is looked for
DAY = timedelta(days=1)


class ScheduleTimes(Protocol):
    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        """The next ``count`` times later than ``after`` (aware), in UTC; fewer where there are no more."""


def times_between(times: ScheduleTimes, after: datetime, until: datetime, limit: int = 10_000) -> list[datetime]:
    """The times later than ``after``, up to and with ``until``; where there are more than ``limit``, the first ones."""
    found: list[datetime] = []
    while len(found) < limit:
        step = times.next(found[-1] if found else after, 50)
        found += [moment for moment in step if moment <= until]
        if len(step) < 50 or step[-1] > until:
            break
    return found


def last_until(times: ScheduleTimes, after: datetime, until: datetime) -> datetime | None:
    """The last time later than ``after``, up to and with ``until``, without going through all of them."""
    span = timedelta(hours=1)
    while True:
        begin = max(after, until - span)
        found = times_between(times, begin, until, limit=1_000_000)
        if found or begin == after:
            return found[-1] if found else None
        span *= 4


@dataclass(frozen=True)
class EveryTimes:
    """Evenly through the real hours, counted from a midnight of the zone: the same times in every process."""

    interval: timedelta
    zone: ZoneInfo

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        origin = datetime(2024, 1, 1, tzinfo=self.zone).astimezone(UTC)
        passed = (after.astimezone(UTC) - origin) // self.interval
        return [origin + self.interval * (passed + 1 + index) for index in range(count)]


@dataclass(frozen=True)
class OnceTimes:
    moment: datetime

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        return [self.moment][:count] if self.moment > after else []


@dataclass(frozen=True)
class TimeWindow:
    """Minutes of the day, ``start`` and before ``end``; over midnight where ``end`` is not later (1440: midnight)."""

    start: int
    end: int

    @property
    def minutes(self) -> int:
        return self.end - self.start if self.end > self.start else self.end + 1440 - self.start

    def last(self, interval: timedelta) -> timedelta:
        """The last time of a window on a day on which the clock is not changed, as the time since midnight."""
        steps = (timedelta(minutes=self.minutes) - timedelta(microseconds=1)) // interval
        return timedelta(minutes=self.start) + interval * steps

    def __str__(self) -> str:
        return f"{self.start // 60:02}:{self.start % 60:02}-{self.end // 60:02}:{self.end % 60:02}"


@dataclass(frozen=True)
class WindowTimes:
    """Evenly from the start of a window until before its end, on the days that fit: those on which it starts."""

    interval: timedelta
    window: TimeWindow
    fits: Callable[[date], bool]
    zone: ZoneInfo

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        return list(islice(self._later(after.astimezone(UTC)), count))

    def _later(self, after: datetime) -> Iterator[datetime]:
        day = after.astimezone(self.zone).date() - DAY  # the window of the day before may go on
        last = after
        for _ in range(SEARCHED_DAYS):
            if self.fits(day):
                midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the wall's
                start = instant(self.zone, midnight + timedelta(minutes=self.window.start))
                end = instant(self.zone, midnight + timedelta(minutes=self.window.start + self.window.minutes))
                # Between two of them days may lie that have windows of their own.
                skipped = max((last - start) // self.interval + 1, 0)
                moment = start + self.interval * skipped
                while moment < end:
                    last = moment
                    yield moment
                    moment += self.interval
            day += DAY


@dataclass(frozen=True)
class EitherTimes:
    """Every time of any of them, once."""

    all: tuple[ScheduleTimes, ...]

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        found = heapq.merge(*(times.next(after, count) for times in self.all))
        return sorted(set(found))[:count]
