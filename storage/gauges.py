"""The current counts for ``/metrics``. They name no run and no customer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.hosts import ENDED, USABLE
from storage.leases import LEASE_SECONDS
from storage.messages import NEW, PENDING
from storage.model_calls import Used
from storage.questions import OPEN
from storage.repository import Repository
from storage.runs import ACTIVE, FINAL, QUEUED, WAITING
from storage.tables import answers, host_phones, hosts, inbox, leases, model_days, outbox, questions, runs, schedules

LOST = "lost"  # the state of a host without a fresh heartbeat


@dataclass(frozen=True, slots=True)
class Gauges:
    """The gauges at one moment.

    ``phones``: by the state in which adb sees them, of hosts that are alive. ``oldest_out``: seconds that the oldest
    message has waited to be sent. ``ticks``: of the existing schedules: started, busy, missed, quiet.
    """

    runs: Mapping[str, int] = field(default_factory=dict)  # by status
    in_line: int = 0  # runs that wait for a phone
    questions: Mapping[str, int] = field(default_factory=dict)  # open ones, by kind
    phones: Mapping[str, int] = field(default_factory=dict)
    hosts: Mapping[str, int] = field(default_factory=dict)  # by state: up, draining, ended, lost
    leases: int = 0  # phones that are leased
    outbox: int = 0  # messages to send
    oldest_out: float = 0.0
    inbox: int = 0  # updates to handle
    ticks: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, Used] = field(default_factory=dict)  # the use of each since its first call


class GaugeReader(Repository):
    """The reader of the gauges. ``seconds``: how long a host counts as alive without a heartbeat."""

    def __init__(self, db: Database, *, seconds: float = LEASE_SECONDS) -> None:
        super().__init__(db)
        self._ttl = timedelta(seconds=seconds)

    async def take(self) -> Gauges:
        in_line = sa.and_(runs.c.status.in_((QUEUED, WAITING)), runs.c.attempt_due_at.is_not(None))
        pending = outbox.c.state == PENDING
        async with self._db.read() as connection:
            oldest = (await connection.execute(sa.select(sa.func.min(outbox.c.created_at)).where(pending))).scalar()
            now = self._db.now()
            return Gauges(
                runs={**dict.fromkeys((*ACTIVE, *FINAL), 0), **await _by(connection, runs.c.status)},
                in_line=await _count(connection, runs, in_line),
                questions=await _by(connection, questions.c.kind, questions.c.state == OPEN),
                phones=await self._phones(connection),
                hosts=await self._hosts(connection),
                leases=await _count(connection, leases, leases.c.owner != ""),
                outbox=await _count(connection, outbox, pending),
                oldest_out=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
                inbox=await _count(connection, inbox, inbox.c.state == NEW),
                ticks=await _ticks(connection),
                models=await _models(connection),
            )

    async def answers(self) -> Mapping[tuple[str, str], int]:
        """Return how many answers customers got, by provenance ("": none yet) and state. Reads the whole answer log."""
        wanted = sa.select(answers.c.provenance, answers.c.state, sa.func.count()).group_by(
            answers.c.provenance, answers.c.state
        )
        return {(origin, state): count for origin, state, count in await self._read(wanted)}

    async def _phones(self, connection: AsyncConnection) -> Mapping[str, int]:
        """Return the number of phones by state.

        A phone that several hosts see counts once, as usable if one can use it.
        """
        seen = sa.select(host_phones.c.serial, host_phones.c.state).join(hosts, hosts.c.name == host_phones.c.host)
        alive = sa.and_(hosts.c.state != ENDED, hosts.c.heartbeat_at > self._db.now() - self._ttl)
        states: dict[str, str] = {}
        for serial, state in await connection.execute(seen.where(alive)):
            if states.get(serial) != USABLE:
                states[serial] = state
        return {USABLE: 0, **Counter(states.values())}

    async def _hosts(self, connection: AsyncConnection) -> Mapping[str, int]:
        now = self._db.now()
        rows = await connection.execute(sa.select(hosts.c.state, hosts.c.heartbeat_at))
        return Counter(LOST if state != ENDED and beat <= now - self._ttl else state for state, beat in rows)


async def _by(
    connection: AsyncConnection, column: sa.ColumnElement[str], where: sa.ColumnElement[bool] | None = None
) -> Mapping[str, int]:
    wanted = sa.select(column, sa.func.count()).group_by(column)
    found = await connection.execute(wanted if where is None else wanted.where(where))
    return {str(value): count for value, count in found}


async def _count(connection: AsyncConnection, table: sa.Table, where: sa.ColumnElement[bool]) -> int:
    return int((await connection.execute(sa.select(sa.func.count()).select_from(table).where(where))).scalar_one())


async def _ticks(connection: AsyncConnection) -> Mapping[str, int]:
    columns = {
        "started": schedules.c.started,
        "busy": schedules.c.skipped_busy,
        "missed": schedules.c.skipped_missed,
        "quiet": schedules.c.skipped_quiet,
    }
    sums = [sa.func.coalesce(sa.func.sum(column), 0) for column in columns.values()]
    found = (await connection.execute(sa.select(*sums))).one()
    return dict(zip(columns, map(int, found), strict=True))


async def _models(connection: AsyncConnection) -> Mapping[str, Used]:
    columns = [model_days.c[name] for name in Used.__slots__]
    sums = [sa.func.sum(column).label(column.name) for column in columns]
    found = await connection.execute(sa.select(model_days.c.model, *sums).group_by(model_days.c.model))
    return {
        model: Used(int(calls), int(into), int(out), int(cached), float(cost))
        for model, calls, into, out, cached, cost in found
    }
