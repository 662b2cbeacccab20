"""The inbox: an update is stored here before it is acknowledged, and handled once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.tables import inbox

NEW, DONE, FAILED = "new", "done", "failed"


@dataclass(frozen=True, slots=True)
class InboxRow:
    """An update. ``raw``: its JSON as it came."""

    update_id: int
    raw: str
    state: str
    attempts: int
    error: str
    received_at: datetime


@shielded
class InboxTable:
    """The table of updates."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def store(self, update_id: int, raw: str) -> bool:
        """Store an update and wake ``db.signal("inbox")``. Return False if it was here before.

        It is on the disk when this returns.
        """
        new = self._db.insert(inbox).values(update_id=update_id, raw=raw, state=NEW, received_at=self._db.now())
        async with self._db.write(durable=True) as connection:
            done = await connection.execute(
                new.on_conflict_do_nothing(index_elements=["update_id"]).returning(inbox.c.update_id)
            )
            stored = done.scalar_one_or_none() is not None
        if stored:
            self._db.signal("inbox").notify()
        return stored

    async def waiting(self, limit: int = 100, *, without: Collection[int] = ()) -> list[InboxRow]:
        """Return updates that are not handled yet, in order. ``without``: ids to leave out, some thousands at most."""
        statement = (
            sa.select(inbox)
            .where(inbox.c.state == NEW, inbox.c.update_id.not_in(without))
            .order_by(inbox.c.update_id)
            .limit(limit)
        )
        async with self._db.read() as connection:
            return [InboxRow(**row) for row in (await connection.execute(statement)).mappings()]

    async def get(self, update_id: int) -> InboxRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(inbox).where(inbox.c.update_id == update_id))).mappings().first()
        return None if row is None else InboxRow(**row)

    async def begun(self, update_id: int) -> None:
        """Count a try before it is made, so that a try that crashes the process is counted too."""
        await self._set(update_id, attempts=inbox.c.attempts + 1)

    async def put_back(self, update_id: int) -> None:
        """Uncount the last try. Does nothing if the update is no longer waiting."""
        await self._set(
            update_id, only=sa.and_(inbox.c.state == NEW, inbox.c.attempts > 0), attempts=inbox.c.attempts - 1
        )

    async def done(self, update_id: int) -> None:
        await self._set(update_id, state=DONE, error="")

    async def failed(self, update_id: int, error: str, *, give_up: bool) -> None:
        """Store the error of a try. If ``give_up``, the update is not handed out again."""
        await self._set(update_id, state=FAILED if give_up else NEW, error=error)

    async def _set(self, update_id: int, *, only: sa.ColumnElement[bool] | None = None, **values: object) -> None:
        change = sa.update(inbox).where(inbox.c.update_id == update_id).values(**values)
        async with self._db.write() as connection:
            await connection.execute(change if only is None else change.where(only))
