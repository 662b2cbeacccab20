"""People, the codes they pair with, and the audit log."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.dml import ReturningUpdate

from storage.repository import Repository
from storage.tables import audit, pairing_codes, people

ROLES = ("viewer", "operator", "owner")
LAST = 20  # entries of the audit log
CODE_ID = 10  # a code is named by this many characters of its hash
TERMINAL = "terminal"  # the id of the owner at this machine, and the channel that they use there


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person. ``telegram_id``: None for somebody who only uses the console.

    ``chats`` and ``serials``: the chats and phones in and on which the person may act; None for all. ``streams``:
    whether their private chat shows the model's thoughts as they come.
    """

    id: int
    telegram_id: int | None
    role: str
    name: str
    lang: str
    chats: Sequence[str] | None
    serials: Sequence[str] | None
    paired_at: datetime
    streams: bool = True


@dataclass(frozen=True, slots=True)
class CodeRow:
    """An open code. ``id`` is the beginning of its hash; ``chats`` and ``serials`` as in ``PersonRow``.

    name: the name of the person who joins by the console; "" for a code of Telegram.
    """

    id: str
    role: str
    created_by: str
    created_at: datetime
    expires_at: datetime
    chats: Sequence[str] | None = None
    serials: Sequence[str] | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit log. ``allowed``: whether the command was allowed."""

    id: int
    at: datetime
    actor: str
    channel: str
    command: str
    detail: Mapping[str, Any]
    allowed: bool


def _role(role: str) -> str:
    if role not in ROLES:
        raise ValueError(f"A role is one of {', '.join(ROLES)}, not {role!r}.")
    return role


def _hash(code: str) -> str:
    return hashlib.sha256(code.strip().upper().encode()).hexdigest()


_ALL = sa.select(people).order_by(people.c.id)  # built once, see ``storage.history``


class People(Repository):
    """The tables of people and pairing codes."""

    async def count(self) -> int:
        async with self._db.read() as connection:
            return (await connection.execute(sa.select(sa.func.count()).select_from(people))).scalar_one()

    async def get(self, person_id: int) -> PersonRow | None:
        return await self._one(people.c.id == person_id)

    async def by_telegram(self, telegram_id: int) -> PersonRow | None:
        return await self._one(people.c.telegram_id == telegram_id)

    async def all(self) -> list[PersonRow]:
        return await self._rows(PersonRow, _ALL)

    async def update(
        self,
        person_id: int,
        *,
        role: str | None = None,
        name: str | None = None,
        lang: str | None = None,
        chats: Sequence[str] | None = None,
        serials: Sequence[str] | None = None,
        streams: bool | None = None,
    ) -> bool:
        """Change the fields that are given.

        Return whether the person exists. Raises LookupError if the last owner would lose the role.
        """
        values: dict[str, Any] = {"name": name, "lang": lang, "chats": chats, "serials": serials}
        values["streams"] = streams
        values["role"] = None if role is None else _role(role)
        values = {key: value for key, value in values.items() if value is not None}
        if not values:
            return await self.get(person_id) is not None
        async with self._db.write() as connection:
            owners = await self._owners(connection)
            done = await connection.execute(sa.update(people).where(people.c.id == person_id).values(**values))
            if owners and not await self._owners(connection):
                raise LookupError("The last owner stays: make somebody else an owner first.")
            return done.rowcount == 1

    async def limit(
        self, person_id: int, *, serials: Sequence[str] | None = None, chats: Sequence[str] | None = None
    ) -> bool:
        """Set the limits that are not None; an empty sequence removes a limit. Return whether the person exists."""
        given = {"serials": serials, "chats": chats}
        values = {name: list(value) or sa.null() for name, value in given.items() if value is not None}
        if not values:
            return await self.get(person_id) is not None
        return await self._execute(sa.update(people).where(people.c.id == person_id).values(**values)) == 1

    async def restore(self, person: PersonRow) -> bool:
        """Put back a removed person. Return False if they are back already, or their id belongs to somebody else."""
        add = self._db.insert(people).values(
            id=person.id,
            telegram_id=person.telegram_id,
            role=_role(person.role),
            name=person.name,
            lang=person.lang,
            chats=list(person.chats) if person.chats else None,
            serials=list(person.serials) if person.serials else None,
            paired_at=person.paired_at,
            streams=person.streams,
        )
        return await self._execute(add.on_conflict_do_nothing()) == 1

    async def remove(self, person_id: int) -> bool:
        """Remove a person. Return whether they existed. Raises LookupError if it is the last owner."""
        async with self._db.write() as connection:
            owners = await self._owners(connection)
            done = await connection.execute(sa.delete(people).where(people.c.id == person_id))
            if owners and not await self._owners(connection):
                raise LookupError("The last owner stays: make somebody else an owner first.")
            return done.rowcount == 1

    async def add_code(
        self,
        code: str,
        *,
        role: str,
        lifetime: timedelta,
        created_by: str = "",
        chats: Sequence[str] = (),
        serials: Sequence[str] = (),
        name: str = "",
    ) -> CodeRow:
        """Let somebody pair with ``code`` once. Only its hash is stored; case does not matter.

        name: who may join by the console; "" for somebody who pairs in Telegram.
        chats, serials: the limits of the person who uses it; empty for none.
        """
        now = self._db.now()
        code_hash = _hash(code)
        new = self._db.insert(pairing_codes).values(
            code_hash=code_hash,
            name=name,
            role=_role(role),
            created_by=created_by,
            created_at=now,
            expires_at=now + lifetime,
            chats=list(chats) or None,
            serials=list(serials) or None,
        )
        async with self._db.write() as connection:
            await connection.execute(sa.delete(pairing_codes).where(pairing_codes.c.expires_at <= now))
            await connection.execute(new)
        return CodeRow(code_hash[:CODE_ID], role, created_by, now, now + lifetime, list(chats), list(serials), name)

    async def codes(self) -> list[CodeRow]:
        """Return the codes that can be used now, newest first."""
        open_ones = pairing_codes.c.used_at.is_(None) & (pairing_codes.c.expires_at > self._db.now())
        wanted = sa.select(pairing_codes).where(open_ones).order_by(pairing_codes.c.created_at.desc())
        async with self._db.read() as connection:
            found = await connection.execute(wanted)
            return [
                CodeRow(
                    row.code_hash[:CODE_ID],
                    row.role,
                    row.created_by,
                    row.created_at,
                    row.expires_at,
                    row.chats,
                    row.serials,
                    row.name,
                )
                for row in found
            ]

    async def drop_code(self, code_id: str) -> bool:
        """Delete the open code with this id. Return whether there was one."""
        if len(code_id) != CODE_ID or not set(code_id) <= set("0123456789abcdef"):
            return False
        drop = sa.delete(pairing_codes).where(
            pairing_codes.c.code_hash.startswith(code_id), pairing_codes.c.used_at.is_(None)
        )
        return await self._execute(drop) > 0

    async def pair(self, code: str, *, telegram_id: int, name: str, lang: str = "zh") -> PersonRow | None:
        """Use a code in Telegram. Return the person with its role and limits, or None if there is no such code.

        A known person gets the new role, and keeps the limits for which the code has none.
        """
        now = self._db.now()
        async with self._db.write(durable=True) as connection:
            used = (await connection.execute(self._use(code, pairing_codes.c.name == ""))).one_or_none()
            if used is None:
                return None
            limits = {key: value for key, value in (("chats", used.chats), ("serials", used.serials)) if value}
            given = {"role": used.role, "name": name, **limits}
            add = self._db.insert(people).values(telegram_id=telegram_id, lang=lang, paired_at=now, **given)
            add = add.on_conflict_do_update(index_elements=["telegram_id"], set_=given)
            row = (await connection.execute(add.returning(*people.c))).mappings().one()
        return PersonRow(**row)

    async def join(self, code: str, *, lang: str = "zh") -> PersonRow | None:
        """Use a code in the console. Return the new person, who has no Telegram, or None if there is no such code."""
        async with self._db.write(durable=True) as connection:
            used = (await connection.execute(self._use(code, pairing_codes.c.name != ""))).one_or_none()
            if used is None:
                return None
            given = {"role": used.role, "name": used.name, "chats": used.chats, "serials": used.serials}
            add = self._db.insert(people).values(lang=lang, paired_at=self._db.now(), **given)
            row = (await connection.execute(add.returning(*people.c))).mappings().one()
        return PersonRow(**row)

    def _use(self, code: str, kind: sa.ColumnElement[bool]) -> ReturningUpdate[Any]:
        """Mark an open code of this kind as used, and return its rights."""
        now, table = self._db.now(), pairing_codes.c
        is_open = (table.code_hash == _hash(code)) & table.used_at.is_(None) & (table.expires_at > now) & kind
        use = sa.update(pairing_codes).where(is_open).values(used_at=now)
        return use.returning(table.name, table.role, table.chats, table.serials)

    async def drop_codes(self, created_by: str) -> int:
        """Delete a maker's unused codes. Return how many there were."""
        drop = sa.delete(pairing_codes).where(
            pairing_codes.c.created_by == created_by, pairing_codes.c.used_at.is_(None)
        )
        return await self._execute(drop)

    @staticmethod
    async def _owners(connection: Any) -> int:
        """Return the number of owners, with their rows locked, so that two who demote each other do it one after the
        other.
        """
        owners = sa.select(people.c.id).where(people.c.role == "owner").with_for_update()
        return len((await connection.execute(owners)).all())

    async def _one(self, condition: sa.ColumnElement[bool]) -> PersonRow | None:
        return await self._only(PersonRow, sa.select(people).where(condition))


