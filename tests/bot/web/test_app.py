from __future__ import annotations

import socket

import pytest
from aiohttp import ClientSession, web

from agent_core.errors import ConfigInvalid
from bot.web.app import MAX_BODY, make_app, serving


async def test_health_and_readiness() -> None:
    parts = {"queue": True, "telegram": False}

    async def ready() -> dict[str, bool]:
        return parts

    async with serving(make_app(ready), "127.0.0.1", 0) as url, ClientSession(url) as client:
        async with client.get("/healthz") as health:
            assert (health.status, await health.json()) == (200, {"status": "ok"})
        async with client.get("/readyz") as starting:
            assert (starting.status, await starting.json()) == (503, {"status": "starting", "parts": parts})
        parts["telegram"] = True
        async with client.get("/readyz") as up:
            assert (up.status, await up.json()) == (200, {"status": "ok", "parts": parts})
        async with client.get("/nothing") as missing:
            assert missing.status == 404


async def test_a_body_that_is_too_large_is_refused() -> None:
    async def ready() -> dict[str, bool]:
        return {}

    async def read(request: web.Request) -> web.Response:
        return web.json_response(len(await request.read()))

    app = make_app(ready)
    app.router.add_post("/read", read)
    async with serving(app, "127.0.0.1", 0) as url, ClientSession(url) as client:
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
