"""MCP over streamable HTTP: the SDK's own transport, behind an API key, for known host names only."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agent_core.errors import PhonedeskError
from bot.app.server_names import ServerNames, mcp_names
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.door import PATH
from bot.channels.mcp.server import Context, make_server
from bot.channels.mcp.sessions import MOST_SESSIONS, SharedSessions
from bot.desk.actors import AccessDenied, Actor
from bot.desk.context import API
from bot.desk.keys import actor_of_key
from bot.desk.request_limits import Notebook
from storage.engine import Database
from storage.people import Audit

MAX_BODY = 1024 * 1024  # bytes; arguments are texts and numbers
GRACE_SECONDS = 3  # for streams that are open at the end
ACTOR = "actor"


class ServerEnded(PhonedeskError):
    default_advice = "Its log says why; start it again."


class Keys:
    """The check of API keys; implements the SDK's TokenVerifier. Attempts of strangers are recorded, within limits."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._audit = Audit(db)
        self._notebook = Notebook()

    async def verify_token(self, token: str) -> AccessToken | None:
        actor = await actor_of_key(self._db, f"Bearer {token}")
        if actor is None:
            if self._notebook.takes(API, self._db.now()):
                await self._audit.write(API, API, "mcp key", {"why": "unknown key"}, allowed=False)
            return None
        # The SDK binds a client's session to client_id: another key cannot take it over.
        return AccessToken(token="", client_id=actor.id, scopes=[actor.role.value], claims={ACTOR: actor})


def who_asks(context: Context) -> Actor:
    """Return the actor of the key in this request. Raises AccessDenied if it has none."""
    user = context.request.scope.get("user") if context.request is not None else None
    actor = (user.access_token.claims or {}).get(ACTOR) if isinstance(user, AuthenticatedUser) else None
    if not isinstance(actor, Actor):
        raise AccessDenied("An API key is needed.", advice="Make one with `phonedesk keys add`.")
    return actor


def http_app(context: ToolContext) -> Starlette:
    """Return the ASGI application; its lifespan runs the sessions of clients."""
    settings, db = context.settings, context.core.db
    manager = StreamableHTTPSessionManager(
        make_server(context, who_asks),
        max_request_body_size=MAX_BODY,
        max_sessions=MOST_SESSIONS,
    )
    endpoint = RequireAuthMiddleware(SharedSessions(manager.asgi_app, context.calls.at_work), [])
    return Starlette(
        routes=[Route(PATH, endpoint=endpoint)],
        middleware=[
            Middleware(_Named, names=mcp_names(settings)),
            Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(Keys(db))),
            Middleware(AuthContextMiddleware),
        ],
        lifespan=lambda _: manager.run(),
    )


class _Named:
    """The check of a request's host name, and of the page that it comes from, before anything else."""

    def __init__(self, app: ASGIApp, names: ServerNames) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host, origin = headers.get("host", ""), headers.get("origin")
            if not self._names.answers_to(host):
                await JSONResponse(self._names.refusal(host), 421)(scope, receive, send)
                return
            if origin is not None and not self._names.trusts_page_of(origin):
                await JSONResponse(self._names.refusal(origin), 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """A server that leaves signals to the process that it is part of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def server(context: ToolContext) -> uvicorn.Server:
    """Return the server: run it with ``serve(sockets=…)``, end it with ``should_exit``."""
    config = uvicorn.Config(
        http_app(context),
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config)


@asynccontextmanager
async def serving(context: ToolContext, sock: socket.socket) -> AsyncIterator[asyncio.Task[None]]:
    """Serve on a listening socket; gives the task that does.

    At the end running calls are stopped first, so that they are answered.
    """
    running = server(context)
    task = asyncio.create_task(running.serve(sockets=[sock]), name="mcp-http")
    try:
        yield task
    finally:
        await context.calls.stop()
        running.should_exit = True
        await asyncio.wait([task])


async def until_ended(running: asyncio.Task[None], ended: asyncio.Event) -> None:
    """Wait until ``ended`` is set. Raises ServerEnded if the server ends before."""
    ending = asyncio.create_task(ended.wait())
    try:
        await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        ending.cancel()
    if not ended.is_set():
        raise ServerEnded("The server of MCP clients ended by itself.") from running.exception()
