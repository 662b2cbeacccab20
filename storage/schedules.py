"""Schedules. This table decides whether a tick starts a run; the clock only wakes up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.events import append_event
from storage.requests import AlreadyMade, find, made_under, remember
from storage.runs import ACTIVE, NewRun, insert_run
from storage.tables import runs, schedules
from storage.uncut import uncut


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """``expression`` in the zone ``timezone`` (a name of the tz database). ``kind``: ``run``, ``sweep`` or ``watch``.

    ``missed``: ``skip`` or ``catch_up``. ``quiet``: hours without runs, ``22:00-07:00``, empty for none.
    """

    expression: str
    timezone: str
    task: str
    kind: str = "run"
    serial: str = ""
    chat: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    missed: str = "skip"
    jitter_seconds: int = 0
    quiet: str = ""
    created_by: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    id: int
    kind: str
    expression: str
    timezone: str
    task: str
    serial: str
    chat: Mapping[str, Any] | None
    options: Mapping[str, Any]
    missed: str
    jitter_seconds: int
    quiet: str
    paused: bool
    created_by: str
    created_at: datetime
    last_planned_at: datetime | None
    started: int
    skipped_busy: int
    skipped_missed: int
    skipped_quiet: int


class Tick(StrEnum):
    STARTED = "started"
    BUSY = "busy"  # the run of an earlier tick is still going
    QUIET = "quiet"
    TAKEN = "taken"  # another process had this tick, or the schedule is paused or gone


@dataclass(frozen=True, slots=True)
class TickResult:
    tick: Tick
    run_id: str = ""


@uncut
class Schedules:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, new: NewSchedule, *, key: str = "") -> ScheduleRow:
        """The new schedule, or the one that was made under the request's ``key`` before."""
        values = {name: getattr(new, name) for name in NewSchedule.__slots__}
        values["options"] = dict(new.options)
        values["chat"] = None if new.chat is None else dict(new.chat)
        statement = sa.insert(schedules).values(**values, created_at=self._db.now()).returning(*schedules.c)
        try:
            async with self._db.write() as connection:
                made = await made_under(connection, key)
                if made is None:
                    row = (await connection.execute(statement)).mappings().one()
                    await remember(connection, self._db, key, str(row["id"]))
        except AlreadyMade:
            made = await find(self._db, key)
        self._db.signal("schedules").notify()
        if made is None:
            return ScheduleRow(**row)
        before = await self.get(int(made))
        if before is None:
            raise LookupError(f"Schedule {made}, made under this request before, was removed.")
        return before

    async def get(self, schedule_id: int) -> ScheduleRow | None:
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(schedules).where(schedules.c.id == schedule_id))
            row = found.mappings().one_or_none()
        return None if row is None else ScheduleRow(**row)

    async def all(self) -> list[ScheduleRow]:
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(schedules).order_by(schedules.c.id))
            return [ScheduleRow(**row) for row in found.mappings()]

    async def pause(self, schedule_id: int, *, paused: bool) -> bool:
        """Pause or go on. Ticks of the time in between are not missed ones: they are not counted or caught up."""
        values: dict[str, Any] = {"paused": paused}
        if not paused:
            values["last_planned_at"] = self._db.now()
        return await self._set(schedule_id, values)

    async def remove(self, schedule_id: int) -> bool:
        async with self._db.write() as connection:
            done = await connection.execute(sa.delete(schedules).where(schedules.c.id == schedule_id))
        self._db.signal("schedules").notify()
        return done.rowcount == 1

    async def tick(
        self,
        schedule_id: int,
        planned_at: datetime,
        *,
        missed: int = 0,
        quiet: bool = False,
        run: NewRun | None = None,
    ) -> TickResult:
        """Take the tick planned for ``planned_at``; exactly one of all processes gets it.

        It starts a run (``run``, or one of the schedule's own task), unless the run of an earlier tick is still going
        or ``quiet`` says that it falls into the quiet hours. ``missed``: earlier ticks that were missed. What starts
        no run is counted and told in the event log (``schedule``, no run: ``schedule_id``, ``what``, ``planned_at``).
        """
        async with self._db.write(durable=True) as connection:
            take = (
                sa.update(schedules)
                .where(
                    schedules.c.id == schedule_id,
                    schedules.c.paused.is_(False),
                    sa.or_(schedules.c.last_planned_at.is_(None), schedules.c.last_planned_at < planned_at),
                )
                .values(last_planned_at=planned_at, skipped_missed=schedules.c.skipped_missed + missed)
                .returning(*schedules.c)
            )
            row = (await connection.execute(take)).mappings().one_or_none()
            if row is None:
                return TickResult(Tick.TAKEN)
            going = await connection.execute(
                sa.select(runs.c.id).where(runs.c.schedule_id == schedule_id, runs.c.status.in_(ACTIVE)).limit(1)
            )
            if quiet:
                result = TickResult(Tick.QUIET)
            elif going.scalar_one_or_none() is not None:
                result = TickResult(Tick.BUSY)
            else:
                run_id = await insert_run(connection, self._db, run or _run_of(ScheduleRow(**row), planned_at))
                result = TickResult(Tick.TAKEN) if run_id is None else TickResult(Tick.STARTED, run_id)
            counter = {Tick.STARTED: "started", Tick.BUSY: "skipped_busy", Tick.QUIET: "skipped_quiet"}.get(result.tick)
            if counter is not None and counter != "started":
                told = {"schedule_id": schedule_id, "what": str(result.tick), "planned_at": planned_at.isoformat()}
                await append_event(connection, self._db, "", "schedule", told)
            if missed:
                await self._tell_missed(connection, schedule_id, planned_at, missed)
            if counter is not None:
                count = sa.update(schedules).where(schedules.c.id == schedule_id)
                await connection.execute(count.values({counter: schedules.c[counter] + 1}))
        self._db.signal("runs").notify()
        self._db.signal("events").notify()
        return result

    async def skip_missed(self, schedule_id: int, up_to: datetime, count: int) -> bool:
        """Pass over ``count`` ticks planned until ``up_to``. False where another process has said so already."""
        async with self._db.write() as connection:
            done = await connection.execute(
                sa.update(schedules)
                .where(
                    schedules.c.id == schedule_id,
                    schedules.c.paused.is_(False),
                    sa.or_(schedules.c.last_planned_at.is_(None), schedules.c.last_planned_at < up_to),
                )
                .values(last_planned_at=up_to, skipped_missed=schedules.c.skipped_missed + count)
            )
            first = done.rowcount == 1
            if first:
                await self._tell_missed(connection, schedule_id, up_to, count)
        self._db.signal("events").notify()
        return first

    async def _tell_missed(self, connection: AsyncConnection, schedule_id: int, up_to: datetime, count: int) -> None:
        told = {"schedule_id": schedule_id, "what": "missed", "count": count, "planned_at": up_to.isoformat()}
        await append_event(connection, self._db, "", "schedule", told)

    async def _set(self, schedule_id: int, values: dict[str, Any]) -> bool:
        async with self._db.write() as connection:
            done = await connection.execute(sa.update(schedules).where(schedules.c.id == schedule_id).values(**values))
        self._db.signal("schedules").notify()
        return done.rowcount == 1


def _run_of(schedule: ScheduleRow, planned_at: datetime) -> NewRun:
    return NewRun(
        task=schedule.task,
        serial=schedule.serial,
        options={**schedule.options, "kind": schedule.kind},
        requested_by=schedule.created_by,
        chat=schedule.chat,
        schedule_id=schedule.id,
        planned_at=planned_at,
    )
