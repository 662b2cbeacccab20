"""Which phones there are, and choosing one. It is never guessed: where several could be meant, that is an error."""

from __future__ import annotations

import asyncio

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import AdbServer, DeviceEntry, unusable
from agent_core.devices.base import DeviceInfo
from agent_core.errors import ConfigInvalid, DeviceError, DeviceOffline
from agent_core.texts import Listed


async def list_devices(server: AdbServer) -> list[DeviceInfo]:
    """Every phone that is attached; of one that cannot be asked only serial, status and connection are known."""
    return list(await asyncio.gather(*(_describe(server, entry) for entry in await server.devices())))


async def connect(server: AdbServer, address: str) -> AdbDevice:
    """Attach the phone at ``host:port`` and wait until it can be used. Errors as ``AdbServer.connect``."""
    await server.connect(address)
    return server.device(address)


async def find_device(server: AdbServer, serial: str | None = None) -> AdbDevice:
    """The phone of this serial (``host:port`` is connected first), or the only usable one where none is named.

    DeviceOffline, DeviceUnauthorized; ConfigInvalid where none is named and several are usable.
    """
    entries = await server.devices()
    if serial is None:
        return server.device(_only(entries))
    state = next((entry.state for entry in entries if entry.serial == serial), "absent")
    if state == "device":
        return server.device(serial)
    if ":" in serial:
        return await connect(server, serial)
    raise unusable(serial, state)


def _only(entries: list[DeviceEntry]) -> str:
    usable = [entry.serial for entry in entries if entry.state == "device"]
    if len(usable) == 1:
        return usable[0]
    if usable:
        raise ConfigInvalid(
            f"Several phones are attached ({', '.join(usable)}).",
            advice="Say which one: PHONEDESK_DEVICE__SERIAL or --device.",
            key="several_phones",
            known=Listed(usable),
        )
    if entries:
        raise unusable(entries[0].serial, entries[0].state)
    raise DeviceOffline("No phone is attached.", key="no_phones")


async def _describe(server: AdbServer, entry: DeviceEntry) -> DeviceInfo:
    if entry.state == "device":
        try:
            return await server.device(entry.serial).info()
        except DeviceError:
            # It went away, or answers nothing useful: it is listed all the same.
            return DeviceInfo(entry.serial, entry.model, (0, 0), 0, "offline", entry.connection)
    return DeviceInfo(entry.serial, entry.model, (0, 0), 0, entry.state, entry.connection)
