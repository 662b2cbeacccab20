"""Plans: runs that a planner makes, whose parts are runs of their own; and the conversations that they belong to.

A plan is a row of ``runs`` whose option ``kind`` is ``plan``. It is ``running`` from its beginning to its end, in one
process, whose heartbeat stands in ``plans``; once that stops, ``Runs.revive`` ends it as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.runs import RUNNING
from storage.tables import planner_items, planner_sessions, plans, runs
from storage.uncut import uncut


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """``gate``: the state of a customer reply that the conversation is about, as plain data; None for none."""

    key: str
    gate: Mapping[str, Any] | None


@uncut
class Plans:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def begin(self, run_id: str, session_key: str) -> bool:
        """This process makes the plan. False where one does, or has."""
        now = self._db.now()
        new = self._db.insert(plans).values(run_id=run_id, session_key=session_key, heartbeat_at=now)
        async with self._db.write(durable=True) as connection:
            made = await connection.execute(new.on_conflict_do_nothing().returning(plans.c.run_id))
            return made.scalar_one_or_none() is not None

    async def beat(self, run_ids: Sequence[str]) -> set[str]:
        """These plans are alive; those of them that are not over: another process may have taken one for dead."""
        going = sa.select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.status == RUNNING)
        alive = sa.update(plans).where(plans.c.run_id.in_(going)).values(heartbeat_at=self._db.now())
        async with self._db.write() as connection:
            return set((await connection.execute(alive.returning(plans.c.run_id))).scalars())


@uncut
class Conversations:
    """``key`` names a conversation: whose it is, and their name for it."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def get(self, key: str) -> ConversationRow | None:
        wanted = sa.select(planner_sessions.c.key, planner_sessions.c.gate).where(planner_sessions.c.key == key)
        async with self._db.read() as connection:
            row = (await connection.execute(wanted)).mappings().one_or_none()
        return None if row is None else ConversationRow(**row)

    async def open(self, key: str) -> ConversationRow:
        """The conversation, begun where there is none."""
        now = self._db.now()
        new = self._db.insert(planner_sessions).values(key=key, created_at=now, updated_at=now)
        used = new.on_conflict_do_update(index_elements=["key"], set_={"updated_at": now})
        async with self._db.write() as connection:
            done = await connection.execute(used.returning(planner_sessions.c.key, planner_sessions.c.gate))
            return ConversationRow(**done.mappings().one())

    async def set_gate(self, key: str, gate: Mapping[str, Any] | None) -> None:
        value = sa.null() if gate is None else dict(gate)
        change = sa.update(planner_sessions).where(planner_sessions.c.key == key)
        async with self._db.write(durable=True) as connection:
            await connection.execute(change.values(gate=value, updated_at=self._db.now()))

    async def forget(self, key: str) -> bool:
        """Delete it, with all that was said. False where there is none."""
        async with self._db.write() as connection:
            await connection.execute(sa.delete(planner_items).where(planner_items.c.session_key == key))
            gone = await connection.execute(sa.delete(planner_sessions).where(planner_sessions.c.key == key))
            return gone.rowcount == 1

    async def items(self, key: str, limit: int | None = None) -> list[dict[str, Any]]:
        """What was said, the oldest first; ``limit``: only so many of the newest."""
        newest = sa.select(planner_items.c.item).where(planner_items.c.session_key == key)
        newest = newest.order_by(planner_items.c.id.desc()).limit(limit)
        async with self._db.read() as connection:
            return list((await connection.execute(newest)).scalars())[::-1]

    async def add(self, key: str, items: Sequence[Mapping[str, Any]]) -> None:
        if not items:
            return
        rows = [{"session_key": key, "item": dict(item)} for item in items]
        async with self._db.write() as connection:
            await connection.execute(sa.insert(planner_items), rows)

    async def pop(self, key: str) -> dict[str, Any] | None:
        """Take the newest item away; None where there is none."""
        newest = sa.select(sa.func.max(planner_items.c.id)).where(planner_items.c.session_key == key)
        gone = sa.delete(planner_items).where(planner_items.c.id == newest.scalar_subquery())
        async with self._db.write() as connection:
            item: dict[str, Any] | None = (
                await connection.execute(gone.returning(planner_items.c.item))
            ).scalar_one_or_none()
        return item

    async def clear(self, key: str) -> None:
        async with self._db.write() as connection:
            await connection.execute(sa.delete(planner_items).where(planner_items.c.session_key == key))
