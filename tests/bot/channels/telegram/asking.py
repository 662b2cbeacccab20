"""Make the calls of the product to a Bot API server, and tell in words how each ended, in a process that is measured.

The token is an argument, so that the process does not load the server that it asks, which takes seconds.
"""

from __future__ import annotations

import asyncio

from telegram.error import TelegramError

from bot.channels.chat.turn import Attached
from bot.channels.telegram.files import TelegramFiles
from bot.channels.telegram.inbox import UpdatesRequest
from bot.channels.telegram.options import TELEGRAM_PROXY
from bot.channels.telegram.request import bot_at, introduce
from bot.desk.actors import BadRequest

SECONDS = 1.0  # that an answer may take
PATIENT_SECONDS = 30.0  # for answers that come at once, but on a machine that is busy


async def ask(token: str, url: str, seconds: float = SECONDS) -> str:
    """Ask as the commands do, and then for updates as the adapter does."""
    async with bot_at(token, url, TELEGRAM_PROXY, seconds) as bot:
        try:
            await introduce(bot)
        except TelegramError as error:
            return f"{type(error).__name__}: {error}"
        return "none"


async def poll(token: str, url: str, seconds: float = SECONDS) -> str:
    request = UpdatesRequest(TELEGRAM_PROXY.route(url), seconds)
    try:
        found = await request.post(f"{url}/bot{token}/getUpdates")
        return str(len(found)) if isinstance(found, list) else "none"
    except TelegramError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        await request.shutdown()


async def fetch(token: str, url: str) -> str:
    """A file, through the bot."""
    async with bot_at(token, url, TELEGRAM_PROXY, SECONDS) as bot:
        try:
            return (
                await TelegramFiles(bot, TELEGRAM_PROXY.route(url)).fetch(Attached("F", "a.csv"), 1024 * 1024)
            ).decode()
        except (BadRequest, TelegramError) as error:
            return f"{type(error).__name__}: {error}"


async def ask_all(token: str, urls: list[str]) -> list[str]:
    """Of each server, what asking and polling end in."""
    seconds = PATIENT_SECONDS
    return [told for url in urls for told in (await ask(token, url, seconds), await poll(token, url, seconds))]


async def ask_together(token: str, urls: list[str]) -> list[str]:
    return list(await asyncio.gather(*(work(token, url) for url in urls for work in (ask, poll))))
