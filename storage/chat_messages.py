"""The messages of the console's chats, which no server of somebody else keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.failures import shielded
from storage.tables import chat_messages


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


@shielded
class ChatMessages:
    """The table of messages in the console's chats."""

    def __init__(self, db: Database) -> None:
        self._db = db

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
        async with self._db.write(durable=True) as connection:
            return (await connection.execute(change)).rowcount == 1

    async def last(self, chat_id: str, limit: int) -> list[ChatMessageRow]:
        """Return the last messages of a chat, the oldest first."""
        wanted = sa.select(*_SHOWN).where(chat_messages.c.chat_id == chat_id).order_by(chat_messages.c.id.desc())
        async with self._db.read() as connection:
            found = (await connection.execute(wanted.limit(limit))).mappings()
            return [ChatMessageRow(**row) for row in found][::-1]

    async def get(self, chat_id: str, message_id: int) -> ChatMessageRow | None:
        """Return a message of this chat; None if it has none with this id."""
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(*_SHOWN).where(self._is(chat_id, message_id)))).mappings().first()
        return ChatMessageRow(**row) if row is not None else None

    async def files(self, chat_id: str, message_id: int) -> Sequence[str]:
        """Return the files of a message, in base64; none if this chat has no such message."""
        async with self._db.read() as connection:
            found = await connection.execute(sa.select(chat_messages.c.files).where(self._is(chat_id, message_id)))
            return found.scalar_one_or_none() or ()

    @staticmethod
    def _is(chat_id: str, message_id: int) -> sa.ColumnElement[bool]:
        return (chat_messages.c.chat_id == chat_id) & (chat_messages.c.id == message_id)
