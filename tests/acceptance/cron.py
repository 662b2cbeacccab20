"""Cron by its definition, minute by minute, against the product's times.

    .venv/bin/python -m tests.acceptance.cron --expressions 20000 --seed 1 [--json]

Random expressions, each in a random time zone from a random moment on, half of the moments shortly before the clock is
changed there: the next ten times must be the same. Exits with 1 where any are not.

The definition is that of Debian's cron. The five fields, and a day that fits by either of its two fields
unless one of them begins with a star. An expression of which minute or hour begins with a star goes by the clock on the
wall as it is. Any other means moments of the day: one that the clock leaps over is run as soon as it has, one that
comes twice is run the first time. Nothing here looks at how the product does it: every minute of a day is tried.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from scheduler.times import parse_schedule

COUNT = 10
LAST_YEAR = 2200  # a 29th of February that is a Monday comes every 28 years, or 40
LEAP = timedelta(hours=3)  # a larger leap of the wall clock is no daylight saving
MINUTE = timedelta(minutes=1)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Casablanca",  # an hour less in Ramadan
    "Asia/Shanghai",  # none
    "Africa/Cairo",  # at midnight
    "America/Havana",  # at midnight
    "Asia/Beirut",  # at midnight
    "America/Santiago",  # the south, at midnight
    "America/Scoresbysund",
    "Pacific/Chatham",  # 12:45, at 2:45
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Europe/Dublin",  # its winter is the exception
    "America/St_Johns",
    "UTC",
)
RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 7)}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


# The definition -------------------------------------------------------------------------------------------------------


def members(text: str, low: int, high: int, names: tuple[str, ...], first: int) -> set[int]:
    """What a field allows."""
    found: set[int] = set()
    for part in text.lower().split(","):
        body, _, step = part.partition("/")
        begin, _, end = body.partition("-")

        def number(word: str) -> int:
            return names.index(word) + first if word in names else int(word)

        if begin == "*":
            every = range(low, high + 1)
        elif end:
            every = range(number(begin), number(end) + 1)
        else:
            every = range(number(begin), (high if step else number(begin)) + 1)
        found |= set(every[:: int(step or 1)])
    return found


@dataclass(frozen=True)
class Defined:
    """An expression as its definition reads it."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    both: bool  # day of month and weekday must fit; else either is enough
    by_the_wall: bool

    @classmethod
    def of(cls, expression: str) -> Defined:
        minute, hour, day, month, weekday = expression.split()
        return cls(
            frozenset(members(minute, 0, 59, (), 0)),
            frozenset(members(hour, 0, 23, (), 0)),
            frozenset(members(day, 1, 31, (), 0)),
            frozenset(members(month, 1, 12, MONTHS, 1)),
            frozenset(number % 7 for number in members(weekday, 0, 7, DAYS, 0)),
            both=day.startswith("*") or weekday.startswith("*"),
            by_the_wall=minute.startswith("*") or hour.startswith("*"),
        )

    def fits_day(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (of_month and of_week if self.both else of_month or of_week)

    def fits(self, wall: datetime) -> bool:
        return wall.minute in self.minutes and wall.hour in self.hours and self.fits_day(wall.date())


@dataclass(frozen=True, slots=True)
class Minute:
    """A minute that really comes. ``again``: the wall showed it before. ``leapt``: what it never shows, just before."""

    utc: datetime
    wall: datetime
    again: bool
    leapt: tuple[datetime, ...]


@lru_cache(maxsize=256)
def minutes_of(zone: str, day: date) -> tuple[Minute, ...]:
    """Every minute of which the wall shows this day, in the order in which they come."""
    tz = ZoneInfo(zone)
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    utc = noon - timedelta(hours=31)  # a zone is up to 14 hours before UTC; and a while before the day begins
    shown: set[datetime] = set()
    before = utc.astimezone(tz).replace(tzinfo=None) - MINUTE
    found: list[Minute] = []
    while utc < noon + timedelta(hours=31):
        wall = utc.astimezone(tz).replace(tzinfo=None)
        leapt: list[datetime] = []
        if MINUTE < wall - before <= LEAP:
            missing = before + MINUTE
            while missing < wall:
                leapt.append(missing)
                missing += MINUTE
        if wall.date() == day:
            found.append(Minute(utc, wall, wall in shown, tuple(leapt)))
        shown.add(wall)
        before, utc = wall, utc + MINUTE
    return tuple(found)


@lru_cache(maxsize=100_000)
def is_plain(zone: str, day: date) -> bool:
    """Whether the wall clock goes on evenly around this day, so that each of its minutes comes once."""
    tz = ZoneInfo(zone)
    noon = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return len({(noon + timedelta(hours=hours)).astimezone(tz).utcoffset() for hours in range(-32, 33, 4)}) == 1


def defined_times(expression: str, zone: str, after: datetime, count: int = COUNT) -> list[datetime]:
    """The next times later than ``after``, in UTC."""
    rule, found = Defined.of(expression), list[datetime]()
    day = after.astimezone(ZoneInfo(zone)).date() - timedelta(days=1)
    while len(found) < count and day.year <= LAST_YEAR:
        found += [moment for moment in _times_of_day(rule, zone, day) if moment > after]
        day += timedelta(days=1)
    return found[:count]


def _times_of_day(rule: Defined, zone: str, day: date) -> Iterator[datetime]:
    # What was leapt over at midnight belongs to the day before.
    fits = rule.fits_day(day)
    if not fits and not rule.fits_day(day - timedelta(days=1)):
        return
    if is_plain(zone, day):
        if not fits:
            return
        offset = datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(zone)).utcoffset() or timedelta(0)
        midnight = datetime(day.year, day.month, day.day, tzinfo=UTC) - offset
        for hour in sorted(rule.hours):
            for minute in sorted(rule.minutes):
                yield midnight + timedelta(hours=hour, minutes=minute)
        return
    for one in minutes_of(zone, day):
        if rule.by_the_wall:
            due = rule.fits(one.wall)
        else:
            due = (rule.fits(one.wall) and not one.again) or any(rule.fits(wall) for wall in one.leapt)
        if due:
            yield one.utc


