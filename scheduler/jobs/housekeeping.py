"""Deletes old rows in batches, and gives their space back to the disk at night.

``storage.retention`` defines which rows are deleted and when, and which are kept for ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta, tzinfo

import structlog

from scheduler.jobs.periodic import Periodic
from storage.engine import Database
from storage.retention import Retention

EVERY_SECONDS = 3600.0
LOOK_SECONDS = 10.0
LONG = timedelta(days=365)  # the least time for which the audit log and saved sessions are kept
NIGHT = range(2, 6)  # hours, in the owner's time zone
JUMP = timedelta(minutes=2)  # a larger jump: the machine slept, or the clock was set

log = structlog.get_logger(__name__)

Bite = Callable[[datetime], Awaitable[int]]


class Housekeeping(Periodic):
    """Housekeeping, from ``start`` to ``stop``.

    It also checks the clock. A jump is logged, and nothing is deleted before the clock was steady for a whole
    ``every_seconds``, because a clock that is wrong by a month makes everything look old.

    keep: the age at which rows are deleted; over a day, because Telegram repeats updates for so long.
    keep_shown: the same for the pictures that models were shown in runs that are over, by far the largest part; None
        for ``keep``.
    zone: the shop's time zone, for the night; None for this machine's.
    """

    def __init__(
        self,
        db: Database,
        *,
        keep: timedelta,
        keep_shown: timedelta | None = None,
        zone: tzinfo | None = None,
        every_seconds: float = EVERY_SECONDS,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("housekeeping", self.look, min(LOOK_SECONDS, every_seconds))
        self._db = db
        self._retention = Retention(db)
        self.keep = keep  # may be changed at any time
        self.keep_shown = keep_shown  # likewise
        self._zone = zone
        self._every_seconds = every_seconds
        self._elapsed = elapsed
        self._seen = (db.now(), elapsed())
        self._due = elapsed()

    async def once(self) -> dict[str, int]:
        """Delete rows that are too old. Return the number of deleted rows by table, without tables that had none."""
        now = self._db.now()
        old, very_old = now - self.keep, now - max(self.keep, LONG)
        shown = old if self.keep_shown is None else max(old, now - self.keep_shown)
        bites: dict[str, tuple[Bite, datetime]] = {
            "events": (self._retention.events, old),
            "trajectories": (self._retention.trajectories, old),
            "trajectory_pictures": (self._retention.trajectory_pictures, shown),
            "inbox": (self._retention.inbox, old),
            "outbox": (self._retention.outbox, old),
            "chat_messages": (self._retention.chat_messages, old),
            "webhook_deliveries": (self._retention.deliveries, old),
            "requests": (self._retention.requests, old),
            "question_copies": (self._retention.copies, old),
            "planner_sessions": (self._retention.conversations, old),
            "audit": (self._retention.audit, very_old),
            "sessions": (self._retention.sessions, very_old),
        }
        gone = {name: await self._all(bite, before) for name, (bite, before) in bites.items()}
        gone = {name: count for name, count in gone.items() if count}
        if gone:
            log.info("old_rows_deleted", before=old.isoformat(), **gone)
        return gone

    async def shrink(self) -> int:
        """Give the space of deleted rows back to the disk while no run is active. Return the number of pages."""
        pages = 0
        while not await self._retention.at_work():
            given = await self._db.shrink()
            if not given:
                break
            pages += given
            await asyncio.sleep(0)
        if pages:
            log.info("database_shrunk", pages=pages)
        return pages

    def jumped(self) -> timedelta:
        """Return by how much the clock has jumped since the last call; 0 if it runs normally."""
        (time_then, then), (time_now, now) = self._seen, (self._db.now(), self._elapsed())
        self._seen = (time_now, now)
        jump = (time_now - time_then) - timedelta(seconds=now - then)
        return jump if abs(jump) > JUMP else timedelta()

    async def look(self) -> None:
        """Check the clock, and do the rest if it is time."""
        if jump := self.jumped():
            log.warning("clock_jumped", seconds=round(jump.total_seconds()))
            self._due = self._elapsed() + self._every_seconds
        if self._elapsed() < self._due:
            return
        self._due = self._elapsed() + self._every_seconds
        await self.once()
        if self._db.now().astimezone(self._zone).hour in NIGHT:
            await self.shrink()

    async def _all(self, bite: Bite, before: datetime) -> int:
        count = 0
        while gone := await bite(before):
            count += gone
            await asyncio.sleep(0)  # others that wait to write go first
        return count
