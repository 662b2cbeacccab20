"""The day whose part of the suite is run: tests with many cases take turns, so that the whole stays short."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar
from zlib import crc32

import pytest

EVERY = "all"
T = TypeVar("T")


def day() -> int | None:
    """Return the day of the year, or the one that ``TEST_DAY`` names; None if it is "all": every case is wanted."""
    wanted = os.environ["TEST_DAY"]
    if wanted != EVERY and not wanted.isdecimal():
        raise pytest.UsageError(f"TEST_DAY is {wanted!r}: give the number of a day, or {EVERY} for every case.")
    return None if wanted == EVERY else int(wanted)


def examples(most: int) -> int:
    """Return how many random examples a test draws, others each time: ``most`` if every case is wanted, else half."""
    return most if os.environ.get("TEST_DAY") == EVERY else -(-most // 2)


def todays(cases: Sequence[T], parts: int) -> Sequence[T]:
    """Return the cases of one test whose turn it is; each comes round once in ``parts`` days. All if all are wanted."""
    today = day()
    return cases if today is None else cases[today % parts :: parts]


def due(cases: Iterable[tuple[str, int]], today: int) -> list[bool]:
    """Return for each case of (test, parts) whether today is its turn; each comes round once in so many days.

    Each test begins with another of its cases, so that every day has about as many.
    """
    seen: Counter[str] = Counter()
    found = []
    for test, parts in cases:
        found.append((crc32(test.encode()) + seen[test] + today) % parts == 0)
        seen[test] += 1
    return found
