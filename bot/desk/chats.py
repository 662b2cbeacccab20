"""Chats that got a new id, and topics that were deleted."""

from __future__ import annotations

from bot.desk.context import DeskService
from storage.chats import Chats


class DeskChats(DeskService):
    """The service for changes of chats.

    Both calls return the cards that must be shown again: ``run`` or ``question``, and the id on the card.
    """

    async def moved(self, channel: str, old_id: str, new_id: str) -> list[tuple[str, str]]:
        """Replace a chat's id by its new one everywhere."""
        return await Chats(self._db).move(channel, old_id, new_id)

    async def topic_gone(self, channel: str, chat_id: str, thread_id: str) -> list[tuple[str, str]]:
        """Forget the cards of a topic that was deleted."""
        return await Chats(self._db).forget_topic(channel, chat_id, thread_id)
