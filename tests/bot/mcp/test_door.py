"""MCP clients beside a server: the door opens with the first of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from agent_core.errors import ConfigInvalid
from bot.mcp.door import address_of, listening, mcp_door
from storage.leases import Leases
from storage.runs import Runs
from tests.bot.mcp.conftest import World, until
from tests.support.lab import do
from tests.support.model_server import Hang

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def beside(world: World) -> AsyncIterator[World]:
    async with mcp_door(world.core) as url:
        yield replace(world, url=url)


async def test_nothing_happens_until_somebody_knocks(world: World) -> None:
    before = len(asyncio.all_tasks())
    async with beside(world):
        await asyncio.sleep(0)
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert "mcp-door" in names
        assert len(asyncio.all_tasks()) <= before + 3
    assert "mcp-door" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_client_is_served_and_what_is_at_work_stops_at_the_end(world: World) -> None:
    world.says(do('finish(message="看完了")'), Hang())
    async with beside(world) as served, served.client() as client:
        first = await client.call_tool("ask_agent", {"task": "看看设置"})
        assert first.structured_content["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
        calling = asyncio.create_task(client.call_tool("ask_agent", {"task": "看看设置"}))
        await until(lambda: len(world.model.requests) == 2)
        (lease,) = await Leases(world.core.db).held()
        await served.house.calls.stop()  # nothing of another server's
        assert not calling.done()
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        while await Leases(world.core.db).held():
            await asyncio.sleep(0.01)
    row = await Runs(world.core.db).get(lease.run_id)
    assert row is not None
    assert row.status == "stopped"


async def test_a_port_that_is_taken_is_said_with_its_setting(world: World) -> None:
    sock = listening(world.settings.mcp)
    try:
        assert address_of(sock).startswith("http://127.0.0.1:")
        taken = world.settings.mcp.model_copy(update={"port": sock.getsockname()[1]})
        with pytest.raises(ConfigInvalid, match="PHONEDESK_MCP__PORT"):
            listening(taken)
    finally:
        sock.close()
