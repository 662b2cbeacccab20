"""``phonedesk serve``: the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from zoneinfo import ZoneInfo

import typer

from agent_core.errors import ConfigInvalid
from bot.app.memory import pictures_given_back
from bot.app.release import NAME
from bot.app.server_names import place_of
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.app.settings.sections import BOT_API, TelegramSettings, WebSettings
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.common import fail, log_to_file, run_async, same_host, settings_from
from bot.channels.cli.terminal.console import Console, Text, watched
from bot.channels.cli.terminal.language import texts

if TYPE_CHECKING:
    from telegram.error import TelegramError

    from bot.app.server import Server
    from bot.channels.telegram.adapter import TelegramAdapter

ANSWER_SECONDS = 3.0  # how long a server at our address has to identify itself
MOST_BYTES = 10_000  # of its answer


def serve(
    no_phones: Annotated[bool, typer.Option("--no-phones")] = False,
) -> None:
    """Serve runs, schedules and the Telegram bot, until Ctrl-C or SIGTERM."""

    def given(settings: Settings) -> Settings:
        if not no_phones:
            return settings
        return settings.model_copy(update={"device": settings.device.model_copy(update={"here": False})})

    settings = given(settings_from(quiet=False))
    if settings.device.here and (busy := same_host(settings)) is not None:
        fail(_runs_already(settings.web, busy))
    if (there := _answers_already(settings.web)) is not None:
        fail(there)
    log = log_to_file(settings)
    run_async(lambda: _serve(settings, lambda: given(load()), log))


def _runs_already(web: WebSettings, busy: ConfigInvalid) -> ConfigInvalid:
    """Return ``busy`` worded for somebody who starts a second server, with the first one's address if it answers.

    Otherwise the other process may be a worker, and the port may be free or another program's.
    """
    process = busy.values["process"]
    place = place_of(web.host, web.port)
    try:
        is_ours = _is_phonedesk(web)
    except OSError:
        is_ours = None
    if is_ours:
        url = f"http://{place}"
        said = f"phonedesk serve is running here already (process {process}, {url})."
        advice = "It needs no second one. To start it again, stop that one first."
        return ConfigInvalid(said, advice=advice, key="serve_runs_already", process=process, url=url)
    said = f"phonedesk is running here already (process {process}) and works the phones of this machine."
    if is_ours is None:
        return ConfigInvalid(said, advice="Stop that one first.", key="host_runs_already", process=process)
    said += f" Another program has {place}."
    advice = "Stop the first one, and set PHONEDESK_WEB__PORT."
    return ConfigInvalid(said, advice=advice, key="host_runs_port_taken", process=process, place=place)


def _answers_already(web: WebSettings) -> ConfigInvalid | None:
    """Return the error if another phonedesk has our address; None if none has it.

    The other one works no phones of this machine under our name: it has --no-phones, or another folder.
    """
    try:
        if not _is_phonedesk(web):
            return None  # opening the port reports it
    except OSError:
        return None
    place = place_of(web.host, web.port)
    advice = "Set PHONEDESK_WEB__PORT for another one."
    return ConfigInvalid(
        f"phonedesk serve is running already at {place}.", advice=advice, key="serve_answers_already", place=place
    )


def _is_phonedesk(web: WebSettings) -> bool:
    """Tell whether the server at our address says that it is phonedesk. Raises OSError if nobody listens."""
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the configured address; it is only looked up
    asked = HTTPConnection(anywhere.get(web.host, web.host), web.port, timeout=ANSWER_SECONDS)
    asked.connect()
    try:
        asked.request("GET", "/healthz")
        said = json.loads(asked.getresponse().read(MOST_BYTES))
        return isinstance(said, dict) and said.get("name") == NAME
    except (OSError, HTTPException, ValueError):  # it speaks another protocol, or does not answer
        return False
    finally:
        asked.close()


async def _serve(settings: Settings, read: Callable[[], Settings], log: Path | None) -> None:
    from bot.app.server import serve_until
    from bot.app.shutdown import ending

    def say_end() -> None:  # a running run may need some seconds for it
        Console().print(Text(texts(settings.lang).get("serve.ending")))

    with ending(say_end, settings.queue.drain_seconds) as ended:
        async with pictures_given_back():
            await serve_until(settings, ended, lambda running: _tell(running, log), read)
    Console().print(Text(texts(settings.lang).get("serve.ended")))


async def _tell(running: Server, log: Path | None) -> None:
    """Say that the server runs, then report its activity if a person looks."""
    console, watching = Console(), watched()
    async with asyncio.TaskGroup() as group:
        if not watching.quiet:
            group.create_task(_follow(running, watching), name="activity")
        await say_up(running, console)
        if not watching.quiet and log is not None:
            watching.print(Text(texts(running.settings.lang).get("serve.log", file=log), "dim"), soft_wrap=True)


async def _follow(running: Server, console: Console) -> None:
    from bot.channels.cli.terminal.activity import Activity

    settings = running.settings
    words, zone = texts(settings.lang), ZoneInfo(settings.timezone)
    await Activity(running.desk, console, words, zone, has_bot=running.telegram is not None).follow()


async def say_up(running: Server, console: Console) -> None:
    """Print the facts that a person needs once it runs: the address, the state of the bot, and the first pairing
    code.
    """
    words = texts(running.settings.lang)
    # A program, or a later reader of the file, gets the log besides these lines.
    up = "serve.up_logged" if watched().quiet else "serve.up"
    console.print(Text(words.get(up, url=running.url)), soft_wrap=True)  # one line, which programs read
    if running.mcp_url:
        console.print(Text(words.get("mcp.up", url=running.mcp_url)))
    if running.work is None:
        console.print(Text(words.get("serve.no_phones"), "yellow"), soft_wrap=True)
    if running.telegram is None:
        console.print(
            Text(words.get("serve.no_bot", console=running.desk.context.console_url), "yellow"), soft_wrap=True
        )
    else:
        await _say_bot(running, running.telegram, console, words)


async def _say_bot(running: Server, bot: TelegramAdapter, console: Console, words: Texts) -> None:
    """Say whether Telegram accepts the bot, as soon as that is known; show a pairing code only if it can be used."""
    await bot.tried.wait()
    if bot.trouble is not None:
        console.print(Text(_trouble(running.settings.telegram, bot, bot.trouble, words), "yellow"), soft_wrap=True)
    await bot.settled.wait()
    if bot.failed is not None:
        console.print(Text(words.get("serve.refused"), "red"), soft_wrap=True)
        return
    console.print(Text(words.get("serve.bot", name=bot.bot.username)))
    if (code := await running.desk.people.first_code()) is not None:
        console.print(Text(words.get("serve.pair", code=code)))


def _trouble(settings: TelegramSettings, bot: TelegramAdapter, error: TelegramError, words: Texts) -> str:
    """Say why Telegram was not reached, and which settings may be wrong."""
    from bot.channels.telegram.request import failure_of

    lines = [words.get(f"serve.{failure_of(error)}", url=settings.api_base_url)]
    if settings.is_other_server:
        lines.append(words.get("serve.other_server", url=settings.api_base_url, usual=BOT_API))
    if bot.route.proxy:
        lines.append(words.get("serve.by_proxy", **bot.route.values))
    elif not settings.is_other_server:
        lines.append(words.get("serve.no_proxy"))
    return "\n".join(lines)
