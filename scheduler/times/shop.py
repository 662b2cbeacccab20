"""Quiet hours, of the shop or of one schedule, and when digests are due."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from agent_core.session import QuestionKind
from scheduler.times.cron import CronTimes
from scheduler.times.zones import parse_zone

_QUIET = re.compile(r"(\d{1,2}):(\d{2})\s*[-–—~]\s*(\d{1,2}):(\d{2})")


# The customer has half of an answer, or perhaps none: the longer it takes the worse. Everything else can wait for the
# morning, and its deadline does no harm.
URGENT = frozenset({QuestionKind.DELIVERY_UNKNOWN, QuestionKind.REST_UNSENT})


@dataclass(frozen=True)
class QuietHours:
    """Hours from ``start`` until before ``end``, local time; over midnight if ``end`` is earlier."""

    start: time
    end: time

    def holds(self, moment: datetime, zone: ZoneInfo) -> bool:
        local = moment.astimezone(zone).time()
        if self.start <= self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


def parse_quiet(text: str) -> QuietHours | None:
    """Parse ``22:00-07:00``; None for an empty text. Raises InputRejected otherwise."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if not plain:
        return None
    match = _QUIET.fullmatch(plain)
    try:
        if match is not None:
            return QuietHours(time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4])))
    except ValueError:
        pass
    raise InputRejected(
        f"Not quiet hours: {text!r}.", advice="Write them as 22:00-07:00.", key="bad_quiet", said=text.strip()
    )


@dataclass(slots=True)
class Quiet:
    """Quiet hours in a zone: digests wait until they are over, and only urgent messages make a sound.

    hours: None means never quiet. All parts of a process share the object of the shop, which changes with the settings.
    """

    hours: QuietHours | None
    zone: ZoneInfo

    def holds(self, moment: datetime) -> bool:
        return self.hours is not None and self.hours.holds(moment, self.zone)

    def over(self, moment: datetime) -> datetime:
        """Return the end of the quiet hours that contain ``moment``; ``moment`` itself if none do."""
        if self.hours is None or not self.holds(moment):
            return moment
        local = moment.astimezone(self.zone)
        day = local.date() if local.time() < self.hours.end else local.date() + timedelta(days=1)
        return datetime.combine(day, self.hours.end, tzinfo=self.zone).astimezone(moment.tzinfo)


def quiet_of(hours: str, timezone: str) -> Quiet:
    """Return the quiet hours ``22:00-08:00`` in a zone (a name of the tz database); "" means never.

    Raises InputRejected.
    """
    return Quiet(parse_quiet(hours), parse_zone(timezone))


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
