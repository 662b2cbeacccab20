"""The low-level tools: the list of phones, a phone's screen, and single actions with the phone's lease.

A text that a dead run left in a chat's input is cleared before a single act there, as every run does.
"""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image

from agent_core.actions.types import Back, Home, Launch, Wait
from agent_core.devices.base import Device, TouchWatch
from agent_core.devices.waiting import wait_until_still
from agent_core.errors import ActionFailed
from agent_core.geometry import Point
from agent_core.loop.acting import do_on
from agent_core.loop.launching import AppLauncher
from agent_core.reply.leftovers import clear_in_front
from bot.app.core import Core
from bot.channels.mcp.arguments import Act, TypeText
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.stopping import Stopper
from bot.desk.actors import Actor
from bot.desk.context import sees
from scheduler.runs.lease import HeldLease
from storage.ledger import StoredLedger


async def take_unsent_away(core: Core, device: Device, lease: HeldLease) -> None:
    """Empty the input of the chat in front.

    Raises ActionFailed if a reply may still be there: a touch could send it.
    """
    async with core.client_rotation.used():
        observer, ledger = core.observer(device), StoredLedger(core.db)
        row = await clear_in_front(observer, ledger, lease=lease, guard=lease.stop, touches=TouchWatch())
    if row is not None:
        raise ActionFailed(
            f"A reply to {row.key.contact} that was never finished may stand in this chat: a touch could send it.",
            advice=f"Have the agent reply to {row.key.contact} first, or leave the chat with BACK or HOME.",
        )


ELSEWHERE = "elsewhere"  # the state of a phone that another host works
HARMLESS = (Back, Home, Launch, Wait)  # none of these sends the text in an input


@dataclass(frozen=True, slots=True)
class ShownScreen:
    """A phone's screen as JPEG, and its size in pixels in the phone's current orientation."""

    device_id: str
    jpeg: bytes
    size: tuple[int, int]


class Acts:
    def __init__(self, context: ToolContext) -> None:
        self._context = context

    async def phones(self, actor: Actor, *, for_tasks: bool) -> list[dict[str, Any]]:
        """Return the phones that this client may use.

        Phones of other hosts can only be looked at here; ``for_tasks`` leaves them out.
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
        """Return the phone's screen, with secrets covered as the settings say. It only reads, so it takes no lease."""
        jpeg = await self._context.phones.screenshot(actor, device_id or None, full=True)
        named = await self._context.rights.serial_of(actor, device_id)
        if not named:
            named = next((phone.serial for phone in await self._context.phones.all() if sees(actor, phone.serial)), "")
        return ShownScreen(named, jpeg, await asyncio.to_thread(_size, jpeg))

    async def act(self, actor: Actor, name: str, arguments: Act, stopper: Stopper) -> dict[str, Any]:
        """Do one action.

        Raises ActionFailed with the reason if it cannot be done, PhoneBusy if another has the phone.
        """
        action = arguments.action()
        told = arguments.model_dump(mode="json", exclude={"device_id"}, exclude_none=True)
        noted = {key: value for key, value in told.items() if not isinstance(arguments, TypeText) or key != "value"}
        serial = await self._context.rights.may_act(actor, f"mcp {name}", arguments.device_id, paced=False, **noted)
        async with (
            self._context.phone(serial) as device,
            self._context.held(device, f"mcp {name}", stopper) as lease,
        ):
            await lease.check()
            await device.recover()  # left behind by a dead run: its keyboard, a screen that stays on
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
                core = self._context.core
                async with core.client_rotation.used():
                    launcher = AppLauncher(core.observer(device), StoredLedger(core.db), lease)
                    await do_on(device, action, size, launcher)
            return {"device_id": device.serial, "action": name, **told, "done": True}


async def _ready(device: Device) -> tuple[int, int]:
    """Switch the screen on; return its size in the current orientation, in pixels.

    It takes no picture, because some screens refuse that.
    """
    if not (await device.screen()).awake:
        await device.wake()
    return (await device.info()).size


def _size(jpeg: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(jpeg)) as picture:
        return picture.size
