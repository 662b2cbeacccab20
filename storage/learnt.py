"""What was learnt about apps on phones: one row for each phone, app and version."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from agent_core.apps.learnt import LearntApp
from storage.engine import Database
from storage.shielded import shielded
from storage.tables import learnt_apps

_DATA = TypeAdapter(LearntApp)


@shielded
class LearntApps:
    """The learnt apps of every phone, see ``agent_core.apps.learnt``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def get(self, serial: str, app: str, version: str) -> LearntApp | None:
        """Return what was learnt about a version, or None."""
        statement = sa.select(learnt_apps).where(
            learnt_apps.c.serial == serial, learnt_apps.c.app == app, learnt_apps.c.version == version
        )
        async with self._db.read() as connection:
            row = (await connection.execute(statement)).one_or_none()
        return None if row is None else _learnt(row)

    async def all(self) -> dict[tuple[str, str, str], LearntApp]:
        """Return everything that was learnt, by phone, app and version."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(learnt_apps))
            return {(row.serial, row.app, row.version): _learnt(row) for row in found}

    async def put(self, serial: str, learnt: LearntApp) -> None:
        """Store ``learnt`` in place of what was known of that version."""
        data = _DATA.dump_python(learnt, mode="json", exclude={"app", "version"})
        values = {"data": data, "learnt_at": self._db.now()}
        new = self._db.insert(learnt_apps).values(serial=serial, app=learnt.app, version=learnt.version, **values)
        async with self._db.write(durable=True) as connection:
            await connection.execute(
                new.on_conflict_do_update(index_elements=["serial", "app", "version"], set_=values)
            )


def _learnt(row: sa.Row[Any]) -> LearntApp:
    return _DATA.validate_python({**row.data, "app": row.app, "version": row.version})
