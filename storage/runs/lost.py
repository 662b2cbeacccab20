"""Attempts that ended prematurely: the runs that have one, how these continue, and when a run is given up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.leases import fresh
from storage.runs.rows import (
    ACTIVE,
    FAILED,
    PLAN,
    RUNNING,
    STOPPED,
    WAITING,
    expire_questions,
    is_asked,
    lock_parent,
    over,
    settle_parent,
    tell_status,
)
from storage.tables import events, leases, plans, questions, runs, sweeps

BEGINNING = timedelta(seconds=5)
CLIENTS = "mcp"  # the option ``channel`` of runs whose client waits for them
MOST_TRIES = 5
STEPS = ("step", "reply", "sweep")  # events that show progress of a run

GaveUp = Callable[[Mapping[str, Any], str], str]
"""Makes the message for a run that was given up, from its options and the last error ("" if only its process died)."""


LeftAlone = Callable[[Mapping[str, Any]], str]
"""Makes the message for a run that ended with its process, from its options.

Its client waited for it, or it was part of a plan.
"""


def plain_words(_options: Mapping[str, Any], error: str) -> str:
    """Return the message of a given-up run in English; a default ``GaveUp``."""
    return f"Begun {MOST_TRIES} times without a step. {error}".strip()


def plainly_left(_options: Mapping[str, Any]) -> str:
    """Return the message of a run that ended with its process in English; a default ``LeftAlone``."""
    return "The server ended in the midst of it. Look at the phone before it is begun again."


def dead(now: datetime, older_than: timedelta, alive_here: Sequence[str]) -> sa.ColumnElement[bool]:
    """Match rows of ``runs`` whose attempt died. ``Runs.revive`` says which these are, and explains the parameters."""
    alive = sa.select(leases.c.run_id).where(leases.c.run_id != "", fresh(leases.c.heartbeat_at, now, older_than))
    beats = fresh(plans.c.heartbeat_at, now, older_than)
    return sa.and_(
        runs.c.status == RUNNING,
        # A start in the future means that the clock was put back since.
        sa.or_(runs.c.started_at <= now - BEGINNING, runs.c.started_at > now + BEGINNING),
        runs.c.id.not_in(alive),
        runs.c.id.not_in(alive_here),
        runs.c.id.not_in(_sweeps_at_work(alive, now)),
        runs.c.id.not_in(sa.select(plans.c.run_id).where(beats)),
        runs.c.parent_id.not_in(_plans_elsewhere(beats, alive_here)),
    )


def _plans_elsewhere(beats: sa.ColumnElement[bool], alive_here: Sequence[str]) -> sa.Select[tuple[str]]:
    """Select the plans that another process makes, or made until a moment ago.

    A part that died with its plan may be found a little earlier than the plan. It must not continue alone: the fate of
    the parts is decided together with the plan.
    """
    its = runs.alias("its")
    going = sa.and_(its.c.id == plans.c.run_id, its.c.status == RUNNING)
    return sa.select(plans.c.run_id).where(beats, plans.c.run_id.not_in(alive_here)).where(sa.exists().where(going))


async def end_plan(
    connection: AsyncConnection, db: Database, run_id: str, which: sa.ColumnElement[bool], *, left: LeftAlone
) -> bool:
    """End a plan whose process is gone, if the run's row matches ``which`` and is a plan. Return whether it did.

    Its parts end with it, except those that wait for a person. The person who reads that the plan is over may start it
    again, and then no part of the old one may continue unattended.
    """
    is_plan = runs.c.options["kind"].as_string() == PLAN
    outcome = sa.case((runs.c.stop_requested, STOPPED), else_=FAILED)
    done = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.status == RUNNING, which, is_plan)
        .values(over(outcome, db.now()))
    )
    if done.rowcount != 1:
        return False
    ended = await _end_parts(connection, db, run_id, left)
    for one in (*ended, run_id):
        await tell_status(connection, db, one)
    return True


async def _end_parts(connection: AsyncConnection, db: Database, plan_id: str, left: LeftAlone) -> list[str]:
    """Stop the parts of a plan. Return, in order, the ids of those that ended immediately.

    A part that is active, or died, ends through its stop request.
    """
    options = (await connection.execute(sa.select(runs.c.options).where(runs.c.id == plan_id))).scalar_one()
    message = left(options)
    asked = sa.exists().where(questions.c.run_id == runs.c.id, questions.c.state == "open")
    its = sa.and_(runs.c.parent_id == plan_id, runs.c.status.in_(ACTIVE), ~asked)
    at_work = sa.update(runs).where(its, runs.c.status == RUNNING, runs.c.stop_requested.is_(False))
    await connection.execute(at_work.values(stop_requested=True, message=message))
    ended = await connection.execute(
        sa.update(runs)
        .where(its, runs.c.status != RUNNING)
        .values(over(STOPPED, db.now(), message=message))
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
    """End the active attempt if the run's row matches ``which``. Return whether it did.

    The next attempt is due, unless Stop or Hold was requested, or the run was tried often enough.

    left: given if the process died. Then a run whose client waited for it is over, and the client asks for it again.
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
        sa.update(runs).where(runs.c.id == run_id, runs.c.stop_requested).values(over(STOPPED, now))
    )
    is_over = stopped.rowcount == 1
    if left is not None and not is_over:
        is_over = await _end_left_alone(connection, db, run_id, left)
    if error is not None and not is_over:
        is_over = await _give_up(connection, db, run_id, error, gave_up)
    if is_over:
        await expire_questions(connection, run_id)
    await tell_status(connection, db, run_id, put_back=error)
    if is_over:
        await settle_parent(connection, db, run_id)
    return True


