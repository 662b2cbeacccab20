"""Runs and their legs.

A run is a row; a leg is one go at it by a worker. ``leg`` is the number of the current leg, ``leg_due_at`` says that
it is to be started (None: nothing is to be started). Every change of state is one conditional statement, so that of
two who try only one succeeds; the other is told by False or None.

``queued`` → ``running`` → ``waiting`` (for a person; the leg is over) → ``running`` → ``succeeded | failed | stopped``

``hold``: a person parked the run. No leg of it is due until Resume; while one is at work still, it is to end.

Each change of the status is told in the event log in the same transaction, as an event ``status`` with ``status``,
``message``, ``leg``, ``serial`` and ``hold``: a card that follows the log learns of the end exactly once. A leg that
ended before its time is told with ``put_back``, its error ("" where its process died): by these the tries are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.events import append_event
from storage.ids import new_id
from storage.legs import hold_turn
from storage.requests import AlreadyMade, find, made_under, remember
from storage.tables import hosts, leases, plans, questions, runs, sweeps
from storage.tries import MOST_TRIES, GaveUp, errors_since_step, plain_words
from storage.uncut import uncut

QUEUED, RUNNING, WAITING = "queued", "running", "waiting"
SUCCEEDED, FAILED, STOPPED = "succeeded", "failed", "stopped"
ACTIVE = (QUEUED, RUNNING, WAITING)
FINAL = (SUCCEEDED, FAILED, STOPPED)
PLAN, PLAN_PART = "plan", "part"  # the option ``kind`` of a plan, see ``storage.plans``, and of its runs
BEGINNING = timedelta(seconds=5)

# A session may be long; lists do without it.
LISTED = (*(column for column in runs.c if column.name != "session"), sa.null().label("session"))


@dataclass(frozen=True, slots=True)
class RunRow:
    """``serial``: the phone wanted or given, empty for any. ``session``: JSON text as saved by the agent, None before.

    ``chat``: where it was asked from (channel, chat, thread, message). ``options``: max_steps, lang, dry_run …
    ``host`` took leg ``host_leg``. ``any_phone``: it asked for none, ``serial`` was chosen for it.
    ``parent_id``: the sweep or plan that it belongs to. A sweep waits until all its runs are over, and ends with the
    last one; a plan ends by itself.
    """

    id: str
    task: str
    serial: str
    status: str
    priority: int
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    message: str
    session: str | None
    options: Mapping[str, Any]
    requested_by: str
    chat: Mapping[str, Any] | None
    schedule_id: int | None
    planned_at: datetime | None
    leg: int
    leg_due_at: datetime | None
    stop_requested: bool
    hold: bool
    stopped_by: str = ""
    parent_id: str = ""
    host: str = ""
    host_leg: int = 0
    any_phone: bool = False

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def wanted(self) -> str:
        """The phone that it must have; "" as long as any will do: what has begun on one stays there."""
        return "" if self.any_phone and self.started_at is None else self.serial

    def taken_by(self) -> str:
        """The host that took the current leg; "" where none did."""
        return self.host if self.host_leg == self.leg else ""


@dataclass(frozen=True, slots=True)
class NewRun:
    """``begun``: its first leg is at work already, in the process that adds it; no worker is to start it.

    ``parent_id``: the sweep that it belongs to.
    """

    task: str
    serial: str = ""
    priority: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    requested_by: str = ""
    chat: Mapping[str, Any] | None = None
    schedule_id: int | None = None
    planned_at: datetime | None = None
    begun: bool = False
    parent_id: str = ""


def _run(row: sa.RowMapping) -> RunRow:
    return RunRow(**row)


async def insert_run(connection: AsyncConnection, db: Database, new: NewRun) -> str | None:
    """Add a run inside a transaction that is under way. None where this tick of the schedule has its run already."""
    now = db.now()
    run_id = new_id()
    statement = (
        db.insert(runs)
        .values(
            id=run_id,
            task=new.task,
            serial=new.serial,
            status=RUNNING if new.begun else QUEUED,
            priority=new.priority,
            created_at=now,
            started_at=now if new.begun else None,
            options=dict(new.options),
            requested_by=new.requested_by,
            chat=None if new.chat is None else dict(new.chat),
            schedule_id=new.schedule_id,
            planned_at=new.planned_at,
            leg=1,
            leg_due_at=None if new.begun else now,
            parent_id=new.parent_id,
        )
        .on_conflict_do_nothing(index_elements=["schedule_id", "planned_at"])
        .returning(runs.c.id)
    )
    made: str | None = (await connection.execute(statement)).scalar_one_or_none()
    if made is not None:
        await tell_status(connection, db, made)
    return made


async def tell_status(connection: AsyncConnection, db: Database, run_id: str, *, put_back: str | None = None) -> None:
    """Append the run's present status to the event log. ``put_back``: a leg of it has just ended before its time."""
    columns = (runs.c.status, runs.c.message, runs.c.leg, runs.c.serial, runs.c.hold)
    row = (await connection.execute(sa.select(*columns).where(runs.c.id == run_id))).mappings().one()
    more = {} if put_back is None else {"put_back": put_back}
    await append_event(connection, db, run_id, "status", {**row, **more})


