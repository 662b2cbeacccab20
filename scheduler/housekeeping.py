"""What is old and over is deleted: events with their pictures, updates that were handled, messages that were sent.

Runs, questions, replies and answers stay: they are what people look up.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import structlog

from storage.engine import Database
from storage.events import Events
from storage.inbox import Inbox
from storage.outbox import Outbox

EVERY_SECONDS = 3600.0

log = structlog.get_logger(__name__)


class Housekeeping:
    """``start`` until ``stop``. ``keep``: how old something may be; over a day, while Telegram repeats updates."""

    def __init__(self, db: Database, *, keep: timedelta, every_seconds: float = EVERY_SECONDS) -> None:
        self._db = db
        self._keep = keep
        self._every_seconds = every_seconds
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._forever(), name="housekeeping")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def once(self) -> dict[str, int]:
        """Delete what is too old; how many rows of each."""
        before = self._db.now() - self._keep
        gone = {
            "events": await Events(self._db).prune(before),
            "inbox": await Inbox(self._db).prune(before),
            "outbox": await Outbox(self._db).prune(before),
        }
        if any(gone.values()):
            log.info("old_rows_deleted", before=before.isoformat(), **gone)
        return gone

    async def _forever(self) -> None:
        while True:
            try:
                await self.once()
            except Exception as error:  # noqa: BLE001 - the database may be away for a moment; the next time does it
                log.warning("housekeeping_failed", error=repr(error))
            await asyncio.sleep(self._every_seconds)
