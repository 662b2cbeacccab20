"""Schedules. This table decides whether a tick starts a run; the clock only wakes up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.events import append_event
from storage.ids import AlreadyMade, find, made_under, remember
from storage.repository import Repository
from storage.runs import ACTIVE, NewRun
from storage.runs.rows import insert_run, waits_for_people
from storage.tables import runs, schedules

REMOVED_KEPT = timedelta(days=7)  # how long a removed schedule can be put back


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A new schedule.

    expression: in the zone ``timezone`` (a name of the tz database). It means the same whenever it is read.
    said: what the person wrote, if that differs from ``expression``.
    kind: ``run``, ``sweep`` or ``watch``.
    missed: ``skip`` or ``catch_up``.
    overlap: what a tick does if the run of an earlier one is still active: ``skip``, or ``queue`` one tick until it is
        over.
    quiet: hours without runs, ``22:00-07:00``, "" for none.
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
    said: str = ""
    overlap: str = "skip"


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A schedule.

    ``last_what``: the outcome of the newest tick (a ``Tick``, ``missed`` or ``by_hand``), which was planned for
    ``last_at``. ``last_run_id``: the newest run. ``queued_for``: the tick whose run starts when the run before it is
    over.
    """

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
    said: str
    overlap: str
    queued_for: datetime | None
    last_what: str
    last_at: datetime | None
    last_run_id: str
    removed_at: datetime | None


class Tick(StrEnum):
    """The outcome of a tick."""

    STARTED = "started"
    BUSY = "busy"  # the run of an earlier tick is still active
    QUEUED = "queued"  # the same, and this one starts when that run is over
    QUIET = "quiet"
    LIMIT = "limit"  # the day's limit of model calls is reached
    TAKEN = "taken"  # another process took this tick, or the schedule is paused or gone


MISSED, BY_HAND = "missed", "by_hand"  # further values of ``last_what``
_COUNTERS = {Tick.STARTED: "started", Tick.BUSY: "skipped_busy", Tick.QUIET: "skipped_quiet"}
_THERE = schedules.c.removed_at.is_(None)
_ALL = sa.select(schedules).where(_THERE).order_by(schedules.c.id)  # built once, see ``storage.history``
_SAME = ("expression", "timezone", "task", "serial")  # two schedules that have all of them do the same


@dataclass(frozen=True, slots=True)
class TickResult:
    """The outcome of a tick, and the run that it started, if any."""

    tick: Tick
    run_id: str = ""


