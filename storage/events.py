"""The event log: the events of every run, in order, and the position of each consumer in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import EVENT_LOCK, MISSED_SECONDS, Database
from storage.leases import hold_turn
from storage.repository import Repository
from storage.signals import Waiter
from storage.tables import consumers, events, pictures

SAME_WITHIN = 4  # events with a picture that are compared


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be stored. ``picture``: an encoded JPEG that is stored with it."""

    kind: str
    data: Mapping[str, Any]
    picture: bytes | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event. ``id`` grows with every event of every run.

    A consumer's position is the id of the last event that it has handled.
    """

    id: int
    run_id: str
    kind: str
    data: Mapping[str, Any]
    picture_id: int | None
    created_at: datetime


async def append_event(
    connection: AsyncConnection,
    db: Database,
    run_id: str,
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    picture: bytes | None = None,
) -> int:
    """Add an event inside an open transaction, best as its last statement. Return its id. Notify after the commit."""
    if not db.is_sqlite:
        # Ids are given before the commit: without this lock a reader could skip a number that is committed later.
        await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(EVENT_LOCK)))
    now = db.now()
    picture_id = None if picture is None else await _picture(connection, run_id, picture, now)
    added = (
        sa.insert(events)
        .values(run_id=run_id, kind=kind, data=dict(data or {}), picture_id=picture_id, created_at=now)
        .returning(events.c.id)
    )
    event_id: int = (await connection.execute(added)).scalar_one()
    return event_id


async def _picture(connection: AsyncConnection, run_id: str, picture: bytes, now: datetime) -> int:
    """Store a picture and return its id. A picture that the run has just shown is not stored again.

    Several events show the same screen: a step, the answer that was planned on it, a question.
    """
    shown = sa.select(events.c.picture_id).where(events.c.run_id == run_id, events.c.picture_id.is_not(None))
    newest = shown.order_by(events.c.id.desc()).limit(SAME_WITHIN)
    same = sa.select(pictures.c.id).where(pictures.c.id.in_(newest), pictures.c.jpeg == picture).limit(1)
    found: int | None = (await connection.execute(same)).scalar_one_or_none()
    if found is not None:
        return found
    stored = sa.insert(pictures).values(jpeg=picture, created_at=now).returning(pictures.c.id)
    picture_id: int = (await connection.execute(stored)).scalar_one()
    return picture_id


async def skip_event_ids(connection: AsyncConnection, db: Database) -> None:
    """Leave a gap in the ids of events, so that none comes again that was given out after a back-up was made.

    Those who follow the log tell events by their ids: a webhook's receiver would drop one that it knows. The next id is
    above the milliseconds since 1970. A desk writes fewer than 1,000 events a second, so no id before it was as high,
    also if the same back-up is restored again.
    """
    least = int(db.now().timestamp() * 1000)
    if not db.is_sqlite:
        sequence = sa.func.pg_get_serial_sequence("events", "id")
        next_id = sa.func.greatest(sa.func.nextval(sequence), least)
        await connection.execute(sa.select(sa.func.setval(sequence, next_id)))
        return
    sequences = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
    higher = sa.update(sequences).where(sequences.c.name == events.name)
    if not (await connection.execute(higher.values(seq=sa.func.max(sequences.c.seq, least)))).rowcount:
        await connection.execute(sa.insert(sequences).values(name=events.name, seq=least))  # there was no event yet


_NEWEST = sa.select(sa.func.max(events.c.id))  # built once, see ``storage.history``


class Events(Repository):
    """The event log and its consumers."""

    async def append(
        self,
        run_id: str,
        kind: str,
        data: Mapping[str, Any] | None = None,
        *,
        picture: bytes | None = None,
        attempt: int | None = None,
    ) -> int:
        """Add an event and wake ``db.signal("events")``. Return the event's id.

        picture: an encoded JPEG that is stored with it.
        attempt: the attempt that writes. Raises LeaseLost if its turn is over.
        """
        async with self._db.write() as connection:
            await hold_turn(connection, run_id, attempt)
            event_id = await append_event(connection, self._db, run_id, kind, data, picture=picture)
        self._notify("events")
        return event_id

    async def newest(self) -> int:
        """Return the id of the newest event, or 0 if there is none."""
        return await self._value(_NEWEST) or 0

    async def after(self, position: int, *, run_id: str = "", limit: int = 200) -> list[EventRow]:
        """Return the events after ``position``, oldest first; only those of ``run_id`` if it is given."""
        statement = sa.select(events).where(events.c.id > position).order_by(events.c.id).limit(limit)
        if run_id:
            statement = statement.where(events.c.run_id == run_id)
        return await self._rows(EventRow, statement)

    async def picture(self, picture_id: int) -> bytes | None:
        return await self._value(sa.select(pictures.c.jpeg).where(pictures.c.id == picture_id))

    async def picture_of(self, run_id: str, kind: str, subject_id: str) -> int | None:
        """Return the picture id of the newest event of this kind with this ``id`` in its data, or None if none has."""
        wanted = (
            sa.select(events.c.picture_id)
            .where(
                events.c.run_id == run_id,
                events.c.kind == kind,
                events.c.picture_id.is_not(None),
                events.c.data["id"].as_string() == subject_id,
            )
            .order_by(events.c.id.desc())
            .limit(1)
        )
        return await self._value(wanted)

    async def newest_picture(self, run_id: str) -> int | None:
        """Return the id of the newest event of a run that has a picture; None if there is none."""
        wanted = sa.select(sa.func.max(events.c.id)).where(events.c.run_id == run_id, events.c.picture_id.is_not(None))
        return await self._value(wanted)

    async def entry_of(self, run_id: str, question_id: str) -> str:
        """Return the id of the knowledge entry learnt from the answer to this question, or "" if there is none."""
        wanted = (
            sa.select(events.c.data)
            .where(
                events.c.run_id == run_id,
                events.c.kind == "learnt",
                events.c.data["question"].as_string() == question_id,
            )
            .order_by(events.c.id.desc())
            .limit(1)
        )
        data = await self._value(wanted)
        return str(data["entry"]) if data else ""

    async def position(self, consumer: str) -> int:
        """Return the consumer's position, 0 if it has never read."""
        return await self._value(sa.select(consumers.c.position).where(consumers.c.consumer == consumer)) or 0

    async def begin(self, consumer: str) -> int:
        """Return the consumer's position. A consumer that has never read begins at the newest event."""
        newest = sa.select(sa.func.coalesce(sa.func.max(events.c.id), 0)).scalar_subquery()
        new = self._db.insert(consumers).values(consumer=consumer, position=newest).on_conflict_do_nothing()
        found = sa.select(consumers.c.position).where(consumers.c.consumer == consumer)
        async with self._db.write() as connection:
            await connection.execute(new)
            return int((await connection.execute(found)).scalar_one())

    async def advance(self, consumer: str, position: int) -> None:
        """Store how far ``consumer`` has read. The position never goes back."""
        statement = self._db.insert(consumers).values(consumer=consumer, position=position)
        statement = statement.on_conflict_do_update(
            index_elements=["consumer"],
            set_={"position": statement.excluded.position},
            where=consumers.c.position < statement.excluded.position,
        )
        await self._execute(statement)


class EventLogReader:
    """Reads the event log from a position on, and waits for more. Events of other processes come within
    ``storage.signals.PULSE_SECONDS``.

    position: the id of the last event that was handled. Whoever reads moves it; what stays behind it comes again.
    """

    def __init__(self, db: Database, position: int) -> None:
        self._db = db
        self._log = Events(db)
        self._read = position  # the last event that was given out
        self._news: Waiter | None = None  # notified of events after that one; None if there may be some already
        self.position = position

    async def more(self, *, seconds: float = MISSED_SECONDS, limit: int = 200) -> list[EventRow]:
        """Return the events after ``position``, the oldest first; wait up to ``seconds`` if there are none yet."""
        if self._news is None and (rows := await self._next(limit)):
            return rows
        if self._news is not None and self.position >= self._read:
            await self._news.wait(seconds)
        return await self._next(limit)

    async def _next(self, limit: int) -> list[EventRow]:
        news = self._db.signal("events").waiter()
        rows = await self._log.after(self.position, limit=limit)
        self._read = rows[-1].id if rows else self.position
        self._news = news if len(rows) < limit else None
        return rows
