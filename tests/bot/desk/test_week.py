"""The coming week of schedules."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from bot.desk.actors import Role
from bot.desk.schedules_views import ScheduleView, ScheduleWish
from bot.desk.week import WeekEntry, week_of
from scheduler.times import parse_schedule
from tests.support.shop import Shop

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)  # a Sunday, 17:00 in Shanghai


def spoken(entries: tuple[WeekEntry, ...]) -> list[str]:
    return [
        f"#{one.schedule.id} {one.first:%H:%M}"
        + (f"-{one.last:%H:%M} {one.every or one.count}" if one.count > 1 else "")
        for one in entries
    ]


def view(means: str, number: str = "1", *, quiet: str = "", timezone: str = "Asia/Shanghai") -> ScheduleView:
    return ScheduleView(number, means, "x", means=means, quiet=quiet, timezone=timezone)


async def test_a_week_has_the_schedules_in_the_desks_time(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    schedules = shop.desk.schedules
    await schedules.add(owner, "weekdays 9:00-18:00 every 5m", "QQ回复未读", chat=None)
    await schedules.add(owner, "daily at 8", "看一下", chat=None, wish=ScheduleWish(timezone="Europe/London"))
    watch = await schedules.add(owner, "", "watch 11", chat=None)
    paused = await schedules.add(owner, "daily at 9", "打开设置", chat=None)
    await schedules.pause(owner, paused.id)
    later = await schedules.add(owner, "at 2026-12-24 18:30", "打开相机", chat=None)
    week = await schedules.week(owner)
    days = {day.day.isoformat(): spoken(day.entries) for day in week.days}
    assert list(days) == [f"2026-03-0{number}" for number in range(1, 8)], "it is Sunday in Shanghai"
    assert days["2026-03-01"] == []
    assert days["2026-03-02"] == ["#1 09:00-17:55 0:05:00", "#2 16:00"]
    assert days["2026-03-07"] == ["#2 16:00"]
    assert [each.id for each in week.watches] == [watch.id]
    assert [each.id for each in week.paused] == [paused.id]
    assert [each.id for each in week.later] == [later.id]


@pytest.mark.parametrize(
    "means", ["*/5 9-18 * * 1-5", "every 30s", "every 7m 22:00-03:00", "*/25 * * * *", "0 9,13 * * *"]
)
def test_bands_lose_no_start_and_invent_none(means: str) -> None:
    week = week_of([view(means)], NOW, SHANGHAI)
    end = datetime(2026, 3, 8, tzinfo=SHANGHAI)
    coming = itertools.takewhile(lambda at: at < end, parse_schedule(means, "Asia/Shanghai").next(NOW, 21_000))
    by_day: dict[date, list[datetime]] = {}
    for moment in coming:
        by_day.setdefault(moment.astimezone(SHANGHAI).date(), []).append(moment)
    assert sum(map(len, by_day.values())) == sum(entry.count for day in week.days for entry in day.entries)
    for day in week.days:
        assert len(day.entries) <= 8
        shown = [
            entry.first + entry.every * number if entry.every else entry.first
            for entry in day.entries
            for number in range(entry.count if entry.every else 1)
        ]
        assert set(shown) <= set(by_day.get(day.day, []))
        if day.entries:
            assert (day.entries[0].first, day.entries[-1].last) == (by_day[day.day][0], by_day[day.day][-1])


def test_a_few_starts_are_no_band() -> None:
    monday = week_of([view("0 9,10,11 * * *")], NOW, SHANGHAI).days[1]
    assert spoken(monday.entries) == ["#1 09:00", "#1 10:00", "#1 11:00"]
    monday = week_of([view("0 9-12 * * *")], NOW, SHANGHAI).days[1]
    assert spoken(monday.entries) == ["#1 09:00-12:00 1:00:00"]


def test_nothing_starts_in_quiet_hours_and_they_are_told() -> None:
    its = [view("every 30m", quiet="22:00-07:00"), view("0 9 * * *", "2")]
    week = week_of(its, NOW, SHANGHAI)
    monday = week.days[1]
    assert spoken(monday.entries) == ["#1 07:00-21:30 0:30:00", "#2 09:00"]
    assert monday.quiet == ((0, 7), (22, 24))
    assert [each.id for each in week.quiet] == ["1"]


def test_quiet_hours_are_those_of_the_schedules_own_zone() -> None:
    week = week_of([view("0 * * * *", quiet="00:00-06:00", timezone="UTC")], NOW, SHANGHAI)
    assert week.days[1].quiet == ((8, 14),)
    assert spoken(week.days[1].entries) == ["#1 00:00-07:00 1:00:00", "#1 14:00-23:00 1:00:00"]


def test_a_band_goes_on_over_the_change_of_the_clock() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    its = view("every 30m", timezone="Europe/Berlin")
    week = week_of([its], datetime(2026, 3, 28, 12, 0, tzinfo=UTC), berlin)
    (band,) = week.days[1].entries  # 2:00 is followed by 3:00
    assert (band.count, band.every) == (46, timedelta(minutes=30))


async def test_a_week_is_of_the_phones_that_one_may_see(shop: Shop) -> None:
    owner = await shop.person(Role.OWNER)
    await shop.desk.schedules.add(owner, "daily at 9", "x", chat=None, wish=ScheduleWish(serial="S1"))
    assert (await shop.desk.schedules.week(owner)).days[1].entries
    assert not (await shop.desk.schedules.week(replace(owner, phones=("S2",)))).days[1].entries
