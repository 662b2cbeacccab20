"""Questions to people. The first answer wins; a late one is kept and said to be late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.runs import make_due
from storage.tables import question_answers, questions, runs
from storage.uncut import uncut

OPEN, ANSWERED, EXPIRED = "open", "answered", "expired"


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """``payload``: the question as the agent put it. ``answer``: the one that won, None while there is none."""

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


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One answer somebody gave; ``late``: the question was answered or over already."""

    question_id: str
    answer: Mapping[str, Any]
    answered_by: str
    late: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """``won``: this answer counts. Otherwise ``question`` says who was first, or that its time is over."""

    won: bool
    question: QuestionRow


def _question(row: sa.RowMapping) -> QuestionRow:
    return QuestionRow(**row)


@uncut
class Questions:
    """Writes are on the disk when they return. Wakes ``db.signal("questions")`` and, for a new leg, ``"runs"``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def ask(
        self,
        question_id: str,
        *,
        run_id: str,
        kind: str,
        payload: Mapping[str, Any],
        deadline: datetime | None = None,
    ) -> QuestionRow:
        """Store a question; the stored one where it was asked before (a leg taken up again asks the same)."""
        new = (
            self._db.insert(questions)
            .values(
                id=question_id,
                run_id=run_id,
                kind=kind,
                payload=dict(payload),
                state=OPEN,
                created_at=self._db.now(),
                deadline=deadline,
            )
            .on_conflict_do_nothing(index_elements=["id"])
        )
        async with self._db.write(durable=True) as connection:
            await connection.execute(new)
            row = await self._get(connection, question_id)
        self._db.signal("questions").notify()
        if row is None:
            raise KeyError(question_id)
        return row

    async def get(self, question_id: str) -> QuestionRow | None:
        async with self._db.read() as connection:
            return await self._get(connection, question_id)

    async def find(self, *, run_id: str = "", state: str = "", limit: int = 100) -> list[QuestionRow]:
        """Oldest first."""
        statement = sa.select(questions).order_by(questions.c.created_at, questions.c.id).limit(limit)
        if run_id:
            statement = statement.where(questions.c.run_id == run_id)
        if state:
            statement = statement.where(questions.c.state == state)
        async with self._db.read() as connection:
            return [_question(row) for row in (await connection.execute(statement)).mappings()]

    async def answer(self, question_id: str, answer: Mapping[str, Any], *, by: str) -> AnswerResult:
        """Give an answer. KeyError for an unknown question.

        The first one to an open question wins, and the run's next leg becomes due in the same transaction (where the
        leg that asked still waits on the phone, it goes on itself).
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            run_id = await self._lock_run(connection, question_id)
            won = await connection.execute(
                sa.update(questions)
                .where(
                    questions.c.id == question_id,
                    questions.c.state == OPEN,
                    sa.or_(questions.c.deadline.is_(None), questions.c.deadline > now),
                )
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
            row = await self._get(connection, question_id)
        self._db.signal("questions").notify()
        self._db.signal("runs").notify()
        if row is None:
            raise KeyError(question_id)
        return AnswerResult(won=first, question=row)

    async def expire(self) -> list[QuestionRow]:
        """Close the questions whose deadline has passed; their runs' next legs are due. The closed ones."""
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
                    closed.append(_question(row))
                    await make_due(connection, run_id, now)
        if closed:
            self._db.signal("questions").notify()
            self._db.signal("runs").notify()
        return closed

    async def given(self, question_id: str) -> list[GivenAnswer]:
        """Every answer that was given, the late ones too, in order."""
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
        async with self._db.read() as connection:
            return [GivenAnswer(**row) for row in (await connection.execute(statement)).mappings()]

    @staticmethod
    async def _lock_run(connection: AsyncConnection, question_id: str) -> str:
        """The run that asked, its row locked: a leg that ends at this very moment sees the answer, or is seen."""
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
        return None if row is None else _question(row)
