"""No key keeps others out: sessions are shared between keys, and what is idle makes room."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import uvicorn
from mcp import types
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from bot.channels.mcp.http import _Server
from bot.channels.mcp.sessions import AGAIN_SECONDS, MOST_SESSIONS, SHARE, SharedSessions
from bot.channels.mcp.stopping import Calls
from tests.bot.channels.mcp.conftest import ACCEPT, HELLO, LEGACY, MODERN, World, until

pytestmark = pytest.mark.asyncio(loop_scope="session")

VERSION = {"MCP-Protocol-Version": "2025-11-25"}


@dataclass
class Caller:
    """One key's requests, over connections of its own."""

    url: str
    key: str
    http: httpx2.AsyncClient

    async def ask(self, method: str, session: str = "", **params: Any) -> httpx2.Response:
        headers = {**ACCEPT, "Authorization": f"Bearer {self.key}"}
        headers |= {"Mcp-Session-Id": session, **VERSION} if session else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})}
        return await self.http.post(self.url, json=HELLO if method == "initialize" else body, headers=headers)

    async def open(self) -> str:
        answer = await self.ask("initialize")
        assert answer.status_code == 200, answer.text
        return str(answer.headers["mcp-session-id"])

    async def lives(self, session: str) -> bool:
        status = (await self.ask("ping", session)).status_code
        assert status in {200, 404}
        return status == 200


@asynccontextmanager
async def caller(url: str, key: str) -> AsyncIterator[Caller]:
    async with httpx2.AsyncClient(timeout=30) as http:
        yield Caller(url, key, http)


async def test_a_viewers_sessions_shut_no_owner_out(world: World) -> None:
    viewer, _ = await world.another_key(role="viewer")
    owner, _ = await world.another_key(role="owner")
    async with AsyncExitStack() as stack:
        served = await world.restarted(stack)
        flood = await stack.enter_async_context(caller(served.url, viewer))
        opened = [await flood.open() for _ in range(MOST_SESSIONS + 10)]
        for mode in (LEGACY, MODERN):
            async with served.client(key=owner, mode=mode) as client:
                assert (await client.list_tools()).tools
        assert await flood.lives(opened[-1])
        gone = await flood.ask("ping", opened[0])
        assert (gone.status_code, "Session not found" in gone.text) == (404, True)
        assert await flood.lives(opened[-SHARE])
        assert not await flood.lives(opened[-SHARE - 1])


# With room for four, and two a key, and calls that last as long as a test wants them to -------------------------------


