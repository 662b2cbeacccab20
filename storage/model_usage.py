"""The use and cost of models by day and model, and this minute's calls: counted over all processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.tables import model_days, model_minutes

KEPT = timedelta(minutes=5)  # how long minutes that are over are kept


@dataclass(frozen=True, slots=True)
class Used:
    """The use of one model.

    ``tokens_cached`` is part of ``tokens_in``. ``cost`` is in the settings' currency, 0 if no price is set.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@shielded
class UsageTotals:
    """The tables of model usage, by day and by minute."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(self, day: date, model: str, used: Used, *, minute: datetime | None = None) -> None:
        """Add the use of one model. ``minute`` (aware, its beginning): the cost is also added to this minute."""
        values = {
            "calls": used.calls,
            "tokens_in": used.tokens_in,
            "tokens_out": used.tokens_out,
            "tokens_cached": used.tokens_cached,
            "cost": used.cost,
        }
        new = self._db.insert(model_days).values(day=day, model=model, **values)
        more = {name: model_days.c[name] + value for name, value in values.items()}
        async with self._db.write() as connection:
            await connection.execute(new.on_conflict_do_update(index_elements=["day", "model"], set_=more))
            if minute is not None and used.cost:
                first = self._db.insert(model_minutes).values(minute=minute, calls=0, cost=used.cost)
                added = {"cost": model_minutes.c.cost + used.cost}
                await connection.execute(first.on_conflict_do_update(index_elements=["minute"], set_=added))

    async def of_day(self, day: date) -> Used:
        """Return the use of all models on that day."""
        return total((await self.by_model(day)).values())

    async def by_model(self, day: date) -> dict[str, Used]:
        """Return the use of each model on that day, by its name."""
        wanted = sa.select(model_days).where(model_days.c.day == day).order_by(model_days.c.model)
        async with self._db.read() as connection:
            rows = (await connection.execute(wanted)).mappings().all()
        return {row["model"]: Used(**{key: row[key] for key in Used.__slots__}) for row in rows}

    async def take(self, minute: datetime, *, calls: int, cost: float) -> bool:
        """Take one of the ``calls`` of this minute. Return False if none is left, or if ``cost`` is spent.

        Minutes that are long over are deleted; they are kept for a while, because another host's clock may be a little
        behind.

        minute: its beginning, aware.
        calls, cost: the limits; 0 for none.
        """
        add = self._db.insert(model_minutes).values(minute=minute, calls=0, cost=0.0).on_conflict_do_nothing()
        left = [model_minutes.c.minute == minute]
        left += [model_minutes.c.calls < calls] if calls else []
        left += [model_minutes.c.cost < cost] if cost else []
        async with self._db.write() as connection:
            await connection.execute(sa.delete(model_minutes).where(model_minutes.c.minute < minute - KEPT))
            await connection.execute(add)
            taken = sa.update(model_minutes).where(*left).values(calls=model_minutes.c.calls + 1)
            return bool((await connection.execute(taken)).rowcount)


def total(used: Iterable[Used]) -> Used:
    """Return the sum."""
    parts = list(used)
    return Used(
        calls=sum(part.calls for part in parts),
        tokens_in=sum(part.tokens_in for part in parts),
        tokens_out=sum(part.tokens_out for part in parts),
        tokens_cached=sum(part.tokens_cached for part in parts),
        cost=sum(part.cost for part in parts),
    )
