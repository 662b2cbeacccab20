"""The chats that get digests, and the digests that were sent: one row per chat and period, written with the sending
event.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from storage.events import append_event
from storage.repository import Repository
from storage.tables import digest_chats, digests

DAILY, WEEKLY = "daily", "weekly"
SENT, EMPTY, MISSED = "sent", "empty", "missed"
BEFORE = "before"  # due before digests were turned on


@dataclass(frozen=True, slots=True)
class DigestChatRow:
    """The digests of a chat.

    ``chat`` has the same keys as in cards. ``person_id``: the person who first turned on the digests; the chat is shown
    the phones and runs that this person may see. ``changed_at``: no digest of any kind that was due before this is
    sent.
    """

    chat_key: str
    chat: Mapping[str, Any]
    daily: bool
    weekly: bool
    person_id: int
    changed_at: datetime


class Digests(Repository):
    """The tables of digests and of the chats that get them."""

    async def chats(self) -> list[DigestChatRow]:
        return await self._rows(DigestChatRow, sa.select(digest_chats).order_by(digest_chats.c.chat_key))

    async def chat(self, chat_key: str) -> DigestChatRow | None:
        return await self._only(DigestChatRow, sa.select(digest_chats).where(digest_chats.c.chat_key == chat_key))

    async def set_chat(
        self,
        chat_key: str,
        chat: Mapping[str, Any],
        *,
        daily: bool,
        weekly: bool,
        person_id: int,
        since: datetime | None = None,
        begins: Collection[str] = (),
    ) -> DigestChatRow:
        """Set the digests of a chat.

        since: digests that were due before are not sent. None means now.
        begins: the kinds that begin now; ``since`` applies to the kinds that continue.
        """
        now = self._db.now()
        values = {
            "chat": dict(chat),
            "daily": daily,
            "weekly": weekly,
            "person_id": person_id,
            "changed_at": since or now,
        }
        async with self._db.write(durable=True) as connection:
            await connection.execute(self._db.upsert(digest_chats, values, chat_key=chat_key))
            for kind in begins:
                passed = self._db.insert(digests).values(
                    chat_key=chat_key, kind=kind, planned_at=now, state=BEFORE, created_at=now
                )
                await connection.execute(passed.on_conflict_do_nothing())
        return DigestChatRow(chat_key, dict(chat), daily, weekly, person_id, since or now)

    async def is_out(self, chat_key: str, kind: str, planned_at: datetime) -> bool:
        """Tell whether this digest, or a later one of its kind, was dealt with for this chat."""
        wanted = sa.select(digests.c.chat_key).where(
            digests.c.chat_key == chat_key, digests.c.kind == kind, digests.c.planned_at >= planned_at
        )
        return await self._value(wanted.limit(1)) is not None

    async def take(
        self, chat_key: str, kind: str, planned_at: datetime, *, state: str, told: Mapping[str, Any] | None = None
    ) -> bool:
        """Mark the digest of a chat and period as dealt with. Only the first caller gets True.

        told: the data of the event ``digest`` that makes the channel send it, written in the same transaction.
        """
        new = self._db.insert(digests).values(
            chat_key=chat_key, kind=kind, planned_at=planned_at, state=state, created_at=self._db.now()
        )
        async with self._db.write(durable=True) as connection:
            if (await connection.execute(new.on_conflict_do_nothing())).rowcount != 1:
                return False
            if told is not None:
                await append_event(connection, self._db, "", "digest", told)
        self._notify("events")
        return True
