from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, web

from agent_core.errors import ConfigInvalid
from agent_core.texts import LANGUAGES
from bot.app.request_body import body_of
from bot.app.server_names import web_names
from bot.app.settings.sections import WebSettings
from bot.channels.web.app import MAX_BODY, make_app, serving
from tests.support.environment import in_a_checkout


async def test_health_and_readiness() -> None:
    parts = {"queue": True, "telegram": False}

    async def ready() -> dict[str, bool]:
        return parts

    async with serving(make_app(ready), "127.0.0.1", 0) as url, ClientSession(url) as client:
        async with client.get("/healthz") as health:
            assert (health.status, await health.json()) == (200, {"status": "ok", "name": "phonedesk"})
        async with client.get("/readyz") as starting:
            assert (starting.status, await starting.json()) == (503, {"status": "starting", "parts": parts})
        parts["telegram"] = True
        async with client.get("/readyz") as up:
            assert (up.status, await up.json()) == (200, {"status": "ok", "parts": parts})
        async with client.get("/nothing") as missing:
            assert missing.status == 404


async def test_the_root_says_what_this_is_and_which_paths_there_are() -> None:
    async def ready() -> dict[str, bool]:
        return {}

    async with serving(make_app(ready, lang="en"), "127.0.0.1", 0) as url, ClientSession(url) as client:
        for accept in ("*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "application/json, text/plain, */*"):
            async with client.get("/", headers={"Accept": accept}) as root:
                assert (root.status, root.content_type) == (200, "text/plain")
                assert (await root.text()).splitlines()[1:] == ["  GET /", "  GET /healthz", "  GET /readyz"]
        async with client.get("/", headers={"Accept": "application/json"}) as root:
            assert await root.json() == {"name": "phonedesk", "paths": ["GET /", "GET /healthz", "GET /readyz"]}
    async with serving(make_app(ready, lang="zh"), "127.0.0.1", 0) as url, ClientSession(url) as client:
        assert "这个地址不是网页" in await (await client.get("/")).text()


async def test_the_root_names_the_command_as_it_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ready() -> dict[str, bool]:
        return {}

    called = in_a_checkout(tmp_path, monkeypatch)
    for lang in LANGUAGES:
        async with serving(make_app(ready, lang=lang), "127.0.0.1", 0) as url, ClientSession(url) as client:
            assert called in await (await client.get("/")).text()


def measuring() -> web.Application:
    """Return a server that says how long the body of a request is."""

    async def ready() -> dict[str, bool]:
        return {}

    async def read(request: web.Request) -> web.Response:
        return web.json_response(len(await request.read()))

    app = make_app(ready)
    app.router.add_post("/read", read)
    return app


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with serving(measuring(), "127.0.0.1", 0) as url, ClientSession(url) as client:
        async with client.post("/read", data=b"x" * 100) as fits:
            assert await fits.json() == 100
        async with client.post("/read", data=b"x" * (MAX_BODY + 1)) as large:
            assert large.status == 413


async def test_a_port_that_is_taken_names_the_setting() -> None:
    async def ready() -> dict[str, bool]:
        return {}

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigInvalid, match=f"127.0.0.1:{port}.*PHONEDESK_WEB__PORT"):
            async with serving(make_app(ready), "127.0.0.1", port):
                pass


async def test_it_is_gone_afterwards() -> None:
    async def ready() -> dict[str, bool]:
        return {}

    async with serving(make_app(ready), "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


async def raw(url: str, request: bytes) -> bytes:
    """What a server answers to these very bytes, until it closes the connection or has nothing more to say."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        async with asyncio.timeout(20):
            return await reader.readuntil(b"\r\n\r\n") + await reader.read(1000)
    finally:
        writer.close()


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/telegram/webhook", "/nothing"])
async def test_whatever_its_path_a_request_for_another_host_is_refused(path: str) -> None:
    async def ready() -> dict[str, bool]:
        return {}

    async def never(_: web.Request) -> web.Response:
        raise AssertionError

    names = web_names(WebSettings(hosts=("desk.example",)))
    app = make_app(ready, names)
    app.router.add_route("*", "/metrics", never)
    async with serving(app, "127.0.0.1", 0) as url, ClientSession(url) as client:
        for method in ("GET", "POST", "OPTIONS"):
            for pretended in ({}, {"X-Forwarded-Host": "localhost"}, {"Forwarded": "host=localhost;for=127.0.0.1"}):
                headers = {"Host": "evil.example", **pretended}
                async with client.request(method, path, headers=headers, data=b"x") as refused:
                    assert refused.status == 421
                    assert (await refused.json())["type"] == "unknown_host"
                    assert "PHONEDESK_WEB__HOSTS" in await refused.text()
        async with client.get("/healthz", headers={"Host": "desk.example"}) as known:
            assert known.status == 200
        for head in ("1.0", "1.1", "1.1\r\nHost: ", "1.1\r\nHost: localhost\r\nHost: evil.example"):
            request = f"GET {path} HTTP/{head}\r\nConnection: close\r\n\r\n"
            assert (await raw(url, request.encode())).split()[1] in {b"400", b"421"}
        absolute = f"GET http://localhost{path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()
        assert (await raw(url, absolute)).split()[1] == b"421"


async def test_no_body_is_unpacked() -> None:
    async with serving(measuring(), "127.0.0.1", 0) as url, ClientSession(url) as client:
        bomb = gzip.compress(bytes(100_000))
        async with client.post("/read", data=bomb, headers={"Content-Encoding": "gzip"}) as answer:
            assert await answer.json() == len(bomb)


async def test_a_body_is_bounded_in_bytes_and_in_time() -> None:
    async def ready() -> dict[str, bool]:
        return {}

    async def read(request: web.Request) -> web.Response:
        return web.json_response(len(await body_of(request, 1000, 0.2)))

    async def chunks(size: int) -> AsyncIterator[bytes]:
        for _ in range(10):
            yield bytes(size)

    app = make_app(ready)
    app.router.add_post("/read", read)
    async with serving(app, "127.0.0.1", 0) as url, ClientSession(url) as client:
        for body, status in ((bytes(1000), 200), (bytes(1001), 413), (chunks(100), 200), (chunks(101), 413)):
            async with client.post("/read", data=body) as answer:
                assert answer.status == status
        began = b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nslow"
        assert (await raw(url, began)).startswith(b"HTTP/1.1 408")


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_fault_of_ours() -> None:
    ended: asyncio.Queue[int] = asyncio.Queue()

    async def ready() -> dict[str, bool]:
        return {}

    async def read(request: web.Request) -> web.Response:
        try:
            await body_of(request, 1000, 30)
        except web.HTTPException as error:
            ended.put_nowait(error.status)
        return web.Response()

    app = make_app(ready)
    app.router.add_post("/read", read)
    async with serving(app, "127.0.0.1", 0) as url:
        _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
        writer.write(b"POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nslow")
        await writer.drain()
        await asyncio.sleep(0.1)
        writer.transport.abort()
        assert await asyncio.wait_for(ended.get(), 10) == 408
