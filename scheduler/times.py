"""When a schedule is due.

- cron, five fields or ``@daily`` and friends, with the meaning of cron itself: 1 is Monday, 0 and 7 are Sunday, names,
  day of month OR weekday where both are given. In the night when the clock goes forward, a time that does not exist is
  run as soon as the hour is over; when it goes back, a time that comes twice is run once, while ``*/15 * * * *`` and
  its like go on by the real minutes.
- ``every 5m`` (s, m, h, d), counted from a midnight of the zone, so that every process gets the same times
- ``at 18:30`` every day, ``at 2026-12-24 18:30`` once
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from agent_core.errors import InputRejected

SHORTEST = timedelta(seconds=30)
LONGEST = timedelta(days=366)
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
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_EVERY = re.compile(r"every\s+(\d{1,6})\s*(s|m|h|d|sec|min|seconds?|minutes?|hours?|days?)", re.IGNORECASE)
_AT = re.compile(r"at\s+(?:(\d{4}-\d{2}-\d{2})[ T])?(\d{1,2}):(\d{2})", re.IGNORECASE)
_QUIET = re.compile(r"(\d{1,2}):(\d{2})\s*[-–]\s*(\d{1,2}):(\d{2})")


class ScheduleTimes(Protocol):
    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        """The next ``count`` times later than ``after`` (aware), in UTC; fewer where there are no more."""


def times_between(times: ScheduleTimes, after: datetime, until: datetime, limit: int = 10_000) -> list[datetime]:
    """The times later than ``after``, up to and with ``until``; the last ``limit`` of them need not all be there."""
    found: list[datetime] = []
    while len(found) < limit:
        step = times.next(found[-1] if found else after, 50)
        found += [moment for moment in step if moment <= until]
        if len(step) < 50 or step[-1] > until:
            break
    return found


@dataclass(frozen=True)
class CronTimes:
    expression: str
    zone: ZoneInfo

    def next(self, after: datetime, count: int = 1) -> list[datetime]:
        return list(islice(self._later(after), count))

    def _later(self, after: datetime) -> Iterator[datetime]:
        """Strictly growing. The library may give a time twice, or one before ``after``, where the clock is put back."""
        last = after.astimezone(UTC)
        for moment in CronSim(self.expression, after.astimezone(self.zone)):
            utc = moment.astimezone(UTC)
            if utc > last:
                last = utc
                yield utc


@dataclass(frozen=True)
class EveryTimes:
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


def parse_zone(name: str) -> ZoneInfo:
    """InputRejected for a name that the tz database does not have."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputRejected(f"Unknown time zone: {name!r}.", advice="Use a name such as Asia/Shanghai.") from error


def parse_schedule(expression: str, timezone: str) -> ScheduleTimes:
    """The times of an expression in a zone (a name of the tz database). InputRejected says which field is wrong."""
    zone = parse_zone(timezone)
    text = " ".join(expression.split())
    if text.lower().startswith("every"):
        return _every(text, zone)
    if text.lower().startswith("at "):
        return _at(text, zone)
    return _cron(text, zone)


def _every(text: str, zone: ZoneInfo) -> EveryTimes:
    match = _EVERY.fullmatch(text)
    if match is None:
        raise InputRejected(f"Not an interval: {text!r}.", advice="Write it as `every 5m`, with s, m, h or d.")
    interval = timedelta(**{UNITS[match[2][0].lower()]: int(match[1])})
    if not SHORTEST <= interval <= LONGEST:
        raise InputRejected(f"An interval is from 30 s to 366 d, not {match[1]}{match[2]}.")
    return EveryTimes(interval, zone)


def _at(text: str, zone: ZoneInfo) -> ScheduleTimes:
    match = _AT.fullmatch(text)
    if match is None:
        raise InputRejected(
            f"Not a time: {text!r}.", advice="Write it as `at 18:30` for every day, `at 2026-12-24 18:30` for once."
        )
    day, hour, minute = match[1], int(match[2]), int(match[3])
    try:
        clock = time(hour, minute)
        if day is not None:
            local = datetime.combine(datetime.fromisoformat(day), clock, tzinfo=zone)
            return OnceTimes(local.astimezone(UTC))
    except ValueError as error:
        raise InputRejected(f"No such time: {text!r} ({error}).") from error
    return CronTimes(f"{minute} {hour} * * *", zone)


def _cron(text: str, zone: ZoneInfo) -> CronTimes:
    if text.startswith("@"):
        if text.lower() not in ALIASES:
            raise InputRejected(f"Unknown schedule: {text!r}.", advice=f"Known: {', '.join(ALIASES)}.")
        text = ALIASES[text.lower()]
    parts = text.split()
    if len(parts) != len(FIELDS):
        raise InputRejected(
            f"A cron expression has five fields ({', '.join(FIELDS)}); {text!r} has {len(parts)}.",
            advice="For example `*/5 9-17 * * 1-5`: every five minutes from 9 to 18, Monday to Friday.",
        )
    _check_fields(parts)
    times = CronTimes(text, zone)
    try:
        found = times.next(datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise InputRejected(f"{text!r} is never due: {error}.") from error
    if not found:
        raise InputRejected(f"{text!r} is never due.")
    return times


def _check_fields(parts: list[str]) -> None:
    """Each field by itself, so that the error can name it."""
    for index, (name, value) in enumerate(zip(FIELDS, parts, strict=True)):
        alone = ["*"] * len(FIELDS)
        alone[index] = value
        # A day that only some months have is not wrong by itself.
        try:
            CronSim(" ".join(alone), datetime(2024, 1, 1))  # noqa: DTZ001 - only the syntax is looked at
        except (CronSimError, AssertionError) as error:
            raise InputRejected(f"The field {name} is wrong: {value!r}.", advice=_allowed(name)) from error


def _allowed(name: str) -> str:
    allowed = {
        "minute": "0-59",
        "hour": "0-23",
        "day-of-month": "1-31, L for the last",
        "month": "1-12 or JAN-DEC",
        "day-of-week": "0-7 (0 and 7 are Sunday, 1 is Monday) or SUN-SAT",
    }
    return f"Allowed: {allowed[name]}, with * , - and /."


@dataclass(frozen=True)
class QuietHours:
    """From ``start`` until before ``end``, local time; over midnight where ``end`` is earlier."""

    start: time
    end: time

    def holds(self, moment: datetime, zone: ZoneInfo) -> bool:
        local = moment.astimezone(zone).time()
        if self.start <= self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end


def parse_quiet(text: str) -> QuietHours | None:
    """``22:00-07:00``; None for an empty text. InputRejected otherwise."""
    if not text.strip():
        return None
    match = _QUIET.fullmatch(text.strip())
    try:
        if match is not None:
            return QuietHours(time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4])))
    except ValueError:
        pass
    raise InputRejected(f"Not quiet hours: {text!r}.", advice="Write them as 22:00-07:00.")
