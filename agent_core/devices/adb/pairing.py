"""Pairing a phone by a QR code: Android's wireless debugging, from Android 11.

The phone scans a code that holds a name and a password, and announces a pairing service of that name in the network.
The adb server hears it, pairs by the password, and attaches the phone. The form of the code is that of Android Studio's
"Pair devices using Wi-Fi".
"""

from __future__ import annotations

import asyncio
import secrets
import string
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

from agent_core.devices.adb.parse import CONNECT, PAIRING, MdnsService
from agent_core.devices.adb.server import AdbServer
from agent_core.errors import DeviceOffline

SCAN_SECONDS = 120.0  # for a person to find the menu on the phone and to scan
APPEAR_SECONDS = 15.0  # for a paired phone to be announced and attached
OWN_SECONDS = 4.0  # of these, for the adb server, which connects to phones that it knows by itself
POLL_SECONDS = 0.5
_LETTERS = string.ascii_letters + string.digits


@dataclass(frozen=True, slots=True)
class PairingOffer:
    """The content of a QR code: the name of the service to announce, and the password to pair with."""

    service: str
    password: str

    @property
    def payload(self) -> str:
        """The text of the QR code."""
        return f"WIFI:T:ADB;S:{self.service};P:{self.password};;"


def new_offer() -> PairingOffer:
    """Return an offer that nobody can guess. Its letters mean nothing in the code's text, nor to the adb server."""

    def some(count: int) -> str:
        return "".join(secrets.choice(_LETTERS) for _ in range(count))

    return PairingOffer(f"phonedesk-{some(8)}", some(12))  # as long as AdbServer.pair wants it


async def pair_by_scan(server: AdbServer, offer: PairingOffer, *, seconds: float = SCAN_SECONDS) -> str:
    """Wait until a phone has scanned the code, pair with it, attach it and return its serial.

    Raises DeviceOffline if no phone scans it within ``seconds``, or the adb server does not listen to the network;
    else as ``AdbServer.pair`` and ``attach_paired``.
    """
    found = await _announced(server, lambda one: one.kind == PAIRING and one.name == offer.service, seconds)
    if found is None:
        raise DeviceOffline(
            f"No phone has scanned the code within {seconds:.0f} s.",
            advice="Phone and computer must be in the same network. Try again, or pair with the address and the code.",
            key="not_scanned",
            seconds=f"{seconds:.0f}",
        )
    return await attach_paired(server, await server.pair(found.address, offer.password), found.address)


async def attach_paired(server: AdbServer, name: str, address: str) -> str:
    """Wait until a phone that was just paired can be used, and return its serial.

    name: as the phone announces itself, "" if not known. address: that of its pairing dialog.
    Raises DeviceOffline if it does not appear, and what ``AdbServer.connect`` raises.
    """
    host = address.rpartition(":")[0]

    def is_it(one: MdnsService) -> bool:
        return one.kind == CONNECT and (one.name == name if name else one.address.rpartition(":")[0] == host)

    # A server that finds it by itself attaches it under its name. Connected to by address, it would be there twice.
    if name and (serial := await _attached(server, name)):
        return serial
    found = await _announced(server, is_it, APPEAR_SECONDS - OWN_SECONDS)
    if found is None:
        raise DeviceOffline(
            f"{host} is paired, but cannot be found in the network.",
            advice="Give the address that the phone shows under wireless debugging to `phonedesk devices connect`.",
            key="paired_not_found",
            phone=host,
        )
    await server.connect(found.address)
    return found.address


async def _attached(server: AdbServer, name: str) -> str:
    """Return the serial of the phone that announces itself by ``name``, once it can be used; "" if it does not come."""
    try:
        async with asyncio.timeout(OWN_SECONDS), aclosing(server.track()) as lists:
            async for entries in lists:
                for entry in entries:
                    if entry.state == "device" and entry.serial.startswith(f"{name}."):
                        return entry.serial
    except TimeoutError:
        pass
    return ""


async def _announced(server: AdbServer, wanted: Callable[[MdnsService], bool], seconds: float) -> MdnsService | None:
    until = time.monotonic() + seconds
    while True:
        for one in await server.mdns_services():
            if wanted(one):
                return one
        if time.monotonic() >= until:
            return None
        await asyncio.sleep(POLL_SECONDS)
