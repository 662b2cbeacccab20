"""The answer log: who asked what, what was found, what was sent. For people; the ledger is for the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.tables import answers
from storage.uncut import uncut


@dataclass(frozen=True, slots=True)
class NewAnswer:
    """``records``: what the knowledge base gave (id, text, score, source), best first. ``state`` as in the ledger."""

    run_id: str
    serial: str
    app: str
    contact: str
    question: str
    query: str = ""
    records: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    sent: str = ""
    provenance: str = ""
    record_id: str = ""
    record_source: str = ""
    score: float | None = None
    state: str = "sent"
    person: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """``rating``: 1 thumbs up, -1 thumbs down, 0 none."""

    id: int
    run_id: str
    serial: str
    app: str
    contact: str
    question: str
    query: str
    records: Sequence[Mapping[str, Any]]
    sent: str
    provenance: str
    record_id: str
    record_source: str
    score: float | None
    state: str
    person: str
    rating: int
    created_at: datetime
    updated_at: datetime


@uncut
class Answers:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, new: NewAnswer) -> int:
        now = self._db.now()
        values = {name: getattr(new, name) for name in NewAnswer.__slots__}
        values["records"] = [dict(record) for record in new.records]
        statement = sa.insert(answers).values(**values, created_at=now, updated_at=now).returning(answers.c.id)
        async with self._db.write(durable=True) as connection:
            answer_id: int = (await connection.execute(statement)).scalar_one()
        return answer_id

    async def update(self, answer_id: int, *, state: str, sent: str | None = None, person: str | None = None) -> bool:
        values: dict[str, Any] = {"state": str(state), "updated_at": self._db.now()}
        values |= {} if sent is None else {"sent": sent}
        values |= {} if person is None else {"person": person}
        return await self._set(answer_id, values)

    async def rate(self, answer_id: int, rating: int) -> bool:
        if rating not in (-1, 0, 1):
            raise ValueError(f"A rating is -1, 0 or 1, not {rating}.")
        return await self._set(answer_id, {"rating": rating})

    async def get(self, answer_id: int) -> AnswerRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(answers).where(answers.c.id == answer_id))).mappings().first()
        return None if row is None else AnswerRow(**row)

    async def find(
        self,
        *,
        run_id: str = "",
        contact: str = "",
        text: str = "",
        since: datetime | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[AnswerRow]:
        """The newest first. ``text``: words that stand in the question or in what was sent."""
        statement = sa.select(answers).order_by(answers.c.id.desc()).limit(limit)
        if run_id:
            statement = statement.where(answers.c.run_id == run_id)
        if contact:
            statement = statement.where(answers.c.contact == contact)
        if text:
            there = sa.or_(
                answers.c.question.icontains(text, autoescape=True), answers.c.sent.icontains(text, autoescape=True)
            )
            statement = statement.where(there)
        if since is not None:
            statement = statement.where(answers.c.created_at >= since)
        if before_id is not None:
            statement = statement.where(answers.c.id < before_id)
        async with self._db.read() as connection:
            return [AnswerRow(**row) for row in (await connection.execute(statement)).mappings()]

    async def _set(self, answer_id: int, values: dict[str, Any]) -> bool:
        async with self._db.write(durable=True) as connection:
            done = await connection.execute(sa.update(answers).where(answers.c.id == answer_id).values(**values))
            return done.rowcount == 1
