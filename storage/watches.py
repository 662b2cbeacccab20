"""The runs that a watch starts: each once, however many processes see the same notification."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.ids import AlreadyMade, made_under, remember
from storage.leases import LEASE_SECONDS, Leases
from storage.repository import Repository
from storage.runs import NewRun
from storage.runs.rows import insert_run
from storage.schedules import Tick
from storage.sweeps import NewSwept, SweptApp, begin_run
from storage.tables import leases, questions, runs, schedules, sweeps

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Use:
    """A use of a phone, by its fencing token, and when its chat list was last checked before (None: never)."""

    fencing: int
    looked_at: datetime | None


class Watches(Repository):
    """The runs of watches. ``lease_seconds``: how long a lease lives without a heartbeat."""

    def __init__(self, db: Database, *, lease_seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self._leases = Leases(db, seconds=lease_seconds)

    async def answer(self, watch_id: int, place: SweptApp, one: NewSwept, *, key: str) -> str | None:
        """Start the run that answers a contact.

        Return its id, or None if ``key`` has started one or the watch is off.
        """

        async def begin(connection: AsyncConnection) -> str | None:
            return await begin_run(connection, self._db, place, one)

        return await self._start(watch_id, key, begin)

    async def sweep(self, watch_id: int, run: NewRun, *, key: str) -> str | None:
        """Start a sweep of the chat list. Return its id, or None as in ``answer``."""

        async def begin(connection: AsyncConnection) -> str | None:
            return await insert_run(connection, self._db, run)

        return await self._start(watch_id, key, begin)

    async def use_since_look(self, place: SweptApp, *, left_alone: Sequence[str]) -> Use | None:
        """Return the newest use of a phone that is free, if it is later than the newest sweep of this list.

        Return None also while a question of one of the kinds ``left_alone`` is open there.
        """
        newest = (
            sa.select(sa.func.max(sweeps.c.created_at))
            .where(sweeps.c.serial == place.serial, sweeps.c.app == place.app)
            .scalar_subquery()
        )
        asked = (
            sa.select(questions.c.id)
            .join(runs, runs.c.id == questions.c.run_id)
            .where(runs.c.serial == place.serial, questions.c.state == "open", questions.c.kind.in_(left_alone))
        )
        wanted = sa.select(leases.c.fencing, newest.label("looked_at")).where(
            leases.c.serial == place.serial,
            self._leases.free(),
            leases.c.acquired_at > sa.func.coalesce(newest, sa.literal(_NEVER, sweeps.c.created_at.type)),
            ~asked.exists(),
        )
        async with self._db.read() as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else Use(row.fencing, row.looked_at)

    async def _start(
        self, watch_id: int, key: str, begin: Callable[[AsyncConnection], Awaitable[str | None]]
    ) -> str | None:
        row = schedules.c.id == watch_id
        on = sa.and_(row, schedules.c.paused.is_(False), schedules.c.removed_at.is_(None))
        counted = {"started": schedules.c.started + 1, "last_what": Tick.STARTED.value, "last_at": self._db.now()}
        try:
            async with self._db.write(durable=True) as connection:
                # With the row locked, the second of two waits here.
                if (await connection.execute(sa.update(schedules).where(on).values(**counted))).rowcount != 1:
                    return None
                run_id = None if await made_under(connection, key) is not None else await begin(connection)
                if run_id is None:
                    raise AlreadyMade(key)
                await remember(connection, self._db, key, run_id)
                await connection.execute(sa.update(schedules).where(row).values(last_run_id=run_id))
        except AlreadyMade:
            return None
        self._notify("runs", "events")
        return run_id
