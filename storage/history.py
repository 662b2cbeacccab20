"""Runs in the history: filtered, page by page, and numbered.

The number of a run is its place in the order of the ids, from 1. Runs are never deleted, so it does not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from agent_core.session import WAITS_ELSEWHERE
from storage.answers import SENT
from storage.questions import OPEN
from storage.repository import Repository, page_of
from storage.runs import FAILED, QUEUED, RUNNING, STOPPED, SUCCEEDED, WAITING, RunRow
from storage.runs.rows import LISTED
from storage.tables import answers, questions, runs, sweeps

_ASKS = runs.c.id.in_(sa.select(questions.c.run_id).where(questions.c.state == OPEN))
# Sweeps that a schedule started and that have nothing to read: they found nobody to answer, as hundreds a day do, or
# the runs that they started are in the history themselves. One that has a message or did not succeed is worth reading.
_UNREAD = sa.and_(
    runs.c.schedule_id.is_not(None),
    runs.c.status.not_in((FAILED, STOPPED)),
    runs.c.message == "",
    sa.exists().where(
        sweeps.c.run_id == runs.c.id,
        sa.or_(sweeps.c.started > 0, sa.and_(runs.c.planned_at.is_not(None), runs.c.status == SUCCEEDED)),
    ),
)
_IN_LINE = sa.and_(runs.c.status == WAITING, runs.c.attempt_due_at.is_not(None))
_NUMBERED = sa.select(*LISTED, sa.func.row_number().over(order_by=runs.c.id).label("number")).subquery()
# Built once, as those of ``_find`` and ``_count`` for the same arguments: SQLAlchemy takes longer to build and to
# recognise such a statement than SQLite to execute it.
_RUN_IDS: sa.BindParameter[list[str]] = sa.bindparam("run_ids", expanding=True)
_ASKING = sa.select(questions.c.run_id).where(questions.c.run_id.in_(_RUN_IDS), questions.c.state == OPEN)
_ELSEWHERE = sa.select(runs.c.id, runs.c.session).where(
    runs.c.id.in_(_RUN_IDS), runs.c.session.contains(f'"{WAITS_ELSEWHERE}"', autoescape=True)
)
_SENT_BY = (
    sa.select(answers.c.run_id, answers.c.contact, answers.c.sent)
    .where(answers.c.run_id.in_(_RUN_IDS), answers.c.state == SENT)
    .order_by(answers.c.id)
)
_SWEEPS = runs.alias("swept_by")
_SCHEDULES = (
    sa.select(runs.c.id, sa.func.coalesce(runs.c.schedule_id, _SWEEPS.c.schedule_id).label("schedule_id"))
    .outerjoin(_SWEEPS, _SWEEPS.c.id == runs.c.parent_id)
    .where(runs.c.id.in_(_RUN_IDS))
)
# Statuses as people see them, see ``bot.desk.runs.status_of``: a run that waits for a phone is queued.
AT: Mapping[str, sa.ColumnElement[bool]] = {
    QUEUED: sa.or_(runs.c.status == QUEUED, _IN_LINE),
    RUNNING: sa.and_(runs.c.status == RUNNING, ~_ASKS),
    WAITING: sa.or_(
        sa.and_(runs.c.status == WAITING, runs.c.attempt_due_at.is_(None)), sa.and_(runs.c.status == RUNNING, _ASKS)
    ),
}


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """A filter of runs. Fields that are empty or None do not filter.

    words: in the task or the outcome, in what a customer asked or got, or the whole name of a contact or a phone.
    phone: the serial of the phone whose name ``words`` is.
    contact: a run that handled a message of this contact.
    statuses: as people see them; the keys of ``AT``.
    since, until: ``until`` is excluded; both aware.
    serials: only these phones, empty for all.
    """

    words: str = ""
    phone: str = ""
    contact: str = ""
    statuses: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    serials: tuple[str, ...] = ()

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        found: list[sa.ColumnElement[bool]] = [~_UNREAD]
        if self.words:
            named = sa.or_(
                answers.c.contact == self.words,
                answers.c.question.icontains(self.words, autoescape=True),
                answers.c.sent.icontains(self.words, autoescape=True),
            )
            places = (runs.c.task, runs.c.message)
            found.append(
                sa.or_(
                    runs.c.serial == (self.phone or self.words),
                    *(place.icontains(self.words, autoescape=True) for place in places),
                    runs.c.id.in_(sa.select(answers.c.run_id).where(named)),
                )
            )
        if self.contact:
            found.append(runs.c.id.in_(sa.select(answers.c.run_id).where(answers.c.contact == self.contact)))
        if self.statuses:
            found.append(sa.or_(*(AT.get(status, runs.c.status == status) for status in self.statuses)))
        if self.since is not None:
            found.append(runs.c.created_at >= self.since)
        if self.until is not None:
            found.append(runs.c.created_at < self.until)
        if self.serials:
            found.append(runs.c.serial.in_(self.serials))
        return found


@dataclass(frozen=True, slots=True)
class NumberedRun:
    """A run and its number. ``row`` has no session."""

    number: int
    row: RunRow


@dataclass(frozen=True, slots=True)
class SentText:
    """A text that was sent to a contact."""

    contact: str
    text: str


class History(Repository):
    """Queries over all runs."""

    async def find(
        self, wanted: HistoryFilter, *, before: int | None = None, after: int | None = None, limit: int = 10
    ) -> list[NumberedRun]:
        """Return runs, newest first. ``before``: only smaller numbers; ``after``: the ``limit`` runs that follow it."""
        statement = _find(wanted, before, after, limit)
        rows = await self._rows(_numbered, statement)
        return rows if after is None else rows[::-1]

    async def count(self, wanted: HistoryFilter) -> int:
        async with self._db.read() as connection:
            return (await connection.execute(_count(wanted))).scalar_one()

    async def number_of(self, run_id: str) -> int:
        statement = sa.select(sa.func.count()).select_from(runs).where(runs.c.id <= run_id)
        async with self._db.read() as connection:
            return (await connection.execute(statement)).scalar_one()

    async def id_of(self, number: int) -> str | None:
        """Return the id of the run with this number, or None if there is none."""
        statement = sa.select(runs.c.id).order_by(runs.c.id).offset(max(0, number - 1)).limit(1)
        found = await self._value(statement)
        return found if number > 0 else None

    async def asking(self, run_ids: Sequence[str]) -> set[str]:
        """Return those of these runs that have an open question."""
        if not run_ids:
            return set()
        async with self._db.read() as connection:
            return set((await connection.execute(_ASKING, {"run_ids": run_ids})).scalars())

    async def schedules_of(self, run_ids: Sequence[str]) -> Mapping[str, int]:
        """Return the number of the schedule, by run id, of those of these runs that a schedule or its sweep started."""
        rows = await self._read(_SCHEDULES, {"run_ids": run_ids})
        return {row.id: row.schedule_id for row in rows if row.schedule_id is not None}

    async def sessions_left_elsewhere(self, run_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the sessions (JSON text), by run id, of those of these runs that left a customer to another run."""
        return {row.id: row.session for row in await self._read(_ELSEWHERE, {"run_ids": run_ids})}

    async def sent_by(self, run_ids: Sequence[str]) -> Mapping[str, tuple[SentText, ...]]:
        """Return the texts that each of these runs has sent, oldest first. Runs that sent nothing are left out."""
        sent: dict[str, tuple[SentText, ...]] = {}
        for row in await self._read(_SENT_BY, {"run_ids": run_ids}):
            sent[row.run_id] = (*sent.get(row.run_id, ()), SentText(row.contact, row.sent))
        return sent


@lru_cache(maxsize=64)
def _find(wanted: HistoryFilter, before: int | None, after: int | None, limit: int) -> sa.Select[Any]:
    mine = sa.select(runs.c.id).where(*wanted.conditions())
    found = sa.select(_NUMBERED).where(_NUMBERED.c.id.in_(mine))
    return page_of(found, _NUMBERED.c.number, before, after, limit)


@lru_cache(maxsize=64)
def _count(wanted: HistoryFilter) -> sa.Select[int]:
    return sa.select(sa.func.count()).select_from(runs).where(*wanted.conditions())


def _numbered(number: int, **values: Any) -> NumberedRun:
    return NumberedRun(number, RunRow(**values))
