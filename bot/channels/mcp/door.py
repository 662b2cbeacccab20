"""Listens for MCP clients at no cost until somebody connects: the first connection loads the SDK."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from agent_core import extras
from agent_core.errors import ConfigInvalid
from bot.app.server_names import place_of
from bot.app.settings.sections import McpSettings

if TYPE_CHECKING:
    from bot.app.core import Core
    from scheduler.runs.worker import Worker

log = structlog.get_logger(__name__)

PATH = "/mcp"
BACKLOG = 128


def listening(settings: McpSettings) -> socket.socket:
    """Return a listening socket. Raises ConfigInvalid if the address cannot be used."""
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        sock = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigInvalid(
            f"MCP clients cannot be served on {settings.host}:{settings.port}: {error.strerror or error}.",
            advice="Set PHONEDESK_MCP__HOST or PHONEDESK_MCP__PORT.",
            key="mcp_port",
            place=f"{settings.host}:{settings.port}",
            why=error,
        ) from None
    sock.setblocking(False)
    # Connections inherit it; asyncio sets it only on its own sockets. Without it each answer waits 40 ms for an ACK.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address_of(sock: socket.socket) -> str:
    """Return the URL that clients are given."""
    host, port = sock.getsockname()[:2]
    return f"http://{place_of(host, port)}{PATH}"


@asynccontextmanager
async def mcp_door(core: Core, beside: Worker | None = None) -> AsyncIterator[str]:
    """Serve MCP clients beside everything else; gives the URL. ``beside``: the worker of this process.

    Raises ExtraMissing at once if the SDK is not installed.
    """
    extras.require("mcp")
    sock = listening(core.settings.mcp)
    ended = asyncio.Event()
    answering = asyncio.create_task(_answer(core, beside, sock, ended), name="mcp-door")
    try:
        yield address_of(sock)
    finally:
        ended.set()
        await asyncio.wait([answering])


async def _answer(core: Core, beside: Worker | None, sock: socket.socket, ended: asyncio.Event) -> None:
    """Serve after the first connection. A failure is logged at once, and clients find nobody instead of silence."""
    try:
        if not await _knocked(sock, ended):
            return
        # Half a second, in a thread so that nothing else waits for it.
        http = await asyncio.to_thread(importlib.import_module, "bot.channels.mcp.http")
        context = await asyncio.to_thread(importlib.import_module, "bot.channels.mcp.context")
        async with context.open_context(core, beside) as tools, http.serving(tools, sock) as running:
            await http.until_ended(running, ended)
    except Exception as error:
        log.exception("mcp_ended", error=repr(error))
    finally:
        sock.close()


async def _knocked(sock: socket.socket, ended: asyncio.Event) -> bool:
    """Wait until somebody connects (True) or the server ends (False)."""
    loop, knocked = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sock, knocked.set)
    waits = [asyncio.create_task(event.wait()) for event in (knocked, ended)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(sock)
        for wait in waits:
            wait.cancel()
    return not ended.is_set()
