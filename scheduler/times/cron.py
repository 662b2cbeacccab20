"""Cron expressions, with the meaning of cron itself.

1 is Monday, 0 and 7 are Sunday, names are allowed; it is day of month OR weekday if both are given and neither begins
with a star. In the night in which the clock goes forward, a time that does not exist runs as soon as the hour is over;
when it goes back, a time that comes twice runs once, while ``*/15 * * * *`` and the like (minute or hour begins with a
star) follow the real minutes.

cronsim finds the minutes of a wall clock that match; the changes of that clock are handled here (cronsim's own way is
wrong if the clock changes by half an hour).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from agent_core.errors import InputRejected
from scheduler.times.zones import changes_of, offset_of

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = ("minute", "hour", "day-of-month", "month", "day-of-week")
ALLOWED = {
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L for the last",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 (0 and 7 are Sunday, 1 is Monday) or SUN-SAT",
}
_ONE = re.compile(r"(\w+)-(\w+)/\d+")
_SECOND = timedelta(seconds=1)
_SOME_DAY = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall clock's


@dataclass(frozen=True)
class CronTimes:
    """The times of a cron expression. ``expression``: five fields that are known to be valid."""

    expression: str
    zone: ZoneInfo

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        return list(islice(self._later(after.astimezone(UTC)), count))

    @property
    def by_the_wall(self) -> bool:
        """True if it follows the wall clock; otherwise it means moments of the day, each of which comes once."""
        minute, hour, *_ = self.expression.split()
        return minute.startswith("*") or hour.startswith("*")

    def _later(self, after: datetime) -> Iterator[datetime]:
        """Yield each time once: a leap runs the time at which it ends, which is then due by itself, too."""
        last = after
        for moment in self._moments(after):
            if moment > last:
                last = moment
                yield moment

    def _moments(self, after: datetime) -> Iterator[datetime]:
        """Yield the times from one change of the clock to the next. ``wall`` is always the next matching wall time."""
        offset, year = offset_of(self.zone, after), after.year
        walls = self._walls(self._begin(after, offset))
        wall = next(walls, None)
        while wall is not None:
            for change in changes_of(self.zone, year):
                if change.at <= after:
                    continue
                while wall is not None and wall < change.wall_before:
                    yield (wall - offset).replace(tzinfo=UTC)
                    wall = next(walls, None)
                offset = change.after
                leapt = False
                while wall is not None and change.wall_before <= wall < change.wall_after:
                    leapt, wall = True, next(walls, None)
                if leapt and change.small and not self.by_the_wall:
                    yield change.at
                if change.wall_after < change.wall_before and (self.by_the_wall or not change.small):
                    walls = self._walls(change.wall_after - _SECOND)
                    wall = next(walls, None)
            year += 1
            end = datetime(year, 1, 1) + offset  # noqa: DTZ001 - the wall clock's
            while wall is not None and wall < end:
                yield (wall - offset).replace(tzinfo=UTC)
                wall = next(walls, None)

    def _begin(self, after: datetime, offset: timedelta) -> datetime:
        """Return the wall time after which to search: past everything that was shown before the clock went back."""
        wall = after.replace(tzinfo=None) + offset
        for year in (after.year - 1, after.year):
            for change in changes_of(self.zone, year):
                if change.at <= after and change.small and not self.by_the_wall:
                    wall = max(wall, change.wall_before - _SECOND)
        return wall

    def _walls(self, after: datetime) -> Iterator[datetime]:
        """Yield the matching times of a wall clock that never changes; naive."""
        return CronSim(_plain(self.expression), after)


def _plain(expression: str) -> str:
    """Replace ``5-5/2`` by ``5``, because cronsim takes it for ``5/2``, from 5 to the end."""

    def of(match: re.Match[str]) -> str:
        return match[1] if match[1].lower() == match[2].lower() else match[0]

    return _ONE.sub(of, expression)


def parse_cron(text: str, zone: ZoneInfo) -> CronTimes:
    """Parse a cron expression. Raises InputRejected, which says which field is wrong."""
    if text.startswith("@"):
        if text.lower() not in ALIASES:
            raise InputRejected(
                f"Unknown schedule: {text!r}.", advice=f"Known: {', '.join(ALIASES)}.", key="bad_schedule", said=text
            )
        text = ALIASES[text.lower()]
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise InputRejected(
            f"A cron expression has five fields ({', '.join(FIELDS)}); {text!r} has {len(parts)}.",
            advice="For example `*/5 9-17 * * 1-5`: every five minutes from 9 to 18, Monday to Friday.",
            key="schedule_fields",
            said=text,
            count=len(parts),
        )
    _check_fields(text, parts)
    times = CronTimes(text, zone)
    try:
        found = times.next(datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError:
        found = []
    if not found:
        raise InputRejected(f"{text!r} is never due.", key="schedule_never", said=text)
    return times


def _check_fields(text: str, parts: list[str]) -> None:
    """Check each field alone, so that the error can name it."""
    for index, (name, value) in enumerate(zip(FIELDS, parts, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[index] = value
        # A day that only some months have is not wrong on its own.
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except (CronSimError, AssertionError) as error:
            raise InputRejected(
                f"The field {name} is wrong: {value!r}.",
                advice=f"Allowed: {ALLOWED[name]}, with * , - and /.",
                key=f"schedule_{name.replace('-', '_')}",
                said=text,
                value=value,
            ) from error


@lru_cache(maxsize=256)
def day_fits(days: str) -> DayFits:
    """Return whether a day matches the last three fields of an expression, as a function. Raises InputRejected."""
    parse_cron(f"0 0 {days}", ZoneInfo("UTC"))
    return DayFits(days)


@dataclass(frozen=True)
class DayFits:
    days: str  # day of month, month, day of week

    def __call__(self, day: date) -> bool:
        return self.days == "* * *" or _fits(self.days, day)


@lru_cache(maxsize=4096)
def _fits(days: str, day: date) -> bool:
    midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - a wall's
    return next(CronSim(_plain(f"0 0 {days}"), midnight - _SECOND), None) == midnight
