"""``phonedesk serve``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from bot.chat.texts import Texts
from bot.commands.common import log_to_file, run_async, settings_from
from bot.memory import pictures_given_back
from bot.settings.layers import Settings
from bot.settings.loading import load
from bot.terminal.console import Console, Text
from bot.terminal.language import texts

if TYPE_CHECKING:
    from bot.serving import Server
    from bot.telegram.adapter import TelegramAdapter


def serve(
    no_phones: Annotated[bool, typer.Option("--no-phones")] = False,
) -> None:
    """Serve: runs, schedules and the Telegram bot, until Ctrl-C or SIGTERM."""

    def given(settings: Settings) -> Settings:
        if not no_phones:
            return settings
        return settings.model_copy(update={"device": settings.device.model_copy(update={"here": False})})

    settings = given(settings_from(quiet=False))
    log_to_file(settings)
    run_async(lambda: _serve(settings, lambda: given(load())))


async def _serve(settings: Settings, read: Callable[[], Settings]) -> None:
    from bot.ending import ending
    from bot.serving import serve_until

    def say_end() -> None:  # a run at work may need some seconds for it
        Console().print(Text(texts(settings.lang).get("serve.ending")))

    with ending(say_end, settings.queue.drain_seconds) as ended:
        async with pictures_given_back():
            await serve_until(settings, ended, lambda running: say_up(running, Console()), read)


async def say_up(running: Server, console: Console) -> None:
    """What a person needs to know once it runs: the address, whether the bot is there, and the first pairing code."""
    words = texts(running.settings.lang)
    console.print(Text(words.get("serve.up", url=running.url)))
    if running.mcp_url:
        console.print(Text(words.get("mcp.up", url=running.mcp_url)))
    if running.telegram is None:
        console.print(Text(words.get("serve.no_bot")))
    else:
        await _say_bot(running, running.telegram, console, words)


async def _say_bot(running: Server, bot: TelegramAdapter, console: Console, words: Texts) -> None:
    """Whether Telegram has the bot, as soon as that is known; a code to pair with only if it can be used."""
    await bot.tried.wait()
    if bot.trouble is not None:
        from bot.telegram.request import failure_of

        told = words.get(f"serve.{failure_of(bot.trouble)}", url=running.settings.telegram.api_base_url)
        by = words.get("serve.by_proxy", **bot.route.values) if bot.route.proxy else words.get("serve.no_proxy")
        console.print(Text(f"{told}\n{by}", "yellow"), soft_wrap=True)
    await bot.settled.wait()
    if bot.failed is not None:
        console.print(Text(words.get("serve.refused"), "red"), soft_wrap=True)
        return
    console.print(Text(words.get("serve.bot", name=bot.bot.username)))
    if (code := await running.desk.people.first_code()) is not None:
        console.print(Text(words.get("serve.pair", code=code)))
