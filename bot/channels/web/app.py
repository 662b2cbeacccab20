"""The web server: its start page, health, readiness, and host names. It listens on loopback by default."""

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
from bot.channels.web.problems import problem
from storage.engine import as_guest

log = structlog.get_logger(__name__)

Probe = Callable[[], Awaitable[Mapping[str, bool]]]
API = "/api/v1"
CONSOLE_PAGE = "console"  # the name of the route to the console's first page
MAX_BODY = 2 * 1024 * 1024
CLOSING = 5.0  # seconds that a request may go on when the server ends; one that never finishes would hold it up


def make_app(ready: Probe, names: ServerNames = LOOPBACK, lang: Lang = "zh") -> web.Application:
    """Return the application.

    ready: tells for each part whether it is up.
    names: the host names of the server.
    lang: its owner's language.
    """
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_named(names), _waits_its_turn])

    async def root(request: web.Request) -> web.Response:
        """Say what this is to programs; it lists routes, and nothing of the desk. A browser is led to the console."""
        if CONSOLE_PAGE in app.router and "text/html" in request.headers.get("Accept", ""):
            raise web.HTTPSeeOther(app.router[CONSOLE_PAGE].url_for())
        routes = [(route.method, route.resource.canonical) for route in app.router.routes() if route.resource]
        # Of the API its document tells, of the console's pages the first; a route for any method is a refusal.
        below = (f"{API}/", f"{app.router[CONSOLE_PAGE].url_for()}/") if CONSOLE_PAGE in app.router else (f"{API}/",)
        paths = sorted(
            f"{method} {path}" for method, path in routes if method not in ("HEAD", "*") and not path.startswith(below)
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
    """Tell whether the client accepts JSON and no text."""
    kinds = {part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "*/*").split(",")}
    return "application/json" in kinds and not any(kind == "*/*" or kind.startswith("text/") for kind in kinds)


def _named(names: ServerNames) -> Middleware:
    """Return a middleware that checks the host name of every request before anything else, whatever its path."""

    @web.middleware
    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        if not names.answers_to(host):
            refusal = names.refusal(host)
            return problem(421, refusal["error"], refusal["message"])
        return await handler(request)

    return named


@web.middleware
async def _waits_its_turn(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let a request wait for the database behind the runs, however many requests there are."""
    with as_guest():
        return await handler(request)


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve ``app``; gives its URL. Raises ConfigInvalid if the port is taken."""
    # No client of ours compresses a body, and a few compressed bytes may stand for gigabytes: bodies are read as they
    # are.
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
