"""What a channel asked for under a key of its own; asked again, it gets what it got the first time."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from storage.engine import Database
from storage.tables import requests


class AlreadyMade(Exception):
    """Another transaction made something under this key."""


async def made_under(connection: AsyncConnection, key: str) -> str | None:
    """The id of what was made under ``key``; None for a new key, or an empty one."""
    if not key:
        return None
    found = await connection.execute(sa.select(requests.c.subject_id).where(requests.c.key == key))
    return found.scalar_one_or_none()


async def remember(connection: AsyncConnection, db: Database, key: str, subject_id: str) -> None:
    """Write down what is made under ``key`` in this transaction. AlreadyMade rolls it back."""
    if not key:
        return
    new = db.insert(requests).values(key=key, subject_id=subject_id, created_at=db.now()).on_conflict_do_nothing()
    if (await connection.execute(new)).rowcount != 1:
        raise AlreadyMade(key)


async def find(db: Database, key: str) -> str | None:
    async with db.read() as connection:
        return await made_under(connection, key)
