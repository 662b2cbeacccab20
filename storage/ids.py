"""Ids of runs and questions, and idempotency keys.

Ids are short, unique, and in the order in which they were made. A request that is repeated under its own key gets the
result of the first time.
"""

from __future__ import annotations

import secrets
import threading
import time

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.tables import requests

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no characters that are easily misread

_lock = threading.Lock()
_last = 0


def _digits(number: int, width: int) -> str:
    out = ""
    for _ in range(width):
        number, digit = divmod(number, 32)
        out = ALPHABET[digit] + out
    return out


def new_id() -> str:
    """Return an id of 13 characters: nine for the time in milliseconds (unique in this process), four random."""
    global _last  # noqa: PLW0603 - keeps the ids of one process in order
    with _lock:
        _last = max(time.time_ns() // 1_000_000, _last + 1)
        moment = _last
    return _digits(moment, 9) + _digits(secrets.randbits(20), 4)


class AlreadyMade(Exception):
    """Another transaction has made something under this key."""


async def made_under(connection: AsyncConnection, key: str) -> str | None:
    """Return the id of the row made under ``key``, or None if the key is new or empty."""
    if not key:
        return None
    found = await connection.execute(sa.select(requests.c.subject_id).where(requests.c.key == key))
    return found.scalar_one_or_none()


async def remember(connection: AsyncConnection, db: Database, key: str, subject_id: str) -> None:
    """Store the id of the row made under ``key`` in this transaction.

    Raises AlreadyMade, which rolls it back, if the key is used.
    """
    if not key:
        return
    new = db.insert(requests).values(key=key, subject_id=subject_id, created_at=db.now()).on_conflict_do_nothing()
    if (await connection.execute(new)).rowcount != 1:
        raise AlreadyMade(key)


async def find(db: Database, key: str) -> str | None:
    async with db.read() as connection:
        return await made_under(connection, key)
