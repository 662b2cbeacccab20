"""Plans: runs that a planner makes, whose parts are runs of their own; and the conversations that they belong to.

A plan is a row of ``runs`` whose option ``kind`` is ``plan``. It is ``running`` from its beginning to its end in one
process, whose heartbeat is in ``plans``. When the heartbeat stops, ``Runs.revive`` ends the plan as failed. A
conversation has one active plan at a time, whichever process makes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.leases import LEASE_SECONDS, fresh
from storage.repository import Repository
from storage.runs import RUNNING
from storage.tables import planner_items, planner_sessions, plans, runs


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation.

    ``gate``: the state of the customer reply that the conversation is about, as plain data, or None.
    """

    key: str
    gate: Mapping[str, Any] | None


class PlanUnderWay(Exception):
    """Another plan of the conversation is active."""


class Plans(Repository):
    """The plans of conversations. ``seconds``: how long a plan counts as alive without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self._ttl = timedelta(seconds=seconds)

    async def begin(
        self, run_id: str, session_key: str, *, host: str = "", former: str = "", note: Mapping[str, Any] | None = None
    ) -> bool:
        """Begin the plan in this process, which is ``host``. Return False if a process makes or made it already.

        Raises PlanUnderWay if another plan of the conversation is active.

        note: is added to the conversation in the same transaction, if ``former``, the plan that it tells about, was the
            conversation's newest plan.
        """
        now = self._db.now()
        new = self._db.insert(plans).values(run_id=run_id, session_key=session_key, heartbeat_at=now)
        taken = sa.update(runs).where(runs.c.id == run_id).values(host=host, host_attempt=1)
        async with self._db.write(durable=True) as connection:
            # The second of two that begin at once waits here, and then sees the first.
            session = self._db.insert(planner_sessions).values(key=session_key, created_at=now, updated_at=now)
            await connection.execute(session.on_conflict_do_update(index_elements=["key"], set_={"updated_at": now}))
            newest = (await connection.execute(self._newest(session_key))).scalar_one_or_none()
            going = (await connection.execute(self._under_way(session_key))).scalars()
            if any(other != run_id for other in going):
                raise PlanUnderWay(session_key)
            made = await connection.execute(new.on_conflict_do_nothing().returning(plans.c.run_id))
            if made.scalar_one_or_none() is None:
                return False
            await connection.execute(taken)
            if note is not None and newest == former:
                await connection.execute(sa.insert(planner_items), [{"session_key": session_key, "item": dict(note)}])
        return True

    async def newest(self, session_key: str) -> str | None:
        """Return the run id of the conversation's newest plan, or None if there is none."""
        return await self._value(self._newest(session_key))

    async def under_way(self, session_key: str) -> str | None:
        """Return the run id of the conversation's active plan, or None if there is none."""
        async with self._db.read() as connection:
            run_id: str | None = (await connection.execute(self._under_way(session_key))).scalars().first()
        return run_id

    async def session_of(self, run_id: str) -> str | None:
        """Return the key of the conversation that a plan belongs to, or None if the run is not a plan."""
        wanted = sa.select(plans.c.session_key).where(plans.c.run_id == run_id)
        return await self._value(wanted)

    async def beat(self, run_ids: Sequence[str]) -> set[str]:
        """Send a heartbeat for these plans.

        Return those that are still running, because another process may have judged a plan dead.
        """
        going = sa.select(runs.c.id).where(runs.c.id.in_(run_ids), runs.c.status == RUNNING)
        alive = sa.update(plans).where(plans.c.run_id.in_(going)).values(heartbeat_at=self._db.now())
        async with self._db.write() as connection:
            return set((await connection.execute(alive.returning(plans.c.run_id))).scalars())

    @staticmethod
    def _newest(session_key: str) -> sa.Select[Any]:
        its = sa.select(plans.c.run_id).where(plans.c.session_key == session_key)
        return its.order_by(plans.c.run_id.desc()).limit(1)

    def _under_way(self, session_key: str) -> sa.Select[Any]:
        alive = fresh(plans.c.heartbeat_at, self._db.now(), self._ttl)
        going = sa.exists().where(runs.c.id == plans.c.run_id, runs.c.status == RUNNING)
        return sa.select(plans.c.run_id).where(plans.c.session_key == session_key, alive, going)


class Conversations(Repository):
    """Conversations with the planner. A ``key`` consists of the owner and their name for the conversation."""

    async def get(self, key: str) -> ConversationRow | None:
        wanted = sa.select(planner_sessions.c.key, planner_sessions.c.gate).where(planner_sessions.c.key == key)
        return await self._only(ConversationRow, wanted)

    async def open(self, key: str) -> ConversationRow:
        """Return the conversation, which is made if it does not exist."""
        now = self._db.now()
        new = self._db.insert(planner_sessions).values(key=key, created_at=now, updated_at=now)
        used = new.on_conflict_do_update(index_elements=["key"], set_={"updated_at": now})
        async with self._db.write() as connection:
            done = await connection.execute(used.returning(planner_sessions.c.key, planner_sessions.c.gate))
            return ConversationRow(**done.mappings().one())

    async def set_gate(self, key: str, gate: Mapping[str, Any] | None) -> None:
        value = sa.null() if gate is None else dict(gate)
        change = sa.update(planner_sessions).where(planner_sessions.c.key == key)
        await self._execute(change.values(gate=value, updated_at=self._db.now()), durable=True)

    async def forget(self, key: str) -> bool:
        """Delete a conversation with its items and the notes on earlier plans for the next one.

        Return False if there is none.
        """
        going = sa.select(runs.c.id).where(runs.c.status == RUNNING)
        async with self._db.write() as connection:
            over = sa.delete(plans).where(plans.c.session_key == key, plans.c.run_id.not_in(going))
            await connection.execute(over)
            # Its own row first: a concurrent ``add`` has the row locked, or finds it gone.
            gone = await connection.execute(sa.delete(planner_sessions).where(planner_sessions.c.key == key))
            await connection.execute(sa.delete(planner_items).where(planner_items.c.session_key == key))
            return gone.rowcount == 1

    async def items(self, key: str, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the items of the conversation, oldest first. ``limit``: only this many of the newest."""
        newest = sa.select(planner_items.c.item).where(planner_items.c.session_key == key)
        newest = newest.order_by(planner_items.c.id.desc()).limit(limit)
        async with self._db.read() as connection:
            return list((await connection.execute(newest)).scalars())[::-1]

    async def add(self, key: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Add items to the conversation. Does nothing if it was deleted meanwhile."""
        if not items:
            return
        rows = [{"session_key": key, "item": dict(item)} for item in items]
        here = sa.select(planner_sessions.c.key).where(planner_sessions.c.key == key).with_for_update()
        async with self._db.write() as connection:
            if (await connection.execute(here)).first() is not None:
                await connection.execute(sa.insert(planner_items), rows)

    async def pop(self, key: str) -> dict[str, Any] | None:
        """Remove and return the newest item, or return None if there is none."""
        newest = sa.select(sa.func.max(planner_items.c.id)).where(planner_items.c.session_key == key)
        gone = sa.delete(planner_items).where(planner_items.c.id == newest.scalar_subquery())
        async with self._db.write() as connection:
            item: dict[str, Any] | None = (
                await connection.execute(gone.returning(planner_items.c.item))
            ).scalar_one_or_none()
        return item

    async def clear(self, key: str) -> None:
        await self._execute(sa.delete(planner_items).where(planner_items.c.session_key == key))
