"""What a stretch of time came to: the questions of customers in it, those put to a person, and what the model used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.shielded import shielded
from storage.tables import answers, events, questions, runs, sweeps


@dataclass(frozen=True, slots=True)
class TimeRange:
    """``since`` is inside, ``until`` is not (both aware). ``serials``: only these phones, empty for all."""

    since: datetime
    until: datetime
    serials: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A customer's question. ``asked_at``: when it was read; ``changed_at``: when its ``state`` came about."""

    id: int
    question: str
    state: str
    by_person: bool
    asked_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """What one model did in steps: replies, and their tokens. ``model`` "": of releases that did not write it down.

    ``cost`` is what was written down with the steps, with the pictures that were read for them; None: it was not known
    then.
    """

    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """What the models did: calls that gave a reply, and their tokens."""

    models: Sequence[ModelUsage] = ()

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.models)

    @property
    def tokens_in(self) -> int:
        return sum(one.tokens_in for one in self.models)

    @property
    def tokens_out(self) -> int:
        return sum(one.tokens_out for one in self.models)


@dataclass(frozen=True, slots=True)
class SweptFigures:
    """``contacts``: looked at, once a sweep. ``idle``: sweeps that found nobody to answer, so asked no model.
    ``unknown``: contacts who were to be answered and whom nobody knows.
    """

    sweeps: int = 0
    contacts: int = 0
    idle: int = 0
    unknown: tuple[str, ...] = ()


@shielded
class Statistics:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def asked(self, span: TimeRange) -> list[AskedRow]:
        """The customers' questions that were read in this time, the oldest first."""
        wanted = (
            sa.select(
                answers.c.id,
                answers.c.question,
                answers.c.state,
                sa.or_(answers.c.provenance == "person", answers.c.person != "").label("by_person"),
                answers.c.created_at.label("asked_at"),
                answers.c.updated_at.label("changed_at"),
            )
            .where(answers.c.created_at >= span.since, answers.c.created_at < span.until)
            .order_by(answers.c.id)
        )
        if span.serials:
            wanted = wanted.where(answers.c.serial.in_(span.serials))
        async with self._db.read() as connection:
            return [AskedRow(**row) for row in (await connection.execute(wanted)).mappings()]

    async def put_to_people(self, span: TimeRange) -> int:
        """How many questions of all kinds runs put to a person in this time."""
        wanted = (
            sa.select(sa.func.count())
            .select_from(questions.join(runs, runs.c.id == questions.c.run_id))
            .where(questions.c.created_at >= span.since, questions.c.created_at < span.until)
        )
        if span.serials:
            wanted = wanted.where(runs.c.serial.in_(span.serials))
        async with self._db.read() as connection:
            return (await connection.execute(wanted)).scalar_one()

    async def swept(self, span: TimeRange) -> SweptFigures:
        """The looks of the sweeps in this time."""
        idle = sa.func.coalesce(sa.func.sum(sa.case((sweeps.c.started == 0, 1), else_=0)), 0)
        contacts = sa.func.coalesce(sa.func.sum(sweeps.c.contacts), 0)
        those = sa.and_(sweeps.c.created_at >= span.since, sweeps.c.created_at < span.until)
        if span.serials:
            those = sa.and_(those, sweeps.c.serial.in_(span.serials))
        names = sweeps.c.details["unknown"].as_string()  # a JSON array; the same one at each tick
        async with self._db.read() as connection:
            looks, looked_at, without = (
                await connection.execute(sa.select(sa.func.count(), contacts, idle).where(those))
            ).one()
            unknown = (await connection.execute(sa.select(names).where(those, names != "[]").distinct())).scalars()
            named = sorted({str(name) for kept in unknown for name in json.loads(kept)})
        return SweptFigures(int(looks), int(looked_at), int(without), tuple(named))

    async def usage(self, span: TimeRange) -> UsageFigures:
        """What the steps of the event log used; of steps that were deleted with their events nothing is known.

        A model may stand there twice: steps whose cost was written down, and others.
        """
        tokens_in, tokens_out, tokens_cached = (
            sa.func.coalesce(events.c.data[name].as_integer(), 0)
            for name in ("tokens_in", "tokens_out", "tokens_cached")
        )
        model = sa.func.coalesce(events.c.data["model"].as_string(), "")
        cost = events.c.data["cost"].as_float()
        # An endpoint may count nothing; a step without the model has no first token either.
        replied = sa.or_(tokens_in + tokens_out > 0, events.c.data[("timings", "first_token")].as_string().is_not(None))
        steps = (
            sa.select(
                model.label("model"),
                tokens_in.label("tokens_in"),
                tokens_out.label("tokens_out"),
                tokens_cached.label("tokens_cached"),
                cost.label("cost"),
                sa.case((replied, 1), else_=0).label("calls"),
            )
            .select_from(events)
            .where(events.c.kind == "step", events.c.created_at >= span.since, events.c.created_at < span.until)
            .where(sa.or_(replied, cost > 0))  # without a reply: pictures that were read
        )
        if span.serials:
            mine = sa.select(runs.c.id).where(runs.c.serial.in_(span.serials))
            steps = steps.where(events.c.run_id.in_(mine))
        step = steps.subquery()
        sums = [sa.func.sum(step.c[name]) for name in ("calls", "tokens_in", "tokens_out", "tokens_cached", "cost")]
        wanted = sa.select(step.c.model, *sums).group_by(step.c.model, step.c.cost.is_(None)).order_by(step.c.model)
        async with self._db.read() as connection:
            rows = (await connection.execute(wanted)).all()
        counted = (ModelUsage(row[0], int(row[1]), int(row[2]), int(row[3]), int(row[4]), row[5]) for row in rows)
        return UsageFigures(tuple(counted))
