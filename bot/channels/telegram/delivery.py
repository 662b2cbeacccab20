"""Delivers one message into its chat: edits it in place, or sends it to its topic, and remembers it under its name."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

import structlog
from telegram.error import BadRequest

from agent_core.lru import keep_newest
from bot.channels.chat.outlet import Refs
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.channels.telegram.sending import ShownMessage, Telegram, says
from bot.channels.telegram.topics import Topics
from bot.desk.actors import ChatRef, MessageRef

log = structlog.get_logger(__name__)

REMEMBERED = 500


@dataclass(frozen=True, slots=True)
class Delivered:
    """A message that Telegram has accepted.

    outgoing: the message as it was sent, with its topic.
    asked_at: the message that it was to answer.
    left: the message elsewhere that it replaced.
    new: it is a new message.
    """

    shown: ShownMessage
    outgoing: OutgoingMessage
    asked_at: int | None
    left: ShownMessage | None
    new: bool


class MessageDelivery:
    """The delivery of messages, which are remembered.

    Telegram sees only ``send``; ``write_down`` can be repeated until it succeeds.
    """

    def __init__(self, telegram: Telegram, refs: Refs, options: TelegramOptions, topics: Topics) -> None:
        self._telegram = telegram
        self._refs = refs
        self._options = options
        self._topics = topics
        self._pace: dict[str, float] = {}  # chat → loop time before which nothing is edited
        self._unwritten: OrderedDict[str, MessageRef] = OrderedDict()  # shown by Telegram, unknown to the desk

    def paced_until(self, chat_id: str) -> float:
        """Return the loop time before which nothing is edited in this chat."""
        return self._pace.get(chat_id, 0.0)

    def wait_for(self, chat_id: str, seconds: float) -> None:
        """Edit nothing in this chat for ``seconds``."""
        self._pace[chat_id] = asyncio.get_running_loop().time() + seconds

    async def known(self, chat_id: str, ref: str) -> MessageRef | None:
        """Return the message of this chat that shows ``ref``.

        A message in another chat does not count: somebody saw it there who no longer does.
        """
        known = self._unwritten.get(ref) or (await self._refs.get(ref) if ref else None)
        return known if known is not None and known.chat.chat_id == chat_id else None

    async def send(self, chat_id: str, ref: str, outgoing: OutgoingMessage) -> Delivered | None:
        """Edit the message that shows this, or send a new one.

        Returns None if it asks a question that was answered meanwhile: closing the question also sends its closed card.
        Nothing is called if the message already looks like this.
        """
        if outgoing.question and await self._refs.is_over(outgoing.question):
            log.info("telegram_card_out_of_date", chat=chat_id, ref=ref)
            return None
        known = await self.known(chat_id, ref)
        at = ShownMessage(int(known.message_id), known.picture) if known is not None else None
        if outgoing.stands_alone:
            at = None
        elif at is None and outgoing.edit is not None:
            at = ShownMessage(outgoing.edit, outgoing.edit_picture)
        asked_at, left = outgoing.reply_to, None
        if known is not None and at is not None and not known.chat.thread_id and outgoing.topic is not None:
            outgoing = await self._topics.place(chat_id, outgoing)
            if outgoing.thread_id is not None:  # before, it had no phone, or the right to make its topic was missing
                at, left = None, at
        if at is not None and self._telegram.shows(int(chat_id), at, outgoing):
            shown = at
        else:
            shown, outgoing = await self._at_its_pace(chat_id, at, outgoing)
        if ref and (known is None or shown != ShownMessage(int(known.message_id), known.picture)):
            changed = known is not None and shown.message_id == int(known.message_id)  # it has not moved
            thread = known.chat.thread_id if known is not None and changed else str(outgoing.thread_id or "")
            chat = ChatRef("telegram", chat_id, thread, "group" if outgoing.group else "private")
            message = MessageRef(chat, str(shown.message_id), shown.picture)
            keep_newest(self._unwritten, ref, message, REMEMBERED)
        return Delivered(shown, outgoing, asked_at, left, at is None)

    async def write_down(self, chat_id: str, ref: str, done: Delivered) -> OutgoingMessage | None:
        """Remember the message under its name.

        Returns a receipt if its card is in another topic than it was, or was requested.
        """
        message = self._unwritten.get(ref)
        if message is not None:
            await self._refs.set(ref, message)
            if self._unwritten.get(ref) == message:
                del self._unwritten[ref]
        if done.left is None and not (done.new and done.asked_at is not None):
            return None
        receipt = self._topics.receipt(chat_id, done.outgoing, done.shown)
        if receipt is None:
            return None
        change: dict[str, object] = {"reply_to": done.asked_at}
        if done.left is not None:
            change |= {"edit": done.left.message_id, "edit_picture": done.left.picture}
        return receipt.model_copy(update=change)

    async def _at_its_pace(
        self, chat_id: str, at: ShownMessage | None, outgoing: OutgoingMessage
    ) -> tuple[ShownMessage, OutgoingMessage]:
        if at is not None:
            await self._keep_pace(chat_id)
        try:
            return await self._show(chat_id, at, outgoing)
        finally:
            self.wait_for(chat_id, self._options.edit_group if outgoing.group else self._options.edit_private)

    async def _show(
        self, chat_id: str, at: ShownMessage | None, outgoing: OutgoingMessage
    ) -> tuple[ShownMessage, OutgoingMessage]:
        """Show the message; return it, and the outgoing message as it was sent, with its topic."""
        if at is not None:
            try:
                return await self._telegram.edit(int(chat_id), at, outgoing), outgoing
            except BadRequest as error:
                if not says(error, "to edit not found", "can't be edited", "id_invalid"):
                    raise
                log.info("telegram_message_gone", chat=chat_id, message=at.message_id)
        outgoing = await self._topics.place(chat_id, outgoing)
        try:
            return await self._telegram.send(int(chat_id), outgoing), outgoing
        except BadRequest as error:
            other = await self._topics.instead(chat_id, outgoing, error)
            if other is None:
                raise
        return await self._telegram.send(int(chat_id), other), other

    async def _keep_pace(self, chat_id: str) -> None:
        """Wait until this chat may be edited again."""
        wait = self.paced_until(chat_id) - asyncio.get_running_loop().time()
        if wait > 0:
            await asyncio.sleep(wait)
