"""Which cases of the suite are a day's turn."""

from __future__ import annotations

from tests.support.days import due


def test_each_case_comes_round_once_in_so_many_days() -> None:
    cases = [("a", 3)] * 7 + [("b", 1)] + [("c", 2)] * 2
    turns = [due(cases, today) for today in range(6)]
    assert [sum(column) for column in zip(*turns, strict=True)] == [2] * 7 + [6] + [3] * 2
