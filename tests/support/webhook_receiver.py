"""A strict receiver of webhooks: it takes nothing whose signature it has not checked by itself.

The check is written from the text of the Standard Webhooks specification and of RFC 2104, and shares no code with the
product.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web

_BLOCK = 64  # bytes of SHA-256


def hmac_sha256(key: bytes, message: bytes) -> bytes:
    """RFC 2104."""
    key = (hashlib.sha256(key).digest() if len(key) > _BLOCK else key).ljust(_BLOCK, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()


def signature_of(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    kind, _, key = secret.partition("_")
    assert kind == "whsec"
    signed = b".".join((message_id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac_sha256(base64.b64decode(key, validate=True), signed)).decode()


@dataclass
class Reply:
    """How the receiver answers one message. ``until``: it answers only once this is set."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    until: asyncio.Event | None = None


@dataclass
class Received:
    id: str
    signatures: list[str]
    type: str
    payload: dict[str, Any]


@dataclass
class Receiver:
    """secret: checks signatures; set once the product has told it. replies: the next answers, then 204."""

    url: str = ""
    secret: str = ""
    now: Callable[[], datetime] | None = None
    replies: list[Reply] = field(default_factory=list)
    taken: list[Received] = field(default_factory=list)  # what was answered with 2xx
    tried: list[Received] = field(default_factory=list)  # everything that came
    wrong: list[str] = field(default_factory=list)
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, count: int) -> None:
        """Wait until so many messages were tried."""
        async with asyncio.timeout(60):
            while len(self.tried) < count:
                self._more.clear()
                await self._more.wait()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        why = self._fault(request, body)
        if why:
            self.wrong.append(why)
            return web.Response(status=401, text=why)
        payload = json.loads(body)
        headers = request.headers
        one = Received(headers["webhook-id"], headers["webhook-signature"].split(), payload["type"], payload)
        self.tried.append(one)
        self._more.set()
        reply = self.replies.pop(0) if self.replies else Reply()
        if reply.until is not None:
            await reply.until.wait()
        if 200 <= reply.status < 300:
            self.taken.append(one)
        return web.Response(status=reply.status, headers=reply.headers, body=reply.body)

    def _fault(self, request: web.Request, body: bytes) -> str:
        headers = request.headers
        message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not message_id or "." in message_id or not timestamp.isdecimal():
            return "id or timestamp"
        if self.now is not None and abs(self.now().timestamp() - int(timestamp)) > 300:
            return "too old or new"
        right = signature_of(self.secret, message_id, timestamp, body)
        if right not in headers.get("webhook-signature", "").split():
            return "signature"
        if request.content_type != "application/json" or request.method != "POST":
            return "form"
        if set(json.loads(body)) != {"type", "timestamp", "data"}:
            return "payload"
        return ""


@asynccontextmanager
async def receiver(now: Callable[[], datetime] | None = None) -> AsyncIterator[Receiver]:
    made = Receiver(now=now)
    app = web.Application(client_max_size=2**20)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.url = f"http://127.0.0.1:{site.port}/hook"
        yield made
    finally:
        for reply in made.replies:
            if reply.until is not None:
                reply.until.set()
        await runner.cleanup()
