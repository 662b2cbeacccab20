"""Webhooks, and their messages: one row for each message, which is tried until it is delivered or given up.

A webhook has its own position in the event log. An event becomes a message in the transaction that moves the position,
so each becomes one, also after a kill. An attempt is claimed before it begins: if its process dies, the message is due
again after CLAIM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.events import EventRow
from storage.repository import Repository
from storage.tables import consumers, events, webhook_deliveries, webhooks

PENDING, DELIVERED, DEAD = "pending", "delivered", "dead"
CLAIM = timedelta(seconds=60)  # longer than any attempt
PATIENCE = timedelta(days=1)  # until a message is given up
OVERLAP = timedelta(hours=24)  # for which the old secret signs, too, after a rotation
MOST_AT_ONCE = 100  # events that become messages in one transaction
# Statuses by which a receiver refuses one message. Later ones do not wait for it; after any other failure they do.
REFUSALS = (400, 409, 413, 415, 422)
# The errors of messages that are given up with another one.
GONE = "the receiver answered 410 to another message, and the webhook was disabled"
WAITED = "no message before it got through within a day"


@dataclass(frozen=True, slots=True)
class SigningSecrets:
    """The secrets of a webhook. ``old_secret``: is valid, too, until ``old_until``."""

    secret: str = field(repr=False)
    old_secret: str = field(repr=False)
    old_until: datetime | None

    def secrets(self, now: datetime) -> tuple[str, ...]:
        """Return the secrets by which a message is, or may be, signed now, the newest first."""
        old = self.old_secret if self.old_until is not None and now < self.old_until else ""
        return (self.secret, old) if old else (self.secret,)


@dataclass(frozen=True, slots=True)
class WebhookRow(SigningSecrets):
    """A webhook. ``kinds``: of the events that it is sent. ``failures``: failed attempts in a row."""

    id: int
    url: str
    kinds: Sequence[str]
    failures: int
    disabled_at: datetime | None
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A message to a webhook, and its last attempt.

    status: of the HTTP answer; None if there was none. seconds: how long the attempt took.
    answer: the beginning of the answer's body. next_at: None once the message was delivered or given up.
    """

    id: int
    webhook_id: int
    message_id: str
    kind: str
    body: str = field(repr=False)
    state: str
    attempts: int
    next_at: datetime | None
    until: datetime
    status: int | None
    seconds: float | None
    error: str
    answer: str = field(repr=False)
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """The outcome of an attempt to deliver a message.

    status: of the HTTP answer; None if there was none.
    error: why there was none, else "".
    retry_after: the seconds that the receiver asks to wait; None if it does not.
    """

    status: int | None
    seconds: float
    error: str = ""
    answer: str = ""
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """True if the receiver wants no more messages."""
        return self.status == 410


@dataclass(frozen=True, slots=True)
class Message:
    """The message of an event for a webhook."""

    message_id: str
    kind: str
    body: str


