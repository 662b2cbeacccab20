"""The HTTP side: ``/bot<token>/<method>``, ``/file/bot<token>/…``, long polling and the webhook's sender."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, TypeVar

import aiohttp
from aiohttp import web

from simulator.telegram import topics as _topics  # noqa: F401 - registers its methods
from simulator.telegram.calls import Call, read_call
from simulator.telegram.control import Control
from simulator.telegram.methods import HANDLERS
from simulator.telegram.people import TIMEOUT, FakeUser
from simulator.telegram.rules import ApiError
from simulator.telegram.world import AS_TEXT, CallRecord, Chat, Json, World

T = TypeVar("T")
MAX_REQUEST = 64 * 1024 * 1024
POLL_SECONDS = 50  # Telegram shortens longer ones to this


class FakeTelegram:
    """A Bot API server on 127.0.0.1, and the people behind it: ``async with FakeTelegram() as tg``.

    ``url`` and ``file_url`` are the base URLs for a client (the token follows them at once). ``webhook_retry`` is the
    pause in seconds before an update that the webhook did not take is sent again. ``proxies`` stands for the reverse
    proxies of the outside world: the public https address → the address at which the server behind it listens on this
    machine.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        token: str = "700000001:stand-in-token-of-the-demo",  # noqa: S107 - opens nothing but this stand-in
        webhook_retry: float = 0.05,
    ) -> None:
        self.token = token
        self.world = World()
        self.users: dict[int, FakeUser] = {}
        self.proxies: dict[str, str] = {}
        self.port = port
        self._webhook_retry = webhook_retry
        self._runner: web.AppRunner | None = None
        self._sender: asyncio.Task[None] | None = None
        self._poll: asyncio.Future[None] | None = None  # the poll that waits now
        self._closing = asyncio.Event()

    # Lifecycle --------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> FakeTelegram:
        app = web.Application(client_max_size=MAX_REQUEST)
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{path:.+}", self._serve_file)
        Control(self.world, self.users).add_to(app)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self._sender = asyncio.create_task(self._send_to_webhook(), name="fake-telegram-webhook")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self.world.changed()
        if self._sender is not None:
            self._sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.root}/bot"

    @property
    def file_url(self) -> str:
        return f"{self.root}/file/bot"

    # The people -------------------------------------------------------------------------------------------------------

    def user(self, user_id: int, name: str = "Person", lang: str = "en") -> FakeUser:
        """Return the person with this id. A new one is made if there is none."""
        if user_id not in self.users:
            self.users[user_id] = FakeUser(self.world, self.world.member(user_id, name, lang))
        return self.users[user_id]

    def group(
        self, chat_id: int, title: str, kind: Literal["group", "supergroup"] = "supergroup", *, forum: bool = False
    ) -> Chat:
        return self.world.group(chat_id, title, kind, forum=forum)

    async def wait_for(
        self,
        met: Callable[[Chat], T],
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - how long a person looks
        *,
        chat: Chat | None = None,
    ) -> T:
        """Wait as ``FakeUser.sees`` does, for the first person (or in ``chat``)."""
        first = next(iter(self.users.values()))
        return await first.sees(met, timeout=timeout, chat=chat)

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["method"]
        if request.match_info["token"] != self.token:
            return _answer(ApiError(401, "Unauthorized"))
        fault = self.world.fault(name)
        if fault == "before":
            return _hang_up(request)
        if fault == "502":
            return web.Response(status=502, text="<html><body>Bad Gateway</body></html>", content_type="text/html")
        chat_id: int | None = None
        try:
            call = await read_call(request, name)
            chat_id = _chat_of(call)
            result = await self._run(call)
        except ApiError as error:
            self._note(name, chat_id, error.code)
            return _answer(error)
        self._note(name, chat_id, 200)
        await asyncio.sleep(self.world.lateness(name))
        if fault == "after":
            return _hang_up(request)
        if name.lower() == "getupdates" and isinstance(result, list):
            body = ",".join(map(_written, result))
            return web.Response(text=f'{{"ok":true,"result":[{body}]}}', content_type="application/json")
        return web.json_response({"ok": True, "result": result})

    def _note(self, name: str, chat_id: int | None, code: int) -> None:
        self.world.calls.append(CallRecord(asyncio.get_running_loop().time(), name, chat_id, code))
        self.world.changed()

    async def _run(self, call: Call) -> object:
        if call.name == "getUpdates":
            return await self._get_updates(call)
        handler = HANDLERS.get(call.name)
        if handler is None:
            raise ApiError(400, f"{call.name} is not held by this server")
        return await handler(self.world, call)

    async def _serve_file(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            return _answer(ApiError(401, "Unauthorized"))
        for file in self.world.files.values():
            if file.path == request.match_info["path"]:
                return web.Response(body=file.data, content_type="application/octet-stream")
        return _answer(ApiError(404, "Not Found"))

    # Updates ----------------------------------------------------------------------------------------------------------

    async def _get_updates(self, call: Call) -> list[Json]:
        world = self.world
        if world.webhook.url:
            words = "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
            raise ApiError(409, words)
        if self._poll is not None and not self._poll.done():
            # The newer poll wins; the older gets an error.
            self._poll.set_result(None)
        this_poll = self._poll = asyncio.get_running_loop().create_future()
        if call.get("allowed_updates") is not None:
            world.allowed_updates = list(call.get("allowed_updates"))
        if call.get("offset") is not None:
            world.confirm_below(call.get("offset"))
        limit = min(max(call.get("limit") or 100, 1), 100)
        seconds = min(call.get("timeout") or 0, POLL_SECONDS)
        try:
            await world.wait_until(lambda: world.updates or this_poll.done() or self._closing.is_set(), seconds)
        except TimeoutError:
            return []
        if this_poll.done():
            words = "terminated by other getUpdates request; make sure that only one bot instance is running"
            raise ApiError(409, words)
        this_poll.set_result(None)
        return world.updates[:limit]

    async def _send_to_webhook(self) -> None:
        world = self.world
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            while True:
                await world.wait_until(lambda: world.webhook.url and world.updates, timeout=3600 * 24)
                update, webhook = world.updates[0], world.webhook
                if await self._deliver(session, update):
                    webhook.last_error = ""
                    with contextlib.suppress(ValueError):
                        world.updates.remove(update)
                else:
                    await asyncio.sleep(self._webhook_retry)

    async def _deliver(self, session: aiohttp.ClientSession, update: Json) -> bool:
        webhook = self.world.webhook
        headers = {"X-Telegram-Bot-Api-Secret-Token": webhook.secret} if webhook.secret else {}
        try:
            headers["Content-Type"] = "application/json"
            body = _written(update).encode()
            async with session.post(self._behind_proxy(webhook.url), data=body, headers=headers) as response:
                if response.status == 200:
                    return True
                webhook.last_error = f"Wrong response from the webhook: {response.status} {response.reason}"
        except (aiohttp.ClientError, TimeoutError) as error:
            webhook.last_error = f"Connection failed: {type(error).__name__}"
        return False

    def _behind_proxy(self, url: str) -> str:
        for public, here in self.proxies.items():
            if url.startswith(f"{public}/"):
                return here + url.removeprefix(public)
        return url


def _written(update: Json) -> str:
    return str(update[AS_TEXT]) if AS_TEXT in update else json.dumps(update)


def _chat_of(call: Call) -> int | None:
    chat_id: Any = call.get("chat_id")
    text = str(chat_id)
    return int(text) if text.lstrip("-").isdigit() else None


def _answer(error: ApiError) -> web.Response:
    body: Json = {"ok": False, "error_code": error.code, "description": error.description}
    if error.parameters:
        body["parameters"] = error.parameters
    return web.json_response(body, status=error.code)


def _hang_up(request: web.Request) -> web.Response:
    """Cut the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
