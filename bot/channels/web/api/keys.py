"""API keys over HTTP, for owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from bot.channels.web.api.operations import ApiCall, Line, Lines, Operations, Shown, Wish
from bot.desk.actors import Role

operations = Operations("keys")


class ApiNewKey(Wish):
    """``role``: viewer, operator or owner. ``devices``: the only phones that it may use; none for all."""

    name: Annotated[Line, Field(min_length=1, max_length=64)]
    role: Literal["viewer", "operator", "owner"] = "viewer"
    devices: Lines = []


class ApiKeyShown(Shown):
    """An API key, without its secret."""

    name: str
    role: str
    devices: list[str] | None = Field(validation_alias="serials")
    created_at: datetime
    last_used_at: datetime | None


class ApiKeyList(Shown):
    items: list[ApiKeyShown]


class ApiSecret(Shown):
    """A key that was just made. It is shown this once."""

    key: str
    name: str


class ApiRemoved(Shown):
    """``stopped``: how many of its runs were stopped."""

    name: str
    stopped: int


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
