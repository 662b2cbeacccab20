"""The console of a busy shop, over real HTTP, and browsers that are logged in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, web

from bot.app.server_names import CONSOLE, ServerNames, web_names
from bot.app.settings.sections import WebSettings
from bot.channels.web.api.routes import add_api
from bot.channels.web.app import make_app, serving
from bot.channels.web.console.routes import add_console
from bot.desk.actors import Actor, Role
from bot.desk.desk import Desk
from bot.desk.request_limits import RequestLimit
from storage.engine import Database
from tests.support.busy import Busy, busy_shop

OFTEN = 1_000_000  # requests within a minute
TERMINAL = Actor("terminal", "terminal", "terminal", "terminal", "en", Role.OWNER)


@dataclass
class Browser:
    """A browser with its cookies, as it sends requests of our own pages."""

    url: str
    client: ClientSession

    @property
    def own(self) -> dict[str, str]:
        return {"Origin": self.url, "X-Requested-By": "console"}

    async def get(self, path: str, **rest: Any) -> tuple[int, str, ClientResponse]:
        async with self.client.get(self.url + path, **rest) as response:
            return response.status, await response.text(), response

    async def page(self, path: str = "") -> str:
        """Return a page of the console, which must be there."""
        status, text, _ = await self.get(CONSOLE + path, allow_redirects=False)
        assert status == 200, text
        return text

    async def ask(self, verb: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, ClientResponse]:
        sent = {**self.own, **headers}
        sent = {name: value for name, value in sent.items() if value}
        async with self.client.request(verb, self.url + path, json=body, headers=sent) as response:
            return response.status, await response.json(), response

    async def log_in(self, link: str) -> int:
        return (await self.ask("POST", f"{CONSOLE}/login", {"code": link.partition("#")[2]}))[0]


@dataclass
class Shown:
    """The console at ``url``. ``browser``: one that is logged in as the owner at this machine, in English."""

    url: str
    busy: Busy
    desk: Desk
    db: Database
    browser: Browser
    stack: AsyncExitStack
    app: web.Application
    names: ServerNames

    async def stranger(self) -> Browser:
        """Return a browser that is not logged in."""
        return Browser(self.url, await self.stack.enter_async_context(ClientSession(cookie_jar=CookieJar(unsafe=True))))


@pytest.fixture
async def shown(tmp_path: Path) -> AsyncIterator[Shown]:
    async def ready() -> dict[str, bool]:
        return {}

    async with AsyncExitStack() as stack:
        busy = await stack.enter_async_context(busy_shop(tmp_path))
        desk = Desk(replace(busy.desk.context, pace=RequestLimit(OFTEN)))
        names = web_names(WebSettings())
        app = make_app(ready, names)
        add_api(app, desk, busy.shop.db, names, heartbeat=0.05)
        add_console(app, desk, names, heartbeat=0.05)
        url = await stack.enter_async_context(serving(app, "127.0.0.1", 0))
        desk.context.console_url = url + CONSOLE
        made = Shown(url, busy, desk, busy.shop.db, Browser(url, None), stack, app, names)  # type: ignore[arg-type]
        made.browser = await made.stranger()
        assert await made.browser.log_in(await desk.console.link(TERMINAL)) == 200
        yield made
