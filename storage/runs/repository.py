"""The repository of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from storage.events import NewEvent, append_event
from storage.ids import AlreadyMade, find, made_under, remember
from storage.leases import hold_turn
from storage.repository import Repository
from storage.runs.lost import GaveUp, LeftAlone, dead, end_plan, free_phones, plain_words, plainly_left, put_back
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
    expire_questions,
    has_runs,
    insert_run,
    is_asked,
    is_sweep_at_work,
    lock_parent,
    make_due,
    over,
    settle,
    settle_parent,
    stop_runs_of,
    tell_status,
)
from storage.tables import hosts, runs

_BY_ID = sa.select(runs).where(runs.c.id == sa.bindparam("run_id"))  # built once, see ``storage.history``


class Runs(Repository):
    """The table of runs, see ``storage.runs``."""

    async def create(self, new: NewRun, *, key: str = "") -> str | None:
        """Store a new run whose first attempt is due.

        Return its id, or None if its schedule's tick has started one already.

        key: an idempotency key. A second call with the same key returns the run of the first.
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
        self._notify("runs", "events")
        return run_id

    async def get(self, run_id: str) -> RunRow | None:
        return await self._only(RunRow, _BY_ID, {"run_id": run_id})

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
        """Return runs without their sessions, newest first.

        ``before``: only runs older than this id, for the next page.
        """
        return await self._rows(RunRow, _find(tuple(statuses), serial, schedule_id, requested_by, before, limit))

    async def parts_of(self, parent_id: str) -> list[RunRow]:
        """Return the runs of a sweep or a plan without their sessions, oldest first."""
        return await self._rows(RunRow, sa.select(*LISTED).where(runs.c.parent_id == parent_id).order_by(runs.c.id))

    async def some(self, run_ids: Sequence[str]) -> list[RunRow]:
        """Return the runs with these ids without their sessions, oldest first. Without ids nothing is read."""
        if not run_ids:
            return []
        return await self._rows(RunRow, sa.select(*LISTED).where(runs.c.id.in_(run_ids)).order_by(runs.c.id))

    async def due(self, *, begun: int = 0) -> list[RunRow]:
        """Return the runs whose attempt is to be started, in the order in which they get a phone.

        They are ordered by priority, then by age, so a run that comes back with an answer goes before runs that were
        requested later.

        begun: the least priority of a run that has begun.
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
            # The due time does not matter: a clock that was put back must not delay a run.
            .where(runs.c.status.in_((QUEUED, WAITING)), runs.c.attempt_due_at.is_not(None), ~put_off)
            .order_by(at_least.desc(), runs.c.id)
        )
        return await self._rows(RunRow, statement)

    async def save_session(
        self, run_id: str, session: str, *, event: NewEvent | None = None, attempt: int | None = None
    ) -> None:
        """Store the agent's session (JSON text). Raises KeyError if there is no such run.

        event: an event of the run that is stored in the same transaction.
        attempt: the attempt that writes. Raises LeaseLost if its turn is over.
        """
        async with self._db.write() as connection:
            await hold_turn(connection, run_id, attempt)
            done = await connection.execute(sa.update(runs).where(runs.c.id == run_id).values(session=session))
            if done.rowcount != 1:
                raise KeyError(run_id)
            if event is not None:
                await append_event(connection, self._db, run_id, event.kind, event.data, picture=event.picture)
        if event is not None:
            self._notify("events")

    async def asked(self, run_ids: Sequence[str]) -> dict[str, tuple[bool, bool]]:
        """Return those of these runs for which Stop or Hold was requested, by id: (is Stop requested, is Hold
        requested).
        """
        asked = sa.select(runs.c.id, runs.c.stop_requested, runs.c.hold).where(
            runs.c.id.in_(run_ids), sa.or_(runs.c.stop_requested, runs.c.hold)
        )
        return {row.id: (row.stop_requested, row.hold) for row in await self._read(asked)}

    async def begin_attempt(self, run_id: str, attempt: int, *, serial: str) -> RunRow | None:
        """Begin a due attempt on ``serial``. Return the run, or None if it is not the attempt's turn.

        It is not its turn if it has begun before, if the run has another attempt, or if the run is over or stopped.
        """
        now = self._db.now()
        statement = (
            sa.update(runs)
            .where(_is_due(run_id, attempt))
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
        self._notify("runs", "events")
        return None if row is None else RunRow(**row)

    async def requeue_attempt(self, run_id: str, attempt: int) -> bool:
        """Put an attempt that has not begun back into the line under the next number, because its phone was not free.

        This is on the disk before the queue records that the old number is done; the queue never starts that one again.
        """
        statement = sa.update(runs).where(_is_due(run_id, attempt)).values(attempt=attempt + 1)
        done = await self._execute(statement, durable=True) == 1
        if done:
            self._notify("runs", "events")
        return done

    async def interrupt_attempt(
        self, run_id: str, attempt: int, *, error: str | None = None, gave_up: GaveUp = plain_words
    ) -> bool:
        """End an active attempt that did not finish (end of the process, phone lost).

        Return False if it was not active. The next attempt is due at once, or at Resume if the run is held. A stop
        that was requested meanwhile ends the run.

        error: the error that ended the attempt, if the run caused it. A run that ended so ``MOST_TRIES`` times is over.
        """
        async with self._db.write(durable=True) as connection:
            done = await put_back(connection, self._db, run_id, runs.c.attempt == attempt, error=error, gave_up=gave_up)
        if done:
            self._notify("runs", "events")
        return done

    async def park_attempt(self, run_id: str, attempt: int, *, message: str = "") -> bool:
        """End an attempt at a question or at Hold. Return False if it was not active.

        The next attempt is due if the question is answered already, or if Hold was taken back while the attempt parked.
        A stop that was requested at this moment ends the run, because nothing would look at it again.
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
                sa.update(runs).where(runs.c.id == run_id, runs.c.stop_requested).values(over(STOPPED, now))
            )
            if stopped.rowcount:
                await expire_questions(connection, run_id)
            if not await is_asked(connection, run_id) and not await has_runs(connection, run_id):
                await make_due(connection, run_id, now)
            await tell_status(connection, self._db, run_id)
            await settle(connection, self._db, run_id)
            if stopped.rowcount:
                await settle_parent(connection, self._db, run_id)
        self._notify("runs", "events")
        return True

    async def put_off_attempt(
        self, run_id: str, attempt: int, *, seconds: float, message: str = "", error_kind: str = ""
    ) -> bool:
        """End an attempt because something that the run needs is away. Return False if it was not active.

        The next attempt is due in ``seconds`` (``LONGEST_PUT_OFF`` at most), or at Resume if the run is held. A stop
        that was requested meanwhile ends the run. The run is back in line and does not keep a customer's message:
        another run may answer it first.

        error_kind: is written to the event, for the outage watch.
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
        self._notify("runs", "events")
        return True

    async def end_attempt(self, run_id: str, attempt: int, *, status: str, message: str = "") -> bool:
        """End the run as ``succeeded``, ``failed`` or ``stopped``. Return False if another attempt has it."""
        statement = (
            sa.update(runs)
            .where(runs.c.id == run_id, runs.c.attempt == attempt, runs.c.status.in_(ACTIVE))
            .values(over(_final(status), self._db.now(), message=message))
        )
        async with self._db.write(durable=True) as connection:
            await lock_parent(connection, run_id)
            done = (await connection.execute(statement)).rowcount == 1
            if done:
                await expire_questions(connection, run_id)
                await tell_status(connection, self._db, run_id)
                await settle_parent(connection, self._db, run_id)
        self._notify("runs", "events")
        return done

    async def request_stop(self, run_id: str, *, by: str = "") -> str | None:
        """Request a stop. The first person who asked is stored (``by``).

        Return the new status: ``stopped`` if no attempt was active, None if there is no such run.
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
                .values(over(STOPPED, now, message=""))
            )
            if at_once.rowcount:
                stopped.append(run_id)
            # Lock the log last: a reminder of a question locks the question's row first and then waits for the log.
            await expire_questions(connection, *stopped)
            for one in stopped:
                await tell_status(connection, self._db, one)
            if at_once.rowcount:
                await settle_parent(connection, self._db, run_id)
            status = (
                await connection.execute(sa.select(runs.c.status).where(runs.c.id == run_id))
            ).scalar_one_or_none()
        self._notify("runs", "events")
        return status

    async def request_hold(self, run_id: str) -> bool:
        """Hold a run until ``resume``. Return False if it is held already or over.

        An active attempt sees it and parks, a run in line leaves the line, and one that waits for a person does not
        continue with the answer.
        """
        free = sa.and_(runs.c.status.in_(ACTIVE), runs.c.hold.is_(False), runs.c.stop_requested.is_(False))
        parked = sa.case((runs.c.status == RUNNING, RUNNING), else_=WAITING)
        held = sa.update(runs).where(runs.c.id == run_id, free).values(hold=True, attempt_due_at=None, status=parked)
        async with self._db.write(durable=True) as connection:
            done = (await connection.execute(held)).rowcount == 1
            if done:
                await tell_status(connection, self._db, run_id)
        if done:
            self._notify("runs", "events")
        return done

    async def take(self, run: RunRow, serial: str, host: str, *, alive_after: datetime) -> int | None:
        """Take a run's due attempt for a host and a phone. Return the attempt's number, or None if it cannot be taken.

        The attempt of another host can be taken if that host has ended or sent no heartbeat after ``alive_after``. It
        gets the next number, so that it differs from the one that may still be in the other host's queue.
        """
        lives = sa.select(hosts.c.name).where(hosts.c.state != "ended", hosts.c.heartbeat_at > alive_after)
        taken = sa.and_(runs.c.host_attempt == runs.c.attempt, runs.c.host != host)
        attempt = sa.case((taken, runs.c.attempt + 1), else_=runs.c.attempt)
        statement = (
            sa.update(runs)
            .where(
                _is_due(run.id, run.attempt),
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
        """Release a held run: its next attempt is due, unless it waits for an answer. Return False if it is not held.

        A run that has not parked yet parks and then continues.
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
        self._notify("runs", "events")
        return done

    async def end_plans_of(self, host: str, *, left: LeftAlone = plainly_left) -> list[str]:
        """End the plans of the former process of ``host``, with their parts (see ``revive``). Return the plans' ids.

        Call it only with the process lock held.
        """
        its = sa.and_(runs.c.host == host, runs.c.status == RUNNING, runs.c.options["kind"].as_string() == PLAN)
        async with self._db.read() as connection:
            found = list((await connection.execute(sa.select(runs.c.id).where(its).order_by(runs.c.id))).scalars())
        for run_id in found:
            async with self._db.write(durable=True) as connection:
                await end_plan(connection, self._db, run_id, its, left=left)
        if found:
            self._notify("runs", "events")
        return found

    async def revive(
        self,
        *,
        older_than: timedelta,
        alive_here: Sequence[str] = (),
        gave_up: GaveUp = plain_words,
        left: LeftAlone = plainly_left,
    ) -> list[str]:
        """Give each run whose attempt died a next attempt, due now. Return the ids of these runs.

        An attempt counts as dead if its run has been ``running`` for some seconds (the phone is taken a moment after a
        run begins), is not one of ``alive_here`` (active in this process, whatever its heartbeat), and has no lease
        with a heartbeat within ``older_than``. A sweep in a terminal, which begins its contacts one by one, is alive
        while they are. A plan is alive by its own heartbeat. Nobody can resume a plan, so a dead one is over, and the
        runs that it began are stopped, except those that wait for a person. While it is alive elsewhere nothing is
        decided about these.

        The phone is free at once; if the attempt is alive after all, it finds its lease lost. A run with a stop request
        is over. So is one that only ever dies (see ``GaveUp``), and one that a client waited for, if it is not a reply
        and asks nothing (see ``LeftAlone``).
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
            self._notify("runs", "events")
        return revived


@lru_cache(maxsize=64)  # see ``storage.history``
def _find(
    statuses: tuple[str, ...], serial: str, schedule_id: int | None, requested_by: str, before: str, limit: int
) -> sa.Select[Any]:
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
    return statement


def _is_due(run_id: str, attempt: int) -> sa.ColumnElement[bool]:
    """Match the run if this attempt of it is due and has not begun."""
    due = sa.and_(runs.c.status.in_((QUEUED, WAITING)), runs.c.attempt_due_at.is_not(None))
    return sa.and_(runs.c.id == run_id, runs.c.attempt == attempt, due)


def _final(status: str) -> str:
    if status not in FINAL:
        raise ValueError(f"A run ends as one of {', '.join(FINAL)}, not {status!r}.")
    return status
