"""Phones over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from agent_core.actions.types import Back, DoubleTap, Home, LongPress, PressKey, Swipe, Tap, Type
from bot.channels.web.api.operations import ApiCall, JpegPicture, Operations, Shown, Wish
from bot.desk.actors import Role

operations = Operations("devices")


class ApiDevice(Shown):
    """A phone. ``state``: free, busy, offline, unauthorized, or away (its host is not heard). ``run``: which has it."""

    serial: str
    name: str
    state: str
    run: str = Field(validation_alias="run_id")
    host: str
    since: datetime | None
    tags: list[str]


class ApiDevices(Shown):
    items: list[ApiDevice]


class ApiAct(Wish):
    action: Annotated[Tap | DoubleTap | LongPress | Swipe | Type | Back | Home | PressKey, Field(discriminator="kind")]


class ApiTaken(Shown):
    """``taken``: you have the phone."""

    serial: str
    taken: bool


class ApiScreenQuery(Wish):
    full: bool = Field(False, description="In the phone's own size.")


@operations.get("/devices")
async def list_devices(call: ApiCall) -> ApiDevices:
    """List the phones."""
    return ApiDevices(items=[ApiDevice.of(phone) for phone in (await call.desk.status(call.actor)).phones])


@operations.get("/devices/{serial}/screen")
async def get_screen(call: ApiCall, serial: str, query: ApiScreenQuery) -> JpegPicture:
    """Show the screen of a phone as it is now, without touching it. Secrets are covered."""
    return JpegPicture(await call.desk.phones.screenshot(call.actor, serial, full=query.full))


@operations.post("/devices/{serial}/take-over", Role.OPERATOR)
async def take_over(call: ApiCall, serial: str) -> ApiTaken:
    """Take a phone over: a run that has it is parked until you give it back, or do nothing for two minutes."""
    return ApiTaken(serial=await call.desk.take_over.take(call.actor, serial), taken=True)


@operations.delete("/devices/{serial}/take-over", Role.OPERATOR)
async def give_back(call: ApiCall, serial: str) -> ApiTaken:
    """Give a phone back. What was parked goes on."""
    return ApiTaken(serial=await call.desk.take_over.give_back(call.actor, serial), taken=False)


@operations.post("/devices/{serial}/acts", Role.OPERATOR)
async def act(call: ApiCall, serial: str, body: ApiAct) -> ApiTaken:
    """Tap, swipe, type or press a key on a phone that you have taken over. Points go from 0 to 1000 on both axes."""
    await call.desk.take_over.act(call.actor, serial, body.action)
    return ApiTaken(serial=serial, taken=True)
