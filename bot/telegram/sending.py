"""One message to or at Telegram: sent, or changed in place."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import structlog
from telegram import Bot, InputMediaPhoto, LinkPreviewOptions, Message, ReplyParameters
from telegram.constants import ParseMode
from telegram.error import BadRequest

from bot.telegram.parcel import Parcel
from bot.telegram.render import markup

log = structlog.get_logger(__name__)

REMEMBERED = 500
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of ours. ``picture``: it carries one, or a document, and its words are a caption."""

    message_id: int
    picture: bool


def says(error: BadRequest, *words: str) -> bool:
    """Telegram tells its refusals apart by their words only."""
    return any(word in error.message.lower() for word in words)


class Telegram:
    """The calls that the outbox makes. What Telegram answers is raised, but for what comes to the same as success."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._pictures: OrderedDict[tuple[int, int], bytes] = OrderedDict()  # message → digest of what it shows

    async def send(self, chat_id: int, parcel: Parcel) -> Shown:
        reply = None
        if parcel.reply_to is not None:
            reply = ReplyParameters(parcel.reply_to, allow_sending_without_reply=True)
        if parcel.document is not None:
            message = await self._bot.send_document(
                chat_id,
                parcel.document,
                filename=parcel.document_name,
                caption=parcel.caption,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(parcel.keyboard),
                message_thread_id=parcel.thread_id,
                reply_parameters=reply,
            )
            return Shown(message.message_id, True)
        if parcel.picture is not None:
            try:
                message = await self._bot.send_photo(
                    chat_id,
                    parcel.picture,
                    caption=parcel.caption,
                    parse_mode=ParseMode.HTML,
                    reply_markup=markup(parcel.keyboard),
                    message_thread_id=parcel.thread_id,
                    reply_parameters=reply,
                )
                return self._remember(chat_id, message, parcel)
            except BadRequest as error:
                self._refused_picture(error)
        message = await self._bot.send_message(
            chat_id,
            parcel.text,
            parse_mode=ParseMode.HTML,
            reply_markup=markup(parcel.keyboard),
            message_thread_id=parcel.thread_id,
            reply_parameters=reply,
            link_preview_options=NO_PREVIEW,
        )
        return Shown(message.message_id, False)

    async def edit(self, chat_id: int, at: Shown, parcel: Parcel) -> Shown:
        """Change a message; a text becomes a picture where there is one now, a picture stays one."""
        try:
            if parcel.picture is not None and self._pictures.get((chat_id, at.message_id)) != _digest(parcel.picture):
                try:
                    return await self._edit_picture(chat_id, at, parcel)
                except BadRequest as error:
                    self._refused_picture(error)
            await self._edit_words(chat_id, at, parcel)
        except BadRequest as error:
            if not says(error, "not modified"):
                raise
        return at

    async def _edit_picture(self, chat_id: int, at: Shown, parcel: Parcel) -> Shown:
        media = InputMediaPhoto(parcel.picture or b"", caption=parcel.caption, parse_mode=ParseMode.HTML)
        message = await self._bot.edit_message_media(
            media, chat_id, at.message_id, reply_markup=markup(parcel.keyboard)
        )
        if isinstance(message, Message):
            self._remember(chat_id, message, parcel)
        return Shown(at.message_id, True)

    async def _edit_words(self, chat_id: int, at: Shown, parcel: Parcel) -> None:
        if at.picture:
            await self._bot.edit_message_caption(
                chat_id,
                at.message_id,
                caption=parcel.caption,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(parcel.keyboard),
            )
        else:
            await self._bot.edit_message_text(
                parcel.text,
                chat_id,
                at.message_id,
                parse_mode=ParseMode.HTML,
                reply_markup=markup(parcel.keyboard),
                link_preview_options=NO_PREVIEW,
            )

    def _remember(self, chat_id: int, message: Message, parcel: Parcel) -> Shown:
        self._pictures[chat_id, message.message_id] = _digest(parcel.picture or b"")
        while len(self._pictures) > REMEMBERED:
            self._pictures.popitem(last=False)
        return Shown(message.message_id, True)

    @staticmethod
    def _refused_picture(error: BadRequest) -> None:
        """A picture that Telegram does not take is left out; any other refusal is raised."""
        if not says(error, "image_process_failed", "photo_", "too big", "non-empty"):
            raise error
        log.warning("telegram_picture_refused", error=error.message)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
