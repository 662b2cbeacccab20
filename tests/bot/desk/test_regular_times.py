"""The times of a schedule by their parts."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from zoneinfo import ZoneInfo

import pytest

from bot.desk.actors import BadRequest
from bot.desk.regular_times import WEEK, RegularChange, RegularTimes
from scheduler.times import parse_schedule
from scheduler.times.natural import understand

NOW = datetime(2026, 3, 2, 0, 30, tzinfo=UTC)  # a Monday, 8:30 in Shanghai
ZONE = "Asia/Shanghai"


def test_parts_become_an_expression_and_the_same_parts_again() -> None:
    hours = [("", ""), ("09:00", "18:00"), ("20:00", "02:00"), ("09:00", "00:00")]
    for minutes, (start, end), days in product((5, 90, 120), hours, (WEEK, (1,), (6, 7))):
        times = RegularTimes(minutes, start, end, days)
        assert RegularTimes.of(understand(times.expression, ZONE, NOW)) == times


def test_they_mean_what_was_chosen() -> None:
    coming = parse_schedule(RegularTimes(90, "09:00", "12:30", (3, 1, 1)).expression, ZONE).next(NOW, 4)
    said = [f"{time.astimezone(ZoneInfo(ZONE)):%m-%d %H:%M}" for time in coming]
    assert said == ["03-02 09:00", "03-02 10:30", "03-02 12:00", "03-04 09:00"]


@pytest.mark.parametrize(
    ("times", "key"),
    [
        (RegularTimes(5, "09:00"), "regular_hours"),
        (RegularTimes(5, end="09:00"), "regular_hours"),
        (RegularTimes(5, "09:00", "09:00"), "regular_hours"),
        (RegularTimes(5, days=()), "regular_days"),
    ],
)
def test_parts_that_are_no_times_are_refused(times: RegularTimes, key: str) -> None:
    with pytest.raises(BadRequest) as refused:
        _ = times.expression
    assert refused.value.key == key


@pytest.mark.parametrize("expression", ["0 9 * * *", "every 30s", "every 5m | every 1h", "每5分钟", ""])
def test_other_times_have_no_parts(expression: str) -> None:
    assert RegularTimes.of(expression) is None


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ("every 5m 09:00-18:00 * * 1-3,7", RegularChange(minutes=60), "every 1h 09:00-18:00 * * 1,2,3,7"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(start="", end=""), "every 5m 00:00-24:00 * * 1,2,3,4,5"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(days=WEEK), "every 5m 09:00-18:00"),
        ("every 5m 09:00-18:00 * * 1-5", RegularChange(5, "09:00", "18:00", (1, 2, 3, 4, 5)), None),
        ("0 9 * * *", RegularChange(minutes=5), "every 5m"),
    ],
)
def test_what_a_change_does_not_name_stays(before: str, change: RegularChange, after: str | None) -> None:
    assert change.of(before) == after


def test_other_times_get_regular_ones_only_if_it_is_said_how_often() -> None:
    with pytest.raises(BadRequest) as refused:
        RegularChange(start="09:00", end="18:00").of("0 9 * * *")
    assert refused.value.key == "regular_every"
