"""Sends webhooks: one task for each, so that a slow receiver delays no other."""

from __future__ import annotations

import asyncio

import structlog

from bot.desk.webhooks import DeskWebhooks
from scheduler.jobs.periodic import Periodic
from storage.engine import MISSED_SECONDS, Database

log = structlog.get_logger(__name__)


class WebhookSender:
    """The sender of the events of all webhooks, from ``start`` to ``stop``. Positions and messages are in the rows."""

    def __init__(self, db: Database, desk: DeskWebhooks) -> None:
        self._db = db
        self._desk = desk
        self._sending: dict[int, Periodic] = {}
        self._seen: dict[int, int] = {}
        self._watch = Periodic(
            "webhook-watch", self._look, MISSED_SECONDS, waiter=lambda: db.signal("webhooks").waiter()
        )

    async def start(self) -> None:
        await self._watch.start()

    async def stop(self) -> None:
        """Stop after cancelling the active deliveries; the next process sends them again."""
        await self._watch.stop()
        await asyncio.gather(*(sending.stop() for sending in self._sending.values()))
        self._sending.clear()

    async def _look(self) -> None:
        """Start a task for each webhook that has none, and stop those of webhooks that are gone."""
        wanted = {hook.id for hook in await self._desk.hooks()}
        for webhook_id in wanted - set(self._sending):
            self._sending[webhook_id] = sending = self._task_of(webhook_id)
            await sending.start()
        for webhook_id in set(self._sending) - wanted:
            await self._sending.pop(webhook_id).stop()
            self._seen.pop(webhook_id, None)

    def _task_of(self, webhook_id: int) -> Periodic:
        async def turn() -> float:
            self._seen[webhook_id], again = await self._desk.turn(webhook_id, self._seen.get(webhook_id, 0))
            if again is None:
                return MISSED_SECONDS
            return min(max(0.0, (again - self._db.now()).total_seconds()), MISSED_SECONDS)

        return Periodic(
            f"webhook-{webhook_id}", turn, MISSED_SECONDS, waiter=lambda: self._db.signal("events").waiter()
        )
