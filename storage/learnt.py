"""What was learnt of apps on phones: one row for each phone, app and version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.tables import learnt_apps
from storage.uncut import uncut


@uncut
class LearntApps:
    """``data`` is plain JSON data, without the fields of the key."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def get(self, serial: str, app: str, version: str) -> Mapping[str, Any] | None:
        """Return what was learnt; None if nothing was."""
        statement = sa.select(learnt_apps.c.data).where(
            learnt_apps.c.serial == serial, learnt_apps.c.app == app, learnt_apps.c.version == version
        )
        async with self._db.read() as connection:
            data: Mapping[str, Any] | None = (await connection.execute(statement)).scalar_one_or_none()
            return data

    async def all(self) -> dict[tuple[str, str, str], Mapping[str, Any]]:
        """Return everything that was learnt, by phone, app and version."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(learnt_apps))
            return {(row.serial, row.app, row.version): row.data for row in found}

    async def put(self, serial: str, app: str, version: str, data: Mapping[str, Any]) -> None:
        """Remember ``data`` in the place of what was known."""
        values = {"data": dict(data), "learnt_at": self._db.now()}
        new = self._db.insert(learnt_apps).values(serial=serial, app=app, version=version, **values)
        async with self._db.write(durable=True) as connection:
            await connection.execute(
                new.on_conflict_do_update(index_elements=["serial", "app", "version"], set_=values)
            )
