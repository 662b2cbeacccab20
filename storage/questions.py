"""Questions to people. The first answer wins; a late one is stored and marked as late.

What happens to a question is written to the event log in the same transaction: ``closed`` (answered, or expired),
``reminder`` and ``escalated``, each with ``question``, its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.events import append_event
from storage.leases import hold_turn
from storage.repository import Repository
from storage.runs.rows import make_due
from storage.tables import question_answers, question_copies, questions, runs

OPEN, ANSWERED, EXPIRED = "open", "answered", "expired"
MOST_REMINDERS = 3


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question.

    ``payload``: the question as the agent put it.
    ``answer``: the accepted answer, or None.
    ``remind_at``: the next reminder, None for no more.
    ``remind_seconds``: the time from the question to the first reminder.
    ``reminders``: the number of reminders so far.
    ``escalate_at``: None if it never escalates, or has done so.
    """

    id: str
    run_id: str
    kind: str
    payload: Mapping[str, Any]
    state: str
    answer: Mapping[str, Any] | None
    answered_by: str
    answered_at: datetime | None
    created_at: datetime
    deadline: datetime | None
    remind_at: datetime | None = None
    remind_seconds: float = 0.0
    reminders: int = 0
    escalate_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A further card of a question. ``name`` is unique within the question; ``chat`` has the same keys as in cards."""

    name: str
    chat: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that somebody gave. ``late``: the question was already answered or over."""

    question_id: str
    answer: Mapping[str, Any]
    answered_by: str
    late: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The result of an answer.

    ``won``: this answer counts. If not, ``question`` says who was first, or that it has expired.
    """

    won: bool
    question: QuestionRow


def _in_time(now: datetime) -> sa.ColumnElement[bool]:
    return sa.or_(questions.c.deadline.is_(None), questions.c.deadline > now)


def _next_reminder(row: QuestionRow, now: datetime) -> tuple[int, datetime | None]:
    """Return the number of reminders including this one, and when the next is due, or None if this is the last."""
    for given in range(row.reminders + 1, MOST_REMINDERS):
        next_at = row.created_at + timedelta(seconds=row.remind_seconds * 2**given)
        if next_at > now:
            return given, None if row.deadline is not None and next_at >= row.deadline else next_at
    return MOST_REMINDERS, None


@lru_cache(maxsize=64)  # see ``storage.history``
def _find(run_id: str, state: str, limit: int) -> sa.Select[Any]:
    statement = sa.select(questions).order_by(questions.c.created_at, questions.c.id).limit(limit)
    if run_id:
        statement = statement.where(questions.c.run_id == run_id)
    if state:
        statement = statement.where(questions.c.state == state)
    return statement


class Questions(Repository):
    """Questions. Writes are on the disk when they return.

    They wake ``db.signal("questions")`` and, for a new attempt, ``"runs"``.
    """

    def now(self) -> datetime:
        """Return the time with which rows are compared."""
        return self._db.now()

    async def ask(
        self,
        question_id: str,
        *,
        run_id: str,
        kind: str,
        payload: Mapping[str, Any],
        deadline: datetime | None = None,
        remind_after: timedelta | None = None,
        escalate_after: timedelta | None = None,
        attempt: int | None = None,
    ) -> QuestionRow:
        """Store a question. Return the stored one if it was asked before (a resumed attempt asks the same again).

        remind_after: the time to the first reminder; the next ones follow after twice and four times as long.
        attempt: the attempt that asks. Raises LeaseLost if its turn is over.
        """
        now = self._db.now()
        new = (
            self._db.insert(questions)
            .values(
                id=question_id,
                run_id=run_id,
                kind=kind,
                payload=dict(payload),
                state=OPEN,
                created_at=now,
                deadline=deadline,
                remind_at=None if remind_after is None else now + remind_after,
                remind_seconds=remind_after.total_seconds() if remind_after is not None else 0.0,
                escalate_at=None if escalate_after is None else now + escalate_after,
            )
            .on_conflict_do_nothing(index_elements=["id"])
        )
        async with self._db.write(durable=True) as connection:
            await hold_turn(connection, run_id, attempt)
            await connection.execute(new)
            row = await self._get(connection, question_id)
        self._notify("questions")
        if row is None:
            raise KeyError(question_id)
        return row

    async def get(self, question_id: str) -> QuestionRow | None:
        async with self._db.read() as connection:
            return await self._get(connection, question_id)

    async def find(self, *, run_id: str = "", state: str = "", limit: int = 100) -> list[QuestionRow]:
        """Return questions, oldest first."""
        return await self._rows(QuestionRow, _find(run_id, state, limit))

    async def answer(
        self, question_id: str, answer: Mapping[str, Any], *, by: str, at: datetime | None = None
    ) -> AnswerResult:
        """Store an answer. Raises KeyError if the question is unknown.

        The first answer to an open question wins, and the run's next attempt becomes due in the same transaction. If
        the attempt that asked still waits on the phone, it continues by itself.

        at: when the answer was given, if it waited since then. If that was before the deadline, it counts as long as
            nobody has closed the question.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            run_id = await self._lock_run(connection, question_id)
            won = await connection.execute(
                sa.update(questions)
                .where(questions.c.id == question_id, questions.c.state == OPEN, _in_time(at or now))
                .values(state=ANSWERED, answer=dict(answer), answered_by=by, answered_at=now)
            )
            first = won.rowcount == 1
            await connection.execute(
                sa.insert(question_answers).values(
                    question_id=question_id, answer=dict(answer), answered_by=by, late=not first, created_at=now
                )
            )
            if first:
                await make_due(connection, run_id, now)
                await self._tell(connection, run_id, "closed", question_id, state=ANSWERED, by=by)
            row = await self._get(connection, question_id)
        self._notify("questions", "runs", "events")
        if row is None:
            raise KeyError(question_id)
        return AnswerResult(won=first, question=row)

    async def expire(self) -> list[QuestionRow]:
        """Close the questions whose deadline has passed; their runs' next attempts become due.

        Return the closed ones.
        """
        now = self._db.now()
        late = sa.select(questions.c.id).where(questions.c.state == OPEN, questions.c.deadline <= now)
        async with self._db.read() as connection:
            ids = list((await connection.execute(late)).scalars())
        closed = []
        for question_id in ids:
            async with self._db.write(durable=True) as connection:
                run_id = await self._lock_run(connection, question_id)
                done = await connection.execute(
                    sa.update(questions)
                    .where(questions.c.id == question_id, questions.c.state == OPEN)
                    .values(state=EXPIRED)
                    .returning(*questions.c)
                )
                row = done.mappings().one_or_none()
                if row is not None:
                    closed.append(QuestionRow(**row))
                    await make_due(connection, run_id, now)
                    await self._tell(connection, run_id, "closed", question_id, state=EXPIRED)
        if closed:
            self._notify("questions", "runs", "events")
        return closed

    async def remind(self) -> list[QuestionRow]:
        """Write the reminders that are due, each once. Return their questions.

        Reminders that were missed while nothing ran count as given: there is one now, and the next at its time.
        """
        now = self._db.now()
        due = (questions.c.state == OPEN) & (questions.c.remind_at <= now)
        reminded = []
        for row in await self._rows(QuestionRow, sa.select(questions).where(due)):
            given, next_at = _next_reminder(row, now)
            change = sa.update(questions).where(questions.c.id == row.id, due, _in_time(now))
            async with self._db.write() as connection:
                done = await connection.execute(change.values(reminders=given, remind_at=next_at))
                if done.rowcount:
                    await self._tell(connection, row.run_id, "reminder", row.id, number=given)
                    reminded.append(row)
        if reminded:
            self._notify("events")
        return reminded

    async def escalate(self) -> list[QuestionRow]:
        """Escalate the open questions that are due, each once: another person sees them from now on. Return them."""
        now = self._db.now()
        due = (questions.c.state == OPEN) & (questions.c.escalate_at <= now)
        escalated = []
        for row in await self._rows(QuestionRow, sa.select(questions).where(due)):
            change = sa.update(questions).where(questions.c.id == row.id, due, _in_time(now)).values(escalate_at=None)
            async with self._db.write() as connection:
                if (await connection.execute(change)).rowcount:
                    await self._tell(connection, row.run_id, "escalated", row.id)
                    escalated.append(row)
        if escalated:
            self._notify("events")
        return escalated

    async def next_time(self) -> datetime | None:
        """Return when the next deadline, reminder or escalation of an open question is due, or None if none is."""
        times = (questions.c.deadline, questions.c.remind_at, questions.c.escalate_at)
        async with self._db.read() as connection:
            found = await connection.execute(
                sa.select(*(sa.func.min(time) for time in times)).where(questions.c.state == OPEN)
            )
            known = [time for time in found.one() if time is not None]
        return min(known) if known else None

    async def copy(self, question_id: str, name: str, chat: Mapping[str, Any]) -> None:
        """Store another place in which the question is shown. Raises KeyError if the question is unknown."""
        new = self._db.insert(question_copies).values(
            question_id=question_id, name=name, chat=dict(chat), created_at=self._db.now()
        )
        async with self._db.write() as connection:
            if await self._get(connection, question_id) is None:
                raise KeyError(question_id)
            await connection.execute(new.on_conflict_do_nothing(index_elements=["question_id", "name"]))

    async def copies(self, question_id: str) -> list[Copy]:
        """Return the further cards, oldest first."""
        wanted = (
            sa.select(question_copies.c.name, question_copies.c.chat)
            .where(question_copies.c.question_id == question_id)
            .order_by(question_copies.c.created_at, question_copies.c.name)
        )
        return await self._rows(Copy, wanted)

    async def given(self, question_id: str) -> list[GivenAnswer]:
        """Return every answer that was given, including late ones, in order."""
        statement = (
            sa.select(
                question_answers.c.question_id,
                question_answers.c.answer,
                question_answers.c.answered_by,
                question_answers.c.late,
                question_answers.c.created_at,
            )
            .where(question_answers.c.question_id == question_id)
            .order_by(question_answers.c.id)
        )
        return await self._rows(GivenAnswer, statement)

    async def _tell(self, connection: AsyncConnection, run_id: str, kind: str, question_id: str, **data: Any) -> None:
        await append_event(connection, self._db, run_id, kind, {"question": question_id, **data})

    @staticmethod
    async def _lock_run(connection: AsyncConnection, question_id: str) -> str:
        """Lock the row of the run that asked. Return the run's id.

        So an attempt that ends at this moment sees the answer, or the answer sees that it has ended.
        """
        found = await connection.execute(sa.select(questions.c.run_id).where(questions.c.id == question_id))
        run_id = found.scalar_one_or_none()
        if run_id is None:
            raise KeyError(question_id)
        await connection.execute(sa.select(runs.c.id).where(runs.c.id == run_id).with_for_update())
        return str(run_id)

    @staticmethod
    async def _get(connection: AsyncConnection, question_id: str) -> QuestionRow | None:
        found = await connection.execute(sa.select(questions).where(questions.c.id == question_id))
        row = found.mappings().one_or_none()
        return None if row is None else QuestionRow(**row)
