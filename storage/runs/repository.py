"""The repository of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.ids import AlreadyMade, find, made_under, remember
from storage.leases import hold_turn
from storage.runs.changes import (
    expire_questions,
    has_runs,
    insert_run,
    is_asked,
    is_sweep_at_work,
    lock_parent,
    make_due,
    settle,
    settle_parent,
    stop_runs_of,
    tell_status,
)
from storage.runs.giving_up import GaveUp, LeftAlone, plain_words, plainly_left
from storage.runs.lost import dead, end_plan, free_phones, put_back
from storage.runs.rows import (
    ACTIVE,
    FINAL,
    LISTED,
    LONGEST_PUT_OFF,
    PLAN,
    QUEUED,
    RUNNING,
    STOPPED,
    WAITING,
    NewRun,
    RunRow,
)
from storage.shielded import shielded
from storage.tables import hosts, runs


@shielded
class Runs:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def create(self, new: NewRun, *, key: str = "") -> str | None:
        """The id of the new run; None where its schedule's tick has started one already. Its first attempt is due.

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
        self._notify()
        return run_id

    async def get(self, run_id: str) -> RunRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(runs).where(runs.c.id == run_id))).mappings().one_or_none()
        return None if row is None else RunRow(**row)

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

    async def some(self, run_ids: Sequence[str]) -> list[RunRow]:
        """Return the runs with these ids, the oldest first, without their sessions. For no ids nothing is read."""
        if not run_ids:
            return []
        return await self._all(sa.select(*LISTED).where(runs.c.id.in_(run_ids)).order_by(runs.c.id))

    async def due(self, *, begun: int = 0) -> list[RunRow]:
        """Runs with an attempt that is to be started, in the order in which they get a phone: priority, then the run's
        age.

        So a run that comes back with an answer goes before those that were asked for later. ``begun``: the priority
        that a run which has begun has at least.
        """
        at_least = sa.case((sa.and_(runs.c.status == WAITING, runs.c.priority < begun), begun), else_=runs.c.priority)
        now = self._db.now()
        put_off = sa.and_(
            runs.c.status == QUEUED,
            runs.c.started_at.is_not(None),
            runs.c.attempt_due_at > now,
            runs.c.attempt_due_at <= now + LONGEST_PUT_OFF,
        )
        statement = (
            sa.select(*LISTED)
            # Whenever that was: a clock that was put back must not keep it from beginning.
            .where(runs.c.status.in_((QUEUED, WAITING)), runs.c.attempt_due_at.is_not(None), ~put_off)
            .order_by(at_least.desc(), runs.c.id)
        )
        return await self._all(statement)

    async def save_session(self, run_id: str, session: str, *, attempt: int | None = None) -> None:
        """Store the agent's session (JSON text). KeyError for a run that is not there.

        ``attempt``: whose it is; LeaseLost where its turn is over.
        """
        async with self._db.write() as connection:
            await hold_turn(connection, run_id, attempt)
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

    async def begin_attempt(self, run_id: str, attempt: int, *, serial: str) -> RunRow | None:
        """Begin a due attempt on ``serial``; None if it is not its turn: begun before, another attempt's, over,
        stopped.
        """
        now = self._db.now()
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run_id,
                runs.c.attempt == attempt,
                runs.c.attempt_due_at.is_not(None),
                runs.c.status.in_((QUEUED, WAITING)),
            )
            .values(
                status=RUNNING,
                serial=serial,
                attempt_due_at=None,
                started_at=sa.func.coalesce(runs.c.started_at, now),
            )
            .returning(*runs.c)
        )
        async with self._db.write() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
            if row is not None:
                await tell_status(connection, self._db, run_id)
        self._notify()
        return None if row is None else RunRow(**row)

    async def requeue_attempt(self, run_id: str, attempt: int) -> bool:
        """Put back an attempt that has not begun, because its phone was not free, under the next number.

        On the disk before the queue writes down that it is done with the old number, which it never starts again.
        """
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run_id,
                runs.c.attempt == attempt,
                runs.c.status.in_((QUEUED, WAITING)),
                runs.c.attempt_due_at.is_not(None),
            )
            .values(attempt=attempt + 1)
        )
        return await self._one(run_id, statement, durable=True)

    async def interrupt_attempt(
        self, run_id: str, attempt: int, *, error: str | None = None, gave_up: GaveUp = plain_words
    ) -> bool:
        """The attempt at work ended before its time (end of the process, phone lost): the next one is due.

        At once, or where it was to be held, at Resume. A stop that was asked for meanwhile ends the run. ``error``:
        what it ended by, where that is the run's own; one that ended so ``MOST_TRIES`` times is over.
        """
        async with self._db.write(durable=True) as connection:
            done = await put_back(connection, self._db, run_id, runs.c.attempt == attempt, error=error, gave_up=gave_up)
        if done:
            self._notify()
        return done

    async def park_attempt(self, run_id: str, attempt: int, *, message: str = "") -> bool:
        """The attempt ended at a question or at Hold. Where the answer is there already, the next attempt is due.

        So it is where Hold was taken back while the attempt parked. A stop that was asked for in this very moment ends
        the run: nobody would look at it again.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            await lock_parent(connection, run_id)
            done = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status == RUNNING)
                .values(status=WAITING, attempt_due_at=None, message=message)
            )
            if done.rowcount != 1:
                return False
            stopped = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.stop_requested)
                .values(status=STOPPED, ended_at=now, hold=False)
            )
            if stopped.rowcount:
                await expire_questions(connection, run_id)
            if not await is_asked(connection, run_id) and not await has_runs(connection, run_id):
                await make_due(connection, run_id, now)
            await tell_status(connection, self._db, run_id)
            await settle(connection, self._db, run_id)
            if stopped.rowcount:
                await settle_parent(connection, self._db, run_id)
        self._notify()
        return True

    async def put_off_attempt(
        self, run_id: str, attempt: int, *, seconds: float, message: str = "", error_kind: str = ""
    ) -> bool:
        """The attempt ended because what the run needs is away: the next one is due in ``seconds``, or at Resume if the
        run is held. A stop that was asked for meanwhile ends the run.

        The run is back in the line and holds no question of a customer: another run may answer it before.
        ``error_kind`` is told in the event, for those who watch what is away.
        """
        now = self._db.now()
        due = sa.literal(now + min(timedelta(seconds=seconds), LONGEST_PUT_OFF), runs.c.attempt_due_at.type)
        async with self._db.write(durable=True) as connection:
            await lock_parent(connection, run_id)
            done = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status == RUNNING)
                .values(
                    status=sa.case((runs.c.stop_requested, STOPPED), (runs.c.hold, WAITING), else_=QUEUED),
                    ended_at=sa.case((runs.c.stop_requested, now), else_=None),
                    attempt=runs.c.attempt + 1,
                    attempt_due_at=sa.case((sa.or_(runs.c.stop_requested, runs.c.hold), None), else_=due),
                    hold=sa.and_(runs.c.hold, ~runs.c.stop_requested),
                    message=message,
                )
            )
            if done.rowcount != 1:
                return False
            await tell_status(connection, self._db, run_id, error_kind=error_kind)
            await settle_parent(connection, self._db, run_id)
        self._notify()
        return True

    async def end_attempt(self, run_id: str, attempt: int, *, status: str, message: str = "") -> bool:
        """The run is over: ``succeeded``, ``failed`` or ``stopped``. False where another attempt has it."""
        statement = (
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status.in_(ACTIVE))
            .values(status=_final(status), message=message, ended_at=self._db.now(), attempt_due_at=None, hold=False)
        )
        return await self._end(run_id, statement)

    async def request_stop(self, run_id: str, *, by: str = "") -> str | None:
        """Ask for a stop; the first who did is kept (``by``).

        The status afterwards: ``stopped`` where no attempt was at work, None for no such run.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            await lock_parent(connection, run_id)
            await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.status.in_(ACTIVE), runs.c.stop_requested.is_(False))
                .values(stop_requested=True, stopped_by=by)
            )
            stopped = await stop_runs_of(connection, self._db, run_id, by)
            at_once = await connection.execute(
                sa.update(runs)
                .where(runs.c.id == run_id, runs.c.status.in_((QUEUED, WAITING)), ~is_sweep_at_work(run_id))
                .values(status=STOPPED, ended_at=now, attempt_due_at=None, hold=False)
            )
            if at_once.rowcount:
                stopped.append(run_id)
            # The log's lock comes last: who reminds of a question has that one's row, and waits for the log.
            await expire_questions(connection, *stopped)
            for one in stopped:
                await tell_status(connection, self._db, one)
            if at_once.rowcount:
                await settle_parent(connection, self._db, run_id)
            status = (
                await connection.execute(sa.select(runs.c.status).where(runs.c.id == run_id))
            ).scalar_one_or_none()
        self._notify()
        return status

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
            .values(hold=True, attempt_due_at=None, status=parked),
            tell=True,
            durable=True,
        )

    async def take(self, run: RunRow, serial: str, host: str, *, alive_after: datetime) -> int | None:
        """Take the due attempt of a run for a host and a phone; the attempt's number, None where it is not to be had.

        Another host's attempt can be had once that one was not heard after ``alive_after`` or has ended; it gets the
        next number, so that it is not mistaken for the one that may still lie in the other's queue.
        """
        lives = sa.select(hosts.c.name).where(hosts.c.state != "ended", hosts.c.heartbeat_at > alive_after)
        taken = sa.and_(runs.c.host_attempt == runs.c.attempt, runs.c.host != host)
        attempt = sa.case((taken, runs.c.attempt + 1), else_=runs.c.attempt)
        statement = (
            sa.update(runs)
            .where(
                runs.c.id == run.id,
                runs.c.attempt == run.attempt,
                runs.c.status.in_((QUEUED, WAITING)),
                runs.c.attempt_due_at.is_not(None),
                runs.c.serial == run.serial,
                sa.or_(~taken, runs.c.host.not_in(lives)),
            )
            .values(
                serial=serial,
                any_phone=sa.or_(runs.c.any_phone, runs.c.serial == ""),
                host=host,
                host_attempt=attempt,
                attempt=attempt,
            )
            .returning(runs.c.attempt)
        )
        async with self._db.write(durable=True) as connection:
            number: int | None = (await connection.execute(statement)).scalar_one_or_none()
        return number

    async def resume(self, run_id: str) -> bool:
        """Bring a held run back: its next attempt is due, unless it waits for an answer. False where it is not held.

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
                if not await is_asked(connection, run_id):
                    await make_due(connection, run_id, self._db.now())
                await tell_status(connection, self._db, run_id)
        self._notify()
        return done

    async def end_plans_of(self, host: str, *, left: LeftAlone = plainly_left) -> list[str]:
        """End the plans that the former process of ``host`` made, with their parts, see ``revive``; their ids. Only
        under the process lock.
        """
        its = sa.and_(runs.c.host == host, runs.c.status == RUNNING, runs.c.options["kind"].as_string() == PLAN)
        async with self._db.read() as connection:
            found = list((await connection.execute(sa.select(runs.c.id).where(its).order_by(runs.c.id))).scalars())
        for run_id in found:
            async with self._db.write(durable=True) as connection:
                await end_plan(connection, self._db, run_id, its, left=left)
        if found:
            self._notify()
        return found

    async def revive(
        self,
        *,
        older_than: timedelta,
        alive_here: Sequence[str] = (),
        gave_up: GaveUp = plain_words,
        left: LeftAlone = plainly_left,
    ) -> list[str]:
        """Give runs whose attempt died a next attempt, due now; their ids.

        Dead: ``running`` for some seconds (who begins a run takes the phone a moment later), not one of ``alive_here``
        (at work in this process, whatever its heartbeat), no lease of the run with a heartbeat within ``older_than``.
        A sweep whose contacts are begun one by one, in a terminal, lives with them. A plan lives by its own heartbeat;
        nobody can take it up, so a dead one is over, and with it, as stopped, the runs that it began, but for those
        that wait for a person. While it lives elsewhere nothing is decided about these.
        The phone that it had is free at once: should that attempt live after all, it finds its lease lost. One of which
        Stop was asked for is over, and so is one that only ever dies, see ``GaveUp``, or that a client waited for and
        that is no reply and asks nothing, see ``LeftAlone``.
        """
        gone = dead(self._db.now(), older_than, alive_here)
        async with self._db.read() as connection:
            found = list((await connection.execute(sa.select(runs.c.id).where(gone).order_by(runs.c.id))).scalars())
        revived = []
        for run_id in found:
            async with self._db.write(durable=True) as connection:
                if await end_plan(connection, self._db, run_id, gone, left=left):
                    revived.append(run_id)
                elif await put_back(connection, self._db, run_id, gone, error="", gave_up=gave_up, left=left):
                    await free_phones(connection, run_id)
                    revived.append(run_id)
        if revived:
            self._notify()
        return revived

    async def _end(self, run_id: str, statement: sa.Update) -> bool:
        async with self._db.write(durable=True) as connection:
            await lock_parent(connection, run_id)
            done = (await connection.execute(statement)).rowcount == 1
            if done:
                await expire_questions(connection, run_id)
                await tell_status(connection, self._db, run_id)
                await settle_parent(connection, self._db, run_id)
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
            return [RunRow(**row) for row in (await connection.execute(statement)).mappings()]


def _final(status: str) -> str:
    if status not in FINAL:
        raise ValueError(f"A run ends as one of {', '.join(FINAL)}, not {status!r}.")
    return status
