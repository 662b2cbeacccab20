"""API keys over HTTP, for owners."""

from __future__ import annotations

from bot.channels.web.api.models import ApiKeyList, ApiKeyShown, ApiNewKey, ApiRemoved, ApiSecret
from bot.channels.web.api.operations import ApiCall, Operations
from bot.desk.actors import Role

operations = Operations("keys")


@operations.get("/keys", Role.OWNER)
async def list_keys(call: ApiCall) -> ApiKeyList:
    """List the API keys, without their secrets."""
    return ApiKeyList(items=[ApiKeyShown.of(row) for row in await call.desk.keys.all(call.actor)])


@operations.post("/keys", Role.OWNER, status=201)
async def add_key(call: ApiCall, body: ApiNewKey) -> ApiSecret:
    """Make an API key. It is shown this once."""
    key, row = await call.desk.keys.add(call.actor, body.name, Role(body.role), phones=body.devices)
    return ApiSecret(key=key, name=row.name)


@operations.post("/keys/{name}/rotate", Role.OWNER)
async def rotate_key(call: ApiCall, name: str) -> ApiSecret:
    """Give a key a new secret. The old one is refused from now on."""
    key, row = await call.desk.keys.rotate(call.actor, name)
    return ApiSecret(key=key, name=row.name)


@operations.delete("/keys/{name}", Role.OWNER)
async def remove_key(call: ApiCall, name: str) -> ApiRemoved:
    """Remove a key, and stop its runs."""
    row, stopped = await call.desk.keys.remove(call.actor, name)
    return ApiRemoved(name=row.name, stopped=stopped)
