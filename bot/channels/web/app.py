"""The web server: what it is, health, readiness, and who is let in. On loopback unless told otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from agent_core.errors import ConfigInvalid
from bot.app.release import NAME, program
from bot.app.server_names import LOOPBACK, ServerNames, place_of
from bot.channels.chat.texts import Lang, texts

log = structlog.get_logger(__name__)

Probe = Callable[[], Awaitable[Mapping[str, bool]]]
MAX_BODY = 2 * 1024 * 1024
CLOSING = 5.0  # seconds that a request may go on when the server ends; one that was never finished would hold it


def make_app(ready: Probe, names: ServerNames = LOOPBACK, lang: Lang = "zh") -> web.Application:
    """``ready`` tells for each part whether it is up. ``names``: what the server is called. ``lang``: of its owner."""
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_named(names)])

    async def root(request: web.Request) -> web.Response:
        """Tell whoever looks by a browser or curl what this is; it names routes, and nothing of the desk."""
        paths = sorted(
            f"{route.method} {route.resource.canonical}"
            for route in app.router.routes()
            if route.resource is not None and route.method != "HEAD"
        )
        if _wants_json(request):
            return web.json_response({"name": NAME, "paths": paths})
        listed = "\n".join(f"  {path}" for path in paths)
        return web.Response(text=texts(lang).get("web.root", command=program(), paths=listed) + "\n")

    async def healthz(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "name": NAME})

    async def readyz(_: web.Request) -> web.Response:
        parts = dict(await ready())
        up = all(parts.values())
        return web.json_response({"status": "ok" if up else "starting", "parts": parts}, status=200 if up else 503)

    app.router.add_get("/", root)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


def _wants_json(request: web.Request) -> bool:
    """Return whether the client accepts JSON and no text."""
    kinds = {part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "*/*").split(",")}
    return "application/json" in kinds and not any(kind == "*/*" or kind.startswith("text/") for kind in kinds)


def _named(names: ServerNames) -> Middleware:
    """Look at which server every request asks for, before anything else does, whatever its path."""

    @web.middleware
    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if not names.answers_to(host):
            return web.json_response(names.refusal(host), status=421)
        return await handler(request)

    return named


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve ``app``; gives its URL. ConfigInvalid where the port is taken."""
    # Nobody who calls us compresses a body, and a few bytes may stand for gigabytes: it is read as it is.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSING, auto_decompress=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise ConfigInvalid(
                f"The web server cannot use {host}:{port}: {error.strerror}.",
                advice="Set PHONEDESK_WEB__HOST or PHONEDESK_WEB__PORT.",
                key="web_port",
                place=f"{host}:{port}",
                why=error,
            ) from None
        yield f"http://{place_of(host, site.port or port)}"
    finally:
        await runner.cleanup()
