"""Chats: those that go on under another id, and topics that are gone."""

from __future__ import annotations

from bot.desk.context import DeskService
from storage.chats import Chats


class DeskChats(DeskService):
    """Both calls return what was shown there, to be shown anew: ``run`` or ``question``, and its id on the card."""

    async def moved(self, channel: str, old_id: str, new_id: str) -> list[tuple[str, str]]:
        """Have everything that names a chat follow it to its new id."""
        return await Chats(self._db).move(channel, old_id, new_id)

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> list[tuple[str, str]]:
        """Forget the cards of a topic that was deleted."""
        return await Chats(self._db).forget_topic(channel, chat_id, thread_id)
