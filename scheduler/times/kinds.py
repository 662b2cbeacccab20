"""The kinds of times that a schedule can have, except cron's."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

from scheduler.times.zones import instant

SEARCHED_DAYS = 366 * 50  # how far to search for a day that matches
DAY = timedelta(days=1)


class ScheduleTimes(Protocol):
    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        """Return the next ``count`` times after ``after`` (aware), in UTC; fewer if there are no more."""


def times_between(times: ScheduleTimes, after: datetime, until: datetime, limit: int = 10_000) -> list[datetime]:
    """Return the times after ``after``, up to and including ``until``; the first ``limit`` if there are more."""
    found: list[datetime] = []
    while len(found) < limit:
        step = times.next(found[-1] if found else after, 50)
        found += [moment for moment in step if moment <= until]
        if len(step) < 50 or step[-1] > until:
            break
    return found


def last_until(times: ScheduleTimes, after: datetime, until: datetime) -> datetime | None:
    """Return the last time after ``after``, up to and including ``until``, or None, without computing them all."""
    span = timedelta(hours=1)
    while True:
        begin = max(after, until - span)
        found = times_between(times, begin, until, limit=1_000_000)
        if found or begin == after:
            return found[-1] if found else None
        span *= 4


@dataclass(frozen=True)
class EveryTimes:
    """Even intervals of real time, counted from a midnight of the zone: the same times in every process."""

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
    """Minutes of the day from ``start`` to before ``end`` (1440: midnight); over midnight unless ``end`` is later."""

    start: int
    end: int

    @property
    def minutes(self) -> int:
        return self.end - self.start if self.end > self.start else self.end + 1440 - self.start

    def last(self, interval: timedelta) -> timedelta:
        """Return the last time of a window, since midnight, on a day without a change of the clock."""
        steps = (timedelta(minutes=self.minutes) - timedelta(microseconds=1)) // interval
        return timedelta(minutes=self.start) + interval * steps

    def __str__(self) -> str:
        return f"{self.start // 60:02}:{self.start % 60:02}-{self.end // 60:02}:{self.end % 60:02}"


@dataclass(frozen=True)
class WindowTimes:
    """Even intervals from the start of a window until before its end, on the matching days (those of its start)."""

    interval: timedelta
    window: TimeWindow
    fits: Callable[[date], bool]
    zone: ZoneInfo

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        return list(islice(self._later(after.astimezone(UTC)), count))

    def _later(self, after: datetime) -> Iterator[datetime]:
        day = after.astimezone(self.zone).date() - DAY  # the previous day's window may still be open
        last = after
        for _ in range(SEARCHED_DAYS):
            if self.fits(day):
                midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - the wall clock's
                start = instant(self.zone, midnight + timedelta(minutes=self.window.start))
                end = instant(self.zone, midnight + timedelta(minutes=self.window.start + self.window.minutes))
                # Days with windows of their own may lie between two times.
                skipped = max((last - start) // self.interval + 1, 0)
                moment = start + self.interval * skipped
                while moment < end:
                    last = moment
                    yield moment
                    moment += self.interval
            day += DAY


@dataclass(frozen=True)
class EitherTimes:
    """The times of several, each once."""

    all: tuple[ScheduleTimes, ...]

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        found = heapq.merge(*(times.next(after, count) for times in self.all))
        return sorted(set(found))[:count]