# Random ones ----------------------------------------------------------------------------------------------------------


def _part(chance: random.Random, low: int, high: int, names: tuple[str, ...], first: int) -> str:
    number = chance.randint(low, high)
    if (low, high) == RANGES["minute"] and chance.random() < 0.3:
        number = chance.choice([0, 0, 30, 15])  # where clocks are changed to and from
    elif (low, high) == RANGES["hour"] and chance.random() < 0.4:
        number = chance.randint(0, 3)  # when they are
    match chance.randrange(7):
        case 0:
            return f"*/{chance.randint(1, max(2, high // 2))}"
        case 1:
            end = chance.randint(number, high)
            return f"{number}-{end}" + chance.choice(["", f"/{chance.randint(1, 6)}"])
        case 2 if names and number - first < len(names):
            return chance.choice([names[number - first], names[number - first].upper()])
        case 3:
            return f"{number}/{chance.randint(2, 12)}"
        case _:
            return str(number)


def _field(chance: random.Random, name: str) -> str:
    low, high = RANGES[name]
    names, first = {"month": (MONTHS, 1), "weekday": (DAYS, 0)}.get(name, ((), 0))
    if chance.random() < {"minute": 0.1, "hour": 0.3, "day": 0.5, "month": 0.6, "weekday": 0.5}[name]:
        return "*"
    parts = [_part(chance, low, high, names, first) for _ in range(chance.choice([1, 1, 1, 2, 3]))]
    return ",".join(parts)


EDGES = ("0 0 29 2 *", "0 9 29 2 1", "30 2 */28 2 1", "0 9 31 * *", "15 2 * * 0", "0,30 2 * * *", "59 23 31 12 *")


def random_expression(chance: random.Random) -> str:
    if chance.random() < 0.02:
        return chance.choice(EDGES)
    return " ".join(_field(chance, name) for name in RANGES)


@lru_cache
def changes(zone: str) -> tuple[datetime, ...]:
    """A moment in the three hours after each change of the clock, from 2024 to 2036."""
    tz, found = ZoneInfo(zone), list[datetime]()
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    before = moment.astimezone(tz).utcoffset()
    while moment.year < 2037:
        moment += timedelta(hours=3)
        now = moment.astimezone(tz).utcoffset()
        if now != before:
            found.append(moment)
        before = now
    return tuple(found)


def random_moment(chance: random.Random, zone: str) -> datetime:
    if changes(zone) and chance.random() < 0.5:
        return chance.choice(changes(zone)) - timedelta(seconds=chance.randrange(36 * 3600))
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=chance.randrange(12 * 365 * 86_400))


# The comparison -------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    expressions: int = 0
    times: int = 0
    never: int = 0  # due on no day at all: both say so
    zones: Counter[str] = field(default_factory=Counter)
    different: list[dict[str, object]] = field(default_factory=list)
    seconds: float = 0.0


def product_times(expression: str, zone: str, after: datetime) -> list[datetime]:
    """None at all for what the product refuses."""
    try:
        found = parse_schedule(expression, zone).next(after, COUNT)
    except InputRejected:
        return []
    return [moment for moment in found if moment.astimezone(ZoneInfo(zone)).year <= LAST_YEAR]


def compare(expressions: int, seed: int) -> Report:
    chance, report, began = random.Random(seed), Report(), time.monotonic()
    for _ in range(expressions):
        expression, zone = random_expression(chance), chance.choice(ZONES)
        after = random_moment(chance, zone)
        wanted, got = defined_times(expression, zone, after), product_times(expression, zone, after)
        report.expressions += 1
        report.times += len(wanted)
        report.never += not wanted
        report.zones[zone] += 1
        if wanted != got:
            tz = ZoneInfo(zone)
            shown = [[f"{moment.astimezone(tz):%Y-%m-%d %H:%M%z}" for moment in side] for side in (wanted, got)]
            where = {"expression": expression, "zone": zone, "after": f"{after.astimezone(tz):%Y-%m-%d %H:%M:%S%z}"}
            report.different.append({**where, "defined": shown[0], "product": shown[1]})
    report.seconds = round(time.monotonic() - began, 1)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expressions", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    report = compare(given.expressions, given.seed)
    out = sys.stdout
    if given.json:
        json.dump({**report.__dict__, "zones": dict(report.zones), "seed": given.seed}, out, indent=2)
        out.write("\n")
    else:
        out.write(
            f"{report.expressions} expressions in {len(report.zones)} zones, seed {given.seed}: {report.times} times"
            f" compared, {report.never} never due, {len(report.different)} different; {report.seconds} s\n"
        )
        for one in report.different[:20]:
            out.write(json.dumps(one) + "\n")
    return 1 if report.different else 0


if __name__ == "__main__":
    sys.exit(main())
