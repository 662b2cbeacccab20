"""An MCP server over HTTP on a virtual phone with a scripted model, and the official client at the other end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bot.app.core import Core, open_core
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load
from bot.channels.mcp.context import ToolContext, open_context
from bot.channels.mcp.door import address_of, listening
from bot.channels.mcp.http import serving
from simulator.phone.assembly import CHECKED
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from storage.api_keys import ApiKeys
from tests.support.adb import AdbServerProcess, adb_server
from tests.support.database import empty_sqlite
from tests.support.lab import on_a_small_phone
from tests.support.model_server import Script, ScriptedModel

MODERN = "2026-07-28"
LEGACY = "legacy"
PROMPT = 8.0  # seconds; it takes some hundredths, but for a machine that is busy
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass
class World:
    """``key`` is an operator's. ``environment`` points a ``phonedesk`` of its own at all this."""

    settings: Settings
    phone: VirtualPhone
    model: ScriptedModel
    adb: AdbServerProcess
    core: Core
    house: ToolContext
    url: str
    key: str
    told: list[tuple[float, float | None, str | None]] = field(default_factory=list)  # progress

    @property
    def serial(self) -> str:
        return self.settings.device.serial

    def says(self, *script: Script) -> None:
        """What the model answers from now on."""
        assert not self.model.invalid
        self.model.script[:] = script
        self.model._served = 0
        self.model.requests.clear()

    @asynccontextmanager
    async def client(self, *, key: str = "", mode: str = LEGACY, **options: Any) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **options) as client:
                yield client

    async def open_chat(self, name: str = "11") -> None:
        """As a person would: QQ, then the row with exactly this name."""
        await self.phone.launch("com.tencent.mobileqq")
        row = next(node for node in await self.phone.tree() if node.text == name)
        async with self.house.phone(self.serial) as device:
            await device.tap(row.box.center)

    async def another_key(self, **limits: Any) -> tuple[str, str]:
        """A key of somebody else's, and who that is."""
        key, row = await ApiKeys(self.core.db).add(uuid4().hex, **{"role": "operator", "lang": "en", **limits})
        return key, f"key:{row.id}"

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append((progress, total, message))

    async def restarted(
        self, stack: AsyncExitStack, *, others: dict[str, dict[str, Any]] | None = None, **changes: Any
    ) -> World:
        """The same phone, model and database under another server, as after a restart. ``others``: what else of the
        settings is different, by section.
        """
        sections = {"mcp": changes, **(others or {})}
        changed = {name: getattr(self.settings, name).model_copy(update=values) for name, values in sections.items()}
        settings = self.settings.model_copy(update=changed)
        return replace(self, settings=settings, **await _served(stack, settings))


async def _served(stack: AsyncExitStack, settings: Settings) -> dict[str, Any]:
    core = await stack.enter_async_context(open_core(settings))
    house = await stack.enter_async_context(open_context(core))
    sock = listening(settings.mcp)
    await stack.enter_async_context(serving(house, sock))
    return {"core": core, "house": house, "url": address_of(sock)}


@asynccontextmanager
async def mcp_world(folder: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        adb = await stack.enter_async_context(adb_server())
        running = await stack.enter_async_context(serve(on_a_small_phone(default_scenario())))
        await adb.connect(int(running.address.rpartition(":")[2]))
        model = await stack.enter_async_context(ScriptedModel([]))
        settings = load(
            data_dir=folder,
            database_url=await empty_sqlite(folder / "desk.sqlite3"),
            lang="en",
            timezone="Asia/Shanghai",
            model={"base_url": model.url, "name": "scripted", "api_key": "k", "profile": "autoglm-phone"},
            knowledge={"provider": "embedded", "sample": True},
            observe={"ocr": "off", "elements": False},
            run={"hold_seconds": 5, "checked_versions": CHECKED},
            device={"serial": running.address, "adb_host": "127.0.0.1", "adb_port": adb.port},
            mcp={"port": 0},
            telegram={"per_minute": 0},  # all tests are one client
        )
        served = await _served(stack, settings)
        key, _ = await ApiKeys(served["core"].db).add("editor", role="operator", lang="en")
        yield World(settings, running.phone, model, adb, **served, key=key)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One for all: tests follow each other, and each leaves the phone free."""
    async with mcp_world(tmp_path_factory.mktemp("mcp")) as made:
        yield made


def words(result: Any) -> str:
    """The text of a result."""
    return str(next(block.text for block in result.content if block.type == "text"))


async def until(met: Any, seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not met():
            await asyncio.sleep(0.005)
