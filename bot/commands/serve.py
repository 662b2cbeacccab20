"""``phonedesk serve``."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from bot.chat.texts import texts
from bot.commands.common import run_async, settings_from
from bot.settings import Settings

if TYPE_CHECKING:
    from bot.serving import Server


def serve() -> None:
    """Serve: runs, schedules and the Telegram bot, until Ctrl-C or SIGTERM.

    Example: PHONEDESK_TELEGRAM__TOKEN=… phonedesk serve
    """
    settings = settings_from(quiet=False)
    run_async(lambda: _serve(settings))


async def _serve(settings: Settings) -> None:
    from bot.serving import serve_until

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _end, ended, settings)
    await serve_until(settings, ended, lambda running: say_up(running, Console()))


def _end(ended: asyncio.Event, settings: Settings) -> None:
    """Say that it ends: a run at work may need some seconds for it."""
    if not ended.is_set():
        Console().print(Text(texts(settings.lang).get("serve.ending")))
    ended.set()


def say_up(running: Server, console: Console) -> None:
    """What a person needs to know once it runs: the address, and the first pairing code."""
    words = texts(running.settings.lang)
    console.print(Text(words.get("serve.up", url=running.url)))
    if running.telegram is None:
        console.print(Text(words.get("serve.no_bot")))
    elif running.first_code is not None:
        console.print(Text(words.get("serve.pair", code=running.first_code)))
