"""``phonedesk mcp``: phones as tools for other programs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from agent_core import extras
from bot.app.settings.layers import Settings
from bot.channels.cli.commands.common import Exit, run_async, settings_from
from bot.channels.cli.terminal.console import Console, Text, err
from bot.channels.cli.terminal.language import texts


def mcp(
    http: Annotated[bool, typer.Option("--http")] = False,
    host: str | None = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None,
) -> None:
    """Serve MCP clients: over standard input and output, or HTTP, until Ctrl-C or SIGTERM."""
    settings = settings_from()
    given = {"host": host, "port": port}
    changed = settings.mcp.model_copy(update={name: value for name, value in given.items() if value is not None})
    settings = settings.model_copy(update={"mcp": changed})
    run_async(lambda: _over_http(settings) if http else _over_stdio(settings))


async def _over_stdio(settings: Settings) -> None:
    extras.require("mcp")
    from bot.app.core import open_core
    from bot.app.shutdown import ending
    from bot.channels.mcp.context import open_context
    from bot.channels.mcp.server import serve_stdio

    with ending(lambda: None, settings.queue.drain_seconds) as ended:
        async with open_core(settings) as core, open_context(core) as context:
            closed_by_client = await serve_stdio(context, ended)
    # Everything is closed. The reader of standard input may hang, and nobody can cancel it, and a client kills a server
    # that is not gone within two seconds.
    err.file.flush()
    os._exit(Exit.OK if closed_by_client else Exit.STOPPED)


async def _over_http(settings: Settings) -> None:
    extras.require("mcp")
    from bot.app.core import open_core
    from bot.app.shutdown import ending
    from bot.channels.mcp.context import open_context
    from bot.channels.mcp.door import address_of, listening
    from bot.channels.mcp.http import serving, until_ended
    from storage.api_keys import ApiKeys

    words, console = texts(settings.lang), Console(stderr=True)
    with ending(lambda: console.print(Text(words.get("serve.ending"))), settings.queue.drain_seconds) as ended:
        sock = listening(settings.mcp)
        async with open_core(settings) as core, open_context(core) as context, serving(context, sock) as running:
            console.print(Text(words.get("mcp.up", url=address_of(sock))))
            if not await ApiKeys(core.db).all():
                console.print(Text(words.get("mcp.no_key")))
            await until_ended(running, ended)
