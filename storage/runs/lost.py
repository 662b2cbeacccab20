"""An attempt that ended before its time: which runs have one, and how they go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.leases import fresh
from storage.runs.changes import expire_questions, is_asked, lock_parent, settle_parent, tell_status
from storage.runs.giving_up import MOST_TRIES, GaveUp, LeftAlone, errors_since_step
from storage.runs.rows import ACTIVE, FAILED, PLAN, RUNNING, STOPPED, WAITING
from storage.tables import leases, plans, questions, runs, sweeps

BEGINNING = timedelta(seconds=5)
CLIENTS = "mcp"  # the option ``channel`` of runs that a client waits for


def dead(now: datetime, older_than: timedelta, alive_here: Sequence[str]) -> sa.ColumnElement[bool]:
    """Of ``runs``: those whose attempt died. Others as ``Runs.revive``, which tells which these are."""
    alive = sa.select(leases.c.run_id).where(leases.c.run_id != "", fresh(leases.c.heartbeat_at, now, older_than))
    beats = fresh(plans.c.heartbeat_at, now, older_than)
    return sa.and_(
        runs.c.status == RUNNING,
        # One that began in the future: the clock was put back since.
        sa.or_(runs.c.started_at <= now - BEGINNING, runs.c.started_at > now + BEGINNING),
        runs.c.id.not_in(alive),
        runs.c.id.not_in(alive_here),
        runs.c.id.not_in(_sweeps_at_work(alive, now)),
        runs.c.id.not_in(sa.select(plans.c.run_id).where(beats)),
        runs.c.parent_id.not_in(_plans_elsewhere(beats, alive_here)),
    )


def _plans_elsewhere(beats: sa.ColumnElement[bool], alive_here: Sequence[str]) -> sa.Select[tuple[str]]:
    """Plans that another process makes, or made until a moment ago: what becomes of their parts is decided with them.

    A part that died with its plan may be found a little earlier: it must not go on alone meanwhile.
    """
    its = runs.alias("its")
    going = sa.and_(its.c.id == plans.c.run_id, its.c.status == RUNNING)
    return sa.select(plans.c.run_id).where(beats, plans.c.run_id.not_in(alive_here)).where(sa.exists().where(going))


async def end_plan(
    connection: AsyncConnection, db: Database, run_id: str, which: sa.ColumnElement[bool], *, left: LeftAlone
) -> bool:
    """End a plan whose process is gone, where the run's row is as ``which`` says and a plan.

    Its parts are ended with it, but for those that wait for a person: nobody is to do unattended what the person, who
    reads that the plan is over, may begin anew.
    """
    is_plan = runs.c.options["kind"].as_string() == PLAN
    outcome = sa.case((runs.c.stop_requested, STOPPED), else_=FAILED)
    done = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.status == RUNNING, which, is_plan)
        .values(status=outcome, ended_at=db.now(), hold=False)
    )
    if done.rowcount != 1:
        return False
    ended = await _end_parts(connection, db, run_id, left)
    for one in (*ended, run_id):
        await tell_status(connection, db, one)
    return True


async def _end_parts(connection: AsyncConnection, db: Database, plan_id: str, left: LeftAlone) -> list[str]:
    """Those that are over with this, in order. One that is at work, or died, ends by the stop that is asked of it."""
    options = (await connection.execute(sa.select(runs.c.options).where(runs.c.id == plan_id))).scalar_one()
    message = left(options)
    asked = sa.exists().where(questions.c.run_id == runs.c.id, questions.c.state == "open")
    its = sa.and_(runs.c.parent_id == plan_id, runs.c.status.in_(ACTIVE), ~asked)
    at_work = sa.update(runs).where(its, runs.c.status == RUNNING, runs.c.stop_requested.is_(False))
    await connection.execute(at_work.values(stop_requested=True, message=message))
    ended = await connection.execute(
        sa.update(runs)
        .where(its, runs.c.status != RUNNING)
        .values(status=STOPPED, message=message, ended_at=db.now(), attempt_due_at=None, hold=False)
        .returning(runs.c.id)
    )
    return sorted(ended.scalars())


async def put_back(
    connection: AsyncConnection,
    db: Database,
    run_id: str,
    which: sa.ColumnElement[bool],
    *,
    error: str | None,
    gave_up: GaveUp,
    left: LeftAlone | None = None,
) -> bool:
    """End the attempt at work, where the run's row is as ``which`` says: the next one is due, unless Stop or Hold was
    asked for, or it was tried often enough. False where it is not.

    ``left``: its process died. Then one that a client waited for is over: the client asks for it again.
    """
    now = db.now()
    await lock_parent(connection, run_id)
    done = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.status == RUNNING, which)
        .values(status=WAITING, attempt=runs.c.attempt + 1, attempt_due_at=_now_unless_held(now))
    )
    if done.rowcount != 1:
        return False
    stopped = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.stop_requested)
        .values(status=STOPPED, ended_at=now, attempt_due_at=None, hold=False)
    )
    over = stopped.rowcount == 1
    if left is not None and not over:
        over = await _end_left_alone(connection, db, run_id, left)
    if error is not None and not over:
        over = await _give_up(connection, db, run_id, error, gave_up)
    if over:
        await expire_questions(connection, run_id)
    await tell_status(connection, db, run_id, put_back=error)
    if over:
        await settle_parent(connection, db, run_id)
    return True


async def _give_up(connection: AsyncConnection, db: Database, run_id: str, error: str, gave_up: GaveUp) -> bool:
    """End a run whose attempt was put back just now, where that was the last try. False where it was not."""
    errors = [error, *await errors_since_step(connection, run_id)]
    if len(errors) < MOST_TRIES:
        return False
    options = (await connection.execute(sa.select(runs.c.options).where(runs.c.id == run_id))).scalar_one()
    await _fail(connection, db, run_id, gave_up(options, next(filter(None, errors), "")))
    return True


async def _end_left_alone(connection: AsyncConnection, db: Database, run_id: str, left: LeftAlone) -> bool:
    """End a run that a client waited for. False for others, and for a reply: by its ledger nothing is sent twice.

    One that waits for an answer goes on waiting: nothing was under way, and the answer is what goes on with it.
    """
    columns = (runs.c.options, runs.c.session)
    row = (await connection.execute(sa.select(*columns).where(runs.c.id == run_id))).one()
    session = json.loads(row.session) if row.session else {}
    if row.options.get("channel") != CLIENTS or session.get("gate", {}).get("enabled"):
        return False
    if await is_asked(connection, run_id):
        await connection.execute(sa.update(runs).where(runs.c.id == run_id).values(attempt_due_at=None))
        return False
    await _fail(connection, db, run_id, left(row.options))
    return True


async def _fail(connection: AsyncConnection, db: Database, run_id: str, message: str) -> None:
    failed = sa.update(runs).where(runs.c.id == run_id)
    await connection.execute(
        failed.values(status=FAILED, message=message, ended_at=db.now(), attempt_due_at=None, hold=False)
    )


async def free_phones(connection: AsyncConnection, run_id: str) -> None:
    """Whatever has a phone for this run has lost it."""
    lost = sa.update(leases).where(leases.c.run_id == run_id)
    await connection.execute(lost.values(owner="", run_id="", fencing=leases.c.fencing + 1, heartbeat_at=None))


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


def _now_unless_held(now: datetime) -> sa.ColumnElement[datetime | None]:
    return sa.case((runs.c.hold, sa.null()), else_=sa.literal(now, runs.c.attempt_due_at.type))
