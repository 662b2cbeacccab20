"""What a watch starts: each once, however many processes see the same notification."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.requests import AlreadyMade, made_under, remember
from storage.runs import NewRun, insert_run
from storage.schedules import Tick
from storage.sweeps import NewSwept, Place, begin_run
from storage.tables import schedules
from storage.uncut import uncut


@uncut
class Watches:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def answer(self, watch_id: int, place: Place, one: NewSwept, *, key: str) -> str | None:
        """Start the run that answers a contact. None where ``key`` has started one before, or the watch is off."""

        async def begin(connection: AsyncConnection) -> str | None:
            return await begin_run(connection, self._db, place, one)

        return await self._start(watch_id, key, begin)

    async def sweep(self, watch_id: int, run: NewRun, *, key: str) -> str | None:
        """Start a look at the list of chats. None as with ``answer``."""

        async def begin(connection: AsyncConnection) -> str | None:
            return await insert_run(connection, self._db, run)

        return await self._start(watch_id, key, begin)

    async def _start(
        self, watch_id: int, key: str, begin: Callable[[AsyncConnection], Awaitable[str | None]]
    ) -> str | None:
        row = schedules.c.id == watch_id
        on = sa.and_(row, schedules.c.paused.is_(False), schedules.c.removed_at.is_(None))
        counted = {"started": schedules.c.started + 1, "last_what": Tick.STARTED.value, "last_at": self._db.now()}
        try:
            async with self._db.write(durable=True) as connection:
                # The row in hand, whoever comes second waits here.
                if (await connection.execute(sa.update(schedules).where(on).values(**counted))).rowcount != 1:
                    return None
                run_id = None if await made_under(connection, key) is not None else await begin(connection)
                if run_id is None:
                    raise AlreadyMade(key)
                await remember(connection, self._db, key, run_id)
                await connection.execute(sa.update(schedules).where(row).values(last_run_id=run_id))
        except AlreadyMade:
            return None
        self._db.signal("runs").notify()
        self._db.signal("events").notify()
        return run_id
