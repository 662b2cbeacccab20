"""Time zones, and when the clock on the wall is changed in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_core.errors import InputRejected

LEAP = timedelta(hours=3)  # a change of more is no daylight saving: a zone moved over the date line
_STEP = timedelta(hours=6)  # no two changes lie so close together


def parse_zone(name: str) -> ZoneInfo:
    """InputRejected for a name that the tz database does not have."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputRejected(
            f"Unknown time zone: {name!r}.", advice="Use a name such as Asia/Shanghai.", key="bad_zone", said=name
        ) from error


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """At ``at`` (UTC) the wall clock's distance to UTC becomes another."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def wall_before(self) -> datetime:
        """What the wall would show at this moment, had nothing changed; naive."""
        return self.at.replace(tzinfo=None) + self.before

    @property
    def wall_after(self) -> datetime:
        return self.at.replace(tzinfo=None) + self.after

    @property
    def small(self) -> bool:
        return abs(self.after - self.before) <= LEAP


def offset_of(zone: ZoneInfo, moment: datetime) -> timedelta:
    """The wall clock's distance to UTC at an aware moment."""
    return moment.astimezone(zone).utcoffset() or timedelta(0)


@lru_cache(maxsize=4096)
def changes_of(zone: ZoneInfo, year: int) -> tuple[ZoneChange, ...]:
    """The changes in a year (of UTC), in order."""
    moment, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
    before = offset_of(zone, moment - timedelta(seconds=1))
    found = []
    if offset_of(zone, moment) != before:
        found.append(ZoneChange(moment, before, offset_of(zone, moment)))
        before = offset_of(zone, moment)
    while moment < end:
        following = min(moment + _STEP, end - timedelta(seconds=1))
        after = offset_of(zone, following)
        if after != before:
            found.append(ZoneChange(_first_with(zone, moment, following, after), before, after))
            before = after
        moment = following if following != end - timedelta(seconds=1) else end
    return tuple(found)


def _first_with(zone: ZoneInfo, low: datetime, high: datetime, offset: timedelta) -> datetime:
    """The first second after ``low``, until ``high``, that has the offset that ``high`` has."""
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (low, middle) if offset_of(zone, middle) == offset else (middle, high)
    return high


def instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """When the wall clock first shows ``wall`` (naive), in UTC; where it leaps over it, when it has leapt."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    for year in (moment.year - 1, moment.year, moment.year + 1):
        for change in changes_of(zone, year):
            if change.wall_before <= wall < change.wall_after:
                return change.at
    return moment