async def make_due(connection: AsyncConnection, run_id: str, now: datetime) -> bool:
    """Make the next leg of a run that waits due, inside a transaction. A run on Hold waits for Resume."""
    statement = (
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.status == WAITING, runs.c.leg_due_at.is_(None), runs.c.hold.is_(False))
        .values(leg=runs.c.leg + 1, leg_due_at=now)
    )
    return (await connection.execute(statement)).rowcount == 1


def at_work(run: sa.FromClause = runs) -> sa.ColumnElement[bool]:
    """Whether a run is in the line or under way, and does not merely wait for a person."""
    in_line = sa.and_(run.c.status == WAITING, run.c.leg_due_at.is_not(None))
    return sa.or_(run.c.status.in_((QUEUED, RUNNING)), in_line)


def waits_for_people() -> sa.ColumnElement[bool]:
    """Of ``runs``: a sweep all of whose runs that are not over wait for a person. It keeps nothing from beginning."""
    its = runs.alias("its")
    belongs = its.c.parent_id == runs.c.id
    return sa.and_(
        runs.c.status == WAITING,
        runs.c.leg_due_at.is_(None),
        sa.exists().where(belongs),
        ~sa.exists().where(belongs, at_work(its)),
    )


async def settle(connection: AsyncConnection, db: Database, sweep_id: str) -> bool:
    """End a sweep whose runs are all over, inside a transaction. False where one is not, or it is no sweep."""
    # Two of its runs may end at once: who comes second sees, with the row in hand, that the first is over.
    locked = sa.update(runs).where(runs.c.id == sweep_id, runs.c.status == WAITING).values(status=WAITING)
    if (await connection.execute(locked)).rowcount != 1:
        return False
    found = await connection.execute(sa.select(runs.c.status).where(runs.c.parent_id == sweep_id))
    ended = list(found.scalars())
    if not ended or any(status in ACTIVE for status in ended):
        return False
    outcome = FAILED if FAILED in ended and SUCCEEDED not in ended else SUCCEEDED
    done = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == sweep_id, runs.c.status == WAITING)
        .values(
            status=sa.case((runs.c.stop_requested, STOPPED), else_=outcome),
            ended_at=db.now(),
            leg_due_at=None,
            hold=False,
        )
    )
    if done.rowcount == 1:
        await tell_status(connection, db, sweep_id)
    return done.rowcount == 1


async def _lock_parent(connection: AsyncConnection, run_id: str) -> None:
    """Take the row of the sweep that a run belongs to, before the run's own and the event log's lock.

    Everybody takes them in this order; else a sweep that is stopped waits for a run that ends, and that one for it.
    """
    its = sa.select(runs.c.parent_id).where(runs.c.id == run_id)
    if parent_id := (await connection.execute(its)).scalar_one_or_none():
        await connection.execute(sa.select(runs.c.id).where(runs.c.id == parent_id).with_for_update())


