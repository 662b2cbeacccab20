"""Gives each phone a topic if the chat is a forum: finds, makes, renames and reopens it.

A message that belongs to a phone and names no topic goes to the phone's. If the bot may not manage topics, the message
goes to the same place as without them, and the owners are told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape

import structlog
from telegram import Bot, Message
from telegram.error import BadRequest, Forbidden

from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.channels.telegram.render import clean, cut
from bot.channels.telegram.sending import ShownMessage, says
from bot.desk.actors import ChatRef
from storage.chats import TopicRow, TopicTable

log = structlog.get_logger(__name__)

MAX_NAME = 128
LOOK_AGAIN = 3600.0  # seconds until a chat is checked again for being a forum
ASK_AGAIN = 600.0  # seconds until topics are tried again after the right was missing

_GONE = ("thread not found", "topic_deleted", "topic_id_invalid")
_CLOSED = ("topic_closed",)
_NO_RIGHT = ("not enough rights", "admin_required", "not a forum", "forbidden")


@dataclass(slots=True)
class _Forum:
    """Known facts about a chat. ``until``: loop time at which ``is_one`` is checked again."""

    is_one: bool
    title: str
    until: float


class Topics:
    """The topics of forums.

    no_right: called with the id and title of a chat that must do without topics.
    gone: called with the chat and number of a topic that was deleted.
    """

    def __init__(
        self,
        store: TopicTable | None,
        bot: Bot,
        options: TelegramOptions,
        *,
        no_right: Callable[[str, str], Awaitable[None]],
        gone: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._store = store if options.topics else None
        self._bot = bot
        self._options = options
        self._no_right = no_right
        self._told_gone = gone
        self._forums: dict[str, _Forum] = {}
        self._denied: dict[str, float] = {}  # chat → loop time at which topics are tried again
        self._gone: set[tuple[str, int]] = set()  # deleted topics that this process has met

    # Events of topics -------------------------------------------------------------------------------------------------

    async def saw(self, message: Message) -> None:
        """Record from a group's message whether it is a forum, and changes of a topic."""
        if message.chat.type == "private" or self._store is None:
            return
        chat_id = str(message.chat.id)
        self._note(chat_id, is_one=bool(message.chat.is_forum), title=message.chat.title or "")
        thread = str(message.message_thread_id or "")
        if thread and (message.forum_topic_closed is not None or message.forum_topic_reopened is not None):
            await self._store.closed(chat_id, thread, closed=message.forum_topic_closed is not None)

    async def phone_at(self, chat: ChatRef) -> str:
        """Return the serial of the phone whose topic this is; "" if it is none."""
        if self._store is None or not chat.thread_id:
            return ""
        row = await self._store.at(chat.chat_id, chat.thread_id)
        return row.serial if row is not None else ""

    # The topic of a message -------------------------------------------------------------------------------------------

    async def place(self, chat_id: str, outgoing: OutgoingMessage) -> OutgoingMessage:
        """Return the outgoing message with the topic to send it to.

        Raises Telegram's errors, except for a missing right.
        """
        if outgoing.thread_id is not None and (chat_id, outgoing.thread_id) in self._gone:
            outgoing = outgoing.model_copy(update={"thread_id": None, "reply_to": None})
        if not outgoing.group or self._store is None:
            return outgoing
        if outgoing.thread_id is not None:
            row = await self._store.at(chat_id, str(outgoing.thread_id))
            if row is not None and row.closed:
                await self._open(chat_id, row)
            return outgoing
        if outgoing.topic is None or self._is_denied(chat_id) or not await self._is_forum(chat_id):
            return outgoing
        thread = await self._thread(self._store, chat_id, outgoing.topic.serial, outgoing.topic.name)
        return outgoing if thread is None else outgoing.model_copy(update={"thread_id": thread, "reply_to": None})

    async def instead(self, chat_id: str, outgoing: OutgoingMessage, error: BadRequest) -> OutgoingMessage | None:
        """Return another place for a message that was refused because of its topic; None if that was not the reason."""
        if outgoing.thread_id is None:
            return None
        thread = str(outgoing.thread_id)
        if says(error, *_GONE):
            log.info("telegram_topic_gone", chat=chat_id, topic=thread)
            self._gone.add((chat_id, outgoing.thread_id))
            if self._store is not None:
                await self._store.forget(chat_id, thread)
            await self._told_gone(chat_id, thread)
            return await self.place(chat_id, outgoing)
        if says(error, *_CLOSED):
            row = await self._store.at(chat_id, thread) if self._store is not None else None
            if row is not None and await self._open(chat_id, row):
                return outgoing
            return outgoing.model_copy(update={"thread_id": None, "reply_to": None, "topic": None})
        return None

    @staticmethod
    def receipt(chat_id: str, outgoing: OutgoingMessage, shown: ShownMessage) -> OutgoingMessage | None:
        """Return a note for the place of a command whose card is in a topic, with a link to the card."""
        topic = outgoing.topic
        if topic is None or not topic.receipt or outgoing.thread_id is None:
            return None
        link = f"https://t.me/c/{chat_id.removeprefix('-100')}/{outgoing.thread_id}/{shown.message_id}"
        words = f'{escape(topic.receipt, quote=False)} <a href="{link}">{escape(_name(topic.name), quote=False)}</a>'
        return OutgoingMessage(text=words, caption=words, group=True)

    # One topic --------------------------------------------------------------------------------------------------------

    async def _thread(self, store: TopicTable, chat_id: str, serial: str, name: str) -> int | None:
        """Return the phone's topic, made or updated; None if the bot may not make it."""
        name = _name(name or serial)
        row = await store.of(chat_id, serial)
        if row is not None and row.name != name and not await self._rename(store, chat_id, row, name):
            row = None
        if row is not None:
            if row.closed:
                await self._open(chat_id, row)
            return int(row.thread_id)
        try:
            made = await self._bot.create_forum_topic(int(chat_id), name)
        except BadRequest as error:
            if not says(error, *_NO_RIGHT):
                raise
            await self._deny(chat_id, error)
            return None
        await store.put(chat_id, serial, thread_id=str(made.message_thread_id), name=name)
        log.info("telegram_topic_made", chat=chat_id, phone=serial, topic=made.message_thread_id)
        return made.message_thread_id

    async def _rename(self, store: TopicTable, chat_id: str, row: TopicRow, name: str) -> bool:
        """Rename a topic. Return False if it is gone. A topic that may not be renamed keeps its name."""
        try:
            await self._bot.edit_forum_topic(int(chat_id), int(row.thread_id), name=name)
        except BadRequest as error:
            if says(error, *_GONE):
                return False
            if not says(error, "not_modified", *_NO_RIGHT):
                raise
            log.warning("telegram_topic_not_renamed", chat=chat_id, phone=row.serial, error=error.message)
        await store.named(chat_id, row.serial, name)
        return True

    async def _open(self, chat_id: str, row: TopicRow) -> bool:
        """Open a closed topic, so that questions in it can be answered. False if that is not allowed."""
        try:
            await self._bot.reopen_forum_topic(int(chat_id), int(row.thread_id))
        except BadRequest as error:
            if says(error, *_NO_RIGHT):
                await self._deny(chat_id, error)
                return False
            if not says(error, "not_modified", *_GONE):  # gone: sending says so
                raise
        if self._store is not None:
            await self._store.closed(chat_id, row.thread_id, closed=False)
        return True

    # Forums and rights ------------------------------------------------------------------------------------------------

    async def _is_forum(self, chat_id: str) -> bool:
        known = self._forums.get(chat_id)
        if known is None or known.until < asyncio.get_running_loop().time():
            try:
                chat = await self._bot.get_chat(int(chat_id))
            except (BadRequest, Forbidden):
                return False  # sending says why
            known = self._note(chat_id, is_one=bool(chat.is_forum), title=chat.title or "")
        return known.is_one

    def _note(self, chat_id: str, *, is_one: bool, title: str) -> _Forum:
        self._forums[chat_id] = _Forum(is_one, title, asyncio.get_running_loop().time() + LOOK_AGAIN)
        return self._forums[chat_id]

    def _is_denied(self, chat_id: str) -> bool:
        return self._denied.get(chat_id, 0.0) > asyncio.get_running_loop().time()

    async def _deny(self, chat_id: str, error: BadRequest) -> None:
        self._denied[chat_id] = asyncio.get_running_loop().time() + ASK_AGAIN
        log.warning("telegram_topics_not_allowed", chat=chat_id, error=error.message)
        known = self._forums.get(chat_id)
        await self._no_right(chat_id, known.title if known is not None else "")


def _name(written: str) -> str:
    return cut(clean(written), MAX_NAME) or "?"
