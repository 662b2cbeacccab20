"""The topic of each phone in a chat that is a forum, by the chat's own ids."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.tables import topics


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. ``name``: as we last set it. ``closed``: closed by a person, until it is opened again."""

    chat_id: str
    serial: str
    thread_id: str
    name: str
    closed: bool
    created_at: datetime


@shielded
class TopicTable:
    """The table of topics."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def of(self, chat_id: str, serial: str) -> TopicRow | None:
        """Return the topic of a phone, or None if it has none."""
        return await self._one(sa.and_(topics.c.chat_id == chat_id, topics.c.serial == serial))

    async def at(self, chat_id: str, thread_id: str) -> TopicRow | None:
        """Return the topic with this thread, which names its phone, or None if there is none."""
        return await self._one(sa.and_(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id))

    async def put(self, chat_id: str, serial: str, *, thread_id: str, name: str) -> TopicRow:
        """Store the topic of a phone as open, in place of an earlier one."""
        values = {"thread_id": thread_id, "name": name, "closed": False, "created_at": self._db.now()}
        new = self._db.insert(topics).values(chat_id=chat_id, serial=serial, **values)
        async with self._db.write() as connection:
            await connection.execute(new.on_conflict_do_update(index_elements=["chat_id", "serial"], set_=values))
        return TopicRow(chat_id, serial, thread_id, name, closed=False, created_at=self._db.now())

    async def named(self, chat_id: str, serial: str, name: str) -> None:
        await self._set(sa.and_(topics.c.chat_id == chat_id, topics.c.serial == serial), name=name)

    async def closed(self, chat_id: str, thread_id: str, *, closed: bool) -> None:
        await self._set(sa.and_(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id), closed=closed)

    async def forget(self, chat_id: str, thread_id: str) -> None:
        """Delete a topic that no longer exists."""
        async with self._db.write() as connection:
            await connection.execute(
                sa.delete(topics).where(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id)
            )

    async def _set(self, condition: sa.ColumnElement[bool], **values: object) -> None:
        async with self._db.write() as connection:
            await connection.execute(sa.update(topics).where(condition).values(**values))

    async def _one(self, condition: sa.ColumnElement[bool]) -> TopicRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(topics).where(condition).limit(1))).mappings().one_or_none()
        return None if row is None else TopicRow(**row)
