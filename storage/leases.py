"""Leases: who has which phone, and which attempt may write; and clocks: the processes that start due schedules.

A lease row stays when the phone is released, so that its fencing token only grows. Writes of an attempt count only
while it is that attempt's turn. ``fresh`` is the one rule for every heartbeat that others act on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.errors import LeaseLost
from storage.engine import Database
from storage.repository import Repository
from storage.tables import clocks, leases, runs


def fresh(
    heartbeat: sa.ColumnElement[datetime | None], now: datetime, ttl: timedelta, part: float = 1.0
) -> sa.ColumnElement[bool]:
    """Match rows whose heartbeat is younger than ``part`` of ``ttl``.

    A heartbeat ``ttl`` or more ahead of ``now`` does not count, because the clock was put back since.
    """
    return _between(heartbeat, now - ttl * part, now + ttl)


def _between(
    heartbeat: sa.ColumnElement[datetime | None],
    after: datetime | sa.BindParameter[datetime],
    before: datetime | sa.BindParameter[datetime],
) -> sa.ColumnElement[bool]:
    return sa.and_(heartbeat > after, heartbeat < before)


# Built once, because every view of phones asks for it: see ``storage.history``.
_HELD = sa.select(leases).where(
    leases.c.owner != "", _between(leases.c.heartbeat_at, sa.bindparam("after"), sa.bindparam("before"))
)
LEASE_SECONDS = 30.0
TAKEN_OVER = "take-over:"  # in place of a run's id, before the name of the person who has taken the phone over
HELD_PART = 2 / 3  # of the lease time: the holder gives up before others may take the phone


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """A lease. ``owner``: the executor's id, "" if the phone is free. ``run_id``: the run that has the phone."""

    serial: str
    owner: str
    run_id: str
    fencing: int
    acquired_at: datetime | None
    heartbeat_at: datetime | None

    @property
    def person(self) -> str | None:
        """The name of the person who has taken the phone over; None if no person has it."""
        return self.run_id.removeprefix(TAKEN_OVER) if self.run_id.startswith(TAKEN_OVER) else None


class Leases(Repository):
    """The table of leases. ``seconds``: how long a lease lives without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self.ttl = timedelta(seconds=seconds)

    def fresh(self, part: float = 1.0) -> sa.ColumnElement[bool]:
        """Match phones whose holder has a fresh heartbeat."""
        return fresh(leases.c.heartbeat_at, self._db.now(), self.ttl, part)

    def free(self) -> sa.ColumnElement[bool]:
        """Match phones that nobody has, or whose holder has no fresh heartbeat."""
        return sa.or_(leases.c.owner == "", ~self.fresh())

    async def acquire(self, serial: str, owner: str, run_id: str = "") -> LeaseRow | None:
        """Take the phone.

        Return the lease with a new fencing token, or None if a holder (even this one) is still alive.
        """
        now = self._db.now()
        take = (
            sa.update(leases)
            .where(leases.c.serial == serial, self.free())
            .values(owner=owner, run_id=run_id, fencing=leases.c.fencing + 1, acquired_at=now, heartbeat_at=now)
            .returning(*leases.c)
        )
        async with self._db.write() as connection:
            await connection.execute(self._db.insert(leases).values(serial=serial).on_conflict_do_nothing())
            row = (await connection.execute(take)).mappings().one_or_none()
        return None if row is None else LeaseRow(**row)

    async def renew(self, lease: LeaseRow) -> bool:
        """Send a heartbeat. Return False if the phone is no longer ours."""
        return await self._change(lease, heartbeat_at=self._db.now())

    async def renew_in_time(self, lease: LeaseRow) -> bool:
        """Send a heartbeat if the last one has not expired.

        Return False otherwise, or if the phone is no longer ours.
        """
        return await self._change(lease, self.fresh(), heartbeat_at=self._db.now())

    async def release(self, lease: LeaseRow) -> bool:
        done = await self._change(lease, owner="", run_id="", heartbeat_at=None)
        self._notify("runs")
        return done

    async def check(self, lease: LeaseRow) -> bool:
        """Tell whether this holder may act: its fencing token is current, and its heartbeat does not expire in a
        moment.

        Nobody else may take the phone between this check and the action. So a holder stops after two thirds of the time
        that others wait, or renews first, see ``renew_in_time``.
        """
        held = sa.select(sa.literal(1)).where(
            leases.c.serial == lease.serial,
            leases.c.fencing == lease.fencing,
            leases.c.owner == lease.owner,
            self.fresh(HELD_PART),
        )
        return await self._value(held) is not None

    async def take_back(self, owner: str) -> list[str]:
        """Free every phone that the former process of ``owner`` left. Return their serials. Needs the process lock."""
        free = (
            sa.update(leases)
            .where(leases.c.owner == owner)
            .values(owner="", run_id="", heartbeat_at=None)
            .returning(leases.c.serial)
        )
        async with self._db.write() as connection:
            return list((await connection.execute(free)).scalars())

    async def get(self, serial: str) -> LeaseRow | None:
        return await self._only(LeaseRow, sa.select(leases).where(leases.c.serial == serial))

    async def held(self) -> list[LeaseRow]:
        """Return the leases with a fresh heartbeat."""
        now = self._db.now()
        return await self._rows(LeaseRow, _HELD, {"after": now - self.ttl, "before": now + self.ttl})

    async def last_used(self) -> dict[str, datetime]:
        """Return when each phone was last taken, by serial. Phones that never were are left out."""
        used = sa.select(leases.c.serial, leases.c.acquired_at).where(leases.c.acquired_at.is_not(None))
        return {row.serial: row.acquired_at for row in await self._read(used)}

    async def _change(self, lease: LeaseRow, *conditions: sa.ColumnElement[bool], **values: Any) -> bool:
        """Change the lease if it is still the holder's.

        An expired one can be renewed as long as nobody took the phone.
        """
        change = (
            sa.update(leases)
            .where(
                leases.c.serial == lease.serial,
                leases.c.fencing == lease.fencing,
                leases.c.owner == lease.owner,
                *conditions,
            )
            .values(**values)
        )
        return await self._execute(change) == 1


async def hold_turn(connection: AsyncConnection, run_id: str, attempt: int | None) -> None:
    """Raise LeaseLost if it is not the turn of ``attempt``: another attempt has the run, or the run is over.

    The turn is not lost before the transaction ends. ``attempt``: None if no attempt writes.
    """
    if attempt is None:
        return
    mine = sa.select(runs.c.id).where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status == "running")
    if (await connection.execute(mine.with_for_update())).first() is None:
        raise LeaseLost(f"Attempt {attempt} of the run {run_id} is over.", key="attempt_over")


class Clocks(Repository):
    """The table of clocks. ``seconds``: how long a clock counts as alive without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self._ttl = timedelta(seconds=seconds)

    def _alive(self) -> sa.ColumnElement[bool]:
        return fresh(clocks.c.heartbeat_at, self._db.now(), self._ttl)

    async def beat(self, token: str) -> None:
        """Send a heartbeat for the clock with this token, and delete clocks that died."""
        mine = self._db.upsert(clocks, {"heartbeat_at": self._db.now()}, token=token)
        async with self._db.write() as connection:
            await connection.execute(mine)
            await connection.execute(sa.delete(clocks).where(~self._alive()))

    async def end(self, token: str) -> None:
        """Say that this clock has stopped."""
        await self._execute(sa.delete(clocks).where(clocks.c.token == token))

    async def any_alive(self) -> bool:
        """Tell whether any process runs a clock."""
        return await self._value(sa.select(clocks.c.token).where(self._alive()).limit(1)) is not None
