"""Rows of runs, the data for a new run, and changes of runs inside an open transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.events import append_event
from storage.ids import new_id
from storage.tables import events, questions, runs

QUEUED, RUNNING, WAITING = "queued", "running", "waiting"
SUCCEEDED, FAILED, STOPPED = "succeeded", "failed", "stopped"
LONGEST_PUT_OFF = timedelta(minutes=10)  # a time further ahead was written by a wrong clock
ACTIVE = (QUEUED, RUNNING, WAITING)
FINAL = (SUCCEEDED, FAILED, STOPPED)
LEFT_TO_ANOTHER = "waiting.elsewhere"  # the error kind of a run that left its customer to another run
PLAN, PLAN_PART = "plan", "part"  # the option ``kind`` of a plan (see ``storage.plans``) and of its runs

# Lists leave the session out, because it may be long.
LISTED = (*(column for column in runs.c if column.name != "session"), sa.null().label("session"))


@dataclass(frozen=True, slots=True)
class RunRow:
    """The row of a run.

    - ``serial``: the phone wanted or given, "" for any.
    - ``any_phone``: the run asked for no phone, and ``serial`` was chosen for it.
    - ``session``: JSON text as saved by the agent, None before that.
    - ``chat``: the place of the request (channel, chat, thread, message).
    - ``options``: max_steps, lang, dry_run …
    - ``host`` took attempt ``host_attempt``.
    - ``parent_id``: the sweep or plan that it belongs to. A sweep waits until all its runs are over, and ends with the
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
    attempt: int
    attempt_due_at: datetime | None
    stop_requested: bool
    hold: bool
    stopped_by: str = ""
    parent_id: str = ""
    host: str = ""
    host_attempt: int = 0
    any_phone: bool = False

    @property
    def final(self) -> bool:
        return self.status in FINAL

    @property
    def was_added_begun(self) -> bool:
        """True if it was added as ``NewRun.begun`` and is running: no host took it from the line."""
        return self.status == RUNNING and self.host_attempt == 0

    @property
    def again_at(self) -> datetime | None:
        """The time at which a run that was put off resumes; None for other runs."""
        return self.attempt_due_at if self.status == QUEUED and self.started_at is not None else None

    @property
    def wanted(self) -> str:
        """The phone that it must have, "" if any will do. A run that has begun stays on its phone."""
        return "" if self.any_phone and self.started_at is None else self.serial

    def taken_by(self) -> str:
        """Return the host that took the current attempt, or "" if none did."""
        return self.host if self.host_attempt == self.attempt else ""


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be added.

    begun: its first attempt is already active in the process that adds it; no worker is to start it.
    parent_id: the sweep or plan that it belongs to.
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


async def insert_run(connection: AsyncConnection, db: Database, new: NewRun) -> str | None:
    """Add a run in an open transaction. Return its id, or None if this tick of the schedule has its run already."""
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
            attempt=1,
            attempt_due_at=None if new.begun else now,
            parent_id=new.parent_id,
        )
        .on_conflict_do_nothing(index_elements=["schedule_id", "planned_at"])
        .returning(runs.c.id)
    )
    made: str | None = (await connection.execute(statement)).scalar_one_or_none()
    if made is not None:
        await tell_status(connection, db, made)
    return made


async def tell_status(
    connection: AsyncConnection, db: Database, run_id: str, *, put_back: str | None = None, error_kind: str = ""
) -> None:
    """Append the run's present status to the event log.

    put_back: the error of an attempt that has just ended prematurely.
    error_kind: the kind of the error by which the run was put off.
    """
    columns = (runs.c.status, runs.c.message, runs.c.attempt, runs.c.serial, runs.c.hold)
    row = (await connection.execute(sa.select(*columns).where(runs.c.id == run_id))).mappings().one()
    more = {} if put_back is None else {"put_back": put_back}
    if error_kind:
        more["error_kind"] = error_kind
    await append_event(connection, db, run_id, "status", {**row, **more})


def over(status: object, now: datetime, **more: object) -> dict[str, object]:
    """Return the columns of a run that ends now."""
    return {"status": status, "ended_at": now, "attempt_due_at": None, "hold": False, **more}


async def make_due(connection: AsyncConnection, run_id: str, now: datetime) -> bool:
    """Make the next attempt of a waiting run due, in an open transaction. A run on Hold waits for Resume."""
    statement = (
        sa.update(runs)
        .where(runs.c.id == run_id, runs.c.status == WAITING, runs.c.attempt_due_at.is_(None), runs.c.hold.is_(False))
        .values(attempt=runs.c.attempt + 1, attempt_due_at=now)
    )
    return (await connection.execute(statement)).rowcount == 1


def at_work(run: sa.FromClause = runs) -> sa.ColumnElement[bool]:
    """Match runs that are in line or running, and do not just wait for a person."""
    in_line = sa.and_(run.c.status == WAITING, run.c.attempt_due_at.is_not(None))
    return sa.or_(run.c.status.in_((QUEUED, RUNNING)), in_line)


