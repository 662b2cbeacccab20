"""The ledger of replies: one row for each customer message, so that it is answered exactly once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from agent_core.apps.learnt import LearntApp
from agent_core.ports import LedgerConflict, LedgerRow, MessageKey, Provenance, ReplyState
from agent_core.session import Elsewhere, Question, RowMark
from storage.contacts import ChosenRows
from storage.engine import Database
from storage.history import History
from storage.learnt import AppLabels, LearntApps
from storage.leases import hold_turn
from storage.questions import OPEN, Questions
from storage.repository import Repository
from storage.runs import STOPPED, WAITING, Runs
from storage.sweeps import Sweeps, SweptApp
from storage.tables import replies, runs

MAY_BE_PLANNED = (  # no part of the reply can have been sent
    ReplyState.PLANNED,
    ReplyState.TYPING,
    ReplyState.FAILED,
    ReplyState.SKIPPED,
    ReplyState.WITHDRAWN,
)
UNFINISHED = (ReplyState.TYPING, ReplyState.SENDING)
NOT_ANSWERED = (ReplyState.PLANNED, ReplyState.FAILED)  # no text of these is on its way
RECENT = 50  # rows of a contact


def _row(row: sa.RowMapping) -> LedgerRow:
    return LedgerRow(
        id=row["id"],
        key=MessageKey(row["serial"], row["app"], row["contact"], row["fingerprint"]),
        run_id=row["run_id"],
        question=row["question"],
        text=row["text"],
        state=ReplyState(row["state"]),
        provenance=Provenance(row["provenance"]) if row["provenance"] else None,
        record_id=row["record_id"],
        record_source=row["record_source"],
        score=row["score"],
        person=row["person"],
        cluster=tuple(row["cluster"] or ()),
        parts=tuple(row["parts"] or ()),
        part=row["part"],
        app_version=row["app_version"],
    )


class StoredLedger(Repository):
    """``agent_core.ports.Ledger`` over the table of replies, and the stored facts about phones, apps and contacts.

    Every write is on the disk when it returns.

    run_id, attempt: the attempt that writes; None if no attempt does. Once its turn is over its writes change nothing
        and raise LeaseLost; what it has sent is recorded by the attempt that sees it next.
    """

    def __init__(self, db: Database, *, run_id: str = "", attempt: int | None = None) -> None:
        if attempt is not None and not run_id:
            raise ValueError("An attempt is of a run.")
        super().__init__(db)
        self._run_id = run_id
        self._attempt = attempt

    async def find(self, key: MessageKey) -> LedgerRow | None:
        async with self._db.read() as connection:
            return await self._find(connection, key)

    async def open(
        self, key: MessageKey, *, run_id: str, question: str, cluster: Sequence[str] = (), app_version: str = ""
    ) -> LedgerRow:
        now = self._db.now()
        new = (
            self._db.insert(replies)
            .values(
                **asdict(key),
                run_id=run_id,
                question=question,
                cluster=list(cluster),
                app_version=app_version,
                state=ReplyState.PLANNED.value,
                created_at=now,
                updated_at=now,
            )
            .on_conflict_do_nothing(index_elements=["serial", "app", "contact", "fingerprint"])
        )
        async with self._write() as connection:
            await connection.execute(new)
            row = await self._find(connection, key)
        if row is None:
            raise LedgerConflict(f"The row of {key.contact!r} on {key.serial} was deleted while it was opened.")
        return row

    async def plan(
        self,
        row_id: int,
        *,
        run_id: str,
        text: str,
        provenance: Provenance,
        record_id: str = "",
        record_source: str = "",
        score: float | None = None,
        person: str = "",
        parts: Sequence[str] = (),
    ) -> LedgerRow:
        return await self._update(
            row_id,
            MAY_BE_PLANNED,
            replies.c.part == 0,
            parts=list(parts),
            run_id=run_id,
            text=text,
            state=ReplyState.PLANNED.value,
            provenance=provenance.value,
            record_id=record_id,
            record_source=record_source,
            score=score,
            person=person,
        )

    async def advance(self, row_id: int, state: ReplyState, *, expected: Sequence[ReplyState]) -> LedgerRow:
        return await self._update(row_id, expected, state=ReplyState(state).value)

    async def next_part(self, row_id: int, *, part: int) -> LedgerRow:
        still = replies.c.part == part
        return await self._update(row_id, (ReplyState.SENDING,), still, state=ReplyState.PLANNED.value, part=part + 1)

    async def version_known(self, serial: str, app: str, version: str) -> bool:
        statement = sa.select(replies.c.id).where(
            replies.c.serial == serial,
            replies.c.app == app,
            replies.c.app_version == version,
            replies.c.state == ReplyState.SENT.value,
        )
        return await self._value(statement.limit(1)) is not None

    async def known_versions(self) -> frozenset[tuple[str, str, str]]:
        """Return phone, app and version of all that ``version_known`` is true of."""
        columns = replies.c.serial, replies.c.app, replies.c.app_version
        statement = sa.select(*columns).where(replies.c.state == ReplyState.SENT.value).distinct()
        return frozenset((serial, app, version) for serial, app, version in await self._read(statement))

    async def learnt(self, serial: str, app: str, version: str) -> LearntApp | None:
        return await LearntApps(self._db).get(serial, app, version)

    async def learn(self, serial: str, learnt: LearntApp) -> None:
        await LearntApps(self._db).put(serial, learnt)

    async def chosen_row(self, serial: str, app: str, contact: str) -> RowMark | None:
        return await ChosenRows(self._db).get(serial, app, contact)

    async def choose_row(self, serial: str, app: str, contact: str, row: RowMark) -> None:
        await ChosenRows(self._db).put(serial, app, contact, row)

    async def labelled(self, serial: str, label: str) -> str | None:
        return await AppLabels(self._db).get(serial, label)

    async def keep_label(self, serial: str, label: str, package: str) -> None:
        await AppLabels(self._db).put(serial, label, package)

    async def keep_waiting(self, serial: str, app: str, contact: str, state: str) -> None:
        await Sweeps(self._db).keep(SweptApp(serial, app), contact, state)

    async def claim(self, row_id: int, run_id: str) -> bool:
        waits = sa.exists().where(runs.c.id == replies.c.run_id, runs.c.id != run_id, runs.c.status == WAITING)
        statement = (
            sa.update(replies).where(replies.c.id == row_id, ~waits).values(run_id=run_id).returning(replies.c.id)
        )
        async with self._write() as connection:
            return (await connection.execute(statement)).first() is not None

    async def waits(self, run_id: str) -> Elsewhere | None:
        run = await Runs(self._db).get(run_id)
        if run is None or run.status != WAITING:
            return None
        found = await Questions(self._db).find(run_id=run_id, state=OPEN, limit=1)
        name = f"#{await History(self._db).number_of(run_id)}"
        if not found:
            return Elsewhere(run_id=run_id, name=name, goes_on=not run.hold)
        question = Question.model_validate(found[0].payload)
        return Elsewhere(run_id=run_id, name=name, question=question, asked_at=found[0].created_at)

    async def unfinished(self, serial: str) -> list[LedgerRow]:
        return await self._all(
            sa.select(replies)
            .where(replies.c.serial == serial, replies.c.state.in_(UNFINISHED))
            .order_by(replies.c.updated_at, replies.c.id)
        )

    async def left_open(self, run_ids: Sequence[str]) -> dict[str, str]:
        """Return, by run, the contact whose question it has read and not answered; only runs that have one."""
        if not run_ids:
            return {}
        wanted = sa.select(replies.c.run_id, replies.c.contact).where(
            replies.c.run_id.in_(list(run_ids)), replies.c.state.in_(NOT_ANSWERED)
        )
        return {row.run_id: row.contact for row in await self._read(wanted)}

    async def left_by_stop(self, serial: str, app: str, *, since: datetime) -> list[str]:
        """Return the contacts whose question was left open by a run that was stopped after ``since``.

        Nothing of theirs has been answered or settled since the stop, and no run has looked and found nothing.
        """
        later = replies.alias()
        settled = sa.exists().where(
            later.c.serial == serial,
            later.c.app == app,
            later.c.contact == replies.c.contact,
            later.c.state.not_in(NOT_ANSWERED),
            later.c.updated_at > runs.c.ended_at,
        )
        wanted = (
            sa.select(replies.c.contact)
            .distinct()
            .join(runs, runs.c.id == replies.c.run_id)
            .where(replies.c.serial == serial, replies.c.app == app, replies.c.state.in_(NOT_ANSWERED))
            .where(runs.c.status == STOPPED, runs.c.ended_at > since, ~settled)
            .order_by(replies.c.contact)
        )
        async with self._db.read() as connection:
            return list((await connection.execute(wanted)).scalars())

    async def recent(self, serial: str, app: str, contact: str) -> list[LedgerRow]:
        return await self._all(
            sa.select(replies)
            .where(replies.c.serial == serial, replies.c.app == app, replies.c.contact == contact)
            .order_by(replies.c.id.desc())
            .limit(RECENT)
        )

    async def _update(
        self, row_id: int, expected: Sequence[ReplyState], *conditions: sa.ColumnElement[bool], **values: object
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
            await hold_turn(connection, self._run_id, self._attempt)
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
