"""Learnt facts about apps on phones: the look of a version, and the app that an icon's label opens."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter

from agent_core.apps.learnt import LearntApp
from storage.repository import Repository
from storage.tables import app_labels, learnt_apps

_DATA = TypeAdapter(LearntApp)


class LearntApps(Repository):
    """The learnt apps of every phone, see ``agent_core.apps.learnt``."""

    async def get(self, serial: str, app: str, version: str) -> LearntApp | None:
        """Return the learnt facts about a version, or None."""
        statement = sa.select(learnt_apps).where(
            learnt_apps.c.serial == serial, learnt_apps.c.app == app, learnt_apps.c.version == version
        )
        async with self._db.read() as connection:
            row = (await connection.execute(statement)).one_or_none()
        return None if row is None else _learnt(row)

    async def all(self) -> dict[tuple[str, str, str], LearntApp]:
        """Return everything that was learnt, by phone, app and version."""
        return {(row.serial, row.app, row.version): _learnt(row) for row in await self._read(sa.select(learnt_apps))}

    async def put(self, serial: str, learnt: LearntApp) -> None:
        """Store ``learnt``, replacing earlier facts about that version."""
        data = _DATA.dump_python(learnt, mode="json", exclude={"app", "version"})
        values = {"data": data, "learnt_at": self._db.now()}
        new = self._db.upsert(learnt_apps, values, serial=serial, app=learnt.app, version=learnt.version)
        await self._execute(new, durable=True)


@dataclass(frozen=True, slots=True)
class AppLabel:
    """The app that an icon with this label opened on a phone. ``label``: see ``agent_core.apps.names.bare``."""

    serial: str
    label: str
    package: str
    seen_at: datetime


class AppLabels(Repository):
    """The packages that icons of the home screens opened, by their labels, see ``agent_core.loop.launching``."""

    async def get(self, serial: str, label: str) -> str | None:
        """Return the package that the label opened, or None."""
        statement = sa.select(app_labels.c.package).where(app_labels.c.serial == serial, app_labels.c.label == label)
        return await self._value(statement)

    async def put(self, serial: str, label: str, package: str) -> None:
        """Store the app that the label opened, replacing an earlier one."""
        values = {"package": package, "seen_at": self._db.now()}
        await self._execute(self._db.upsert(app_labels, values, serial=serial, label=label))

    async def all(self) -> list[AppLabel]:
        """Return everything that is remembered, by phone and label."""
        statement = sa.select(app_labels).order_by(app_labels.c.serial, app_labels.c.label)
        return await self._rows(AppLabel, statement)

    async def forget(self, label: str, serial: str = "") -> int:
        """Delete the app of a label, on one phone or on all of them; return the number of phones that had it."""
        statement = sa.delete(app_labels).where(app_labels.c.label == label)
        if serial:
            statement = statement.where(app_labels.c.serial == serial)
        return await self._execute(statement)


def _learnt(row: sa.Row[Any]) -> LearntApp:
    return _DATA.validate_python({**row.data, "app": row.app, "version": row.version})
