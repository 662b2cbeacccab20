"""Time zones, and the changes of their wall clocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from agent_core.errors import InputRejected

LEAP = timedelta(hours=3)  # a larger change is not daylight saving time: the zone moved over the date line
_STEP = timedelta(hours=6)  # no two changes are this close together
# Names that people write for their zone, if the tz database has no such city, or not in Chinese.
_CITIES = {
    "Asia/Shanghai": "北京 上海 广州 深圳 天津 重庆 杭州 南京 武汉 成都 西安 中国 beijing guangzhou shenzhen china",
    "Asia/Urumqi": "乌鲁木齐 新疆",
    "Asia/Hong_Kong": "香港",
    "Asia/Macau": "澳门",
    "Asia/Taipei": "台北",
    "Asia/Tokyo": "东京 日本",
    "Asia/Seoul": "首尔 韩国",
    "Asia/Singapore": "新加坡",
    "Asia/Kuala_Lumpur": "吉隆坡",
    "Asia/Bangkok": "曼谷",
    "Europe/London": "伦敦",
    "America/New_York": "纽约",
    "America/Los_Angeles": "洛杉矶",
}


def parse_zone(name: str) -> ZoneInfo:
    """Return the zone with this name in the tz database, or that of a city, in any case ("beijing", "北京").

    Raises InputRejected if it is neither, or cities in several zones have the name.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        if key := _zone_of_city(name):
            return ZoneInfo(key)
        raise InputRejected(
            f"Unknown time zone: {name!r}.", advice="Use a name such as Asia/Shanghai.", key="bad_zone", said=name
        ) from error


def _zone_of_city(said: str) -> str:
    """Return the key of the zone that the words name; "" if none or several do."""
    plain = said.strip().casefold().removesuffix("时间").removesuffix("市").replace(" ", "_")
    for key, cities in _CITIES.items():
        if plain in cities.split():
            return key
    known = available_timezones()
    if whole := [key for key in known if key.casefold() == plain]:
        return whole[0]
    # Signs are turned round in Etc/GMT+8, which is west of Greenwich.
    by_city = [key for key in known if not key.startswith("Etc/") and key.casefold().rpartition("/")[2] == plain]
    return by_city[0] if len(by_city) == 1 and "/" in by_city[0] else ""


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """A change: at ``at`` (UTC) the wall clock gets another offset from UTC."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def wall_before(self) -> datetime:
        """The wall time at this moment if nothing had changed; naive."""
        return self.at.replace(tzinfo=None) + self.before

    @property
    def wall_after(self) -> datetime:
        return self.at.replace(tzinfo=None) + self.after

    @property
    def small(self) -> bool:
        return abs(self.after - self.before) <= LEAP


def offset_of(zone: ZoneInfo, moment: datetime) -> timedelta:
    """Return the wall clock's offset from UTC at an aware moment."""
    return moment.astimezone(zone).utcoffset() or timedelta(0)


@lru_cache(maxsize=4096)
def changes_of(zone: ZoneInfo, year: int) -> tuple[ZoneChange, ...]:
    """Return the changes in a year (of UTC), in order."""
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
    """Return the first second after ``low``, until ``high``, with the offset of ``high``."""
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=(high - low) // timedelta(seconds=2))
        low, high = (low, middle) if offset_of(zone, middle) == offset else (middle, high)
    return high


def instant(zone: ZoneInfo, wall: datetime) -> datetime:
    """Return when the wall clock first shows ``wall`` (naive), in UTC; if it skips that time, when it has skipped."""
    moment = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    for year in (moment.year - 1, moment.year, moment.year + 1):
        for change in changes_of(zone, year):
            if change.wall_before <= wall < change.wall_after:
                return change.at
    return moment
