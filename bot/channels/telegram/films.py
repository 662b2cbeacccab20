"""Replays, made when their turn to be sent has come: nobody's command waits for them, and the store stays small."""

from __future__ import annotations

import asyncio
import contextlib

import structlog
from telegram import Bot
from telegram.constants import ChatAction
from telegram.error import TelegramError

from bot.channels.chat.cards import Card, FilmOrder
from bot.channels.chat.history import film_card
from bot.channels.chat.texts import Lang, texts
from bot.channels.telegram import render
from bot.channels.telegram.outgoing import Film, OutgoingMessage
from bot.desk.desk import Desk

log = structlog.get_logger(__name__)


class Films:
    def __init__(self, desk: Desk, bot: Bot) -> None:
        self._desk = desk
        self._bot = bot
        self._one = asyncio.Lock()  # a film is a second of a core: one after the other

    async def develop(self, chat_id: str, parcel: OutgoingMessage) -> OutgoingMessage:
        """The parcel with what was made of its film in place of it; words where that failed. Where it goes to is not in
        it: that can change until it is sent.
        """
        film = parcel.film
        if film is None:
            return parcel
        await self._say_so(chat_id, parcel)
        return _drawn(await self._card(film), parcel)

    def failed(self, parcel: OutgoingMessage) -> OutgoingMessage:
        """Words in place of a film that could not be made, or does not arrive."""
        lang = parcel.film.lang if parcel.film is not None else "zh"
        return _drawn(_no_film(lang), parcel)

    async def _card(self, film: Film) -> Card:
        async with self._one:
            try:
                return await film_card(self._desk.history, FilmOrder(film.run_id, film.kind, film.lang))
            except Exception as error:  # it must not hold up what else waits for this chat
                log.exception("telegram_film_failed", run=film.run_id, error=repr(error))
                return _no_film(film.lang)

    async def _say_so(self, chat_id: str, parcel: OutgoingMessage) -> None:
        with contextlib.suppress(TelegramError):  # it is but a hint
            await self._bot.send_chat_action(int(chat_id), ChatAction.UPLOAD_VIDEO, parcel.thread_id)


def _drawn(card: Card, parcel: OutgoingMessage) -> OutgoingMessage:
    drawn = render.parcel(card, kind="group" if parcel.group else "private")
    return drawn.model_copy(update={"silent": parcel.silent})


def _no_film(lang: Lang) -> Card:
    return Card(texts(lang).get("replay.failed"))
