"""The form in which a schedule's times are stored: it means the same whenever, and by whomever, it is read.

- cron: five fields, or ``@daily`` and the like
- ``every 5m`` (s, m, h, d), counted from a midnight of the zone
- ``every 5m 09:00-18:00``, followed by ``* * 1-5`` (day of month, month, weekday as in cron) for some days only: from
  the start of the window until before its end
- ``at 18:30`` every day, ``at 2026-12-24 18:30`` once
- several of them with a bar between: all of them
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from scheduler.times.cron import CronTimes, day_fits, parse_cron
from scheduler.times.kinds import EitherTimes, EveryTimes, OnceTimes, ScheduleTimes, TimeWindow, WindowTimes
from scheduler.times.zones import instant, parse_zone

SHORTEST = timedelta(seconds=30)
LONGEST = timedelta(days=366)
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DAYS = r"[\d*L][\d*/,\-LW]*\s+(?:[\d*]|[A-Z]{3}\b)[\d*/,\-A-Z]*\s+(?:[\d*]|[A-Z]{3}\b)[\d*/,\-A-Z#]*"
_WINDOW = rf"(?:\s+(?P<from>\d{{1,2}}:\d{{2}})-(?P<to>\d{{1,2}}:\d{{2}})(?:\s+(?P<days>{_DAYS}))?)?"
_EVERY = re.compile(rf"every\s+(\d{{1,6}})\s*(s|m|h|d|sec|min|seconds?|minutes?|hours?|days?){_WINDOW}", re.IGNORECASE)
_CRON = re.compile(r"[\d*/,\-?LW#]+|[a-z]{3}(?:[-,/][a-z\d]+)*", re.ASCII | re.IGNORECASE)
_NUMBERS = re.compile(r"[\d*/,\-?]+", re.ASCII)
_AT = re.compile(r"at\s+(?:(\d{4}-\d{2}-\d{2})[ T])?(\d{1,2}):(\d{2})", re.IGNORECASE)


def parse_schedule(expression: str, timezone: str) -> ScheduleTimes:
    """Return the times of an expression in a zone (a name of the tz database). Raises InputRejected if it is wrong."""
    zone = parse_zone(timezone)
    text = " ".join(expression.split())
    parts = [part.strip() for part in text.split("|")]
    if len(parts) > 1:
        return EitherTimes(tuple(_one(part, zone) for part in parts))
    return _one(text, zone)


def is_formal(text: str) -> bool:
    """Tell whether a text looks like one of these forms, valid or not."""
    words = text.partition("|")[0].split()
    if not words:
        return False
    one = " ".join(words)
    cron = len(words) >= 3 and all(_CRON.fullmatch(word) for word in words) and _NUMBERS.fullmatch(words[0] + words[1])
    return words[0].startswith("@") or bool(cron or _EVERY.fullmatch(one) or _AT.fullmatch(one))


def _one(text: str, zone: ZoneInfo) -> ScheduleTimes:
    if text.lower().startswith("every"):
        return _every(text, zone)
    if text.lower().startswith("at "):
        return _at(text, zone)
    return parse_cron(text, zone)


def _every(text: str, zone: ZoneInfo) -> ScheduleTimes:
    match = _EVERY.fullmatch(text)
    if match is None:
        raise InputRejected(
            f"Not an interval: {text!r}.",
            advice="Write it as `every 5m`, with s, m, h or d.",
            key="bad_schedule",
            said=text,
        )
    interval = checked_interval(timedelta(**{UNITS[match[2][0].lower()]: int(match[1])}), text)
    if match["from"] is None:
        return EveryTimes(interval, zone)
    window = TimeWindow(_minutes(match["from"], text), _minutes(match["to"], text, last=24 * 60))
    return WindowTimes(interval, window, day_fits(match["days"] or "* * *"), zone)


def checked_interval(interval: timedelta, text: str) -> timedelta:
    if not SHORTEST <= interval <= LONGEST:
        raise InputRejected(f"An interval is from 30 s to 366 d: {text!r}.", key="schedule_interval", said=text)
    return interval


def _minutes(text: str, whole: str, last: int = 24 * 60 - 1) -> int:
    hour, minute = map(int, text.split(":"))
    if minute > 59 or hour * 60 + minute > last:
        raise no_such_time(whole)
    return hour * 60 + minute


def no_such_time(text: str) -> InputRejected:
    return InputRejected(f"No such time: {text!r}.", key="schedule_no_such", said=text)


def _at(text: str, zone: ZoneInfo) -> ScheduleTimes:
    match = _AT.fullmatch(text)
    if match is None:
        raise InputRejected(
            f"Not a time: {text!r}.",
            advice="Write it as `at 18:30` for every day, `at 2026-12-24 18:30` for once.",
            key="bad_schedule",
            said=text,
        )
    day, hour, minute = match[1], int(match[2]), int(match[3])
    try:
        clock = time(hour, minute)
        if day is not None:
            return OnceTimes(instant(zone, datetime.combine(datetime.fromisoformat(day), clock)))
    except ValueError as error:
        raise no_such_time(text) from error
    return CronTimes(f"{minute} {hour} * * *", zone)
