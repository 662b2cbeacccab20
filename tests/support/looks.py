"""Looks for tests that try one look more than today's: another one each day."""

from __future__ import annotations

from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from tests.support.days import day

OTHER_LOOKS = tuple(key for key in LOOKS if key not in DEFAULT_LOOKS.values())


def look_of_the_day(number: int | None = None) -> str:
    """Return the look that is today's turn, or the day's with this number."""
    return OTHER_LOOKS[(day() or 0 if number is None else number) % len(OTHER_LOOKS)]
