"""Looks for tests that try one look more than today's: another one each day."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from agent_core.devices.virtual.apps.looks import DEFAULT_LOOKS, LOOKS

OTHER_LOOKS = tuple(key for key in LOOKS if key not in DEFAULT_LOOKS.values())


def day() -> int:
    """Return the day of the year, or the one that ``EVAL_DAY`` names, to run a day's tests again."""
    return int(os.environ.get("EVAL_DAY") or datetime.now(UTC).timetuple().tm_yday)


def look_of_the_day(number: int | None = None) -> str:
    """Return the look that is today's turn, or the day's with this number."""
    return OTHER_LOOKS[(day() if number is None else number) % len(OTHER_LOOKS)]
