"""The iPhones of the settings, each at the address of its WebDriverAgent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from agent_core.devices.base import DeviceEntry, System
from agent_core.devices.installed import InstalledApps
from agent_core.devices.wda.client import WdaClient
from agent_core.devices.wda.device import PREFIX, KnownApps, WdaDevice
from agent_core.errors import CommandFailed, DeviceOffline, InputRejected
from agent_core.retry import Sleep

STATUS_SECONDS = 2.0


class WdaServer:
    """The iPhones of the settings; implements ``DeviceServer``.

    addresses: returns the addresses of the settings, each HOST:PORT or a serial.
    known_apps: see ``WdaDevice.packages``.
    """

    def __init__(self, addresses: Callable[[], Sequence[str]], *, known_apps: KnownApps = tuple) -> None:
        self._addresses, self._known_apps = addresses, known_apps
        self._clients: dict[str, WdaClient] = {}
        self._apps: dict[str, InstalledApps] = {}

    async def devices(self) -> list[DeviceEntry]:
        """Return the phones of the settings. A phone is ``offline`` if no WDA answers; a busy one is not."""
        addresses = list(dict.fromkeys(address.removeprefix(PREFIX) for address in self._addresses()))
        states = await asyncio.gather(*map(self._state, addresses))
        return [
            DeviceEntry(f"{PREFIX}{address}", state, "", "tcp", System.IOS)
            for address, state in zip(addresses, states, strict=True)
        ]

    async def _state(self, address: str) -> str:
        client = self._clients.get(address) or self._clients.setdefault(address, WdaClient(*split(address)))
        try:
            await client.status(seconds=STATUS_SECONDS)
        except DeviceOffline:
            return "offline"
        except CommandFailed as error:
            # It does one thing after the other: while it types or waits, the status comes late.
            return "device" if error.key == "wda_late" else "offline"
        return "device"

    def device(self, serial: str, *, sleep: Sleep = asyncio.sleep) -> WdaDevice:
        address = serial.removeprefix(PREFIX)
        apps = self._apps.setdefault(address, InstalledApps())
        return WdaDevice(*split(address), sleep=sleep, apps=apps, known_apps=self._known_apps)

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()


def split(address: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT. InputRejected if it is none."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port or parts.path or parts.username:
        said = f"{address!r} is no address of WebDriverAgent; it looks like 192.168.1.20:8100."
        raise InputRejected(said, key="bad_wda_address", said=address)
    return host, port
