"""Chats: one that goes on under another id."""

from __future__ import annotations

from bot.desk.house import DeskPart
from storage.chats import Chats


class ChatsDesk(DeskPart):
    async def chat_moved(self, channel: str, old_id: str, new_id: str) -> list[tuple[str, str]]:
        return await Chats(self._db).move(channel, old_id, new_id)

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> list[tuple[str, str]]:
        return await Chats(self._db).forget_topic(channel, chat_id, thread_id)