async def _settle_parent(connection: AsyncConnection, db: Database, run_id: str) -> None:
    """A run is over: so may be the sweep that it belongs to."""
    found = await connection.execute(sa.select(runs.c.parent_id).where(runs.c.id == run_id))
    if parent_id := found.scalar_one_or_none():
        await settle(connection, db, parent_id)


@uncut
class Runs:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def create(self, new: NewRun, *, key: str = "") -> str | None:
        """The id of the new run; None where its schedule's tick has started one already. Its first leg is due.

        ``key`` names the request: the run that was made under it before is given instead of a second one.
        """
        try:
            async with self._db.write(durable=True) as connection:
                run_id = await made_under(connection, key)
                if run_id is None:
                    run_id = await insert_run(connection, self._db, new)
                    if run_id is not None:
                        await remember(connection, self._db, key, run_id)
        except AlreadyMade:
            run_id = await find(self._db, key)
        self._db.signal("runs").notify()
        self._db.signal("events").notify()
        return run_id

    async def get(self, run_id: str) -> RunRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(runs).where(runs.c.id == run_id))).mappings().one_or_none()
        return None if row is None else _run(row)

    async def find(
        self,
        *,
        statuses: Sequence[str] = (),
        serial: str = "",
        schedule_id: int | None = None,
        requested_by: str = "",
        before: str = "",
        limit: int = 50,
    ) -> list[RunRow]:
        """The newest first, without their sessions. ``before``: only runs older than this id, for the next page."""
        statement = sa.select(*LISTED).order_by(runs.c.id.desc()).limit(limit)
        if statuses:
            statement = statement.where(runs.c.status.in_(statuses))
        if serial:
            statement = statement.where(runs.c.serial == serial)
        if schedule_id is not None:
            statement = statement.where(runs.c.schedule_id == schedule_id)
        if requested_by:
            statement = statement.where(runs.c.requested_by == requested_by)
        if before:
            statement = statement.where(runs.c.id < before)
        return await self._all(statement)

    async def parts_of(self, parent_id: str) -> list[RunRow]:
        """The runs that belong to a sweep or a plan, the oldest first, without their sessions."""
        return await self._all(sa.select(*LISTED).where(runs.c.parent_id == parent_id).order_by(runs.c.id))

    async def due(self, *, begun: int = 0) -> list[RunRow]:
        """Runs with a leg that is to be started, in the order in which they get a phone: priority, then the run's age.

        So a run that comes back with an answer goes before those that were asked for later. ``begun``: the priority
        that a run which has begun has at least.
        """
        at_least = sa.case((sa.and_(runs.c.status == WAITING, runs.c.priority < begun), begun), else_=runs.c.priority)
        statement = (
            sa.select(*LISTED)
            # Whenever that was: a clock that was put back must not keep it from beginning.
            .where(runs.c.status.in_((QUEUED, WAITING)), runs.c.leg_due_at.is_not(None))
            .order_by(at_least.desc(), runs.c.id)
        )
        return await self._all(statement)

    async def save_session(self, run_id: str, session: str, *, leg: int | None = None) -> None:
        """Store the agent's session (JSON text). KeyError for a run that is not there.

        ``leg``: whose it is; LegOver where its turn is over.
        """
        async with self._db.write() as connection:
            await hold_turn(connection, run_id, leg)
            done = await connection.execute(sa.update(runs).where(runs.c.id == run_id).values(session=session))
            if done.rowcount != 1:
                raise KeyError(run_id)

    async def asked(self, run_ids: Sequence[str]) -> dict[str, tuple[bool, bool]]:
        """Of these runs those of which something was asked: whether Stop, and whether Hold."""
        asked = sa.select(runs.c.id, runs.c.stop_requested, runs.c.hold).where(
            runs.c.id.in_(run_ids), sa.or_(runs.c.stop_requested, runs.c.hold)
        )
        async with self._db.read() as connection:
            return {row.id: (row.stop_requested, row.hold) for row in await connection.execute(asked)}

    async def begin_leg(self, run_id: str, leg: int, *, serial: str) -> RunRow | None:
        """The leg is at work on ``serial``. None: it is not this leg's turn (another leg, over, stopped).

        A leg from a queue that is taken up again after its process died may begin a second time, under the next number:
        should the first live after all, its turn is over. See ``RunRow.leg`` of what is given.
        """
        now = self._db.now()
        again = sa.and_(runs.c.status == RUNNING, runs.c.host_leg == leg)  # not one that was added as begun
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run_id,
                runs.c.leg == leg,
                sa.or_(runs.c.leg_due_at.is_not(None), runs.c.status == RUNNING),
                runs.c.status.in_(ACTIVE),
            )
            .values(
                status=RUNNING,
                leg=sa.case((again, leg + 1), else_=leg),
                serial=serial,
                leg_due_at=None,
                started_at=sa.func.coalesce(runs.c.started_at, now),
            )
            .returning(*runs.c)
        )
        async with self._db.write() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
            if row is not None:
                await tell_status(connection, self._db, run_id, put_back=None if row["leg"] == leg else "")
        self._notify()
        return None if row is None else _run(row)

    async def requeue_leg(self, run_id: str, leg: int) -> bool:
        """Put back a leg that has not begun (its phone was not free, its queue lost it), under the next number."""
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run_id,
                runs.c.leg == leg,
                runs.c.status.in_((QUEUED, WAITING)),
                runs.c.leg_due_at.is_not(None),
            )
            .values(leg=leg + 1)
        )
        return await self._one(run_id, statement)

    async def interrupt_leg(
        self, run_id: str, leg: int, *, error: str | None = None, gave_up: GaveUp = plain_words
    ) -> bool:
        """The leg at work ended before its time (end of the process, phone lost): the next one is due.

        At once, or where it was to be held, at Resume. A stop that was asked for meanwhile ends the run. ``error``:
        what it ended by, where that is the run's own; one that ended so ``MOST_TRIES`` times is over.
        """
        async with self._db.write(durable=True) as connection:
            done = await self._put_back(connection, run_id, runs.c.leg == leg, error=error, gave_up=gave_up)
        if done:
            self._notify()
        return done

    async def wait_leg(self, run_id: str, leg: int, *, message: str = "") -> bool:
        """The leg ended at a question or at Hold. Where the answer is there already, the next leg is due.

        So it is where Hold was taken back while the leg parked. A stop that was asked for in this very moment ends the
        run: nobody would look at it again.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            await _lock_parent(connection, run_id)
            done = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.leg == leg, runs.c.status == RUNNING)
                .values(status=WAITING, leg_due_at=None, message=message)
            )
            if done.rowcount != 1:
                return False
            stopped = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.stop_requested)
                .values(status=STOPPED, ended_at=now, hold=False)
            )
            if stopped.rowcount:
                await _expire_questions(connection, run_id)
            if not await _is_asked(connection, run_id) and not await _has_runs(connection, run_id):
                await make_due(connection, run_id, now)
            await tell_status(connection, self._db, run_id)
            await settle(connection, self._db, run_id)
            if stopped.rowcount:
                await _settle_parent(connection, self._db, run_id)
        self._notify()
        return True

    async def end_leg(self, run_id: str, leg: int, *, status: str, message: str = "") -> bool:
        """The run is over: ``succeeded``, ``failed`` or ``stopped``. False where another leg has it."""
        statement = (
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.leg == leg, runs.c.status.in_(ACTIVE))
            .values(status=_final(status), message=message, ended_at=self._db.now(), leg_due_at=None, hold=False)
        )
        return await self._end(run_id, statement)

    async def request_stop(self, run_id: str, *, by: str = "") -> str | None:
        """Ask for a stop; the first who did is kept (``by``).

        The status afterwards: ``stopped`` where no leg was at work, None for no such run.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            await _lock_parent(connection, run_id)
            await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.status.in_(ACTIVE), runs.c.stop_requested.is_(False))
                .values(stop_requested=True, stopped_by=by)
            )
            stopped = await self._stop_runs_of(connection, run_id, by)
            at_once = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.status.in_((QUEUED, WAITING)), ~_is_sweep_at_work(run_id))
                .values(status=STOPPED, ended_at=now, leg_due_at=None, hold=False)
            )
            if at_once.rowcount:
                stopped.append(run_id)
            # The log's lock comes last: who reminds of a question has that one's row, and waits for the log.
            await _expire_questions(connection, *stopped)
            for one in stopped:
                await tell_status(connection, self._db, one)
            if at_once.rowcount:
                await _settle_parent(connection, self._db, run_id)
            status = (
                await connection.execute(sa.select(runs.c.status).where(runs.c.id == run_id))
            ).scalar_one_or_none()
        self._notify()
        return status

    async def _stop_runs_of(self, connection: AsyncConnection, sweep_id: str, by: str) -> list[str]:
        """A sweep is stopped: so are its runs. One that is at work ends by itself, and the sweep with it.

        Those that are over with this, in order; it is yet to be told.
        """
        its = sa.and_(runs.c.parent_id == sweep_id, runs.c.parent_id != "", runs.c.status.in_(ACTIVE))
        asked = sa.update(runs).where(its, runs.c.stop_requested.is_(False))
        await connection.execute(asked.values(stop_requested=True, stopped_by=by))
        ended = await connection.execute(
            sa.update(runs)
            .where(its, runs.c.status != RUNNING)
            .values(status=STOPPED, ended_at=self._db.now(), leg_due_at=None, hold=False)
            .returning(runs.c.id)
        )
        return sorted(ended.scalars())

    async def request_hold(self, run_id: str) -> bool:
        """Hold a run until ``resume``: one at work sees it and parks, one in the line leaves it, one that waits for a
        person does not go on with the answer. False where it is held already, or over.
        """
        parked = sa.case((runs.c.status == RUNNING, RUNNING), else_=WAITING)
        return await self._one(
            run_id,
            sa.update(runs)
            .where(
                runs.c.id == run_id,
                runs.c.status.in_(ACTIVE),
                runs.c.hold.is_(False),
                runs.c.stop_requested.is_(False),
            )
            .values(hold=True, leg_due_at=None, status=parked),
            tell=True,
            durable=True,
        )

    async def take(self, run: RunRow, serial: str, host: str, *, alive_after: datetime) -> int | None:
        """Take the due leg of a run for a host and a phone; the leg's number, None where it is not to be had.

        Another host's leg can be had once that one was not heard after ``alive_after`` or has ended; it gets the next
        number, so that it is not mistaken for the one that may still lie in the other's queue.
        """
        lives = sa.select(hosts.c.name).where(hosts.c.state != "ended", hosts.c.heartbeat_at > alive_after)
        taken = sa.and_(runs.c.host_leg == runs.c.leg, runs.c.host != host)
        leg = sa.case((taken, runs.c.leg + 1), else_=runs.c.leg)
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run.id,
                runs.c.leg == run.leg,
                runs.c.status.in_((QUEUED, WAITING)),
                runs.c.leg_due_at.is_not(None),
                runs.c.serial == run.serial,
                sa.or_(~taken, runs.c.host.not_in(lives)),
            )
            .values(
                serial=serial,
                any_phone=sa.or_(runs.c.any_phone, runs.c.serial == ""),
                host=host,
                host_leg=leg,
                leg=leg,
            )
            .returning(runs.c.leg)
        )
        async with self._db.write() as connection:
            number: int | None = (await connection.execute(statement)).scalar_one_or_none()
        return number

    async def resume(self, run_id: str) -> bool:
        """Bring a held run back: its next leg is due, unless it waits for an answer. False where it is not held.

        One that has not parked yet parks and goes on.
        """
        async with self._db.write(durable=True) as connection:
            freed = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.hold, runs.c.status.in_((RUNNING, WAITING)))
                .values(hold=False)
            )
            done = freed.rowcount == 1
            if done:
                if not await _is_asked(connection, run_id):
                    await make_due(connection, run_id, self._db.now())
                await tell_status(connection, self._db, run_id)
        self._notify()
        return done

    async def revive(
        self, *, older_than: timedelta, alive_here: Sequence[str] = (), gave_up: GaveUp = plain_words
    ) -> list[str]:
        """Give runs whose leg died a next leg, due now; their ids.

        Dead: ``running`` for some seconds (who begins a run takes the phone a moment later), not one of ``alive_here``
        (at work in this process, whatever its heartbeat), no lease of the run with a heartbeat within ``older_than``.
        A sweep whose contacts are begun one by one, in a terminal, lives with them. A plan lives by its own heartbeat;
        nobody can take it up, so a dead one is over. The runs that it began are runs like any others.
        The phone that it had is free at once: should that leg live after all, it finds its lease lost. One of which
        Stop was asked for is over, and so is one that only ever dies, see ``GaveUp``.
        """
        now = self._db.now()
        alive = sa.select(leases.c.run_id).where(
            leases.c.run_id != "", leases.c.heartbeat_at > now - older_than, leases.c.heartbeat_at < now + older_than
        )
        dead = sa.and_(
            runs.c.status == RUNNING,
            # One that began in the future: the clock was put back since.
            sa.or_(runs.c.started_at <= now - BEGINNING, runs.c.started_at > now + BEGINNING),
            runs.c.id.not_in(alive),
            runs.c.id.not_in(alive_here),
            runs.c.id.not_in(_sweeps_at_work(alive, now)),
            runs.c.id.not_in(sa.select(plans.c.run_id).where(plans.c.heartbeat_at > now - older_than)),
        )
        async with self._db.read() as connection:
            found = list((await connection.execute(sa.select(runs.c.id).where(dead).order_by(runs.c.id))).scalars())
        revived = []
        for run_id in found:
            async with self._db.write(durable=True) as connection:
                if await self._end_plan(connection, run_id, dead):
                    revived.append(run_id)
                elif await self._put_back(connection, run_id, dead, error="", gave_up=gave_up):
                    await _free_phones(connection, run_id)
                    revived.append(run_id)
        if revived:
            self._notify()
        return revived

    async def _end_plan(self, connection: AsyncConnection, run_id: str, which: sa.ColumnElement[bool]) -> bool:
        """End a plan whose process is gone, where the run's row is as ``which`` says and a plan."""
        is_plan = runs.c.options["kind"].as_string() == PLAN
        outcome = sa.case((runs.c.stop_requested, STOPPED), else_=FAILED)
        done = await connection.execute(
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.status == RUNNING, which, is_plan)
            .values(status=outcome, ended_at=self._db.now(), hold=False)
        )
        if done.rowcount == 1:
            await tell_status(connection, self._db, run_id)
        return done.rowcount == 1

    async def _put_back(
        self,
        connection: AsyncConnection,
        run_id: str,
        which: sa.ColumnElement[bool],
        *,
        error: str | None,
        gave_up: GaveUp,
    ) -> bool:
        """End the leg at work, where the run's row is as ``which`` says: the next one is due, unless Stop or Hold was
        asked for, or it was tried often enough. False where it is not.
        """
        now = self._db.now()
        await _lock_parent(connection, run_id)
        done = await connection.execute(
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.status == RUNNING, which)
            .values(status=WAITING, leg=runs.c.leg + 1, leg_due_at=_now_unless_held(now))
        )
        if done.rowcount != 1:
            return False
        stopped = await connection.execute(
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.stop_requested)
            .values(status=STOPPED, ended_at=now, leg_due_at=None, hold=False)
        )
        over = stopped.rowcount == 1
        if error is not None and not over:
            over = await self._give_up(connection, run_id, error, gave_up)
        if over:
            await _expire_questions(connection, run_id)
        await tell_status(connection, self._db, run_id, put_back=error)
        if over:
            await _settle_parent(connection, self._db, run_id)
        return True

    async def _give_up(self, connection: AsyncConnection, run_id: str, error: str, gave_up: GaveUp) -> bool:
        """End a run whose leg was put back just now, where that was the last try. False where it was not."""
        errors = [error, *await errors_since_step(connection, run_id)]
        if len(errors) < MOST_TRIES:
            return False
        options = (await connection.execute(sa.select(runs.c.options).where(runs.c.id == run_id))).scalar_one()
        message = gave_up(options, next(filter(None, errors), ""))
        failed = sa.update(runs).where(runs.c.id == run_id)
        await connection.execute(
            failed.values(status=FAILED, message=message, ended_at=self._db.now(), leg_due_at=None, hold=False)
        )
        return True

    async def _end(self, run_id: str, statement: sa.Update) -> bool:
        async with self._db.write(durable=True) as connection:
            await _lock_parent(connection, run_id)
            done = (await connection.execute(statement)).rowcount == 1
            if done:
                await _expire_questions(connection, run_id)
                await tell_status(connection, self._db, run_id)
                await _settle_parent(connection, self._db, run_id)
        self._notify()
        return done

    async def _one(self, run_id: str, statement: sa.Update, *, tell: bool = False, durable: bool = False) -> bool:
        async with self._db.write(durable=durable) as connection:
            done = (await connection.execute(statement)).rowcount == 1
            if done and tell:
                await tell_status(connection, self._db, run_id)
        if done:
            self._notify()
        return done

    def _notify(self) -> None:
        self._db.signal("runs").notify()
        self._db.signal("events").notify()

    async def _all(self, statement: sa.Select[Any]) -> list[RunRow]:
        async with self._db.read() as connection:
            return [_run(row) for row in (await connection.execute(statement)).mappings()]


