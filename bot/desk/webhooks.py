"""Webhooks: events by kind, sent to programs that do not ask for them.

Only owners have them: a webhook receives the events of every phone.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from random import uniform
from typing import Literal

import structlog

from bot.desk.actors import Actor, BadRequest, Conflict, NotFound, Role, not_one_of
from bot.desk.context import DeskContext, DeskService
from bot.desk.webhook_messages import message_of, new_secret, test_message
from bot.desk.webhooks_views import KINDS, DeliveryView, WebhookView
from scheduler.jobs.periodic import Periodic
from storage.engine import MISSED_SECONDS, Database
from storage.outages import Outages
from storage.webhooks import DEAD, PENDING, REFUSALS, Attempt, DeliveryRow, WebhookRow, Webhooks

MOST = 50  # webhooks of a desk
# Seconds until the next attempt, by how many have failed; then the last one. About twenty attempts a day.
DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0)
JITTER = 0.2  # of the delay, so that not everything that failed comes back at once
ALERT = "webhook"  # the subject of alerts

log = structlog.get_logger(__name__)


class DeskWebhooks(DeskService):
    """The service for webhooks: owners add, list, remove, test and rotate them, and see the deliveries."""

    def __init__(self, context: DeskContext) -> None:
        super().__init__(context)
        self._webhooks = Webhooks(context.db)

    async def add(self, actor: Actor, url: str, kinds: Sequence[str]) -> tuple[str, WebhookView]:
        """Add a webhook for the events from now on. Return its secret, which cannot be shown again, and the webhook.

        Raises BadRequest if a kind is unknown or the URL is none, if there are too many webhooks, or if the name
        cannot be resolved; InputRejected if the address may not be asked.
        """
        await self._allow(actor, Role.OWNER, "webhooks add", url=url, kinds=list(kinds))
        wanted = list(dict.fromkeys(kind.strip() for kind in kinds if kind.strip()))
        for kind in wanted or [""]:
            if kind not in KINDS:
                raise not_one_of(f"There is no kind of event “{kind}”.", kind, KINDS)
        try:
            await self.context.webhook_client.rules.target(url)
        except OSError as error:
            raise BadRequest(
                "The name in this address cannot be resolved.",
                advice="Check how it is spelt, and this machine's network.",
                key="webhook_no_name",
            ) from error
        if len(await self._webhooks.all()) >= MOST:
            said = f"There are {MOST} webhooks already."
            raise BadRequest(said, advice="Remove one first.", key="webhooks_most", most=MOST)
        secret = new_secret()
        row = await self._webhooks.add(url, wanted, secret, created_by=actor.id)
        return secret, self._view(row)

    async def all(self, actor: Actor) -> list[WebhookView]:
        """Return all webhooks, without their secrets."""
        await self._allow(actor, Role.OWNER, "webhooks list")
        counts = await self._webhooks.counts()
        return [
            self._view(row, counts.get((row.id, PENDING), 0), counts.get((row.id, DEAD), 0))
            for row in await self._webhooks.all()
        ]

    async def remove(self, actor: Actor, webhook_id: int) -> WebhookView:
        """Remove a webhook, with its deliveries. Raises NotFound if there is none."""
        await self._allow(actor, Role.OWNER, "webhooks remove", webhook=webhook_id)
        row = await self._webhooks.remove(webhook_id)
        if row is None:
            raise _no_webhook(webhook_id)
        return self._view(row)

    async def rotate(self, actor: Actor, webhook_id: int) -> tuple[str, WebhookView]:
        """Give a webhook a new secret, and return it. The old one signs, too, for 24 hours. Raises NotFound."""
        await self._allow(actor, Role.OWNER, "webhooks rotate", webhook=webhook_id)
        secret = new_secret()
        row = await self._webhooks.rotate(webhook_id, secret)
        if row is None:
            raise _no_webhook(webhook_id)
        return secret, self._view(row)

    async def test(self, actor: Actor, webhook_id: int) -> DeliveryView:
        """Send a webhook a test message now, once, and return the outcome.

        If it gets through, a disabled webhook is enabled for the events from now on. Raises NotFound if there is none.
        """
        await self._allow(actor, Role.OWNER, "webhooks test", webhook=webhook_id)
        hook = await self._row(webhook_id)
        message = test_message(f"test_{secrets.token_hex(8)}", self._db.now())
        taken = await self._webhooks.put(hook.id, message)
        ended = await self._deliver(hook, taken)
        if ended is None:
            raise _no_webhook(webhook_id)
        return self._delivery(ended)

    async def deliveries(
        self, actor: Actor, webhook_id: int, *, state: str = "", before: int | None = None, limit: int = 20
    ) -> list[DeliveryView]:
        """Return a webhook's messages, the newest first. Raises NotFound if there is no such webhook.

        state: pending, delivered or dead; "" for all. before: only those with a smaller id.
        """
        await self._allow(actor, Role.OWNER, "webhooks deliveries", webhook=webhook_id)
        await self._row(webhook_id)
        rows = await self._webhooks.deliveries(webhook_id, state=state, before=before, limit=limit)
        first = await self._webhooks.first_waiting(webhook_id)
        return [self._delivery(row, first) for row in rows]

    async def retry(self, actor: Actor, webhook_id: int, delivery_id: int) -> DeliveryView:
        """Have a message that was given up sent again. Raises NotFound if none of this id was given up, and Conflict
        if the webhook is disabled.
        """
        await self._allow(actor, Role.OWNER, "webhooks retry", webhook=webhook_id, delivery=delivery_id)
        hook = await self._row(webhook_id)
        if hook.disabled_at is not None:
            raise Conflict(
                f"The webhook {webhook_id} is disabled.",
                advice=f"Test it first: `phonedesk webhooks test {webhook_id}`. A test that gets through enables it.",
                key="webhook_disabled",
                id=webhook_id,
            )
        row = await self._webhooks.retry(webhook_id, delivery_id)
        if row is None:
            said = f"No message {delivery_id} of this webhook was given up."
            raise NotFound(said, advice="See `phonedesk webhooks deliveries`.", key="no_delivery", id=delivery_id)
        return self._delivery(row, await self._webhooks.first_waiting(webhook_id))

    # For the sender, which acts for nobody.

    async def hooks(self) -> list[WebhookRow]:
        """Return the webhooks that are sent events."""
        return [row for row in await self._webhooks.all() if row.disabled_at is None]

    async def turn(self, webhook_id: int, seen: int) -> tuple[int, datetime | None]:
        """Make messages of a webhook's new events, and deliver one due message.

        seen: the first value returned by the last call, 0 at the beginning.
        Returns the newest event that was seen, and when there is more to do: now, later, or None if nothing waits.
        """
        hook = await self._webhooks.get(webhook_id)
        if hook is None or hook.disabled_at is not None:
            return seen, None
        seen, made = await self._webhooks.queue(hook, seen, message_of)
        taken = await self._webhooks.take(webhook_id)
        if taken is not None:
            await self._deliver(hook, taken)
        again = self._db.now() if made or taken is not None else await self._webhooks.next_time(webhook_id)
        return seen, again

    async def _deliver(self, hook: WebhookRow, taken: DeliveryRow) -> DeliveryRow | None:
        try:
            attempt = await self.context.webhook_client.attempt(hook, taken, self._db.now())
        except asyncio.CancelledError:
            await self._webhooks.release(taken)
            raise
        ended = await self._webhooks.end(taken, attempt, again_at=self._db.now() + _pause(hook, taken, attempt))
        log.info(
            "webhook_attempt",
            webhook=hook.id,
            message=taken.message_id,
            attempt=taken.attempts,
            status=attempt.status,
            error=attempt.error,
            state=ended.state if ended is not None else "removed",
        )
        if ended is not None and ended.state == DEAD and taken.until > taken.created_at:  # no test
            why = attempt.error or f"HTTP {attempt.status}"
            day = self._db.now().astimezone(self._zone).date().isoformat()
            await Outages(self._db).once(f"{ALERT}:{hook.id}", day, {"why": why})
        return ended

    async def _row(self, webhook_id: int) -> WebhookRow:
        row = await self._webhooks.get(webhook_id)
        if row is None:
            raise _no_webhook(webhook_id)
        return row

    def _view(self, row: WebhookRow, waiting: int = 0, dead: int = 0) -> WebhookView:
        state: Literal["active", "failing", "disabled"] = "failing" if row.failures else "active"
        until = row.old_until if len(row.secrets(self._db.now())) > 1 else None
        return WebhookView(
            id=row.id,
            url=row.url,
            events=tuple(row.kinds),
            state="disabled" if row.disabled_at is not None else state,
            waiting=waiting,
            dead=dead,
            created_at=row.created_at.astimezone(self._zone),
            old_secret_until=until.astimezone(self._zone) if until is not None else None,
        )

    def _delivery(self, row: DeliveryRow, first: int | None = None) -> DeliveryView:
        """Return the view of a message. ``first``: the message that the later ones wait for, if there is one."""
        waits = row.state == PENDING and row.status not in REFUSALS and first is not None and first < row.id
        return DeliveryView(
            id=row.id,
            message_id=row.message_id,
            event=row.kind,
            state=row.state,  # type: ignore[arg-type]  # one of the three of ``storage.webhooks``
            attempts=row.attempts,
            status=row.status,
            seconds=row.seconds,
            error=row.error,
            answer=row.answer,
            next_at=row.next_at.astimezone(self._zone) if row.next_at is not None and not waits else None,
            waits_for=first if waits else None,
            created_at=row.created_at.astimezone(self._zone),
            updated_at=row.updated_at.astimezone(self._zone),
        )


class WebhookSender:
    """The sender of the events of all webhooks, from ``start`` to ``stop``: one task for each, so that a slow receiver
    delays no other. Positions and messages are in the rows.
    """

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


def _pause(hook: WebhookRow, taken: DeliveryRow, attempt: Attempt) -> timedelta:
    """Return how long to wait after a failed attempt.

    If the receiver is down, its failures in a row count, whichever message they were of. ``Retry-After`` makes it
    longer, never shorter.
    """
    failed = taken.attempts - 1 if attempt.status in REFUSALS else hook.failures
    delay = DELAYS[min(failed, len(DELAYS) - 1)] * uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
    return timedelta(seconds=max(delay, attempt.retry_after or 0.0))


def _no_webhook(webhook_id: int) -> NotFound:
    said = f"There is no webhook {webhook_id}."
    return NotFound(said, advice="See `phonedesk webhooks list`.", key="no_webhook", id=webhook_id)
