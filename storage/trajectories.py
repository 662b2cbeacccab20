"""The model's input at each step of a run, and the pictures that it was shown; each picture once per run."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.leases import hold_turn
from storage.tables import trajectories, trajectory_pictures

LEVEL = 6  # zlib level; it stores a request of 9 KB in a third of that, in 0.2 ms


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


@shielded
class Trajectories:
    """The requests of runs to models.

    attempt: the attempt that writes; None if no attempt does. Writes raise LeaseLost if its turn is over.
    """

    def __init__(self, db: Database, *, attempt: int | None = None) -> None:
        self._db = db
        self._attempt = attempt

    async def asked(self, run_id: str, step: int, data: str, *, digest: str = "", picture: bytes | None = None) -> None:
        """Store ``data`` (JSON text) as the request at this step, in place of an earlier one.

        picture: a JPEG, stored once for each run and ``digest``.
        """
        now = self._db.now()
        values = {"picture": digest, "data": zlib.compress(data.encode(), LEVEL), "created_at": now}
        row = self._db.insert(trajectories).values(run_id=run_id, step=step, **values)
        row = row.on_conflict_do_update(index_elements=["run_id", "step"], set_=values)
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
        async with self._db.read() as connection:
            rows = (await connection.execute(statement)).all()
        return [
            TrajectoryRow(row.step, zlib.decompress(row.data).decode(), row.picture, row.created_at, len(row.data))
            for row in rows
        ]

    async def picture(self, run_id: str, digest: str) -> bytes | None:
        """Return the JPEG, or None if it is not stored."""
        wanted = sa.select(trajectory_pictures.c.jpeg).where(
            trajectory_pictures.c.run_id == run_id, trajectory_pictures.c.digest == digest
        )
        async with self._db.read() as connection:
            return (await connection.execute(wanted)).scalar_one_or_none()
