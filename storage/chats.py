"""Chats: what belongs to them moves if they get a new id; topics of phones; the messages of the console's chats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.repository import Repository
from storage.tables import (
    cards,
    chat_messages,
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


class Chats(Repository):
    """The chats that rows of all tables name."""

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


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic. ``name``: as we last set it. ``closed``: closed by a person, until it is opened again."""

    chat_id: str
    serial: str
    thread_id: str
    name: str
    closed: bool
    created_at: datetime


class TopicTable(Repository):
    """The topic of each phone in a chat that is a forum, by the chat's own ids."""

    async def of(self, chat_id: str, serial: str) -> TopicRow | None:
        """Return the topic of a phone, or None if it has none."""
        return await self._one(sa.and_(topics.c.chat_id == chat_id, topics.c.serial == serial))

    async def at(self, chat_id: str, thread_id: str) -> TopicRow | None:
        """Return the topic with this thread, which names its phone, or None if there is none."""
        return await self._one(sa.and_(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id))

    async def put(self, chat_id: str, serial: str, *, thread_id: str, name: str) -> TopicRow:
        """Store the topic of a phone as open, in place of an earlier one."""
        values = {"thread_id": thread_id, "name": name, "closed": False, "created_at": self._db.now()}
        await self._execute(self._db.upsert(topics, values, chat_id=chat_id, serial=serial))
        return TopicRow(chat_id, serial, thread_id, name, closed=False, created_at=self._db.now())

    async def named(self, chat_id: str, serial: str, name: str) -> None:
        await self._set(sa.and_(topics.c.chat_id == chat_id, topics.c.serial == serial), name=name)

    async def closed(self, chat_id: str, thread_id: str, *, closed: bool) -> None:
        await self._set(sa.and_(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id), closed=closed)

    async def forget(self, chat_id: str, thread_id: str) -> None:
        """Delete a topic that no longer exists."""
        await self._execute(sa.delete(topics).where(topics.c.chat_id == chat_id, topics.c.thread_id == thread_id))

    async def _set(self, condition: sa.ColumnElement[bool], **values: object) -> None:
        await self._execute(sa.update(topics).where(condition).values(**values))

    async def _one(self, condition: sa.ColumnElement[bool]) -> TopicRow | None:
        return await self._only(TopicRow, sa.select(topics).where(condition).limit(1))


@dataclass(frozen=True, slots=True)
class ChatMessageRow:
    """A message, without its files.

    own: the person wrote it, otherwise the desk.
    ref: the subject whose card it is (``run:<id>``), "" for none.
    reply_to: the message that it answers.
    version: the number of its changes.
    """

    id: int
    chat_id: str
    own: bool
    ref: str
    reply_to: int | None
    card: Mapping[str, Any]
    version: int
    created_at: datetime


_SHOWN = [column for column in chat_messages.c if column.name not in ("files", "once")]


class ChatMessages(Repository):
    """The messages of the console's chats, which no server of somebody else keeps."""

    async def add(
        self,
        chat_id: str,
        card: Mapping[str, Any],
        *,
        own: bool = False,
        ref: str = "",
        once: str = "",
        reply_to: int | None = None,
        files: Sequence[str] = (),
    ) -> int:
        """Store a message and return its id.

        once: a name under which this chat has only one message; a second one is not stored.
        files: in base64.
        """
        new = self._db.insert(chat_messages).values(
            chat_id=chat_id,
            own=own,
            ref=ref,
            once=once or None,
            reply_to=reply_to,
            card=dict(card),
            files=list(files),
            created_at=self._db.now(),
        )
        same = (chat_messages.c.chat_id == chat_id) & (chat_messages.c.once == once)
        async with self._db.write(durable=True) as connection:
            added = await connection.execute(new.on_conflict_do_nothing().returning(chat_messages.c.id))
            number = added.scalar_one_or_none()
            if number is None:
                number = (await connection.execute(sa.select(chat_messages.c.id).where(same))).scalar_one()
            return int(number)

    async def change(
        self, message_id: int, card: Mapping[str, Any], files: Sequence[str] = (), *, ref: str = ""
    ) -> bool:
        """Replace the content of a message. Return whether it is still there. ``ref``: what it shows from now on."""
        change = sa.update(chat_messages).where(chat_messages.c.id == message_id)
        change = change.values(card=dict(card), files=list(files), version=chat_messages.c.version + 1)
        if ref:
            change = change.values(ref=ref)
        return await self._execute(change, durable=True) == 1

    async def last(self, chat_id: str, limit: int) -> list[ChatMessageRow]:
        """Return the last messages of a chat, the oldest first."""
        wanted = sa.select(*_SHOWN).where(chat_messages.c.chat_id == chat_id).order_by(chat_messages.c.id.desc())
        return (await self._rows(ChatMessageRow, wanted.limit(limit)))[::-1]

    async def get(self, chat_id: str, message_id: int) -> ChatMessageRow | None:
        """Return a message of this chat; None if it has none with this id."""
        return await self._only(ChatMessageRow, sa.select(*_SHOWN).where(self._is(chat_id, message_id)))

    async def files(self, chat_id: str, message_id: int) -> Sequence[str]:
        """Return the files of a message, in base64; none if this chat has no such message."""
        return await self._value(sa.select(chat_messages.c.files).where(self._is(chat_id, message_id))) or ()

    @staticmethod
    def _is(chat_id: str, message_id: int) -> sa.ColumnElement[bool]:
        return (chat_messages.c.chat_id == chat_id) & (chat_messages.c.id == message_id)
