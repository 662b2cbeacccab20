"""Where runs and questions are shown: the message that is edited, or replied to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from storage.engine import Database
from storage.tables import cards
from storage.uncut import uncut

RUN, QUESTION = "run", "question"


@dataclass(frozen=True, slots=True)
class CardRow:
    """``chat``: channel, chat_id, thread_id and kind. ``picture``: the message carries one."""

    subject: str
    subject_id: str
    chat: Mapping[str, Any]
    chat_id: str
    message_id: str
    picture: bool


@uncut
class Cards:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def put(
        self, subject: str, subject_id: str, *, chat: Mapping[str, Any], message_id: str, picture: bool
    ) -> None:
        """Remember the message; the newest counts."""
        values = {
            "chat": dict(chat),
            "chat_id": str(chat["chat_id"]),
            "message_id": message_id,
            "picture": picture,
        }
        new = self._db.insert(cards).values(subject=subject, subject_id=subject_id, **values)
        new = new.on_conflict_do_update(index_elements=["subject", "subject_id"], set_=values)
        async with self._db.write() as connection:
            await connection.execute(new)

    async def get(self, subject: str, subject_id: str) -> CardRow | None:
        return await self._one(sa.and_(cards.c.subject == subject, cards.c.subject_id == subject_id))

    async def at(self, subject: str, *, channel: str, chat_id: str, message_id: str) -> CardRow | None:
        """What of this kind the message shows."""
        return await self._one(
            sa.and_(
                cards.c.subject == subject,
                cards.c.chat_id == chat_id,
                cards.c.message_id == message_id,
                cards.c.chat["channel"].as_string() == channel,
            )
        )

    async def _one(self, condition: sa.ColumnElement[bool]) -> CardRow | None:
        async with self._db.read() as connection:
            row = (await connection.execute(sa.select(cards).where(condition).limit(1))).mappings().one_or_none()
        return None if row is None else CardRow(**row)
