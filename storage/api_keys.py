"""API keys, by which programs prove who they are. Only the hash of a key is stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from storage.people import ROLES
from storage.repository import Repository
from storage.tables import api_keys

PREFIX = "pdk_"
RANDOM_BYTES = 32
USED_EVERY = timedelta(minutes=1)  # precision of "last used", so that not every request writes a row


class NameTaken(ValueError):
    """A key with this name exists already."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key's row.

    ``serials``: the phones it may use, None for all. ``lang``: the language of replies to its holder.
    """

    id: int
    name: str
    role: str
    lang: str
    serials: Sequence[str] | None
    created_by: str
    created_at: datetime
    last_used_at: datetime | None


_SHOWN = [column for column in api_keys.c if column.name != "key_hash"]
# Built once, see ``storage.history``.
_ALL = sa.select(*_SHOWN).order_by(api_keys.c.id)
_BY_HASH = sa.select(api_keys).where(api_keys.c.key_hash == sa.bindparam("wanted"))


def new_key() -> str:
    """Return a new random key of letters, digits, ``-`` and ``_``."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def hash_of(key: str) -> str:
    """Return the SHA-256 of a key in hexadecimal. A key is fully random, so it needs neither salt nor a slow hash."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKeys(Repository):
    """The table of API keys."""

    async def add(
        self, name: str, *, role: str, lang: str = "zh", serials: Sequence[str] = (), created_by: str = ""
    ) -> tuple[str, KeyRow]:
        """Store a new key. Return the key itself, which is stored nowhere, and its row.

        Raises NameTaken if the name exists, and ValueError for an unknown role.
        """
        if role not in ROLES:
            raise ValueError(f"A role is one of {', '.join(ROLES)}, not {role!r}.")
        key = new_key()
        new = sa.insert(api_keys).values(
            name=name,
            key_hash=hash_of(key),
            role=role,
            lang=lang,
            serials=list(serials) or None,
            created_by=created_by,
            created_at=self._db.now(),
        )
        try:
            async with self._db.write(durable=True) as connection:
                row = (await connection.execute(new.returning(*_SHOWN))).mappings().one()
        except IntegrityError:
            raise NameTaken(f"There is a key {name!r} already.") from None
        return key, KeyRow(**row)

    async def of(self, key: str) -> KeyRow | None:
        """Return the row of this key and record its use, or return None if there is none.

        The hash is looked up, so the time that it takes reveals nothing about any key.
        """
        wanted = hash_of(key)
        async with self._db.read() as connection:
            found = await connection.execute(_BY_HASH, {"wanted": wanted})
            row = found.mappings().one_or_none()
        if row is None or not hmac.compare_digest(row["key_hash"], wanted):
            return None
        now, used_at = self._db.now(), row["last_used_at"]
        if used_at is None or now - used_at >= USED_EVERY:
            await self._execute(sa.update(api_keys).where(api_keys.c.id == row["id"]).values(last_used_at=now))
        return KeyRow(**{column.name: row[column.name] for column in _SHOWN})

    async def all(self) -> list[KeyRow]:
        return await self._rows(KeyRow, _ALL)

    async def rotate(self, name: str) -> tuple[str, KeyRow] | None:
        """Give a key a new secret, and refuse the old one. Return the key and its row, or None if there is none."""
        key = new_key()
        changed = sa.update(api_keys).where(api_keys.c.name == name).values(key_hash=hash_of(key), last_used_at=None)
        async with self._db.write(durable=True) as connection:
            row = (await connection.execute(changed.returning(*_SHOWN))).mappings().one_or_none()
        return None if row is None else (key, KeyRow(**row))

    async def remove(self, name: str) -> KeyRow | None:
        """Revoke a key at once. Return its row, or None if there is none with this name."""
        async with self._db.write(durable=True) as connection:
            gone = await connection.execute(sa.delete(api_keys).where(api_keys.c.name == name).returning(*_SHOWN))
            row = gone.mappings().one_or_none()
        return None if row is None else KeyRow(**row)
