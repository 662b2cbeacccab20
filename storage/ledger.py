"""The ledger of replies: one row for each customer message, so that it is answered exactly once.

Shapes and states are those of ``agent_core.ports`` (which this package does not import): the same fields and the same
words, so that an adapter of a few lines turns one into the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.legs import hold_turn
from storage.runs import WAITING
from storage.tables import replies, runs
from storage.uncut import uncut

PLANNED, TYPING, SENDING = "planned", "typing", "sending"
SENT, UNKNOWN, FAILED, SKIPPED, WITHDRAWN = "sent", "unknown", "failed", "skipped", "withdrawn"
MAY_BE_PLANNED = (PLANNED, TYPING, FAILED, SKIPPED, WITHDRAWN)  # nothing of it can have left
UNFINISHED = (TYPING, SENDING)
STATES = (PLANNED, TYPING, SENDING, SENT, UNKNOWN, FAILED, SKIPPED, WITHDRAWN)


@dataclass(frozen=True, slots=True)
class MessageKey:
    serial: str
    app: str
    contact: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """The fields of ``agent_core.ports.LedgerRow``; ``state`` and ``provenance`` as text."""

    id: int
    key: MessageKey
    run_id: str
    question: str
    text: str = ""
    state: str = PLANNED
    provenance: str | None = None
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    person: str = ""
    cluster: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    part: int = 0
    app_version: str = ""


class LedgerConflict(LookupError):
    """The row is not in a state from which this step may be taken; somebody else moved it."""


def _row(row: sa.RowMapping) -> LedgerRow:
    parts, part, state = tuple(row["parts"] or ()), row["part"], row["state"]
    if parts and part >= len(parts):
        # Two legs of an earlier release may both have counted the last part: all of them stand in the chat.
        part, state = len(parts) - 1, SENT if state == PLANNED else state
    return LedgerRow(
        id=row["id"],
        key=MessageKey(row["serial"], row["app"], row["contact"], row["fingerprint"]),
        run_id=row["run_id"],
        question=row["question"],
        text=row["text"],
        state=state,
        provenance=row["provenance"],
        record_id=row["record_id"],
        record_source=row["record_source"],
        score=row["score"],
        person=row["person"],
        cluster=tuple(row["cluster"] or ()),
        parts=parts,
        part=part,
        app_version=row["app_version"],
    )


@uncut
class Ledger:
    """Every write is on the disk when it returns.

    ``leg`` of ``run_id``: whose writes they are; LegOver, and nothing is written, once its turn is over.
    """

    def __init__(self, db: Database, *, run_id: str = "", leg: int | None = None) -> None:
        if leg is not None and not run_id:
            raise ValueError("A leg is of a run.")
        self._db = db
        self._run_id = run_id
        self._leg = leg

    async def find(self, serial: str, app: str, contact: str, fingerprint: str) -> LedgerRow | None:
        async with self._db.read() as connection:
            return await self._find(connection, MessageKey(serial, app, contact, fingerprint))

    async def open(
        self,
        serial: str,
        app: str,
        contact: str,
        fingerprint: str,
        *,
        run_id: str,
        question: str,
        cluster: Sequence[str] = (),
        app_version: str = "",
    ) -> LedgerRow:
        """The row of this message, made (``planned``) where there is none."""
        now = self._db.now()
        new = (
            self._db.insert(replies)
            .values(
                serial=serial,
                app=app,
                contact=contact,
                fingerprint=fingerprint,
                run_id=run_id,
                question=question,
                cluster=list(cluster),
                app_version=app_version,
                state=PLANNED,
                created_at=now,
                updated_at=now,
            )
            .on_conflict_do_nothing(index_elements=["serial", "app", "contact", "fingerprint"])
        )
        async with self._write() as connection:
            await connection.execute(new)
            row = await self._find(connection, MessageKey(serial, app, contact, fingerprint))
        if row is None:
            raise LedgerConflict(f"The row of {contact!r} on {serial} was deleted while it was opened.")
        return row

    async def plan(
        self,
        row_id: int,
        *,
        run_id: str,
        text: str,
        provenance: str,
        record_id: str = "",
        record_source: str = "",
        score: float | None = None,
        person: str = "",
        parts: Sequence[str] = (),
    ) -> LedgerRow:
        """Set what is going to be sent; LedgerConflict where some of it can have left already."""
        return await self._update(
            row_id,
            MAY_BE_PLANNED,
            replies.c.part == 0,
            parts=list(parts),
            run_id=run_id,
            text=text,
            state=PLANNED,
            provenance=str(provenance),
            record_id=record_id,
            record_source=record_source,
            score=score,
            person=person,
        )

    async def advance(self, row_id: int, state: str, *, expected: Sequence[str]) -> LedgerRow:
        """Move on to ``state`` if the row is in one of ``expected``; LedgerConflict where it is not."""
        if str(state) not in STATES:
            raise ValueError(f"No state of a reply: {state!r}")
        return await self._update(row_id, expected, state=str(state))

    async def next_part(self, row_id: int, *, part: int) -> LedgerRow:
        """``part``, which was sending, is seen as sent: the next one is planned. LedgerConflict where it was not."""
        return await self._update(row_id, (SENDING,), replies.c.part == part, state=PLANNED, part=part + 1)

    async def version_known(self, serial: str, app: str, version: str) -> bool:
        """Return whether a reply was seen to arrive on this phone in this version of the app before."""
        statement = sa.select(replies.c.id).where(
            replies.c.serial == serial,
            replies.c.app == app,
            replies.c.app_version == version,
            replies.c.state == SENT,
        )
        async with self._db.read() as connection:
            return (await connection.execute(statement.limit(1))).first() is not None

    async def claim(self, row_id: int, run_id: str) -> bool:
        """Make ``run_id`` the run that has this row. False where another one has it and waits: for a
        person, or for the phone."""
        waits = sa.exists().where(runs.c.id == replies.c.run_id, runs.c.id != run_id, runs.c.status == WAITING)
        statement = (
            sa.update(replies).where(replies.c.id == row_id, ~waits).values(run_id=run_id).returning(replies.c.id)
        )
        async with self._write() as connection:
            return (await connection.execute(statement)).first() is not None

    async def unfinished(self, serial: str) -> list[LedgerRow]:
        """Rows of this phone in typing or sending, oldest first: what a dead run may have left behind."""
        return await self._all(
            sa.select(replies)
            .where(replies.c.serial == serial, replies.c.state.in_(UNFINISHED))
            .order_by(replies.c.updated_at, replies.c.id)
        )

    async def recent(self, serial: str, app: str, contact: str, *, limit: int = 50) -> list[LedgerRow]:
        """The newest rows of a contact, the newest first."""
        return await self._all(
            sa.select(replies)
            .where(replies.c.serial == serial, replies.c.app == app, replies.c.contact == contact)
            .order_by(replies.c.id.desc())
            .limit(limit)
        )

    async def _update(
        self, row_id: int, expected: Sequence[str], *conditions: sa.ColumnElement[bool], **values: object
    ) -> LedgerRow:
        statement = (
            sa.update(replies)
            .where(replies.c.id == row_id, replies.c.state.in_([str(state) for state in expected]), *conditions)
            .values(updated_at=self._db.now(), **values)
            .returning(*replies.c)
        )
        async with self._write() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
            if row is None:
                is_now = sa.select(replies.c.state, replies.c.part).where(replies.c.id == row_id)
                found = (await connection.execute(is_now)).one_or_none()
                said = f"{found.state} at part {found.part}" if found is not None else "gone"
                raise LedgerConflict(f"Reply {row_id} is {said}, not as expected: {', '.join(map(str, expected))}.")
        return _row(row)

    @asynccontextmanager
    async def _write(self) -> AsyncIterator[AsyncConnection]:
        async with self._db.write(durable=True) as connection:
            await hold_turn(connection, self._run_id, self._leg)
            yield connection

    async def _find(self, connection: AsyncConnection, key: MessageKey) -> LedgerRow | None:
        statement = sa.select(replies).where(
            replies.c.serial == key.serial,
            replies.c.app == key.app,
            replies.c.contact == key.contact,
            replies.c.fingerprint == key.fingerprint,
        )
        row = (await connection.execute(statement)).mappings().one_or_none()
        return None if row is None else _row(row)

    async def _all(self, statement: sa.Select[tuple[object, ...]]) -> list[LedgerRow]:
        async with self._db.read() as connection:
            return [_row(row) for row in (await connection.execute(statement)).mappings()]
