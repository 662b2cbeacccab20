"""What is old and over, and goes; and what stays for ever, with the reason.

It goes in bites, each a short transaction of its own, so that nobody waits for a night's worth of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.inbox import NEW
from storage.outbox import PENDING
from storage.questions import OPEN
from storage.runs import ACTIVE, FINAL
from storage.tables import audit, events, inbox, outbox, pictures, question_copies, questions, requests, runs
from storage.uncut import uncut

BITE = 200

# Every table is here or below: a test holds that.
PRUNED: Mapping[str, str] = {
    "events": "after the days of PHONEDESK_KEEP_DAYS, but not those of a run that is not over",
    "pictures": "with their events",
    "inbox": "handled updates, after the same days; Telegram repeats them for one day",
    "outbox": "what was sent or given up, after the same days",
    "requests": "after the same days, but not while an update waits that may have made them",
    "question_copies": "of questions that are closed, after the same days",
    "audit": "after a year; the newest of each person stays, it says when they were last seen",
    "runs": "the saved session of a run that is over, after a year; the row stays",
    "pairing_codes": "once they have run out, when the next one is made",
    "phone_requests": "with their answer, or after ten minutes",
    "schedules": "a week after they were removed",
}
KEPT: Mapping[str, str] = {
    "replies": "the ledger: what keeps a customer from getting an answer twice",
    "answers": "what customers were told, and by whom",
    "questions": "what people were asked",
    "question_answers": "what they answered",
    "sweeps": "one small row for each run that is a sweep",
    "cards": "one small row for each run and question: a reply to an old card is known for what it is",
    "consumers": "one row for each reader of the event log",
    "contacts": "kept by people",
    "people": "kept by people",
    "leases": "one row for each phone; its fencing number only grows",
    "topics": "one row for each phone and forum",
    "digest_chats": "one row for each chat",
    "digests": "one small row a day and chat",
    "watched": "one row for each phone and service",
    "phones": "one row for each phone",
    "hosts": "one row for each host",
    "host_phones": "one row for each host and phone",
    "sweep_lists": "one row for each phone and app",
    "contact_marks": "one row for each customer that a sweep has seen",
}

_GOING = sa.select(runs.c.id).where(runs.c.status.in_(ACTIVE))


@uncut
class Retention:
    def __init__(self, db: Database, *, bite: int = BITE) -> None:
        self._db = db
        self._bite = bite

    async def events(self, before: datetime) -> int:
        """Delete one bite of old events of runs that are over, with their pictures; how many."""
        old = sa.select(events.c.id, events.c.picture_id).where(
            events.c.created_at < before, events.c.run_id.not_in(_GOING)
        )
        async with self._db.read() as connection:
            rows = (await connection.execute(old.order_by(events.c.created_at).limit(self._bite))).all()
        if not rows:
            return 0
        shown = [row.picture_id for row in rows if row.picture_id is not None]
        async with self._db.write() as connection:
            gone = await connection.execute(sa.delete(events).where(events.c.id.in_([row.id for row in rows])))
            await connection.execute(sa.delete(pictures).where(pictures.c.id.in_(shown)))
            return gone.rowcount

    async def inbox(self, before: datetime) -> int:
        """One bite of updates that were handled."""
        return await self._bitten(inbox, inbox.c.update_id, inbox.c.state != NEW, inbox.c.received_at < before)

    async def outbox(self, before: datetime) -> int:
        """One bite of messages that were sent, or given up."""
        return await self._bitten(outbox, outbox.c.id, outbox.c.state != PENDING, outbox.c.updated_at < before)

    async def requests(self, before: datetime) -> int:
        """One bite of keys. One may be asked for again as long as the update that made it waits to be handled."""
        waiting = sa.select(sa.func.min(inbox.c.received_at)).where(inbox.c.state == NEW)
        async with self._db.read() as connection:
            oldest: datetime | None = (await connection.execute(waiting)).scalar_one_or_none()
        until = before if oldest is None else min(before, oldest)
        return await self._bitten(requests, requests.c.key, requests.c.created_at < until)

    async def copies(self, before: datetime) -> int:
        """One bite of where else closed questions were shown."""
        closed = sa.select(questions.c.id).where(questions.c.state != OPEN)
        old = (question_copies.c.created_at < before, question_copies.c.question_id.in_(closed))
        return await self._bitten(question_copies, question_copies.c.question_id, *old)

    async def audit(self, before: datetime) -> int:
        """One bite of the audit log."""
        newest = sa.select(sa.func.max(audit.c.id)).group_by(audit.c.actor)
        return await self._bitten(audit, audit.c.id, audit.c.at < before, audit.c.id.not_in(newest))

    async def sessions(self, before: datetime) -> int:
        """Empty one bite of the sessions of runs that are over."""
        old = sa.select(runs.c.id).where(
            runs.c.status.in_(FINAL), runs.c.created_at < before, runs.c.ended_at < before, runs.c.session.is_not(None)
        )
        async with self._db.write() as connection:
            ids = old.order_by(runs.c.created_at).limit(self._bite)
            done = await connection.execute(sa.update(runs).where(runs.c.id.in_(ids)).values(session=None))
            return done.rowcount

    async def at_work(self) -> bool:
        """Whether any run is under way, or about to be."""
        now = sa.select(runs.c.id).where(sa.or_(runs.c.status == "running", runs.c.leg_due_at.is_not(None))).limit(1)
        async with self._db.read() as connection:
            return (await connection.execute(now)).first() is not None

    async def _bitten(self, table: sa.Table, key: sa.ColumnElement[object], *old: sa.ColumnElement[bool]) -> int:
        async with self._db.write() as connection:
            which = sa.select(key).where(*old).limit(self._bite)
            return (await connection.execute(sa.delete(table).where(key.in_(which)))).rowcount