class ScheduleThere(LookupError):
    """The same schedule exists already; ``number`` is its number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"Schedule {number} is the same.")
        self.number = number


class Schedules(Repository):
    """The table of schedules."""

    async def add(self, new: NewSchedule, *, key: str = "", once: bool = False) -> ScheduleRow:
        """Store a schedule. Return it, or the earlier schedule that was made under the same ``key``.

        once: raise ScheduleThere if another schedule does the same task on the same phone at the same times.
        """
        values = {name: getattr(new, name) for name in NewSchedule.__slots__}
        values["options"] = dict(new.options)
        values["chat"] = None if new.chat is None else dict(new.chat)
        statement = sa.insert(schedules).values(**values, created_at=self._db.now()).returning(*schedules.c)
        try:
            async with self._db.write() as connection:
                made = await made_under(connection, key)
                if made is None:
                    if once:
                        await _refuse_same(connection, values)
                    row = (await connection.execute(statement)).mappings().one()
                    await remember(connection, self._db, key, str(row["id"]))
        except AlreadyMade:
            made = await find(self._db, key)
        self._notify("schedules")
        if made is None:
            return ScheduleRow(**row)
        before = await self.get(int(made))
        if before is None:
            raise LookupError(f"Schedule {made}, made under this request before, was removed.")
        return before

    async def get(self, schedule_id: int, *, removed: bool = False) -> ScheduleRow | None:
        """Return the schedule, or None if there is none. ``removed``: also one that can be put back."""
        wanted = sa.select(schedules).where(schedules.c.id == schedule_id, *([] if removed else [_THERE]))
        return await self._only(ScheduleRow, wanted)

    async def all(self) -> list[ScheduleRow]:
        return await self._rows(ScheduleRow, _ALL)

    async def edit(self, schedule_id: int, values: Mapping[str, Any], *, other_times: bool = False) -> bool:
        """Change columns. Return whether it exists. ``other_times``: no old tick counts as missed, and none waits.

        Raises ScheduleThere if another schedule does what it is changed to, as ``add`` does.
        """
        afresh = {"last_planned_at": self._db.now(), "queued_for": None} if other_times else {}
        there = (schedules.c.id == schedule_id) & _THERE
        async with self._db.write() as connection:
            row = (await connection.execute(sa.select(schedules).where(there))).mappings().one_or_none()
            if row is None:
                return False
            changed = {**row, **values}
            if any(row[name] != changed[name] for name in _SAME):
                await _refuse_same(connection, changed)
            await connection.execute(sa.update(schedules).where(there).values(**values, **afresh))
        self._notify("schedules")
        return True

    async def pause(self, schedule_id: int, *, paused: bool) -> bool:
        """Pause or continue.

        Return whether it exists. Ticks in between are not missed: they are not counted or caught up.
        """
        if paused:
            return await self._set(schedule_id, {"paused": True, "queued_for": None})
        # A schedule that is not paused keeps its ticks: this may be the button of an old card, or a second tap.
        newest = schedules.c.last_planned_at
        now = sa.literal(self._db.now(), newest.type)
        since = sa.case((schedules.c.paused, now), else_=newest)
        return await self._set(schedule_id, {"paused": False, "last_planned_at": since})

    async def remove(self, schedule_id: int) -> bool:
        """Remove a schedule, which can be put back for a while. Return whether it existed."""
        now = self._db.now()
        async with self._db.write() as connection:
            await connection.execute(sa.delete(schedules).where(schedules.c.removed_at < now - REMOVED_KEPT))
            done = await connection.execute(
                sa.update(schedules)
                .where(schedules.c.id == schedule_id, _THERE)
                .values(removed_at=now, queued_for=None)
            )
        self._notify("schedules")
        return done.rowcount == 1

    async def put_back(self, schedule_id: int) -> bool:
        """Undo ``remove``. Return False if it is gone for good or was never removed."""
        now = self._db.now()
        done = await self._execute(
            sa.update(schedules)
            .where(schedules.c.id == schedule_id, schedules.c.removed_at >= now - REMOVED_KEPT)
            .values(removed_at=None, last_planned_at=now)
        )
        self._notify("schedules")
        return done == 1

    # Ticks ------------------------------------------------------------------------------------------------------------

    async def tick(
        self,
        schedule_id: int,
        planned_at: datetime,
        *,
        missed: int = 0,
        late_since: datetime | None = None,
        quiet: bool = False,
        limited: bool = False,
    ) -> TickResult:
        """Take the tick planned for ``planned_at``; exactly one of all processes gets it.

        It starts a run unless the run of an earlier tick is still active. A tick that starts no run, and ticks that
        were missed, are written to the event log (``schedule``, no run: ``schedule_id``, ``what``, ``planned_at``).

        missed: how many earlier ticks were missed.
        late_since: the first tick at which no process was running, if this tick makes up for it.
        quiet: it falls into the quiet hours, and starts no run.
        limited: the day's limit of model calls is reached, and it starts no run. This is reported elsewhere, once a
        day.
        """
        async with self._db.write(durable=True) as connection:
            take = (
                sa.update(schedules)
                .where(self._open(schedule_id, planned_at))
                .values(last_planned_at=planned_at, skipped_missed=schedules.c.skipped_missed + missed)
                .returning(*schedules.c)
            )
            row = (await connection.execute(take)).mappings().one_or_none()
            if row is None:
                return TickResult(Tick.TAKEN)
            schedule = ScheduleRow(**row)
            result = await self._outcome(connection, schedule, planned_at, quiet=quiet, limited=limited)
            if result.tick is not Tick.TAKEN:
                await self._note(connection, schedule_id, planned_at, result)
            if result.tick in {Tick.BUSY, Tick.QUIET, Tick.QUEUED}:
                await self._tell(connection, schedule_id, str(result.tick), planned_at)
            if missed or late_since is not None:
                told: dict[str, Any] = {"count": missed}
                if late_since is not None:
                    started = result.tick is Tick.STARTED
                    told |= {"since": late_since.isoformat(), "caught_up": started}
                await self._tell(connection, schedule_id, MISSED, planned_at, **told)
        self._notify("runs", "events")
        return result

    async def _outcome(
        self,
        connection: AsyncConnection,
        row: ScheduleRow,
        planned_at: datetime,
        *,
        quiet: bool,
        limited: bool,
    ) -> TickResult:
        if quiet or limited:
            return TickResult(Tick.QUIET if quiet else Tick.LIMIT)
        if await self._going(connection, row.id):
            if row.overlap != "queue" or row.queued_for is not None:
                return TickResult(Tick.BUSY)
            await self._change(connection, row.id, {"queued_for": planned_at})
            return TickResult(Tick.QUEUED)
        return await self._begin(connection, row, planned_at)

    async def _begin(self, connection: AsyncConnection, row: ScheduleRow, planned_at: datetime) -> TickResult:
        run_id = await insert_run(connection, self._db, run_of(row, planned_at))
        return TickResult(Tick.TAKEN) if run_id is None else TickResult(Tick.STARTED, run_id)

    async def start_queued(self, schedule_id: int, *, quiet: bool) -> TickResult:
        """Start the run of the tick that waited, if the run before it is over.

        Returns BUSY if it keeps waiting, and TAKEN if none waits.

        quiet: drop the tick.
        """
        async with self._db.write(durable=True) as connection:
            wanted = sa.select(schedules).where(
                schedules.c.id == schedule_id,
                schedules.c.queued_for.is_not(None),
                schedules.c.paused.is_(False),
                _THERE,
            )
            row = (await connection.execute(wanted.with_for_update())).mappings().one_or_none()
            if row is None:
                return TickResult(Tick.TAKEN)
            planned_at: datetime = row["queued_for"]
            if not quiet and await self._going(connection, schedule_id):
                return TickResult(Tick.BUSY)
            await self._change(connection, schedule_id, {"queued_for": None})
            result = TickResult(Tick.QUIET)
            if not quiet:
                result = await self._begin(connection, ScheduleRow(**row), planned_at)
            if result.tick is not Tick.TAKEN:
                await self._note(connection, schedule_id, planned_at, result)
        self._notify("runs", "events")
        return result

    async def skip_missed(self, schedule_id: int, up_to: datetime, count: int, *, since: datetime) -> bool:
        """Skip ``count`` ticks planned from ``since`` to ``up_to``.

        Return False if another process has recorded that.
        """
        values = {"last_what": MISSED, "last_at": up_to, "skipped_missed": schedules.c.skipped_missed + count}
        async with self._db.write() as connection:
            done = await connection.execute(
                sa.update(schedules).where(self._open(schedule_id, up_to)).values(last_planned_at=up_to, **values)
            )
            first = done.rowcount == 1
            if first:
                told = {"count": count, "since": since.isoformat(), "caught_up": False}
                await self._tell(connection, schedule_id, MISSED, up_to, **told)
        self._notify("events")
        return first

    async def clock_went_back(self, schedule_id: int, since: datetime) -> bool:
        """Continue from ``since``, which is now, because the newest tick or the creation is later: the clock was put
        back.

        Return False if another process has done so. A tick that has started a run starts no second one, because its
        planned time is the run's.
        """
        newest = sa.func.coalesce(schedules.c.last_planned_at, schedules.c.created_at)
        done = await self._execute(
            sa.update(schedules)
            .where(schedules.c.id == schedule_id, newest > since, _THERE)
            .values(last_planned_at=since, queued_for=None)
        )
        return done == 1

    async def by_hand(self, schedule_id: int, run_id: str) -> None:
        """Record that a person has started a run of it."""
        await self._set(schedule_id, {"last_what": BY_HAND, "last_at": self._db.now(), "last_run_id": run_id})

    @staticmethod
    def _open(schedule_id: int, planned_at: datetime) -> sa.ColumnElement[bool]:
        """Match the schedule if the tick of ``planned_at`` can still be taken."""
        fresh = sa.or_(schedules.c.last_planned_at.is_(None), schedules.c.last_planned_at < planned_at)
        return sa.and_(schedules.c.id == schedule_id, schedules.c.paused.is_(False), _THERE, fresh)

    @staticmethod
    async def _going(connection: AsyncConnection, schedule_id: int) -> bool:
        """Tell whether an earlier run is active, except a sweep whose contacts wait for people, maybe for days."""
        active = sa.and_(runs.c.schedule_id == schedule_id, runs.c.status.in_(ACTIVE))
        wanted = sa.select(runs.c.id).where(active, ~waits_for_people()).limit(1)
        return (await connection.execute(wanted)).scalar_one_or_none() is not None

    async def _note(
        self, connection: AsyncConnection, schedule_id: int, planned_at: datetime, result: TickResult
    ) -> None:
        """Count the tick and store it as the newest."""
        values: dict[str, Any] = {"last_what": str(result.tick), "last_at": planned_at}
        if result.run_id:
            values["last_run_id"] = result.run_id
        if counter := _COUNTERS.get(result.tick):
            values[counter] = schedules.c[counter] + 1
        await self._change(connection, schedule_id, values)

    @staticmethod
    async def _change(connection: AsyncConnection, schedule_id: int, values: Mapping[str, Any]) -> None:
        await connection.execute(sa.update(schedules).where(schedules.c.id == schedule_id).values(**values))

    async def _tell(
        self, connection: AsyncConnection, schedule_id: int, what: str, planned_at: datetime, **more: object
    ) -> None:
        told = {"schedule_id": schedule_id, "what": what, **more, "planned_at": planned_at.isoformat()}
        await append_event(connection, self._db, "", "schedule", told)

    async def _set(self, schedule_id: int, values: dict[str, Any]) -> bool:
        done = await self._execute(sa.update(schedules).where(schedules.c.id == schedule_id, _THERE).values(**values))
        self._notify("schedules")
        return done == 1


def run_of(schedule: ScheduleRow, planned_at: datetime | None) -> NewRun:
    """Return the run that a tick starts, or that a person starts between ticks if ``planned_at`` is None."""
    return NewRun(
        task=schedule.task,
        serial=schedule.serial,
        options={**schedule.options, "kind": schedule.kind},
        requested_by=schedule.created_by,
        chat=schedule.chat,
        schedule_id=schedule.id,
        planned_at=planned_at,
    )


async def _refuse_same(connection: AsyncConnection, wanted: Mapping[str, Any]) -> None:
    same = sa.select(schedules.c.id).where(_THERE, *(schedules.c[name] == wanted[name] for name in _SAME))
    if (number := (await connection.execute(same.order_by(schedules.c.id).limit(1))).scalar_one_or_none()) is not None:
        raise ScheduleThere(number)
