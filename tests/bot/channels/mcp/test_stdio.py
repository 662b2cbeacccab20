"""``phonedesk mcp`` as a client starts it: a process of its own, and sessions that outlive it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from bot.channels.mcp.tools import HIGH_LEVEL, LOW_LEVEL
from storage.leases import Leases
from storage.runs import Runs
from tests.bot.channels.mcp.conftest import PROMPT, World, until
from tests.support.lab import do
from tests.support.model_server import Hang

pytestmark = pytest.mark.asyncio(loop_scope="session")

PHONEDESK = Path(sys.executable).parent / "phonedesk"
ASK = do('do(action="Interact", question="看哪一项？")')


def environment(world: World) -> dict[str, str]:
    settings = world.settings
    return {
        **world.adb.environment,
        "PHONEDESK_DATA_DIR": str(settings.data_dir),
        "PHONEDESK_DATABASE_URL": settings.database_url,
        "PHONEDESK_LANG": "en",
        "PHONEDESK_TIMEZONE": "Asia/Shanghai",
        "PHONEDESK_MODEL__BASE_URL": settings.model.base_url,
        "PHONEDESK_MODEL__NAME": "scripted",
        "PHONEDESK_MODEL__PROFILE": "autoglm-phone",
        "PHONEDESK_OBSERVE__OCR": "off",
        "PHONEDESK_DEVICE__SERIAL": world.serial,
        "PHONEDESK_DEVICE__ADB_PORT": str(world.adb.port),
    }


@asynccontextmanager
async def started(world: World, folder: Path) -> AsyncIterator[Client]:
    """A client and the server that it started, in ``folder``, where its process id is written down."""
    script = f"echo $$ > pid; exec {PHONEDESK} mcp"
    server = StdioServerParameters(command="/bin/sh", args=["-c", script], env=environment(world), cwd=folder)
    async with Client(server, mode="legacy") as client:
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    return dict((await client.call_tool(tool, arguments)).structured_content)


async def test_a_session_outlives_its_server_which_leaves_the_phone_clean(world: World, tmp_path: Path) -> None:
    """The server is told to end in the midst of another task, while its standard input stays open."""
    world.says(ASK, Hang())
    async with started(world, tmp_path) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == [tool.name for tool in (*LOW_LEVEL, *HIGH_LEVEL)]
        assert (await called(client, "HOT_KEY", key="HOME"))["done"]
        asked = await called(client, "ask_agent", task="看看设置")
        assert asked["stop_reason"] == "INFO_ACTION_NEEDS_REPLY"
        calling = asyncio.create_task(called(client, "ask_agent", task="看看设置"))
        await until(lambda: len(world.model.requests) == 2)
        (lease,) = await Leases(world.core.db).held()
        begun = time.monotonic()
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
        while await Leases(world.core.db).held():
            await asyncio.sleep(0.02)
        assert time.monotonic() - begun < PROMPT
        done = await asyncio.gather(calling, return_exceptions=True)
        assert isinstance(done[0], MCPError) or "STOPPED_BY_OPERATOR" in str(done[0])
    row = await Runs(world.core.db).get(lease.run_id)
    assert row is not None
    assert row.status == "stopped"

    world.says(do('finish(message="看完了")'))
    owner, _ = await world.another_key(role="owner")
    async with world.client(key=owner) as client:
        data = await called(client, "ask_agent_continue", session_id=asked["session_id"], reply_from_client="蓝牙")
    assert (data["stop_reason"], data["global_step_idx"]) == ("TASK_COMPLETED_SUCCESSFULLY", 2)
    row = await Runs(world.core.db).get(asked["session_id"])
    assert row is not None
    assert (row.status, row.requested_by) == ("succeeded", "terminal")
