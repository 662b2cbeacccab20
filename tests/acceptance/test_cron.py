"""A small form of ``cron.py``, and the definition itself where a person has looked up what is right."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.acceptance.cron import compare, defined_times


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_random_expressions_are_due_as_cron_defines_it(seed: int) -> None:
    report = compare(100, seed=seed)
    assert report.different == []
    assert report.times > 800


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["03-29 03:00+0200", "03-30 02:30+0200"]),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
        ("30 0 * * *", "Africa/Cairo", "2026-04-23T12:00", ["04-24 01:00+0300", "04-25 00:30+0300"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", ["10-04 02:30+1100", "10-05 02:15+1100"]),
        ("30 */2 4 10 *", "Australia/Lord_Howe", "2026-10-04T01:00", ["10-04 02:30+1100", "10-04 04:30+1100"]),
        ("0 9 25 * 1", "Asia/Shanghai", "2026-11-20T12:00", ["11-23 09:00+0800", "11-25 09:00+0800"]),
    ],
)
def test_the_definition(expression: str, zone: str, after: str, expected: list[str]) -> None:
    found = defined_times(expression, zone, datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)), 2)
    assert [f"{moment.astimezone(ZoneInfo(zone)):%m-%d %H:%M%z}" for moment in found] == expected
