"""MCP clients beside a server: the door opens with the first of them."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from agent_core.errors import ConfigInvalid
from bot.channels.mcp.door import address_of, listening, mcp_door
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.lease import HeldLease
from scheduler.runs.worker import Worker
from storage.leases import Leases
from storage.runs import Runs
from storage.tables import leases, runs
from tests.bot.channels.mcp.conftest import World, until
from tests.support.lab import do
from tests.support.model_server import Hang

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_nothing_happens_until_somebody_knocks(world: World) -> None:
    await asyncio.sleep(0.1)  # what the test before has left ends first
    before = asyncio.all_tasks()
    async with mcp_door(world.core):
        await asyncio.sleep(0)
        new = asyncio.all_tasks() - before
        assert "mcp-door" in {task.get_name() for task in new}
        assert len(new) <= 3, new
    assert "mcp-door" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_the_sdk_is_loaded_with_the_first_client_and_the_bot_with_its_token() -> None:
    """In a process of its own: here they are loaded already."""
    loaded = "[m for m in ('mcp', 'bot.channels.mcp.http', 'telegram') if m in sys.modules]"
    code = f"import sys, bot.app.server, bot.channels.mcp.door; print({loaded})"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert (await process.communicate())[0].strip() == b"[]"


async def never(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
    raise AssertionError(run_id)


async def test_a_call_is_at_work_for_the_worker_beside_and_stops_with_the_server(world: World) -> None:
    """Its heart is late, as while the database is away; then the server ends while the call waits for the model."""
    db = world.core.db
    worker = Worker(db, never, owner="here")
    world.says(do('finish(message="看完了")'), Hang())
    async with AsyncExitStack() as server:
        served = replace(world, url=await server.enter_async_context(mcp_door(world.core, worker)))
        async with served.client() as client:
            first = await client.call_tool("ask_agent", {"task": "看看设置"})
            assert first.structured_content["stop_reason"] == "TASK_COMPLETED_SUCCESSFULLY"
            assert worker.at_work_beside == set()
            calling = asyncio.create_task(client.call_tool("ask_agent", {"task": "看看设置"}))
            await until(lambda: len(world.model.requests) == 2)
            (lease,) = await Leases(db).held()
            async with db.write() as connection:
                old = db.now() - timedelta(hours=1)
                await connection.execute(sa.update(runs).where(runs.c.id == lease.run_id).values(started_at=old))
                await connection.execute(sa.update(leases).values(heartbeat_at=old))
            await Dispatcher(db, None, worker=worker).once()
            row = await Runs(db).get(lease.run_id)
            assert row is not None
            assert (row.status, row.attempt) == ("running", 1)
            async with db.write() as connection:
                await connection.execute(sa.update(leases).values(heartbeat_at=lease.heartbeat_at))
            ending = asyncio.create_task(server.aclose())
            stopped = (await calling).structured_content
        await ending
    assert stopped["stop_reason"] == "STOPPED_BY_OPERATOR"
    row = await Runs(db).get(lease.run_id)
    assert row is not None
    assert (row.status, await Leases(db).held(), worker.at_work_beside) == ("stopped", [], set())


async def test_a_door_that_cannot_be_opened_says_so_and_lets_nobody_wait(world: World) -> None:
    broken = world.settings.mcp.model_copy(update={"helper": None})  # what opens the house fails
    core = replace(world.core, settings=world.settings.model_copy(update={"mcp": broken}))
    async with AsyncExitStack() as server:
        with capture_logs() as logs:
            host = urlsplit(await server.enter_async_context(mcp_door(core)))
            for _ in range(2):  # the second finds nobody
                with pytest.raises((ConnectionRefusedError, ConnectionResetError)):  # noqa: PT012
                    reader, writer = await asyncio.open_connection(host.hostname, host.port)
                    try:
                        async with asyncio.timeout(5):
                            if not await reader.read(1):
                                raise ConnectionResetError
                    finally:
                        writer.close()
        assert [line["event"] for line in logs if line["log_level"] == "error"] == ["mcp_ended"]


async def test_a_port_that_is_taken_is_said_with_its_setting(world: World) -> None:
    sock = listening(world.settings.mcp)
    try:
        assert address_of(sock).startswith("http://127.0.0.1:")
        taken = world.settings.mcp.model_copy(update={"port": sock.getsockname()[1]})
        with pytest.raises(ConfigInvalid, match="PHONEDESK_MCP__PORT"):
            listening(taken)
    finally:
        sock.close()
