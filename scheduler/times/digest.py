"""The times at which a digest is due, and the period that it covers."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from scheduler.times.cron import CronTimes

_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_TIME = re.compile(r"(?:([a-z]{3})[a-z]*\s+)?(\d{1,2}):(\d{2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class DigestTime:
    """The time of a digest. ``at`` is local time; ``day`` of the week as in cron, 0 for Sunday, None for every day."""

    at: time
    day: int | None = None

    def latest(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the last due time up to ``now``; None if there is none."""
        day = "*" if self.day is None else str(self.day)
        times = CronTimes(f"{self.at.minute} {self.at.hour} * * {day}", zone)
        passed = [moment for moment in times.next(now - timedelta(days=9), 10) if moment <= now]
        return passed[-1] if passed else None

    def period(self, planned: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
        """Return the period that the digest of ``planned`` covers: since and until, in UTC."""
        local = planned.astimezone(zone)
        end = datetime.combine(local.date(), time.min if self.at.hour < 12 else self.at, tzinfo=zone)
        begin = datetime.combine(end.date() - timedelta(days=1 if self.day is None else 7), end.time(), tzinfo=zone)
        return begin.astimezone(UTC), end.astimezone(UTC)


def parse_digest_time(text: str, *, weekly: bool = False) -> DigestTime | None:
    """Parse ``09:00``, or with ``weekly`` ``mon 09:00``; None for an empty text. Raises InputRejected otherwise."""
    if not text.strip():
        return None
    match = _TIME.fullmatch(text.strip().lower())
    with suppress(ValueError):
        if match is not None and weekly == bool(match[1]):
            return DigestTime(time(int(match[2]), int(match[3])), _DAYS.index(match[1]) if weekly else None)
    example = "mon 09:00" if weekly else "09:00"
    raise InputRejected(
        f"Not the time of a digest: {text!r}.",
        advice=f"Write it as {example}.",
        key="digest_time",
        said=text,
        example=example,
    )
