"""MCP sessions over HTTP, shared fairly between API keys.

A session stays open until its client ends it, or has been silent for half an hour. So that nobody keeps others out by
opening many, a key has a share of them, and a session that is idle makes room for a new one: its client gets 404 at its
next request, and opens another as the protocol says.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_SESSIONS = 200
SHARE = 50  # of one key
AGAIN_SECONDS = 10
SERVER_ERROR = -32000  # JSON-RPC leaves its meaning to us

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Session:
    user: AuthenticatedUser
    requests: int = 0  # POST requests in flight; a stream that a client keeps open does not count

    @property
    def key(self) -> str:
        return str(self.user.access_token.client_id)


class SharedSessions:
    """ASGI application in front of the SDK's session manager, behind the check of the key.

    It knows every session of the manager, and for a while some that the manager has already ended.

    working: tells whether a call of the session with this id is running, even if its client has left it.
    """

    def __init__(
        self, manager: ASGIApp, working: Callable[[str], bool], *, most: int = MOST_SESSIONS, share: int = SHARE
    ) -> None:
        self._manager = manager
        self._working = working
        self._most = most
        self._share = share
        self._sessions: dict[str, _Session] = {}  # the most recently used at the end
        self._opening: Counter[str] = Counter()  # by key: sessions of which the first request is not answered yet
        self._one_by_one = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        name = headers.get(MCP_SESSION_ID_HEADER)
        version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if name is not None:
            await self._used(name, scope, receive, send)
        elif version is None or version in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._opened(scope, receive, send)
        else:
            await self._manager(scope, receive, send)  # a version of the protocol without sessions

    async def _used(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._sessions.get(name)
        if session is None or session.key != scope["user"].access_token.client_id:
            await self._manager(scope, receive, send)  # the manager says that there is none
            return

        def begun(message: Message) -> None:
            if message["status"] == 404 or (scope["method"] == "DELETE" and message["status"] == 200):
                self._sessions.pop(name, None)

        await self._answered(session, begun, lambda: self._was_used(name), scope, receive, send)

    async def _opened(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _Session(scope["user"])
        async with self._one_by_one:
            refusal = await self._make_room(session.key)
            if refusal is None:
                self._opening[session.key] += 1
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        name = ""

        def begun(message: Message) -> None:
            nonlocal name
            if message["status"] < 400:
                name = Headers(raw=message["headers"]).get(MCP_SESSION_ID_HEADER, "")
            if name:
                self._opening[session.key] -= 1
                self._sessions[name] = session

        try:
            await self._answered(session, begun, lambda: self._was_used(name), scope, receive, send)
        finally:
            if not name:
                self._opening[session.key] -= 1

    async def _answered(
        self,
        session: _Session,
        begun: Callable[[Message], None],
        ended: Callable[[], None],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        """Have the manager answer.

        A POST is over with the last bytes of its answer, because then the client may continue.
        """
        counts = scope["method"] == "POST"
        session.requests += counts

        def over() -> None:
            nonlocal counts
            if counts:
                counts = False
                session.requests -= 1
                ended()

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun(message)
            elif message["type"] == "http.response.body" and not message.get("more_body"):
                over()
            await send(message)

        try:
            await self._manager(scope, receive, heard)
        finally:
            over()

    def _was_used(self, name: str) -> None:
        if (session := self._sessions.pop(name, None)) is not None:
            self._sessions[name] = session

    async def _make_room(self, key: str) -> Response | None:
        """End an idle session if there is no room for another one of this key; return the refusal if none can go."""
        counts = Counter(session.key for session in self._sessions.values()) + self._opening
        if counts[key] >= self._share:
            if await self._end_idle(key):
                return None
            return _refusal(429, "This key has as many sessions as it may, and each has a call at work.")
        if counts.total() < self._most:
            return None
        for holder, count in counts.most_common():
            # A key with fewer sessions than this one gives none up for it.
            if (holder == key or count > counts[key]) and await self._end_idle(holder):
                return None
        return _refusal(503, "There are as many sessions as there may be, and each has a call at work.")

    async def _end_idle(self, key: str) -> bool:
        """End the session of this key that has been idle longest; False if none is idle."""
        for name, session in self._sessions.items():
            if session.key == key and not session.requests and not self._working(name):
                del self._sessions[name]
                await self._manager(*_end_of(name, session.user))
                log.info("mcp_session_ended", key=key, why="room for another")
                return True
        return False


def _end_of(name: str, user: AuthenticatedUser) -> tuple[Scope, Receive, Send]:
    """Return the request by which a client ends its session, as if this key had sent it."""

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_: Message) -> None:
        pass

    headers = [(MCP_SESSION_ID_HEADER.encode(), name.encode())]
    scope: Scope = {"type": "http", "method": "DELETE", "path": "/", "headers": headers, "query_string": b""}
    return {**scope, "user": user}, receive, send


def _refusal(status: int, said: str) -> Response:
    error = {"code": SERVER_ERROR, "message": f"{said} Try again in {AGAIN_SECONDS} seconds."}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return JSONResponse(body, status, headers={"Retry-After": str(AGAIN_SECONDS)})
