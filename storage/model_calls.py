"""The calls of models: their use and cost by day, and what each step of a run has asked.

Use is counted over all processes. A step's request is stored with the pictures that the model was shown, each once per
run.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import sqlalchemy as sa

from storage.engine import Database
from storage.leases import hold_turn
from storage.repository import Repository
from storage.tables import model_days, model_minutes, trajectories, trajectory_pictures

KEPT = timedelta(minutes=5)  # how long minutes that are over are kept
LEVEL = 6  # zlib level; it stores a request of 9 KB in a third of that, in 0.2 ms


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


class UsageTotals(Repository):
    """The tables of model usage, by day and by minute."""

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


@dataclass(frozen=True, slots=True)
class TrajectoryRow:
    """A stored request.

    ``data``: JSON text. ``picture``: the digest of the picture, "" for none. ``stored``: compressed bytes of the data.
    """

    step: int
    data: str
    picture: str
    created_at: datetime
    stored: int


class Trajectories(Repository):
    """The requests of runs to models.

    attempt: the attempt that writes; None if no attempt does. Writes raise LeaseLost if its turn is over.
    """

    def __init__(self, db: Database, *, attempt: int | None = None) -> None:
        super().__init__(db)
        self._attempt = attempt

    async def asked(self, run_id: str, step: int, data: str, *, digest: str = "", picture: bytes | None = None) -> None:
        """Store ``data`` (JSON text) as the request at this step, in place of an earlier one.

        picture: a JPEG, stored once for each run and ``digest``.
        """
        now = self._db.now()
        values = {"picture": digest, "data": zlib.compress(data.encode(), LEVEL), "created_at": now}
        row = self._db.upsert(trajectories, values, run_id=run_id, step=step)
        async with self._db.write() as connection:
            await hold_turn(connection, run_id, self._attempt)
            if picture is not None:
                shown = self._db.insert(trajectory_pictures)
                shown = shown.values(run_id=run_id, digest=digest, jpeg=picture, created_at=now)
                await connection.execute(shown.on_conflict_do_nothing(index_elements=["run_id", "digest"]))
            await connection.execute(row)

    async def of(self, run_id: str) -> list[TrajectoryRow]:
        """Return the run's requests in the order of its steps."""
        statement = sa.select(trajectories).where(trajectories.c.run_id == run_id).order_by(trajectories.c.step)
        rows = await self._read(statement)
        return [
            TrajectoryRow(row.step, zlib.decompress(row.data).decode(), row.picture, row.created_at, len(row.data))
            for row in rows
        ]

    async def picture(self, run_id: str, digest: str) -> bytes | None:
        """Return the JPEG, or None if it is not stored."""
        wanted = sa.select(trajectory_pictures.c.jpeg).where(
            trajectory_pictures.c.run_id == run_id, trajectory_pictures.c.digest == digest
        )
        return await self._value(wanted)