class Webhooks(Repository):
    """The tables of webhooks and their deliveries. Changes of webhooks and messages notify ``signal("webhooks")``."""

    async def add(self, url: str, kinds: Sequence[str], secret: str, *, created_by: str = "") -> WebhookRow:
        """Add a webhook for the events from now on."""
        new = sa.insert(webhooks).values(
            url=url, kinds=list(kinds), secret=secret, created_by=created_by, created_at=self._db.now()
        )
        async with self._db.write(durable=True) as connection:
            row = WebhookRow(**(await connection.execute(new.returning(*webhooks.c))).mappings().one())
            await self._begin_now(connection, row.id)
        self._notify("webhooks")
        return row

    async def all(self) -> list[WebhookRow]:
        return await self._rows(WebhookRow, sa.select(webhooks).order_by(webhooks.c.id))

    async def get(self, webhook_id: int) -> WebhookRow | None:
        return await self._only(WebhookRow, sa.select(webhooks).where(webhooks.c.id == webhook_id))

    async def rotate(self, webhook_id: int, secret: str) -> WebhookRow | None:
        """Give a webhook a new secret. The previous one also signs, for OVERLAP. Return None if there is no webhook."""
        values = {"secret": secret, "old_secret": webhooks.c.secret, "old_until": self._db.now() + OVERLAP}
        changed = sa.update(webhooks).where(webhooks.c.id == webhook_id).values(**values)
        return await self._changed(WebhookRow, changed.returning(*webhooks.c), durable=True)

    async def remove(self, webhook_id: int) -> WebhookRow | None:
        """Remove a webhook with its deliveries and its position. Return None if there is none."""
        async with self._db.write(durable=True) as connection:
            await connection.execute(sa.delete(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id))
            await connection.execute(sa.delete(consumers).where(consumers.c.consumer == _consumer(webhook_id)))
            gone = await connection.execute(
                sa.delete(webhooks).where(webhooks.c.id == webhook_id).returning(*webhooks.c)
            )
            row = gone.mappings().one_or_none()
        self._notify("webhooks")
        return None if row is None else WebhookRow(**row)

    async def queue(self, hook: WebhookRow, after: int, written: Callable[[EventRow], Message]) -> tuple[int, int]:
        """Make messages of a webhook's new events.

        after: the events up to this id were seen already; 0 if only the stored position is known.
        written: makes the message of an event.
        Returns the id of the newest event that was seen, and the number of messages.
        """
        name = _consumer(hook.id)
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(consumers.c.position).where(consumers.c.consumer == name))
            position: int | None = found.scalar_one_or_none()
            if position is None:
                return after, 0  # it was removed
            newest: int | None = (await connection.execute(sa.select(sa.func.max(events.c.id)))).scalar_one()
            wanted = sa.select(events).where(events.c.id > max(position, after), events.c.kind.in_(hook.kinds))
            wanted = wanted.order_by(events.c.id).limit(MOST_AT_ONCE)
            rows = [EventRow(**row) for row in (await connection.execute(wanted)).mappings()]
        seen = rows[-1].id if len(rows) == MOST_AT_ONCE else max(newest or 0, after)
        if not rows:
            return seen, 0
        async with self._db.write() as connection:
            moved = sa.update(consumers).where(consumers.c.consumer == name, consumers.c.position == position)
            if (await connection.execute(moved.values(position=rows[-1].id))).rowcount != 1:
                return after, 0  # another process was faster
            for row in rows:
                await self._put(connection, hook.id, written(row))
        return seen, len(rows)

    async def put(self, webhook_id: int, message: Message) -> DeliveryRow:
        """Store a message whose attempt begins at once."""
        async with self._db.write() as connection:
            return await self._put(connection, webhook_id, message, claimed=True)

    async def take(self, webhook_id: int, *, delivery_id: int | None = None) -> DeliveryRow | None:
        """Claim a webhook's next due message for an attempt, or that one. Return None if none is due.

        Messages are due in order, except that those after a refused one do not wait for it.
        """
        table, now = webhook_deliveries, self._db.now()
        mine = (table.c.webhook_id == webhook_id, table.c.state == PENDING)
        first = _first_waiting(webhook_id).scalar_subquery()
        due = sa.select(table.c.id, table.c.next_at).where(*mine, table.c.next_at <= now)
        due = due.where(sa.or_(table.c.id == first, _REFUSED)).order_by(table.c.id).limit(1)
        if delivery_id is not None:
            due = sa.select(table.c.id, table.c.next_at).where(*mine, table.c.id == delivery_id)
        async with self._db.read() as connection:
            row = (await connection.execute(due)).one_or_none()
        if row is None:
            return None
        claimed = (
            sa.update(table)
            .where(table.c.id == row.id, table.c.state == PENDING, table.c.next_at == row.next_at)
            .values(attempts=table.c.attempts + 1, next_at=now + CLAIM, updated_at=now)
            .returning(*table.c)
        )
        async with self._db.write() as connection:
            taken = (await connection.execute(claimed)).mappings().one_or_none()
        return None if taken is None else DeliveryRow(**taken)

    async def next_time(self, webhook_id: int) -> datetime | None:
        """Return when a message of this webhook is due, None if none waits."""
        table = webhook_deliveries
        mine = (table.c.webhook_id == webhook_id, table.c.state == PENDING)
        first = _first_waiting(webhook_id).scalar_subquery()
        wanted = sa.select(table.c.next_at).where(*mine, sa.or_(table.c.id == first, _REFUSED))
        return await self._value(wanted.order_by(table.c.next_at).limit(1))

    async def end(self, taken: DeliveryRow, attempt: Attempt, *, again_at: datetime) -> DeliveryRow | None:
        """Store how an attempt ended. Return the message as it is now; None if its webhook was removed.

        again_at: when a failed attempt is followed by the next, unless the message is given up. With it all are given
            up that are as old; with a receiver that is gone all that wait, and the webhook is disabled. A message that
            gets through to a disabled webhook enables it, for the events from now on.
        """
        table, now = webhook_deliveries, self._db.now()
        over = attempt.delivered or attempt.gone or now >= taken.until
        values = {
            "state": DELIVERED if attempt.delivered else DEAD if over else PENDING,
            "next_at": None if over else min(again_at, max(taken.until, now)),
            "status": attempt.status,
            "seconds": round(attempt.seconds, 3),
            "error": attempt.error,
            "answer": attempt.answer,
            "updated_at": now,
        }
        async with self._db.write() as connection:
            ended = await connection.execute(
                sa.update(table)
                .where(table.c.id == taken.id, table.c.attempts == taken.attempts)
                .values(**values)
                .returning(*table.c)
            )
            row = ended.mappings().one_or_none()
            if row is None:
                return None
            changed = await self._settle(connection, taken.webhook_id, attempt, now)
        if changed:
            self._notify("webhooks")
        return DeliveryRow(**row)

    async def release(self, taken: DeliveryRow) -> None:
        """Give a claimed message back, because its attempt was cancelled."""
        table, now = webhook_deliveries, self._db.now()
        mine = sa.and_(table.c.id == taken.id, table.c.attempts == taken.attempts, table.c.state == PENDING)
        await self._execute(sa.update(table).where(mine).values(next_at=now, updated_at=now))

    async def _settle(self, connection: AsyncConnection, webhook_id: int, attempt: Attempt, now: datetime) -> bool:
        """Store the outcome of an attempt for its webhook, and for the messages that wait behind it.

        Return whether the webhook was enabled or disabled by it.
        """
        hook = sa.update(webhooks).where(webhooks.c.id == webhook_id)
        if attempt.delivered:
            await connection.execute(hook.where(webhooks.c.failures > 0).values(failures=0))
            enabled = hook.where(webhooks.c.disabled_at.is_not(None)).values(disabled_at=None)
            if not (await connection.execute(enabled)).rowcount:
                return False
            await self._begin_now(connection, webhook_id)
            return True
        if attempt.status not in REFUSALS:
            await connection.execute(hook.values(failures=webhooks.c.failures + 1))
        waiting = (webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.state == PENDING)
        given_up = sa.update(webhook_deliveries).values(state=DEAD, next_at=None, updated_at=now)
        if attempt.gone:
            await connection.execute(hook.where(webhooks.c.disabled_at.is_(None)).values(disabled_at=now))
            await connection.execute(given_up.where(*waiting).values(error=GONE))
        else:
            old = (*waiting, webhook_deliveries.c.until <= now)
            unheard = (webhook_deliveries.c.error == "", webhook_deliveries.c.status.is_(None))
            await connection.execute(given_up.where(*old, *unheard).values(error=WAITED))
            await connection.execute(given_up.where(*old))
        return attempt.gone

    async def retry(self, webhook_id: int, delivery_id: int) -> DeliveryRow | None:
        """Make a message that was given up due again, for as long as a new one. Return None if there is none."""
        table, now = webhook_deliveries, self._db.now()
        again = (
            sa.update(table)
            .where(table.c.webhook_id == webhook_id, table.c.id == delivery_id, table.c.state == DEAD)
            .values(state=PENDING, next_at=now, until=now + PATIENCE, updated_at=now)
            .values(status=sa.case((table.c.status.in_(REFUSALS), table.c.status)), seconds=None, error="", answer="")
            .returning(*table.c)
        )
        async with self._db.write(durable=True) as connection:
            row = (await connection.execute(again)).mappings().one_or_none()
        self._notify("webhooks")
        return None if row is None else DeliveryRow(**row)

    async def deliveries(
        self, webhook_id: int, *, state: str = "", before: int | None = None, limit: int = 20
    ) -> list[DeliveryRow]:
        """Return a webhook's messages, the newest first. ``before``: only those with a smaller id."""
        table = webhook_deliveries
        wanted = sa.select(table).where(table.c.webhook_id == webhook_id).order_by(table.c.id.desc()).limit(limit)
        if state:
            wanted = wanted.where(table.c.state == state)
        if before is not None:
            wanted = wanted.where(table.c.id < before)
        return await self._rows(DeliveryRow, wanted)

    async def first_waiting(self, webhook_id: int) -> int | None:
        """Return the id of the message that the later ones wait for; None if none waits but refused ones."""
        return await self._value(_first_waiting(webhook_id))

    async def counts(self) -> dict[tuple[int, str], int]:
        """Return how many messages each webhook has in each state."""
        table = webhook_deliveries
        wanted = sa.select(table.c.webhook_id, table.c.state, sa.func.count()).group_by(
            table.c.webhook_id, table.c.state
        )
        return {(hook, state): count for hook, state, count in await self._read(wanted)}

    async def _begin_now(self, connection: AsyncConnection, webhook_id: int) -> None:
        """Set a webhook's position to the newest event."""
        newest: int | None = (await connection.execute(sa.select(sa.func.max(events.c.id)))).scalar_one()
        begun = self._db.upsert(consumers, {"position": newest or 0}, consumer=_consumer(webhook_id))
        await connection.execute(begun)

    async def _put(
        self, connection: AsyncConnection, webhook_id: int, message: Message, *, claimed: bool = False
    ) -> DeliveryRow:
        now = self._db.now()
        new = sa.insert(webhook_deliveries).values(
            webhook_id=webhook_id,
            message_id=message.message_id,
            kind=message.kind,
            body=message.body,
            state=PENDING,
            attempts=int(claimed),
            next_at=now + CLAIM if claimed else now,
            until=now if claimed else now + PATIENCE,
            created_at=now,
            updated_at=now,
        )
        return DeliveryRow(**(await connection.execute(new.returning(*webhook_deliveries.c))).mappings().one())


_REFUSED = sa.func.coalesce(webhook_deliveries.c.status, 0).in_(REFUSALS)


def _first_waiting(webhook_id: int) -> sa.Select[Any]:
    """Select the id of the message that the later ones wait for."""
    table = webhook_deliveries
    mine = (table.c.webhook_id == webhook_id, table.c.state == PENDING)
    return sa.select(sa.func.min(table.c.id)).where(*mine, ~_REFUSED)


def _consumer(webhook_id: int) -> str:
    return f"webhook:{webhook_id}"
