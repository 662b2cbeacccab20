from __future__ import annotations

from dataclasses import dataclass

from agent_core.devices.adb.device import AdbDevice


@dataclass
class NoServer:
    host: str = "127.0.0.1"
    port: int = 1


def far_phone(serial: str) -> AdbDevice:
    """Return a phone that is named and leased, but never asked anything."""
    return AdbDevice(NoServer(), serial)
