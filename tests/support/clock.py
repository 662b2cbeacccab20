"""A clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """A time that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def move(self, **delta: float) -> None:
        self.time += timedelta(**delta)
