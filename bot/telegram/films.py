"""Replays, made when their turn to be sent has come: nobody's command waits for them, and the store stays small."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from telegram import Bot
from telegram.constants import ChatAction
from telegram.error import TelegramError

from bot.chat.cards import Card, FilmOrder
from bot.chat.history import film_card
from bot.chat.texts import texts
from bot.desk.port import Desk
from bot.telegram import render
from bot.telegram.parcel import Film, Parcel

log = structlog.get_logger(__name__)


class Films:
    def __init__(self, desk: Desk, bot: Bot) -> None:
        self._desk = desk
        self._bot = bot
        self._one = asyncio.Lock()  # a film is a second of a core: one after the other

    async def develop(self, chat_id: str, parcel: Parcel) -> Parcel:
        """The parcel with what was made of its film in place of it; words where that failed."""
        film = parcel.film
        if film is None:
            return parcel
        await self._say_so(chat_id, parcel)
        card = await self._card(film)
        drawn = render.parcel(card, kind="group" if parcel.group else "private")
        place = {"thread_id": parcel.thread_id, "reply_to": parcel.reply_to, "edit": parcel.edit}
        return drawn.model_copy(update={**place, "edit_picture": parcel.edit_picture})

    async def _card(self, film: Film) -> Card:
        async with self._one:
            try:
                return await film_card(self._desk.history, FilmOrder(film.run_id, film.kind, film.lang))
            except Exception as error:  # it must not hold up what else waits for this chat
                log.exception("telegram_film_failed", run=film.run_id, error=repr(error))
                return Card(texts(film.lang).get("replay.failed"))

    async def _say_so(self, chat_id: str, parcel: Parcel) -> None:
        with contextlib.suppress(TelegramError):  # it is but a hint
            await self._bot.send_chat_action(int(chat_id), ChatAction.UPLOAD_VIDEO, parcel.thread_id)
