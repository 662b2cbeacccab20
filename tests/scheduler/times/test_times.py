"""What cron means, at each edge of daylight saving."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.errors import InputRejected
from bot.app.settings.layers import Settings
from scheduler.times import last_until, parse_quiet, parse_schedule, parse_zone, times_between
from tests.support.days import examples


def local(expression: str, zone: str, after: str, count: int = 1) -> list[str]:
    """The next times as the clock on the wall shows them, with the distance to UTC."""
    start = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone))
    return [
        moment.astimezone(ZoneInfo(zone)).strftime("%a %m-%d %H:%M%z")
        for moment in parse_schedule(expression, zone).next(start, count)
    ]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 * * 1", ["Mon 11-23", "Mon 11-30"]),
        ("0 9 * * 0", ["Sun 11-22", "Sun 11-29"]),
        ("0 9 * * 7", ["Sun 11-22", "Sun 11-29"]),
        ("0 9 * * 1-5", ["Mon 11-23", "Tue 11-24", "Wed 11-25", "Thu 11-26", "Fri 11-27", "Mon 11-30"]),
        ("0 9 * * mon,FRI", ["Mon 11-23", "Fri 11-27"]),
        ("0 9 * * 6-7", ["Sat 11-21", "Sun 11-22", "Sat 11-28"]),
        ("0 9 * * 5-7", ["Sat 11-21", "Sun 11-22", "Fri 11-27"]),
        ("0 9 25 * 1", ["Mon 11-23", "Wed 11-25", "Mon 11-30"]),  # day of month OR weekday
        ("0 9 */10 * 1", ["Mon 12-21"]),  # a star in one of them: both
        ("0 9 1 jan,12 *", ["Tue 12-01", "Fri 01-01"]),
        ("0 9 31 * *", ["Thu 12-31", "Sun 01-31", "Wed 03-31"]),
        ("0 9 29 2 *", ["Tue 02-29"]),
        ("0 9 L * *", ["Mon 11-30", "Thu 12-31"]),
        ("0 9 30-30/2 * *", ["Mon 11-30", "Wed 12-30"]),  # a range of one day, not from there to the end
    ],
)
def test_days(expression: str, expected: list[str]) -> None:
    # 2026-11-20 is a Friday.
    found = local(expression, "Asia/Shanghai", "2026-11-20T12:00", len(expected))
    assert found == [f"{day} 09:00+0800" for day in expected]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("@daily", "Sat 11-21 00:00+0800"),
        ("@MIDNIGHT", "Sat 11-21 00:00+0800"),
        ("@hourly", "Fri 11-20 13:00+0800"),
        ("@weekly", "Sun 11-22 00:00+0800"),
        ("@monthly", "Tue 12-01 00:00+0800"),
        ("@yearly", "Fri 01-01 00:00+0800"),
        ("@annually", "Fri 01-01 00:00+0800"),
        ("*/5 9-17 * * 1-5", "Fri 11-20 12:35+0800"),
        ("every 5m", "Fri 11-20 12:35+0800"),
        ("Every 2 hours", "Fri 11-20 14:00+0800"),
        ("every 1d", "Sat 11-21 00:00+0800"),
        ("at 18:30", "Fri 11-20 18:30+0800"),
        ("at 7:05", "Sat 11-21 07:05+0800"),
        ("at 2026-12-24 18:30", "Thu 12-24 18:30+0800"),
    ],
)
def test_the_next_time(expression: str, expected: str) -> None:
    assert local(expression, "Asia/Shanghai", "2026-11-20T12:30") == [expected]


# In 2026 Berlin goes forward on March 29 (02:00 → 03:00) and back on October 25 (03:00 → 02:00); New York on March 8
# and November 1; Lord Howe moves by half an hour (on October 4 02:00 → 02:30).
@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["Sun 03-29 03:00+0200", "Mon 03-30 02:30+0200"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", ["Sun 03-29 03:00+0200", "Mon 03-30 02:00+0200"]),
        ("0 2-3 * * *", "Europe/Berlin", "2026-03-29T00:00", ["Sun 03-29 03:00+0200", "Mon 03-30 02:00+0200"]),
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T01:00", ["Sun 03-29 01:30+0100", "Sun 03-29 03:00+0200"]),
        ("0 * * * *", "Europe/Berlin", "2026-03-29T00:30", ["Sun 03-29 01:00+0100", "Sun 03-29 03:00+0200"]),
        ("0 9 * * *", "Europe/Berlin", "2026-03-28T12:00", ["Sun 03-29 09:00+0200", "Mon 03-30 09:00+0200"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["Sun 10-25 02:30+0200", "Mon 10-26 02:30+0100"]),
        ("0 3 * * *", "Europe/Berlin", "2026-10-24T12:00", ["Sun 10-25 03:00+0100", "Mon 10-26 03:00+0100"]),
        (
            "*/30 * * * *",
            "Europe/Berlin",
            "2026-10-25T01:30",
            ["02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100", "03:00+0100"],
        ),
        ("0 2 * * *", "America/New_York", "2026-03-07T12:00", ["Sun 03-08 03:00-0400", "Mon 03-09 02:00-0400"]),
        ("30 1 * * *", "America/New_York", "2026-10-31T12:00", ["Sun 11-01 01:30-0400", "Mon 11-02 01:30-0500"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["Sun 10-04 02:30+1100", "Mon 10-05 02:15+1100"]),
        # A library that is given the zone begins such a day at 10:30.
        ("* 10 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["Sun 10-04 10:00+1100", "Sun 10-04 10:01+1100"]),
        ("42 * * * *", "Australia/Lord_Howe", "2026-10-04T01:00", ["Sun 10-04 01:42+1030", "Sun 10-04 02:42+1100"]),
        ("30 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["Fri 04-24 01:00+0300", "Sat 04-25 00:30+0300"]),
        ("at 2026-03-29 02:30", "Europe/Berlin", "2026-03-28T12:00", ["Sun 03-29 03:00+0200"]),
        (
            "every 30m 01:00-04:00",
            "Europe/Berlin",
            "2026-03-29T01:00",
            ["Sun 03-29 01:30+0100", "Sun 03-29 03:00+0200"],
        ),
        ("every 1h 01:00-03:00", "Europe/Berlin", "2026-10-25T01:30", ["02:00+0200", "02:00+0100", "01:00+0100"]),
        ("every 12h", "Europe/Berlin", "2026-03-28T23:30", ["Sun 03-29 00:00+0100", "Sun 03-29 13:00+0200"]),
    ],
)
def test_daylight_saving(expression: str, zone: str, after: str, expected: list[str]) -> None:
    found = local(expression, zone, after, len(expected))
    assert [text if len(wanted) > 10 else text[-10:] for text, wanted in zip(found, expected, strict=True)] == expected


def test_the_second_of_two_equal_hours_brings_no_old_time() -> None:
    """After 02:45 of the second time, today's 02:50 was run already, in the first."""
    after = datetime(2026, 10, 25, 2, 45, tzinfo=ZoneInfo("Europe/Berlin"), fold=1)
    found = parse_schedule("50 2 * * *", "Europe/Berlin").next(after)
    assert found == [datetime(2026, 10, 26, 1, 50, tzinfo=UTC)]