class _Names:
    """Every key is good, and is its own name."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token="", client_id=token, scopes=[])


@dataclass
class House:
    url: str
    calls: Calls
    sessions: SharedSessions = field(init=False)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0


@pytest_asyncio.fixture(loop_scope="session")
async def house() -> AsyncIterator[House]:
    calls = Calls()
    made = House("", calls)

    async def called(context: Any, _: types.CallToolRequestParams) -> types.CallToolResult:
        async def wait(_: object) -> types.CallToolResult:
            made.begun += 1
            await made.go_on.wait()
            return types.CallToolResult(content=[])

        return await calls.apart(wait, context.request.headers["mcp-session-id"])

    manager = StreamableHTTPSessionManager(Server("waits", on_call_tool=called), max_sessions=4)
    made.sessions = SharedSessions(manager.asgi_app, calls.at_work, most=4, share=2)
    app = Starlette(
        routes=[Route("/mcp", RequireAuthMiddleware(made.sessions, []))],
        middleware=[Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(_Names()))],
        lifespan=lambda _: manager.run(),
    )
    with socket.create_server(("127.0.0.1", 0)) as sock:
        server = _Server(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=1))
        made.url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        yield made
        made.go_on.set()
        server.should_exit = True
        await serving


@asynccontextmanager
async def calling(house: House, who: Caller, session: str) -> AsyncIterator[asyncio.Task[httpx2.Response]]:
    """A call that is at work, and ends with the block."""
    before = house.begun
    task = asyncio.create_task(who.ask("tools/call", session, name="wait", arguments={}))
    await until(lambda: house.begun > before)
    yield task
    house.go_on.set()
    assert (await task).status_code == 200


async def test_what_is_idle_for_longest_goes_never_what_is_at_work(house: House) -> None:
    async with caller(house.url, "a") as a:
        first, second = await a.open(), await a.open()
        async with calling(house, a, first):
            third = await a.open()
            assert not await a.lives(second)
            assert await a.lives(third)
    async with caller(house.url, "b") as b:
        first, second = await b.open(), await b.open()
        assert await b.lives(first)  # which is thereby the one that was used last
        await b.open()
        assert await b.lives(first)
        assert not await b.lives(second)


async def test_a_key_whose_sessions_are_all_at_work_is_told_when_to_try_again(house: House) -> None:
    async with AsyncExitStack() as stack:
        a, b = [await stack.enter_async_context(caller(house.url, key)) for key in "ab"]
        for session in [await a.open(), await a.open()]:
            await stack.enter_async_context(calling(house, a, session))
        refused = await a.ask("initialize")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(AGAIN_SECONDS))
        assert "each has a call at work" in json.loads(refused.text)["error"]["message"]
        for session in [await b.open(), await b.open()]:
            await stack.enter_async_context(calling(house, b, session))
        c = await stack.enter_async_context(caller(house.url, "c"))
        refused = await c.ask("initialize")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, str(AGAIN_SECONDS))
    async with caller(house.url, "c") as c:
        await c.open()


async def test_who_has_most_makes_room_for_a_key_that_has_fewer(house: House) -> None:
    async with AsyncExitStack() as stack:
        a, b, c, d = [await stack.enter_async_context(caller(house.url, key)) for key in "abcd"]
        opened = [await a.open(), await b.open(), await c.open(), await a.open()]
        fifth = await d.open()
        assert [await who.lives(one) for who, one in zip((a, b, c, a), opened, strict=True)] == [
            False,
            True,
            True,
            True,
        ]
        assert await d.lives(fifth)
        again = await b.open()  # it has as many as everybody: its own goes
        assert not await b.lives(opened[1])
        assert [await c.lives(opened[2]), await b.lives(again), await d.lives(fifth)] == [True, True, True]


async def test_who_has_no_more_than_others_takes_nothing_from_them(house: House) -> None:
    async with AsyncExitStack() as stack:
        a, b, c = [await stack.enter_async_context(caller(house.url, key)) for key in "abc"]
        others, own = await c.open(), await b.open()
        for session in [await a.open(), await a.open()]:
            await stack.enter_async_context(calling(house, a, session))
        await b.open()
        assert [await c.lives(others), await b.lives(own)] == [True, False]


async def test_a_call_whose_client_left_it_keeps_its_session(house: House) -> None:
    async with caller(house.url, "a") as a:
        first, second = await a.open(), await a.open()
        async with caller(house.url, "a") as leaves:
            task = asyncio.create_task(leaves.ask("tools/call", first, name="wait", arguments={}))
            await until(lambda: house.begun == 1)
            task.cancel()
        await until(lambda: not house.sessions._sessions[first].requests)
        assert await a.lives(second)  # and was used last
        await a.open()
        assert not await a.lives(second)
        assert await a.lives(first)
        house.go_on.set()
        await until(lambda: not house.calls.at_work(first))


async def test_an_open_stream_holds_no_session_and_ends_with_it(house: House) -> None:
    async with caller(house.url, "a") as a:
        first = await a.open()
        headers = {**ACCEPT, "Authorization": "Bearer a", "Mcp-Session-Id": first, **VERSION}
        async with a.http.stream("GET", house.url, headers=headers) as stream:
            assert stream.status_code == 200
            await a.open()
            await a.open()
            assert not await a.lives(first)
            assert [part async for part in stream.aiter_bytes() if not part.startswith(b":")] == []


async def test_what_a_client_ended_or_never_opened_takes_no_room(house: House) -> None:
    async with caller(house.url, "a") as a:
        headers = {**ACCEPT, "Authorization": "Bearer a"}
        kept = await a.open()
        for _ in range(5):
            assert (await a.ask("ping")).status_code == 400
            assert (await a.http.get(house.url, headers=headers)).status_code == 400
            assert await a.lives(kept)
            ended = {"Mcp-Session-Id": await a.open(), **VERSION}
            assert (await a.http.delete(house.url, headers={**headers, **ended})).status_code == 200
            assert await a.lives(kept)
    async with caller(house.url, "b") as b:  # another's id ends nothing
        assert (await b.ask("ping", kept)).status_code == 404
    async with caller(house.url, "a") as a:
        assert await a.lives(kept)
