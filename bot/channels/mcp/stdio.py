"""MCP over standard input and output: for the program that started us, with the rights of its user."""

from __future__ import annotations

import asyncio

from mcp.server.stdio import stdio_server

from bot.app.release import release
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.server import make_server
from bot.desk.actors import Actor, Role

HERE = "terminal"


async def serve_stdio(context: ToolContext, ended: asyncio.Event) -> bool:
    """Serve until the client closes its end (True) or ``ended`` is set (False); then running calls are stopped.

    After False the reader of standard input hangs, and nobody can cancel it: the process has to exit.
    """
    lang = context.core.settings.lang
    me = Actor(HERE, HERE, HERE, HERE, lang, Role.OWNER)
    server = make_server(context, lambda _: me, release())

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    serving = asyncio.create_task(serve(), name="mcp-stdio")
    ending = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
            return True
        await context.calls.stop()
        return False
    finally:
        ending.cancel()
