"""Saved contacts: customers, with the number by which an app opens their chat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from agent_core.session import RowMark
from storage.repository import Repository
from storage.tables import chosen_rows, contacts


@dataclass(frozen=True, slots=True)
class NewContact:
    """A contact to be saved.

    ``name``: as in the app. ``serial``: "" for any phone. ``number``: the account's number in the app.
    """

    app: str
    name: str
    serial: str = ""
    number: str = ""
    tags: Sequence[str] = field(default_factory=tuple)
    note: str = ""


@dataclass(frozen=True, slots=True)
class ContactRow:
    """A saved contact, see ``NewContact``."""

    id: int
    serial: str
    app: str
    name: str
    number: str
    tags: Sequence[str]
    note: str
    created_at: datetime
    updated_at: datetime


class ContactThere(LookupError):
    """A contact with this phone, app and name exists already."""


class Contacts(Repository):
    """The table of saved contacts."""

    async def add(self, new: NewContact) -> ContactRow:
        """Add a contact. Raises ContactThere if the phone, app and name are taken."""
        now = self._db.now()
        values = {name: getattr(new, name) for name in NewContact.__slots__}
        values["tags"] = list(new.tags)
        statement = self._db.insert(contacts).values(**values, created_at=now, updated_at=now)
        statement = statement.on_conflict_do_nothing(index_elements=["serial", "app", "name"])
        async with self._db.write() as connection:
            row = (await connection.execute(statement.returning(*contacts.c))).mappings().one_or_none()
        if row is None:
            raise ContactThere(new.name)
        return ContactRow(**row)

    async def edit(
        self,
        contact_id: int,
        *,
        name: str | None = None,
        number: str | None = None,
        tags: Sequence[str] | None = None,
        note: str | None = None,
    ) -> ContactRow | None:
        """Change the fields that are given.

        Return None if there is no such contact. Raises ContactThere if the name is taken.
        """
        values: dict[str, Any] = {"name": name, "number": number, "note": note}
        values["tags"] = None if tags is None else list(tags)
        values = {key: value for key, value in values.items() if value is not None}
        statement = sa.update(contacts).where(contacts.c.id == contact_id).values(**values, updated_at=self._db.now())
        try:
            async with self._db.write() as connection:
                row = (await connection.execute(statement.returning(*contacts.c))).mappings().one_or_none()
        except IntegrityError as error:
            raise ContactThere(name) from error
        return None if row is None else ContactRow(**row)

    async def remove(self, contact_id: int) -> bool:
        return await self._execute(sa.delete(contacts).where(contacts.c.id == contact_id)) == 1

    async def find(self, app: str, name: str, serial: str) -> ContactRow | None:
        """Return the contact with this name for this phone: its own row, else the one for any phone.

        None if there is none.
        """
        statement = (
            sa.select(contacts)
            .where(contacts.c.app == app, contacts.c.name == name, contacts.c.serial.in_(("", serial)))
            .order_by(contacts.c.serial == "")
            .limit(1)
        )
        return await self._only(ContactRow, statement)

    async def get(self, app: str, name: str, serial: str = "") -> ContactRow | None:
        """Return the row with exactly this serial, or None if there is none."""
        statement = sa.select(contacts).where(
            contacts.c.app == app, contacts.c.name == name, contacts.c.serial == serial
        )
        return await self._only(ContactRow, statement)

    async def all(self, *, app: str = "", text: str = "", tag: str = "") -> list[ContactRow]:
        """Return contacts by app and name. ``text``: words in name, number or note."""
        statement = sa.select(contacts).order_by(contacts.c.app, contacts.c.name, contacts.c.serial)
        if app:
            statement = statement.where(contacts.c.app == app)
        if text:
            places = (contacts.c.name, contacts.c.number, contacts.c.note)
            statement = statement.where(sa.or_(*(place.icontains(text, autoescape=True) for place in places)))
        rows = await self._rows(ContactRow, statement)
        return [row for row in rows if not tag or tag in row.tags]


class ChosenRows(Repository):
    """The choice of the contact's row among chat list rows with the same name."""

    async def get(self, serial: str, app: str, contact: str) -> RowMark | None:
        """Return the row that a person chose, or None if nobody had to choose."""
        statement = sa.select(chosen_rows.c.data).where(
            chosen_rows.c.serial == serial, chosen_rows.c.app == app, chosen_rows.c.contact == contact
        )
        data = await self._value(statement)
        return None if data is None else RowMark.model_validate(data)

    async def put(self, serial: str, app: str, contact: str, row: RowMark) -> None:
        """Store ``row`` in place of an earlier choice."""
        values = {"data": row.model_dump(), "chosen_at": self._db.now()}
        chosen = self._db.upsert(chosen_rows, values, serial=serial, app=app, contact=contact)
        await self._execute(chosen, durable=True)
