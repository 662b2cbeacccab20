"""Numbers of a time range: customers' questions, questions put to a person, and the use of models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.repository import Repository
from storage.runs import FAILED
from storage.tables import answers, events, questions, runs, sweeps


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range; ``until`` is excluded, both are aware. ``serials``: only these phones, empty for all."""

    since: datetime
    until: datetime
    serials: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A customer's question. ``asked_at``: when it was read. ``changed_at``: when it got its present ``state``."""

    id: int
    question: str
    state: str
    by_person: bool
    asked_at: datetime
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """A model's replies in steps, and their tokens. ``model`` "": from releases that did not store it.

    ``cost`` is the cost stored with the steps, including the pictures that were read for them; None: it was not known
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
    """The use of models: calls that returned a reply, and their tokens."""

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
    """Numbers of sweeps.

    ``contacts``: the contacts checked, each counted once per sweep.
    ``idle``: sweeps that found nobody to answer and asked no model.
    ``unknown``: contacts that were to be answered but that nobody knows.
    """

    sweeps: int = 0
    contacts: int = 0
    idle: int = 0
    unknown: tuple[str, ...] = ()


class Statistics(Repository):
    """Queries over a time range."""

    async def asked(self, span: TimeRange) -> list[AskedRow]:
        """Return the customers' questions that were read in this time, oldest first."""
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
        return await self._rows(AskedRow, wanted)

    async def put_to_people(self, span: TimeRange) -> int:
        """Return how many questions of all kinds runs put to a person in this time."""
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
        """Return the numbers of the sweeps in this time."""
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
        """Return the use of models by the steps in the event log. Steps that were deleted with their events are not
        counted.

        A model may be listed twice: once for steps with a stored cost, and once for others.
        """
        return (await self.usage_from(span, [span.since]))[0]

    async def usage_from(self, span: TimeRange, begins: Sequence[datetime]) -> list[UsageFigures]:
        """Return what was used from each of these moments, in order, until the next; see ``usage``.

        begins: the first is the beginning of ``span``.
        """
        tokens_in, tokens_out, tokens_cached = (
            sa.func.coalesce(events.c.data[name].as_integer(), 0)
            for name in ("tokens_in", "tokens_out", "tokens_cached")
        )
        model = sa.func.coalesce(events.c.data["model"].as_string(), "")
        cost = events.c.data["cost"].as_float()
        # An endpoint may not count tokens; a step without a model call has no first token either.
        replied = sa.or_(tokens_in + tokens_out > 0, events.c.data[("timings", "first_token")].as_string().is_not(None))
        place = (
            sa.case(
                *((events.c.created_at < end, number) for number, end in enumerate(begins[1:])), else_=len(begins) - 1
            )
            if len(begins) > 1
            else sa.literal(0)
        )
        steps = (
            sa.select(
                place.label("place"),
                model.label("model"),
                tokens_in.label("tokens_in"),
                tokens_out.label("tokens_out"),
                tokens_cached.label("tokens_cached"),
                cost.label("cost"),
                sa.case((replied, 1), else_=0).label("calls"),
            )
            .select_from(events)
            .where(events.c.kind == "step", *_within(span))
            .where(sa.or_(replied, cost > 0))  # no reply, but a cost: pictures were read
        )
        step = steps.subquery()
        sums = [sa.func.sum(step.c[name]) for name in ("calls", "tokens_in", "tokens_out", "tokens_cached", "cost")]
        kinds = (step.c.place, step.c.model, step.c.cost.is_(None))
        wanted = sa.select(step.c.place, step.c.model, *sums).group_by(*kinds).order_by(step.c.model)
        found: list[list[ModelUsage]] = [[] for _ in begins]
        async with self._db.read() as connection:
            for row in (await connection.execute(wanted)).all():
                used = ModelUsage(row[1], int(row[2]), int(row[3]), int(row[4]), int(row[5]), row[6])
                found[int(row[0])].append(used)
        return [UsageFigures(tuple(models)) for models in found]

    async def failures(self, span: TimeRange) -> list[tuple[str, int]]:
        """Return how many runs failed in this time by the kind of their error ("": none of its own), the most first."""
        kind = sa.func.coalesce(events.c.data["error_kind"].as_string(), "")
        failed = (
            sa.select(kind.label("kind"), events.c.run_id)
            .where(events.c.kind == "outcome", events.c.data["status"].as_string() == FAILED, *_within(span))
            .distinct()
            .subquery()
        )
        count = sa.func.count()
        wanted = sa.select(failed.c.kind, count).group_by(failed.c.kind).order_by(count.desc(), failed.c.kind)
        async with self._db.read() as connection:
            return [(str(row[0]), int(row[1])) for row in (await connection.execute(wanted)).all()]


def _within(span: TimeRange) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for events of this time and these phones."""
    those = [events.c.created_at >= span.since, events.c.created_at < span.until]
    if span.serials:
        those.append(events.c.run_id.in_(sa.select(runs.c.id).where(runs.c.serial.in_(span.serials))))
    return those