def _now_unless_held(now: datetime) -> sa.ColumnElement[datetime | None]:
    return sa.case((runs.c.hold, sa.null()), else_=sa.literal(now, runs.c.leg_due_at.type))


async def _free_phones(connection: AsyncConnection, run_id: str) -> None:
    """Whatever has a phone for this run has lost it."""
    lost = sa.update(leases).where(leases.c.run_id == run_id)
    await connection.execute(lost.values(owner="", run_id="", fencing=leases.c.fencing + 1, heartbeat_at=None))


async def _is_asked(connection: AsyncConnection, run_id: str) -> bool:
    """Whether a question of the run is open."""
    asked = sa.select(questions.c.id).where(questions.c.run_id == run_id, questions.c.state == "open").limit(1)
    return (await connection.execute(asked)).first() is not None


async def _has_runs(connection: AsyncConnection, run_id: str) -> bool:
    """Whether the run is a sweep that has begun runs of its own."""
    its = sa.select(runs.c.id).where(runs.c.parent_id == run_id).limit(1)
    return (await connection.execute(its)).first() is not None


def _sweeps_at_work(alive: sa.Select[tuple[str]], now: datetime) -> sa.Select[tuple[str]]:
    """Sweeps that have just looked, or one of whose runs has the phone, has just begun or has just ended.

    ``alive``: the runs that have a phone.
    """
    its = runs.alias("its")
    just = now - BEGINNING
    begun = sa.and_(its.c.status == RUNNING, sa.or_(its.c.id.in_(alive), its.c.started_at.between(just, now)))
    belongs = sa.select(its.c.parent_id).where(its.c.parent_id != "", sa.or_(begun, its.c.ended_at.between(just, now)))
    looked = sa.select(sweeps.c.run_id).where(sweeps.c.created_at.between(just, now))
    return sa.select(sa.union_all(belongs, looked).subquery().c[0])


def _is_sweep_at_work(run_id: str) -> sa.ColumnElement[bool]:
    its = runs.alias("its")
    return sa.exists().where(its.c.parent_id == run_id, its.c.status.in_(ACTIVE))


def _final(status: str) -> str:
    if status not in FINAL:
        raise ValueError(f"A run ends as one of {', '.join(FINAL)}, not {status!r}.")
    return status


async def _expire_questions(connection: AsyncConnection, *run_ids: str) -> None:
    open_ = sa.and_(questions.c.run_id.in_(run_ids), questions.c.state == "open")
    await connection.execute(sa.update(questions).where(open_).values(state="expired"))
