"""The low-level tools: what is attached, what a phone shows, and single acts on it, each with the phone's lease."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image

from agent_core.actions.types import Back, Home, Launch, Wait
from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.stillness import wait_until_still
from agent_core.geometry import Point
from agent_core.loop.acting import do_on
from bot.channels.mcp.arguments import Act, TypeText
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.stopping import Stopper
from bot.channels.mcp.unsent import take_unsent_away
from bot.desk.actors import Actor
from bot.desk.context import sees

ELSEWHERE = "elsewhere"  # the state of a phone that another host works
HARMLESS = (Back, Home, Launch, Wait)  # none of these sends what stands in an input


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """A phone's screen: JPEG, and its size in pixels as the phone has it now."""

    device_id: str
    jpeg: bytes
    size: tuple[int, int]


class Acts:
    def __init__(self, context: ToolContext) -> None:
        self._context = context

    async def phones(self, actor: Actor, *, for_tasks: bool) -> list[dict[str, Any]]:
        """The phones that this client may use. Those of other hosts only show their screens here; ``for_tasks``:
        without them.
        """
        await self._context.rights.may_list(actor)
        seen = [phone for phone in await self._context.phones.all() if sees(actor, phone.serial)]
        return [
            {
                "device_id": phone.serial,
                "name": phone.name,
                "state": ELSEWHERE if phone.host else phone.state,
                "host": phone.host,
            }
            for phone in seen
            if not (phone.host and for_tasks)
        ]

    async def screenshot(self, actor: Actor, device_id: str) -> ShownScreen:
        """What the phone shows, secrets covered as the settings say. Only read: no lease is taken."""
        jpeg = await self._context.phones.screenshot(actor, device_id or None, full=True)
        named = await self._context.rights.serial_of(actor, device_id)
        if not named:
            named = next((phone.serial for phone in await self._context.phones.all() if sees(actor, phone.serial)), "")
        return ShownScreen(named, jpeg, await asyncio.to_thread(_size, jpeg))

    async def act(self, actor: Actor, name: str, arguments: Act, stopper: Stopper) -> dict[str, Any]:
        """Do one thing. ActionFailed says why it could not be done; PhoneBusy where another has the phone."""
        action = arguments.action()
        told = arguments.model_dump(mode="json", exclude={"device_id"}, exclude_none=True)
        noted = {key: value for key, value in told.items() if not isinstance(arguments, TypeText) or key != "value"}
        serial = await self._context.rights.may_act(actor, f"mcp {name}", arguments.device_id, paced=False, **noted)
        async with (
            self._context.phone(serial) as device,
            self._context.held(device.serial, f"mcp {name}", stopper) as lease,
        ):
            await lease.check()
            await device.recover()  # what a dead run left behind: its keyboard, a screen that stays on
            size = await _ready(device)
            if not isinstance(action, HARMLESS):
                await take_unsent_away(self._context.core, device, lease)
            if isinstance(arguments, TypeText) and arguments.point is not None:
                await lease.check()
                await device.tap(Point.from_relative((arguments.point[0], arguments.point[1]), size))
                await wait_until_still(device)
            await lease.check()
            if isinstance(action, Wait):
                await asyncio.sleep(action.duration)
            else:
                await do_on(device, action, size, actor.lang)
            return {"device_id": device.serial, "action": name, **told, "done": True}


async def _ready(device: AdbDevice) -> tuple[int, int]:
    """The screen on; how large it is as it is turned now, in pixels. No picture is taken, which some screens refuse."""
    if not (await device.screen()).awake:
        await device.wake()
    return (await device.info()).size


def _size(jpeg: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return picture.size