def waits_for_people() -> sa.ColumnElement[bool]:
    """Match rows of ``runs`` that are sweeps of which every unfinished run waits for a person. They block nothing."""
    its = runs.alias("its")
    belongs = its.c.parent_id == runs.c.id
    return sa.and_(
        runs.c.status == WAITING,
        runs.c.attempt_due_at.is_(None),
        sa.exists().where(belongs),
        ~sa.exists().where(belongs, at_work(its)),
    )


async def settle(connection: AsyncConnection, db: Database, sweep_id: str) -> bool:
    """End a sweep if all its runs are over, in an open transaction.

    Return False if one is not, or if it is not a sweep.
    """
    # Two of its runs may end at once. The lock makes the second see that the first is over.
    locked = sa.update(runs).where(runs.c.id == sweep_id, runs.c.status == WAITING).values(status=WAITING)
    if (await connection.execute(locked)).rowcount != 1:
        return False
    found = await connection.execute(sa.select(runs.c.id, runs.c.status).where(runs.c.parent_id == sweep_id))
    ended = {row.id: row.status for row in found}
    if not ended or any(status in ACTIVE for status in ended.values()):
        return False
    failed = {run_id for run_id, status in ended.items() if status == FAILED and SUCCEEDED not in ended.values()}
    if failed:
        failed -= await _left_to_others(connection, failed)
    outcome = FAILED if failed else SUCCEEDED
    done = await connection.execute(
        sa.update(runs)
        .where(runs.c.id == sweep_id, runs.c.status == WAITING)
        .values(over(sa.case((runs.c.stop_requested, STOPPED), else_=outcome), db.now()))
    )
    if done.rowcount == 1:
        await tell_status(connection, db, sweep_id)
    return done.rowcount == 1


async def _left_to_others(connection: AsyncConnection, run_ids: Collection[str]) -> set[str]:
    """Return those of the runs that left their customer to another run.

    A person is asked there, so the sweep has not failed.
    """
    told = sa.select(events.c.run_id).where(
        events.c.run_id.in_(run_ids),
        events.c.kind == "outcome",
        events.c.data["error_kind"].as_string() == LEFT_TO_ANOTHER,
    )
    return set((await connection.execute(told)).scalars())


async def lock_parent(connection: AsyncConnection, run_id: str) -> None:
    """Lock the row of the run's sweep, before the run's own row and the event log.

    Every writer locks in this order. Otherwise a sweep that is stopped and a run of it that ends would wait for each
    other.
    """
    its = sa.select(runs.c.parent_id).where(runs.c.id == run_id)
    if parent_id := (await connection.execute(its)).scalar_one_or_none():
        await connection.execute(sa.select(runs.c.id).where(runs.c.id == parent_id).with_for_update())


async def settle_parent(connection: AsyncConnection, db: Database, run_id: str) -> None:
    """End the sweep that a finished run belongs to, if all its runs are over."""
    found = await connection.execute(sa.select(runs.c.parent_id).where(runs.c.id == run_id))
    if parent_id := found.scalar_one_or_none():
        await settle(connection, db, parent_id)


async def stop_runs_of(connection: AsyncConnection, db: Database, sweep_id: str, by: str) -> list[str]:
    """Stop the runs of a sweep that is stopped. Return, in order, the ids of those that ended immediately.

    A run that is active ends through its stop request, and the sweep with it. The caller writes the status events.
    """
    its = sa.and_(runs.c.parent_id == sweep_id, runs.c.parent_id != "", runs.c.status.in_(ACTIVE))
    asked = sa.update(runs).where(its, runs.c.stop_requested.is_(False))
    await connection.execute(asked.values(stop_requested=True, stopped_by=by))
    ended = await connection.execute(
        sa.update(runs)
        .where(its, runs.c.status != RUNNING)
        .values(over(STOPPED, db.now(), message=""))
        .returning(runs.c.id)
    )
    return sorted(ended.scalars())


def is_sweep_at_work(run_id: str) -> sa.ColumnElement[bool]:
    its = runs.alias("its")
    return sa.exists().where(its.c.parent_id == run_id, its.c.status.in_(ACTIVE))


async def has_runs(connection: AsyncConnection, run_id: str) -> bool:
    """Tell whether the run is a sweep that has begun runs of its own."""
    its = sa.select(runs.c.id).where(runs.c.parent_id == run_id).limit(1)
    return (await connection.execute(its)).first() is not None


async def is_asked(connection: AsyncConnection, run_id: str) -> bool:
    """Tell whether the run has an open question."""
    asked = sa.select(questions.c.id).where(questions.c.run_id == run_id, questions.c.state == "open").limit(1)
    return (await connection.execute(asked)).first() is not None


async def expire_questions(connection: AsyncConnection, *run_ids: str) -> None:
    open_ = sa.and_(questions.c.run_id.in_(run_ids), questions.c.state == "open")
    await connection.execute(sa.update(questions).where(open_).values(state="expired"))