class Audit(Repository):
    """The audit log."""

    async def write(
        self, actor: str, channel: str, command: str, detail: Mapping[str, Any] | None = None, *, allowed: bool = True
    ) -> int:
        """Add an entry, and return its id."""
        row = sa.insert(audit).values(
            at=self._db.now(), actor=actor, channel=channel, command=command, detail=dict(detail or {}), allowed=allowed
        )
        async with self._db.write() as connection:
            return int((await connection.execute(row.returning(audit.c.id))).scalar_one())

    async def failed(self, entry: int, detail: Mapping[str, Any]) -> None:
        """Replace an entry's detail, because what was allowed then failed."""
        await self._execute(sa.update(audit).where(audit.c.id == entry).values(detail=dict(detail)))

    async def done_by(self, actor: str, commands: Sequence[str]) -> list[AuditRow]:
        """Return this actor's last uses of these commands, newest first. Refused ones are left out."""
        return await self._last(LAST, audit.c.actor == actor, audit.c.command.in_(commands), audit.c.allowed)

    async def of_entry(self, entry_id: str, commands: Sequence[str]) -> list[AuditRow]:
        """Return the last changes to a knowledge entry by these commands, newest first. Refused ones are left out."""
        its = audit.c.detail["entry"].as_string() == entry_id
        return await self._last(LAST, its, audit.c.command.in_(commands), audit.c.allowed)

    async def refused(self, limit: int = LAST) -> list[AuditRow]:
        """Return the refused commands, newest first."""
        return await self._last(limit, audit.c.allowed.is_(False))

    async def seen(self, actors: Sequence[str]) -> dict[str, datetime]:
        """Return the time of the newest entry of each of these actors. Actors without one are left out."""
        newest = (
            sa.select(audit.c.actor, sa.func.max(audit.c.id).label("id"))
            .where(audit.c.actor.in_(list(actors)))
            .group_by(audit.c.actor)
            .subquery()
        )
        wanted = sa.select(audit.c.actor, audit.c.at).join(newest, newest.c.id == audit.c.id)
        return {row.actor: row.at for row in await self._read(wanted)}

    async def last(self, limit: int = 100, *, before: int = 0) -> list[AuditRow]:
        """Return the last entries, newest first. ``before``: only those before the entry with this id, unless 0."""
        return await self._last(limit, *([audit.c.id < before] if before else []))

    async def _last(self, limit: int, *conditions: sa.ColumnElement[bool]) -> list[AuditRow]:
        return await self._rows(AuditRow, sa.select(audit).where(*conditions).order_by(audit.c.id.desc()).limit(limit))
