"""Documents that people sent: fetched when they are needed, held in memory, never written to a disk."""

from __future__ import annotations

from urllib.parse import quote

from telegram import Bot
from telegram import error as telegram

from agent_core.proxies import Route
from bot.channels.chat.turn import Attached
from bot.channels.telegram.request import AnswerTooLarge, BotRequest
from bot.channels.telegram.sending import says
from bot.desk.actors import BadRequest

FILE_SECONDS = 120.0  # for a whole file


class TelegramFiles:
    """``bot.channels.chat.turn.Files`` over the Bot API. Telegram itself gives a bot nothing over 20 MB."""

    def __init__(self, bot: Bot, route: Route) -> None:
        self._bot = bot
        self._route = route

    async def fetch(self, file: Attached, at_most: int) -> bytes:
        """What is in it. What the network or Telegram fails at is raised as it is, to be tried again."""
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
        except telegram.InvalidToken as error:  # so the client calls a 404, and the token was good a moment ago
            raise gone from error
