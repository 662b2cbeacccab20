"""Phones: what is attached, what it shows."""

from __future__ import annotations

import asyncio
from typing import Literal

from agent_core.devices.adb.server import DeviceEntry
from agent_core.screen.marks import to_jpeg
from bot.desk.actors import Actor, Role
from bot.desk.house import DeskPart, no_phone
from bot.desk.port import PhoneView
from storage.leases import Leases


class PhonesDesk(DeskPart):
    async def phones(self) -> list[PhoneView]:
        held = {lease.serial for lease in await Leases(self._db).held()}
        return [
            PhoneView(entry.serial, entry.model or entry.serial, _state(entry, entry.serial in held))
            for entry in await self.house.entries()
        ]

    async def screenshot(self, actor: Actor, serial: str | None = None, *, full: bool = False) -> bytes:
        """What the phone shows now; only read, so no lease is taken."""
        wanted = self._phone_for(actor, serial) if actor.phones else serial or ""
        await self._allow(actor, Role.VIEWER, "screen", phone=wanted, serial=wanted)
        # An address that somebody made up is not connected to.
        if wanted and wanted not in {entry.serial for entry in await self.house.entries()}:
            raise no_phone(wanted)
        device = await self.house.device(wanted)
        try:
            picture = await self.house.picture(device)
        finally:
            await device.close()
        if full:
            return await asyncio.to_thread(to_jpeg, picture, longest=max(picture.size), quality=92)
        return await asyncio.to_thread(to_jpeg, picture)


def _state(entry: DeviceEntry, held: bool) -> Literal["free", "busy", "offline", "unauthorized"]:
    if entry.state == "device":
        return "busy" if held else "free"
    return "unauthorized" if entry.state == "unauthorized" else "offline"
