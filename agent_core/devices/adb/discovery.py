"""The list of attached phones, and the choice of one.

If several could be meant, that is an error: nothing is guessed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import AdbServer, unusable
from agent_core.devices.base import DeviceEntry, DeviceInfo, DeviceServer, System
from agent_core.errors import ConfigInvalid, DeviceError, DeviceOffline
from agent_core.texts import Listed

DESCRIBE_SECONDS = 5.0


async def list_devices(server: DeviceServer, entries: Sequence[DeviceEntry] | None = None) -> list[DeviceInfo]:
    """Return every phone that is attached.

    If a phone cannot be asked, or does not answer within ``DESCRIBE_SECONDS``, only its serial, status and connection
    are known.

    entries: the phones to describe, if they were listed already.
    """
    listed = await server.devices() if entries is None else entries
    return list(await asyncio.gather(*(_describe(server, entry) for entry in listed)))


async def connect(server: AdbServer, address: str) -> AdbDevice:
    """Attach the phone at ``host:port`` and wait until it can be used. Raises the errors of ``AdbServer.connect``."""
    await server.connect(address)
    return server.device(address)


async def find_device(server: AdbServer, serial: str | None = None) -> AdbDevice:
    """Return the phone with this serial (``host:port`` is connected first), or the only usable phone if none is named.

    Raises DeviceOffline or DeviceUnauthorized if the phone cannot be used, ConfigInvalid if none is named and several
    are usable.
    """
    entries = await server.devices()
    if serial is None:
        return server.device(only_usable(entries))
    state = next((entry.state for entry in entries if entry.serial == serial), "absent")
    if state == "device":
        return server.device(serial)
    if ":" in serial:
        return await connect(server, serial)
    raise unusable(serial, state)


def only_usable(entries: Sequence[DeviceEntry]) -> str:
    """Return the serial of the only phone that can be used. Raises the errors of ``find_device``."""
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


async def _describe(server: DeviceServer, entry: DeviceEntry) -> DeviceInfo:
    state = entry.state
    if state == "device":
        device = server.device(entry.reached_by[0])
        try:
            async with asyncio.timeout(DESCRIBE_SECONDS):
                info = replace(await device.info(), serial=entry.serial, transports=entry.transports)
                # An iPhone reports its battery only in a session, and a new session may end that of a run.
                return info if entry.system is System.IOS else replace(info, battery=await device.battery())
        except (DeviceError, TimeoutError):
            state = "offline"  # it went away, or its answer was of no use: it is listed all the same
        finally:
            await device.close()
    return DeviceInfo(
        entry.serial, entry.model, (0, 0), 0, state, entry.connection, entry.system, transports=entry.transports
    )