CRON = st.tuples(
    st.sampled_from(["*", "0", "*/7", "5,35", "10-20/5"]),
    st.sampled_from(["*", "2", "1-3", "*/6", "0,23"]),
    st.sampled_from(["*", "1", "29", "31", "*/9", "L"]),
    st.sampled_from(["*", "3", "10", "MAR-NOV"]),
    st.sampled_from(["*", "0", "7", "1-5", "SUN", "mon,thu"]),
).map(" ".join)


@settings(deadline=None, max_examples=examples(150))
@given(
    CRON,
    st.sampled_from(
        ["UTC", "Asia/Shanghai", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
    ),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)),  # noqa: DTZ001 - hypothesis wants them naive
)
def test_times_only_grow_and_do_not_depend_on_where_one_begins(expression: str, zone: str, start: datetime) -> None:
    times = parse_schedule(expression, zone)
    after = start.replace(tzinfo=UTC)
    found = times.next(after, 6)
    assert found == sorted(set(found))
    assert all(moment > after for moment in found)
    assert times.next(found[0], 5) == found[1:]
    assert times.next(found[0] - timedelta(microseconds=1), 6) == found
    assert all(moment == moment.astimezone(ZoneInfo(zone)).astimezone(UTC) for moment in found)


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("60 * * * *", "minute is"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day-of-month"),
        ("* * * 13 *", "field month"),
        ("* * * foo *", "field month"),
        ("* * * * 8", "day-of-week"),
        ("* * * * mo", "day-of-week"),
        ("*/0 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("* , * * *", "hour"),
        ("* * * *", "has 4"),
        ("0 * * * * *", "has 6"),
        ("0 0 30 2 *", "never"),
        ("@reboot", "@reboot"),
        ("", "five fields"),
        ("every", "interval"),
        ("every 0m", "interval"),
        ("every 5", "interval"),
        ("every 5s", "30 s"),
        ("at 25:00", "No such time"),
        ("at noon", "Not a time"),
        ("at 2026-02-30 10:00", "No such time"),
    ],
)
def test_errors_name_what_is_wrong(expression: str, named: str) -> None:
    with pytest.raises(InputRejected, match=named):
        parse_schedule(expression, "Asia/Shanghai")


