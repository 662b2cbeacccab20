"""Clocks: the processes that start due schedules. A heartbeat shows that one is alive."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.leases import LEASE_SECONDS, fresh
from storage.tables import clocks


@shielded
class Clocks:
    """The table of clocks. ``seconds``: how long a clock counts as alive without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        self._db = db
        self._ttl = timedelta(seconds=seconds)

    def _alive(self) -> sa.ColumnElement[bool]:
        return fresh(clocks.c.heartbeat_at, self._db.now(), self._ttl)

    async def beat(self, token: str) -> None:
        """Send a heartbeat for the clock with this token, and delete clocks that died."""
        now = self._db.now()
        mine = self._db.insert(clocks).values(token=token, heartbeat_at=now)
        async with self._db.write() as connection:
            await connection.execute(mine.on_conflict_do_update(index_elements=["token"], set_={"heartbeat_at": now}))
            await connection.execute(sa.delete(clocks).where(~self._alive()))

    async def end(self, token: str) -> None:
        """Say that this clock has stopped."""
        async with self._db.write() as connection:
            await connection.execute(sa.delete(clocks).where(clocks.c.token == token))

    async def any_alive(self) -> bool:
        """Tell whether any process runs a clock."""
        async with self._db.read() as connection:
            return (
                await connection.execute(sa.select(clocks.c.token).where(self._alive()).limit(1))
            ).first() is not None
