"""Which cases of the suite are a day's turn."""

from __future__ import annotations

import pytest

from tests.support.days import due, todays


def test_each_case_comes_round_once_in_so_many_days() -> None:
    cases = [("a", 3)] * 7 + [("b", 1)] + [("c", 2)] * 2
    turns = [due(cases, today) for today in range(6)]
    assert [sum(column) for column in zip(*turns, strict=True)] == [2] * 7 + [6] + [3] * 2


def test_the_cases_of_one_test_are_parted_among_the_days(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    for today in ("100", "101", "102"):
        monkeypatch.setenv("TEST_DAY", today)
        found += todays(range(10), 3)
    assert sorted(found) == list(range(10))
    monkeypatch.setenv("TEST_DAY", "all")
    assert todays(range(10), 3) == range(10)