@pytest.mark.parametrize(
    ("said", "zone"),
    [
        ("北京", "Asia/Shanghai"),
        ("上海", "Asia/Shanghai"),
        ("北京时间", "Asia/Shanghai"),
        (" beijing ", "Asia/Shanghai"),
        ("shanghai", "Asia/Shanghai"),
        ("asia/shanghai", "Asia/Shanghai"),
        ("new york", "America/New_York"),
        ("Buenos Aires", None),  # the tz database has it twice
    ],
)
def test_a_city_names_its_zone(said: str, zone: str | None) -> None:
    if zone is not None:
        assert parse_zone(said).key == zone
        assert Settings(timezone=said).timezone == zone
        return
    for wrong in (said, "GMT+8", "UTC+8", "市"):  # Etc/GMT+8 is eight hours behind, not ahead
        with pytest.raises(InputRejected, match="time zone"):
            parse_zone(wrong)


@pytest.mark.parametrize("zone", ["Nowhere/City", "", "../etc/passwd", "/etc/localtime"])
def test_unknown_zones(zone: str) -> None:
    with pytest.raises(InputRejected, match="time zone"):
        parse_schedule("* * * * *", zone)


def test_a_one_off_comes_once() -> None:
    times = parse_schedule("at 2026-12-24 18:30", "Asia/Shanghai")
    moment = datetime(2026, 12, 24, 10, 30, tzinfo=UTC)
    assert times.next(moment - timedelta(days=900), 3) == [moment]
    assert times.next(moment) == []


def test_both_of_two() -> None:
    found = local("0 9 * * 1-5 | 0 9,10 * * 0,6", "Asia/Shanghai", "2026-11-20T12:00", 5)
    assert [text[:13] for text in found] == [
        "Sat 11-21 09:", "Sat 11-21 10:", "Sun 11-22 09:", "Sun 11-22 10:", "Mon 11-23 09:",
    ]  # fmt: skip


def test_the_last_of_very_many() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert last_until(parse_schedule("every 30s", "UTC"), start, start + timedelta(days=300)) == start + timedelta(
        days=300
    )
    assert last_until(parse_schedule("@yearly", "UTC"), start, start + timedelta(days=364)) is None
    assert last_until(parse_schedule("0 0 1 2 *", "UTC"), start, start + timedelta(days=364)) == datetime(
        2026, 2, 1, tzinfo=UTC
    )


def test_times_between() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    times = parse_schedule("* * * * *", "UTC")
    found = times_between(times, start, start + timedelta(minutes=120))
    assert (len(found), found[0], found[-1]) == (120, start + timedelta(minutes=1), start + timedelta(minutes=120))
    assert times_between(times, start, start) == []


def test_quiet_hours() -> None:
    zone = parse_zone("Asia/Shanghai")

    def at(hour: int, minute: int = 0) -> datetime:
        return datetime(2026, 1, 1, hour, minute, tzinfo=zone).astimezone(UTC)

    night = parse_quiet("22:00-07:00")
    assert night is not None
    assert [night.holds(at(*moment), zone) for moment in ((21, 59), (22, 0), (3, 0), (6, 59), (7, 0))] == [
        False, True, True, True, False,
    ]  # fmt: skip
    noon = parse_quiet("12:00–13:30")
    assert noon is not None
    assert [noon.holds(at(*moment), zone) for moment in ((11, 59), (12, 0), (13, 29), (13, 30))] == [
        False, True, True, False,
    ]  # fmt: skip
    assert parse_quiet("") is None
    for wrong in ("25:00-07:00", "night", "22:00"):
        with pytest.raises(InputRejected):
            parse_quiet(wrong)
