"""Fetches documents that people sent, and makes replays for them.

Documents are fetched when they are needed, held in memory and never written to disk; a replay is made when it is due to
be sent, so nobody's command waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import quote

import structlog
from telegram import Bot
from telegram import error as telegram
from telegram.constants import ChatAction
from telegram.error import TelegramError

from agent_core.proxies import Route
from bot.channels.chat.cards import Card, ReplayOrder
from bot.channels.chat.history import media_card
from bot.channels.chat.texts import Lang, texts
from bot.channels.chat.turn import Attached
from bot.channels.telegram import render
from bot.channels.telegram.outgoing import OutgoingMessage
from bot.channels.telegram.request import AnswerTooLarge, BotRequest
from bot.channels.telegram.sending import says
from bot.desk.actors import BadRequest
from bot.desk.desk import Desk

FILE_SECONDS = 120.0  # for a whole file


class TelegramFiles:
    """``bot.channels.chat.turn.Files`` over the Bot API. Telegram gives bots no file over 20 MB."""

    def __init__(self, bot: Bot, route: Route) -> None:
        self._bot = bot
        self._route = route

    async def fetch(self, file: Attached, at_most: int) -> bytes:
        """Return the file's content. Errors of the network or of Telegram are raised as they are, to be retried."""
        too_big = BadRequest(
            f"The file {file.name} is larger than {at_most / 1e6:.0f} MB.",
            advice="Import it in parts.",
            key="file_too_large",
            name=file.name,
            most=f"{at_most / 1e6:.0f}",
        )
        if file.size > at_most:
            raise too_big
        gone = BadRequest(
            f"Telegram does not give the file {file.name} any more.",
            advice="Send it again.",
            key="file_gone",
            name=file.name,
        )
        try:
            found = await self._bot.get_file(file.id)
            if (found.file_size or 0) > at_most:
                raise too_big
            # Not the library's download: it reads a file of this machine if the server names one.
            folder = f"{self._bot.base_file_url}/"
            path = (found.file_path or "").removeprefix(folder)
            async with BotRequest(self._route, FILE_SECONDS, most=at_most) as request:
                return await request.retrieve(folder + quote(path))
        except AnswerTooLarge:
            raise too_big from None
        except telegram.BadRequest as error:
            raise (too_big if says(error, "too big") else gone) from error
        except telegram.InvalidToken as error:  # the client calls a 404 this, and the token was good a moment ago
            raise gone from error


log = structlog.get_logger(__name__)


class ReplayMaker:
    def __init__(self, desk: Desk, bot: Bot) -> None:
        self._desk = desk
        self._bot = bot
        self._one = asyncio.Lock()  # a replay takes a second of a core, so they are made one by one

    async def develop(self, chat_id: str, outgoing: OutgoingMessage) -> OutgoingMessage:
        """Return the outgoing message with its replay made; with words if that failed.

        The destination is not set here, because it may change until the message is sent.
        """
        film = outgoing.film
        if film is None:
            return outgoing
        await self._say_so(chat_id, outgoing)
        return _drawn(await self._card(film), outgoing)

    def failed(self, outgoing: OutgoingMessage) -> OutgoingMessage:
        """Return words in place of a replay that could not be made, or does not arrive."""
        lang = outgoing.film.lang if outgoing.film is not None else "zh"
        return _drawn(_no_media(lang), outgoing)

    async def _card(self, film: ReplayOrder) -> Card:
        async with self._one:
            try:
                return await media_card(self._desk.history, film)
            except Exception as error:  # it must not hold up other messages of this chat
                log.exception("telegram_film_failed", run=film.run_id, error=repr(error))
                return _no_media(film.lang)

    async def _say_so(self, chat_id: str, outgoing: OutgoingMessage) -> None:
        with contextlib.suppress(TelegramError):  # only a hint
            await self._bot.send_chat_action(int(chat_id), ChatAction.UPLOAD_VIDEO, outgoing.thread_id)


def _drawn(card: Card, outgoing: OutgoingMessage) -> OutgoingMessage:
    drawn = render.outgoing(card, kind="group" if outgoing.group else "private")
    return drawn.model_copy(update={"silent": outgoing.silent})


def _no_media(lang: Lang) -> Card:
    return Card(texts(lang).get("replay.failed"))