async def _give_up(connection: AsyncConnection, db: Database, run_id: str, error: str, gave_up: GaveUp) -> bool:
    """End a run whose attempt was just put back if that was the last try. Return whether it did."""
    errors = [error, *await _errors_since_step(connection, run_id)]
    if len(errors) < MOST_TRIES:
        return False
    options = (await connection.execute(sa.select(runs.c.options).where(runs.c.id == run_id))).scalar_one()
    await _fail(connection, db, run_id, gave_up(options, next(filter(None, errors), "")))
    return True


async def _errors_since_step(connection: AsyncConnection, run_id: str) -> list[str]:
    """Return the errors of the run's last attempts that ended prematurely, newest first.

    The list starts after the last step, and after the last time that the run waited or was put off.
    """
    told = (
        sa.select(events.c.kind, events.c.data)
        .where(events.c.run_id == run_id, events.c.kind.in_(("status", *STEPS)))
        .order_by(events.c.id.desc())
        .limit(3 * MOST_TRIES)
    )
    errors = []
    for kind, data in await connection.execute(told):
        if kind != "status" or (data["status"] in ("waiting", "queued") and "put_back" not in data):
            break
        if "put_back" in data:
            errors.append(str(data["put_back"]))
    return errors


async def _end_left_alone(connection: AsyncConnection, db: Database, run_id: str, left: LeftAlone) -> bool:
    """End a run that a client waited for.

    Return False for other runs, and for a reply: its ledger lets nothing be sent twice.

    A run that waits for an answer keeps waiting: it was not active, and the answer continues it.
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
    failed = over(FAILED, db.now(), message=message)
    await connection.execute(sa.update(runs).where(runs.c.id == run_id).values(failed))


async def free_phones(connection: AsyncConnection, run_id: str) -> None:
    """Take the phone from the owner that holds it for this run."""
    lost = sa.update(leases).where(leases.c.run_id == run_id)
    await connection.execute(lost.values(owner="", run_id="", fencing=leases.c.fencing + 1, heartbeat_at=None))


def _sweeps_at_work(alive: sa.Select[tuple[str]], now: datetime) -> sa.Select[tuple[str]]:
    """Select sweeps that have just checked for messages, or a run of which has the phone, has just begun or has just
    ended.

    alive: the runs that have a phone.
    """
    its = runs.alias("its")
    just = now - BEGINNING
    begun = sa.and_(its.c.status == RUNNING, sa.or_(its.c.id.in_(alive), its.c.started_at.between(just, now)))
    belongs = sa.select(its.c.parent_id).where(its.c.parent_id != "", sa.or_(begun, its.c.ended_at.between(just, now)))
    looked = sa.select(sweeps.c.run_id).where(sweeps.c.created_at.between(just, now))
    return sa.select(sa.union_all(belongs, looked).subquery().c[0])


def _now_unless_held(now: datetime) -> sa.ColumnElement[datetime | None]:
    return sa.case((runs.c.hold, sa.null()), else_=sa.literal(now, runs.c.attempt_due_at.type))
