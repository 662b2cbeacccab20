"""The phones that were ever seen, and what model each is: what people call one stays when it is away."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from storage.engine import Database
from storage.tables import phones
from storage.uncut import uncut


@uncut
class Phones:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def models(self) -> dict[str, str]:
        """The model ("" for not known) of each phone that was seen, by its serial."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(phones.c.serial, phones.c.model).order_by(phones.c.serial))
            return {row.serial: row.model for row in found}

    async def saw(self, models: Mapping[str, str]) -> None:
        """These are attached now. A model that is not told ("": the phone does not let us in) stays as it was."""
        now = self._db.now()
        async with self._db.write() as connection:
            for serial, model in models.items():
                new = self._db.insert(phones).values(serial=serial, model=model, seen_at=now)
                values = {"seen_at": now, **({"model": model} if model else {})}
                await connection.execute(new.on_conflict_do_update(index_elements=["serial"], set_=values))
