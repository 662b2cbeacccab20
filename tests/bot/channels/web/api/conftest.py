"""The API of a busy shop, over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from bot.app.server_names import web_names
from bot.app.settings.sections import WebSettings
from bot.channels.web.api.routes import add_api
from bot.channels.web.app import make_app, serving
from bot.desk.actors import Role
from bot.desk.desk import Desk
from bot.desk.request_limits import RequestLimit
from storage.api_keys import ApiKeys
from storage.engine import Database
from tests.support.busy import busy_shop

OFTEN = 1_000_000  # requests within a minute


@dataclass
class Api:
    """The API at ``url``, and a client of it with a key for each role."""

    url: str
    db: Database
    desk: Desk
    run_id: str
    client: ClientSession
    keys: dict[Role, str] = field(default_factory=dict)

    async def ask(
        self, verb: str, path: str, *, role: Role | None = Role.OWNER, key: str = "", **rest: Any
    ) -> tuple[int, Any, ClientResponse]:
        """Return status, body and response. ``path`` begins behind ``/api/v1`` unless it names it."""
        headers = dict(rest.pop("headers", {}))
        if key or role is not None:
            headers["Authorization"] = f"Bearer {key or self.keys[role]}"  # type: ignore[index]
        place = self.url + (path if path.startswith(("/api", "/openapi")) else f"/api/v1{path}")
        async with self.client.request(verb, place, headers=headers, **rest) as response:
            is_json = response.content_type.endswith("json")
            return response.status, await (response.json() if is_json else response.read()), response


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async def ready() -> dict[str, bool]:
        return {}

    async with busy_shop(tmp_path) as busy:
        desk = Desk(replace(busy.desk.context, pace=RequestLimit(OFTEN)))
        names = web_names(WebSettings())
        app = make_app(ready, names)
        add_api(app, desk, busy.shop.db, names, heartbeat=0.05)
        async with serving(app, "127.0.0.1", 0) as url, ClientSession() as client:
            made = Api(url, busy.shop.db, desk, busy.run_id, client)
            for role in Role:
                made.keys[role], _ = await ApiKeys(busy.shop.db).add(f"a-{role}", role=role.value, lang="en")
            yield made
