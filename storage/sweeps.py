"""Sweeps: their findings, the runs that they started, and since when contacts have been waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.ports import ReplyState
from storage.engine import Database
from storage.events import append_event
from storage.repository import Repository
from storage.runs import ACTIVE, FAILED, RUNNING, SUCCEEDED, WAITING, NewRun
from storage.runs.rows import insert_run
from storage.tables import contact_marks, events, replies, runs, sweep_lists, sweeps

APART = timedelta(microseconds=1)  # between two contacts who are first seen waiting in the same sweep
OPEN = (ReplyState.PLANNED, ReplyState.FAILED, ReplyState.UNKNOWN)  # states of a reply that a person may be asked about
TOLD_WHY = timedelta(days=2)  # how long the error of a failed run is looked up


@dataclass(frozen=True, slots=True)
class SweptApp:
    """An app on a phone."""

    serial: str
    app: str


@dataclass(frozen=True, slots=True)
class MarkRow:
    """The stored state of a contact.

    ``run_…`` describe the last run that a sweep started for them; "" or None without one.

    ``state``: what was unread then, "" if nothing is any more.
    ``answered_at``: when a reply of any run last reached them.
    ``run_started``: an agent has begun the run.
    ``run_held``: a person parked it.
    ``run_error``: the kind of the error by which it failed lately.
    ``waits``: a run has a question of theirs and waits for a person.
    """

    contact: str
    state: str = ""
    waiting_since: datetime | None = None
    run_id: str = ""
    tries: int = 0
    run_status: str = ""
    run_due: bool = False
    run_started: bool = False
    run_held: bool = False
    run_ended_at: datetime | None = None
    run_error: str = ""
    waits: bool = False
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SweepRow:
    """A stored sweep. ``outcome``: see ``agent_core.sweep``. ``details``: who was left out, and why."""

    run_id: str
    serial: str
    app: str
    outcome: str
    contacts: int
    started: int
    calls: int
    details: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Swept:
    """A run of a sweep. ``texts``: the texts that reached the contact. ``due``: an attempt must be started.

    ``error``: as in ``MarkRow.run_error``.
    """

    run_id: str
    contact: str
    status: str
    message: str
    due: bool
    started: bool
    texts: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class NewSweep:
    """The result of a sweep.

    waiting: everybody who waits, the longest first.
    seen: contacts who were seen and do not wait.
    memory: data for the next sweep of this list; None deletes the old data.
    """

    place: SweptApp
    outcome: str
    contacts: int
    calls: int
    memory: Mapping[str, Any] | None = None
    waiting: Sequence[str] = ()
    seen: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewSwept:
    """A run to be started for a contact. ``state``: the unread messages now."""

    contact: str
    state: str
    tries: int
    run: NewRun


class Sweeps(Repository):
    """The tables of sweeps and of their state of contacts."""

    async def get(self, run_id: str) -> SweepRow | None:
        return await self._only(SweepRow, sa.select(sweeps).where(sweeps.c.run_id == run_id))

    async def memory(self, place: SweptApp) -> Mapping[str, Any] | None:
        """Return the data that the last sweep of this list stored for the next one, or None."""
        return await self._value(sa.select(sweep_lists.c.memory).where(_at(sweep_lists, place)))

    async def marks(self, place: SweptApp) -> dict[str, MarkRow]:
        """Return the marks by contact."""
        wanted = (
            sa.select(
                contact_marks.c.contact,
                contact_marks.c.state,
                contact_marks.c.waiting_since,
                contact_marks.c.run_id,
                contact_marks.c.tries,
                sa.func.coalesce(runs.c.status, "").label("run_status"),
                runs.c.attempt_due_at.is_not(None).label("run_due"),
                runs.c.session.is_not(None).label("run_started"),
                sa.func.coalesce(runs.c.hold, sa.false()).label("run_held"),
                runs.c.ended_at.label("run_ended_at"),
            )
            .select_from(contact_marks.outerjoin(runs, runs.c.id == contact_marks.c.run_id))
            .where(_at(contact_marks, place))
        )
        answered = (
            sa.select(replies.c.contact, sa.func.max(replies.c.updated_at).label("at"))
            .where(_at(replies, place), replies.c.state == ReplyState.SENT)
            .group_by(replies.c.contact)
        )
        asked = (
            sa.select(replies.c.contact)
            .join(runs, runs.c.id == replies.c.run_id)
            .where(_at(replies, place), replies.c.state.in_(OPEN), runs.c.status == WAITING)
        )
        async with self._db.read() as connection:
            at = {row.contact: row.at for row in await connection.execute(answered)}
            rows = (await connection.execute(wanted)).mappings().all()
            errors = await self._errors(connection, rows)
            waits = set((await connection.execute(asked)).scalars())
        return {
            row["contact"]: MarkRow(
                **row,
                run_error=errors.get(row["run_id"], ""),
                waits=row["contact"] in waits,
                answered_at=at.get(row["contact"]),
            )
            for row in rows
        }

    async def _errors(self, connection: AsyncConnection, rows: Sequence[sa.RowMapping]) -> dict[str, str]:
        """Return, by run, the kind of the error by which it failed lately, or was cut short after a reply."""
        lately = self._db.now() - TOLD_WHY
        failed = [
            row["run_id"]
            for row in rows
            if row["run_status"] in (FAILED, SUCCEEDED)
            and row["run_ended_at"] is not None
            and row["run_ended_at"] > lately
        ]
        if not failed:
            return {}
        kind = events.c.data["error_kind"].as_string().label("error_kind")
        told = sa.select(events.c.run_id, kind).where(events.c.run_id.in_(failed), events.c.kind == "outcome")
        found = await connection.execute(told.order_by(events.c.id))
        return {row.run_id: row.error_kind or "" for row in found}

    async def people(self, place: SweptApp) -> list[str]:
        """Return the contacts that a sweep's run has handled or a reply has reached.

        These are not groups, even if they look like one.
        """
        seen_to = sa.and_(runs.c.id == contact_marks.c.run_id, runs.c.status == SUCCEEDED)
        marked = sa.select(contact_marks.c.contact).where(_at(contact_marks, place), sa.exists().where(seen_to))
        answered = sa.select(replies.c.contact).where(_at(replies, place), replies.c.state == ReplyState.SENT)
        async with self._db.read() as connection:
            return list((await connection.execute(sa.union(marked, answered))).scalars())

    async def keep(self, place: SweptApp, contact: str, state: str) -> None:
        """Record a waiting contact that the screen will no longer show, in case the sweep that saw them fails.

        If a run of theirs is active or asks, that run handles it, and nothing is stored.
        """
        now = self._db.now()
        going = sa.exists().where(runs.c.id == contact_marks.c.run_id, runs.c.status.in_(ACTIVE))
        known = sa.select(contact_marks.c.state, going.label("going"))
        known = known.where(_at(contact_marks, place), contact_marks.c.contact == contact)
        async with self._db.write(durable=True) as connection:
            mark = (await connection.execute(known)).one_or_none()
            if mark is not None and (mark.going or mark.state == state):
                return
            values = {"state": state, "waiting_since": now, "run_id": "", "tries": 0, "swept_at": now}
            await _mark(connection, self._db, place, contact, values)

    async def looked(self, sweep_id: str, attempt: int, new: NewSweep, start: Sequence[NewSwept]) -> list[str] | None:
        """Store a sweep's result and start its runs, all or nothing. Return the ids of the runs.

        Return None, and store nothing, if it is no longer this attempt's turn or Stop was requested. An attempt that is
        repeated after its process died gets the result that the first one stored.

        attempt: the active attempt of the sweep.
        """
        async with self._db.write(durable=True) as connection:
            mine = sa.and_(
                runs.c.id == sweep_id,
                runs.c.attempt == attempt,
                runs.c.status == RUNNING,
                runs.c.stop_requested.is_(False),
            )
            # With the row locked, the second of two waits here.
            if (await connection.execute(sa.update(runs).where(mine).values(status=RUNNING))).rowcount != 1:
                return None
            before = await connection.execute(sa.select(sweeps.c.run_id).where(sweeps.c.run_id == sweep_id))
            if before.first() is not None:
                its = sa.select(runs.c.id).where(runs.c.parent_id == sweep_id).order_by(runs.c.id)
                return list((await connection.execute(its)).scalars())
            await self._remember(connection, sweep_id, new, len(start))
            started = [await begin_run(connection, self._db, new.place, one) for one in start]
            told = {"contacts": new.contacts, "started": len(started), "outcome": new.outcome}
            await append_event(connection, self._db, sweep_id, "sweep", told)
        self._notify("runs", "events")
        return started

    async def start(self, place: SweptApp, one: NewSwept) -> str:
        """Start one more run of a sweep, for a process that does the runs itself, one after the other.

        Return its id.
        """
        async with self._db.write(durable=True) as connection:
            run_id = await begin_run(connection, self._db, place, one)
            counted = sa.update(sweeps).where(sweeps.c.run_id == one.run.parent_id)
            await connection.execute(counted.values(started=sweeps.c.started + 1))
        self._notify("events")
        return run_id

    async def runs(self, sweep_id: str) -> list[Swept]:
        """Return the runs of a sweep in the order in which they were started."""
        its = sa.select(
            runs.c.id,
            runs.c.id.label("run_id"),
            runs.c.options,
            runs.c.status,
            runs.c.status.label("run_status"),
            runs.c.message,
            runs.c.attempt_due_at,
            runs.c.started_at,
            runs.c.ended_at.label("run_ended_at"),
        ).where(runs.c.parent_id == sweep_id)
        sent = (
            sa.select(replies.c.run_id, replies.c.text)
            .where(replies.c.run_id.in_(sa.select(runs.c.id).where(runs.c.parent_id == sweep_id)))
            .where(replies.c.state == ReplyState.SENT)
            .order_by(replies.c.id)
        )
        async with self._db.read() as connection:
            rows = (await connection.execute(its.order_by(runs.c.id))).all()
            errors = await self._errors(connection, [row._mapping for row in rows])
            texts = (await connection.execute(sent)).all()
        return [
            Swept(
                row.id,
                str(row.options.get("contact") or ""),
                row.status,
                row.message,
                row.attempt_due_at is not None,
                row.started_at is not None,
                tuple(reply.text for reply in texts if reply.run_id == row.id),
                errors.get(row.id, ""),
            )
            for row in rows
        ]

    async def waiting_runs(self, sweep_id: str) -> bool:
        """Tell whether some of a sweep's runs are not over."""
        wanted = sa.select(runs.c.id).where(runs.c.parent_id == sweep_id, runs.c.status.in_(ACTIVE)).limit(1)
        async with self._db.read() as connection:
            return (await connection.execute(wanted)).first() is not None

    async def _remember(self, connection: AsyncConnection, sweep_id: str, new: NewSweep, started: int) -> None:
        now, place = self._db.now(), new.place
        row = {
            "run_id": sweep_id,
            "serial": place.serial,
            "app": place.app,
            "outcome": new.outcome,
            "contacts": new.contacts,
            "started": started,
            "calls": new.calls,
            "details": dict(new.details),
            "created_at": now,
        }
        await connection.execute(sa.insert(sweeps).values(**row))
        await connection.execute(sa.delete(sweep_lists).where(_at(sweep_lists, place)))
        if new.memory is not None:
            kept = {"serial": place.serial, "app": place.app, "memory": dict(new.memory), "looked_at": now}
            await connection.execute(sa.insert(sweep_lists).values(**kept))
        await self._note(connection, new)

    async def _note(self, connection: AsyncConnection, new: NewSweep) -> None:
        """Store since when each contact waits, and who no longer does."""
        now, place = self._db.now(), new.place
        of_place = _at(contact_marks, place)
        waits = sa.select(contact_marks.c.contact).where(of_place, contact_marks.c.waiting_since.is_not(None))
        before = set((await connection.execute(waits)).scalars())
        for place_in_line, contact in enumerate(new.waiting):
            if contact not in before:
                since = {"waiting_since": now + place_in_line * APART, "swept_at": now}
                await _mark(connection, self._db, place, contact, since)
        over = [contact for contact in new.seen if contact not in new.waiting]
        if over:
            done = sa.update(contact_marks).where(of_place, contact_marks.c.contact.in_(over))
            await connection.execute(done.values(state="", waiting_since=None))


def _at(table: sa.Table, place: SweptApp) -> sa.ColumnElement[bool]:
    """Match the rows of an app on a phone."""
    return sa.and_(table.c.serial == place.serial, table.c.app == place.app)


async def begin_run(connection: AsyncConnection, db: Database, place: SweptApp, one: NewSwept) -> str:
    """Add the run that answers a contact in an open transaction, and note it in the contact's mark.

    Return the run's id.
    """
    run_id = await insert_run(connection, db, one.run)
    if run_id is None:
        raise RuntimeError("The run was not stored.")
    values = {"state": one.state, "run_id": run_id, "tries": one.tries, "swept_at": db.now()}
    await _mark(connection, db, place, one.contact, values)
    return run_id


async def _mark(
    connection: AsyncConnection, db: Database, place: SweptApp, contact: str, values: Mapping[str, Any]
) -> None:
    key = {"serial": place.serial, "app": place.app, "contact": contact}
    await connection.execute(db.upsert(contact_marks, values, **key))
