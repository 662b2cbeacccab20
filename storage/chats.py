"""Chats that get a new id: everything that belongs to the old id moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.tables import (
    cards,
    digest_chats,
    digests,
    outbox,
    pairing_codes,
    people,
    question_copies,
    runs,
    schedules,
    topics,
)


@shielded
class Chats:
    """The chats that rows of all tables name."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def move(self, channel: str, old_id: str, new_id: str) -> list[tuple[str, str]]:
        """Move runs, schedules, copies of questions, limits and digests to the new chat, in one transaction.

        Messages don't move, because a message id of the old chat means another message in the new one. So cards are
        deleted and returned as (subject, subject id), to be shown again; topics are deleted. A second call changes
        nothing.
        """
        async with self._db.write(durable=True) as connection:
            for table, key in ((runs, runs.c.id), (schedules, schedules.c.id)):
                await self._move_column(connection, table, [key], channel, old_id, new_id)
            keys = [question_copies.c.question_id, question_copies.c.name]
            await self._move_column(connection, question_copies, keys, channel, old_id, new_id)
            for table, key in ((people, people.c.id), (pairing_codes, pairing_codes.c.code_hash)):
                await self._move_limits(connection, table, key, f"{channel}:{old_id}", f"{channel}:{new_id}")
            await connection.execute(sa.delete(topics).where(topics.c.chat_id == old_id))
            await self._move_digests(connection, f"{channel}:{old_id}", f"{channel}:{new_id}", new_id)
            shown = sa.and_(cards.c.chat_id == old_id, cards.c.chat["channel"].as_string() == channel)
            found = await connection.execute(sa.select(cards.c.subject, cards.c.subject_id).where(shown))
            gone = [(str(subject), str(subject_id)) for subject, subject_id in found]
            await connection.execute(sa.delete(cards).where(shown))
        return gone

    async def known(self, channel: str) -> set[str]:
        """Return the ids of this channel's chats to which anything was sent or is to be sent."""
        said = sa.select(outbox.c.chat_key.label("chat_id")).union(
            sa.select(topics.c.chat_id),
            sa.select(cards.c.chat_id).where(cards.c.chat["channel"].as_string() == channel),
        )
        async with self._db.read() as connection:
            here = set((await connection.execute(said)).scalars())
            digests_to = (await connection.execute(sa.select(digest_chats.c.chat_key))).scalars()
            return here | {key.partition(":")[2] for key in digests_to if key.startswith(f"{channel}:")}

    async def forget_topic(self, channel: str, chat_id: str, thread_id: str) -> list[tuple[str, str]]:
        """Forget the cards of a topic that was deleted with all its messages. Return (subject, subject id) of each."""
        shown = sa.and_(
            cards.c.chat_id == chat_id,
            cards.c.chat["channel"].as_string() == channel,
            cards.c.chat["thread_id"].as_string() == thread_id,
        )
        async with self._db.write(durable=True) as connection:
            found = await connection.execute(
                sa.delete(cards).where(shown).returning(cards.c.subject, cards.c.subject_id)
            )
            return [(str(subject), str(subject_id)) for subject, subject_id in found]

    @staticmethod
    async def _move_limits(connection: Any, table: sa.Table, key: sa.Column[Any], old_key: str, new_key: str) -> None:
        """Replace the chat in the column ``chats`` of people or codes that are limited to some chats."""
        limited = sa.select(key, table.c.chats).where(table.c.chats.is_not(None))
        for row in (await connection.execute(limited)).mappings().all():
            chats = list(row["chats"] or ())
            if old_key in chats:
                moved = list(dict.fromkeys(new_key if name == old_key else name for name in chats))
                await connection.execute(sa.update(table).where(key == row[key.name]).values(chats=moved))

    @staticmethod
    async def _move_digests(connection: Any, old_key: str, new_key: str, new_id: str) -> None:
        for table in (digest_chats, digests):
            there = await connection.execute(sa.select(table.c.chat_key).where(table.c.chat_key == new_key).limit(1))
            if there.first() is None:
                await connection.execute(sa.update(table).where(table.c.chat_key == old_key).values(chat_key=new_key))
        row = (await connection.execute(sa.select(digest_chats).where(digest_chats.c.chat_key == new_key))).mappings()
        for moved in row.all():
            await connection.execute(
                sa.update(digest_chats)
                .where(digest_chats.c.chat_key == new_key)
                .values(chat={**moved["chat"], "chat_id": new_id})
            )

    @staticmethod
    async def _move_column(
        connection: Any, table: sa.Table, keys: list[sa.Column[Any]], channel: str, old_id: str, new_id: str
    ) -> None:
        """Replace the chat in the column ``chat`` of every row that names it. A basic group has no topics."""
        chat = table.c.chat
        here = sa.and_(chat["chat_id"].as_string() == old_id, chat["channel"].as_string() == channel)
        for row in (await connection.execute(sa.select(*keys, chat).where(here))).mappings().all():
            value: Mapping[str, Any] = {**row["chat"], "chat_id": new_id}
            which = sa.and_(*(key == row[key.name] for key in keys))
            await connection.execute(sa.update(table).where(which).values(chat=dict(value)))
