"""The rows that are deleted when they are old, and those that are kept for ever, with the reason.

Rows are deleted in batches, each in its own short transaction, so that nobody waits for a night's worth of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.messages import NEW, PENDING
from storage.questions import OPEN
from storage.repository import Repository
from storage.runs import ACTIVE, FINAL
from storage.tables import (
    audit,
    chat_messages,
    events,
    inbox,
    outbox,
    pictures,
    planner_items,
    planner_sessions,
    question_copies,
    questions,
    requests,
    runs,
    trajectories,
    trajectory_pictures,
    webhook_deliveries,
)

BITE = 200
RUNS_A_BITE = 10  # if the rows of a run are deleted together

# Every table is in one of these two; a test checks that.
PRUNED: Mapping[str, str] = {
    "events": "after the days of PHONEDESK_KEEP_DAYS, but not those of a run that is not over",
    "pictures": "with their events",
    "trajectories": "the same days after the end of their run",
    "trajectory_pictures": "after the days of PHONEDESK_TRAJECTORY__PICTURE_DAYS from the end of their run",
    "inbox": "handled updates, after the same days; Telegram repeats them for one day",
    "outbox": "what was sent or given up, after the same days",
    "chat_messages": "of the console, after the same days",
    "requests": "after the same days, but not while an update waits that may have made them",
    "question_copies": "of questions that are closed, after the same days",
    "webhook_deliveries": "what was delivered or given up, after the same days",
    "audit": "after a year; the newest of each person stays, it says when they were last seen",
    "runs": "the saved session of a run that is over, after a year; the row stays",
    "pairing_codes": "once they have run out, when the next one is made",
    "console_sessions": "once they have run out, when the next link is made",
    "phone_requests": "with their answer, or after ten minutes",
    "model_minutes": "with the next minute in which a model is asked",
    "schedules": "a week after they were removed",
    "planner_sessions": "conversations with the planner, after the same days without a word",
    "planner_items": "with their conversation",
}
KEPT: Mapping[str, str] = {
    "replies": "the ledger: what keeps a customer from getting an answer twice",
    "answers": "what customers were told, and by whom",
    "questions": "what people were asked",
    "question_answers": "what they answered",
    "sweeps": "one small row for each run that is a sweep",
    "plans": "one small row for each run that is a plan",
    "cards": "one small row for each run and question: a reply to an old card is known for what it is",
    "consumers": "one row for each reader of the event log",
    "contacts": "kept by people",
    "chosen_rows": "one row for each contact that a person has told from others of the name",
    "learnt_apps": "one row for each phone, app and version that a person has confirmed",
    "app_labels": "one small row for each phone and name of an app that was found on its home screen",
    "knowledge_entries": "kept by people; of what was deleted the id",
    "knowledge_revision": "one row",
    "model_days": "one small row for each day and model",
    "people": "kept by people",
    "api_keys": "kept by people",
    "webhooks": "kept by people",
    "incoming_webhooks": "kept by people",
    "leases": "one row for each phone; its fencing number only grows",
    "topics": "one row for each phone and forum",
    "digest_chats": "one row for each chat",
    "digests": "one small row a day and chat",
    "watched": "one row for each phone and service",
    "phones": "one row for each phone",
    "hosts": "one row for each host",
    "host_phones": "one row for each host and phone",
    "phone_addresses": "one row for each address at which a phone was reached",
    "clocks": "one row for each process that runs a clock; the dead are dropped",
    "sweep_lists": "one row for each phone and app",
    "contact_marks": "one row for each customer that a sweep has seen",
}

_GOING = sa.select(runs.c.id).where(runs.c.status.in_(ACTIVE))


def _over(before: datetime) -> sa.Select[tuple[str]]:
    return sa.select(runs.c.id).where(runs.c.status.in_(FINAL), runs.c.ended_at < before)


class Retention(Repository):
    """The deletion of old rows, one batch per call. ``bite``: the most rows in a batch."""

    def __init__(self, db: Database, *, bite: int = BITE) -> None:
        super().__init__(db)
        self._bite = bite

    async def events(self, before: datetime) -> int:
        """Delete a batch of old events of runs that are over, with their pictures. Return how many events."""
        old = sa.select(events.c.id, events.c.picture_id).where(
            events.c.created_at < before, events.c.run_id.not_in(_GOING)
        )
        rows = await self._read(old.order_by(events.c.created_at).limit(self._bite))
        if not rows:
            return 0
        shown = [row.picture_id for row in rows if row.picture_id is not None]
        async with self._db.write() as connection:
            gone = await connection.execute(sa.delete(events).where(events.c.id.in_([row.id for row in rows])))
            kept = sa.select(events.c.picture_id).where(events.c.picture_id.in_(shown))  # a newer event shows it too
            await connection.execute(
                sa.delete(pictures).where(pictures.c.id.in_(shown), pictures.c.id.not_in(kept)),
            )
            return gone.rowcount

    async def trajectories(self, before: datetime) -> int:
        """Delete the model requests of some runs that ended before.

        All of a run go together: steps build on each other.
        """
        table = trajectories
        which = sa.select(table.c.run_id).where(table.c.created_at < before, table.c.run_id.in_(_over(before)))
        async with self._db.read() as connection:
            found = (await connection.execute(which.order_by(table.c.created_at).limit(self._bite))).scalars()
            ids = list(dict.fromkeys(found))[:RUNS_A_BITE]
        if not ids:
            return 0
        return await self._execute(sa.delete(table).where(table.c.run_id.in_(ids)))

    async def trajectory_pictures(self, before: datetime) -> int:
        """Delete a batch of pictures that models were shown in runs that ended before. Each picture is independent."""
        table = trajectory_pictures
        which = sa.select(table.c.run_id, table.c.digest)
        which = which.where(table.c.created_at < before, table.c.run_id.in_(_over(before)))
        async with self._db.write() as connection:
            rows = (await connection.execute(which.order_by(table.c.created_at).limit(self._bite))).all()
            if not rows:
                return 0
            mine = sa.tuple_(table.c.run_id, table.c.digest).in_([tuple(row) for row in rows])
            return (await connection.execute(sa.delete(table).where(mine))).rowcount

    async def inbox(self, before: datetime) -> int:
        """Delete a batch of handled updates."""
        return await self._bitten(inbox, inbox.c.update_id, inbox.c.state != NEW, inbox.c.received_at < before)

    async def outbox(self, before: datetime) -> int:
        """Delete a batch of messages that were sent or given up."""
        return await self._bitten(outbox, outbox.c.id, outbox.c.state != PENDING, outbox.c.updated_at < before)

    async def chat_messages(self, before: datetime) -> int:
        """Delete a batch of messages in the console's chats."""
        return await self._bitten(chat_messages, chat_messages.c.id, chat_messages.c.created_at < before)

    async def deliveries(self, before: datetime) -> int:
        """Delete a batch of webhook deliveries that are over."""
        table = webhook_deliveries
        return await self._bitten(table, table.c.id, table.c.next_at.is_(None), table.c.updated_at < before)

    async def requests(self, before: datetime) -> int:
        """Delete a batch of idempotency keys.

        A key may be used again as long as the update that made it is not handled.
        """
        waiting = sa.select(sa.func.min(inbox.c.received_at)).where(inbox.c.state == NEW)
        oldest = await self._value(waiting)
        until = before if oldest is None else min(before, oldest)
        return await self._bitten(requests, requests.c.key, requests.c.created_at < until)

    async def copies(self, before: datetime) -> int:
        """Delete a batch of further cards of closed questions."""
        closed = sa.select(questions.c.id).where(questions.c.state != OPEN)
        old = (question_copies.c.created_at < before, question_copies.c.question_id.in_(closed))
        return await self._bitten(question_copies, question_copies.c.question_id, *old)

    async def audit(self, before: datetime) -> int:
        """Delete a batch of the audit log, except each actor's newest entry."""
        newest = sa.select(sa.func.max(audit.c.id)).group_by(audit.c.actor)
        return await self._bitten(audit, audit.c.id, audit.c.at < before, audit.c.id.not_in(newest))

    async def sessions(self, before: datetime) -> int:
        """Empty a batch of the sessions of runs that are over."""
        old = sa.select(runs.c.id).where(
            runs.c.status.in_(FINAL), runs.c.created_at < before, runs.c.ended_at < before, runs.c.session.is_not(None)
        )
        async with self._db.write() as connection:
            ids = old.order_by(runs.c.created_at).limit(self._bite)
            done = await connection.execute(sa.update(runs).where(runs.c.id.in_(ids)).values(session=None))
            return done.rowcount

    async def conversations(self, before: datetime) -> int:
        """Delete a batch of silent conversations with the planner, with their items."""
        silent = sa.select(planner_sessions.c.key).where(planner_sessions.c.updated_at < before).limit(self._bite)
        async with self._db.write() as connection:
            keys = list((await connection.execute(silent)).scalars())
            await connection.execute(sa.delete(planner_items).where(planner_items.c.session_key.in_(keys)))
            gone = await connection.execute(sa.delete(planner_sessions).where(planner_sessions.c.key.in_(keys)))
            return gone.rowcount

    async def at_work(self) -> bool:
        """Tell whether any run is active or due."""
        now = (
            sa.select(runs.c.id).where(sa.or_(runs.c.status == "running", runs.c.attempt_due_at.is_not(None))).limit(1)
        )
        async with self._db.read() as connection:
            return (await connection.execute(now)).first() is not None

    async def _bitten(self, table: sa.Table, key: sa.ColumnElement[object], *old: sa.ColumnElement[bool]) -> int:
        async with self._db.write() as connection:
            which = sa.select(key).where(*old).limit(self._bite)
            return (await connection.execute(sa.delete(table).where(key.in_(which)))).rowcount
