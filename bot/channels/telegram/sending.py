"""Sends one message to Telegram, or edits one in place."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import structlog
from telegram import Bot, ForceReply, InputMediaPhoto, LinkPreviewOptions, Message, ReplyParameters
from telegram.constants import ParseMode
from telegram.error import BadRequest, TelegramError

from agent_core.lru import keep_newest
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.channels.telegram.render import is_photo, markup

log = structlog.get_logger(__name__)

REMEMBERED = 500
PICTURE_NAME = "screen.jpg"
LARGE_SECONDS = 30  # Telegram examines a film before it answers; a retry that is too early would show it twice
ALIVE_SECONDS = 5
SURE_SECONDS = 20.0  # for this long no other process can have edited a message of this one: another takes over later
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


# Broken, too large, or not allowed for bots in this group.
_NO_PICTURE = ("image_process_failed", "photo_", "too big", "non-empty", "not enough rights to send", "chat_send_")


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """A message of ours. ``picture``: it has one, or a document, and its words are a caption."""

    message_id: int
    picture: bool


def says(error: BadRequest, *words: str) -> bool:
    """Tell whether Telegram's words contain any of these, because nothing else distinguishes its refusals."""
    return any(word in error.message.lower() for word in words)


class Telegram:
    """The calls that the outbox makes. Errors of Telegram are raised, except those that amount to success."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._pictures: OrderedDict[tuple[int, int], bytes] = OrderedDict()  # message → digest of its picture
        # Message → digest of everything that it shows, and the monotonic time at which it was computed.
        self._looks: OrderedDict[tuple[int, int], tuple[bytes, float]] = OrderedDict()

    async def answers(self) -> bool:
        """Tell whether Telegram can be reached at all now."""
        try:
            await self._bot.get_me(read_timeout=ALIVE_SECONDS)
        except TelegramError:
            return False
        return True

    def shows(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> bool:
        """Tell whether this message was just made to look like that.

        Another edit would be refused, and count against the chat's rate. After ``SURE_SECONDS`` another process may
        have changed it.
        """
        look, at_time = self._looks.get((chat_id, at.message_id), (b"", 0.0))
        return look == _look(outgoing) and time.monotonic() - at_time < SURE_SECONDS

    async def send(self, chat_id: int, outgoing: OutgoingMessage) -> ShownMessage:
        """Send a new message. A picture that is too large for a photo, or too long, is sent as a file."""
        return self._took(chat_id, await self._send(chat_id, outgoing), outgoing)

    async def _send(self, chat_id: int, outgoing: OutgoingMessage) -> ShownMessage:
        if outgoing.document is not None:
            return await self._send_file(chat_id, outgoing, outgoing.document, outgoing.document_name)
        try:
            shown = await self._send_pictures(chat_id, outgoing)
        except BadRequest as error:
            self._refused_picture(error)
        else:
            if shown is not None:
                return shown
        message = await self._bot.send_message(
            chat_id,
            outgoing.text,
            parse_mode=ParseMode.HTML,
            reply_markup=_forced(outgoing) or markup(outgoing.keyboard),
            message_thread_id=outgoing.thread_id,
            reply_parameters=_reply(outgoing),
            disable_notification=outgoing.silent or None,
            link_preview_options=NO_PREVIEW,
        )
        return ShownMessage(message.message_id, False)

    async def _send_pictures(self, chat_id: int, outgoing: OutgoingMessage) -> ShownMessage | None:
        """Send the pictures of a message; None if it has none."""
        if outgoing.album:
            return await self._send_album(chat_id, outgoing)
        if outgoing.animation is not None:
            message = await self._bot.send_animation(
                chat_id,
                outgoing.animation,
                filename=outgoing.animation_name,
                read_timeout=LARGE_SECONDS,
                **self._captioned(outgoing),
            )
            return ShownMessage(message.message_id, True)
        if outgoing.picture is None:
            return None
        if not is_photo(outgoing.picture):
            return await self._send_file(chat_id, outgoing, outgoing.picture, PICTURE_NAME)
        message = await self._bot.send_photo(chat_id, outgoing.picture, **self._captioned(outgoing))
        return self._remember(chat_id, message, outgoing)

    async def _send_file(self, chat_id: int, outgoing: OutgoingMessage, data: bytes, name: str) -> ShownMessage:
        message = await self._bot.send_document(
            chat_id, data, filename=name, read_timeout=LARGE_SECONDS, **self._captioned(outgoing)
        )
        return ShownMessage(message.message_id, True)

    async def _send_album(self, chat_id: int, outgoing: OutgoingMessage) -> ShownMessage:
        """Send an album. The words are under the first picture: the apps show them for the whole album."""
        first, *others = outgoing.album
        media = [InputMediaPhoto(first, caption=outgoing.caption, parse_mode=ParseMode.HTML)]
        media += [InputMediaPhoto(picture) for picture in others]
        messages = await self._bot.send_media_group(
            chat_id,
            media,
            message_thread_id=outgoing.thread_id,
            reply_parameters=_reply(outgoing),
            disable_notification=outgoing.silent or None,
            read_timeout=LARGE_SECONDS,
        )
        return ShownMessage(messages[0].message_id, True)

    @staticmethod
    def _captioned(outgoing: OutgoingMessage) -> Any:
        return {
            "caption": outgoing.caption,
            "parse_mode": ParseMode.HTML,
            "reply_markup": markup(outgoing.keyboard),
            "message_thread_id": outgoing.thread_id,
            "reply_parameters": _reply(outgoing),
            "disable_notification": outgoing.silent or None,
        }

    async def edit(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> ShownMessage:
        """Edit a message; a text becomes a picture if there is one now, a picture stays one."""
        self._looks.pop((chat_id, at.message_id), None)  # if the answer is lost, the content of the message is unknown
        return self._took(chat_id, await self._edit(chat_id, at, outgoing), outgoing)

    async def _edit(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> ShownMessage:
        try:
            if outgoing.picture is not None and self._pictures.get((chat_id, at.message_id)) != _digest(
                outgoing.picture
            ):
                try:
                    return await self._edit_picture(chat_id, at, outgoing)
                except BadRequest as error:
                    self._refused_picture(error)
            at = await self._edit_words(chat_id, at, outgoing)
        except BadRequest as error:
            if not says(error, "not modified"):
                raise
        return at

    async def _edit_picture(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> ShownMessage:
        media = InputMediaPhoto(outgoing.picture or b"", caption=outgoing.caption, parse_mode=ParseMode.HTML)
        message = await self._bot.edit_message_media(
            media, chat_id, at.message_id, reply_markup=markup(outgoing.keyboard)
        )
        if isinstance(message, Message):
            self._remember(chat_id, message, outgoing)
        return ShownMessage(at.message_id, True)

    async def _edit_words(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> ShownMessage:
        """Edit the text or the caption. Return the message as it is.

        A process that was killed after it had put a picture in place of a text did not write that down.
        """
        try:
            await self._replace_words(chat_id, at, outgoing)
        except BadRequest as error:
            if not says(error, "no text in", "no caption in"):
                raise
            at = ShownMessage(at.message_id, not at.picture)
            await self._replace_words(chat_id, at, outgoing)
        return at

    async def _replace_words(self, chat_id: int, at: ShownMessage, outgoing: OutgoingMessage) -> None:
        if at.picture:
            await self._bot.edit_message_caption(
                chat_id,
                at.message_id,
                caption=outgoing.caption,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(outgoing.keyboard),
            )
        else:
            await self._bot.edit_message_text(
                outgoing.text,
                chat_id,
                at.message_id,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(outgoing.keyboard),
                link_preview_options=NO_PREVIEW,
            )

    def _took(self, chat_id: int, shown: ShownMessage, outgoing: OutgoingMessage) -> ShownMessage:
        keep_newest(self._looks, (chat_id, shown.message_id), (_look(outgoing), time.monotonic()), REMEMBERED)
        return shown

    def _remember(self, chat_id: int, message: Message, outgoing: OutgoingMessage) -> ShownMessage:
        keep_newest(self._pictures, (chat_id, message.message_id), _digest(outgoing.picture or b""), REMEMBERED)
        return ShownMessage(message.message_id, True)

    @staticmethod
    def _refused_picture(error: BadRequest) -> None:
        """Log and ignore pictures that Telegram does not accept, here or at all; any other refusal is raised."""
        if not says(error, *_NO_PICTURE):
            raise error
        log.warning("telegram_picture_refused", error=error.message)


def _forced(outgoing: OutgoingMessage) -> ForceReply | None:
    """Return the markup that opens the input. In a group it is selective: others keep their drafts."""
    if not outgoing.force_reply:
        return None
    return ForceReply(selective=outgoing.group or None, input_field_placeholder=outgoing.force_reply)


def _reply(outgoing: OutgoingMessage) -> ReplyParameters | None:
    if outgoing.reply_to is None:
        return None
    return ReplyParameters(outgoing.reply_to, allow_sending_without_reply=True)


def _look(outgoing: OutgoingMessage) -> bytes:
    """Return a digest of everything that a reader sees of it."""
    words = outgoing.model_dump_json(include={"text", "caption", "keyboard"}).encode()
    return _digest(words + (_digest(outgoing.picture) if outgoing.picture is not None else b""))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
