"""The HarmonyOS phones of this computer, as hdc's own server knows them."""

from __future__ import annotations

import asyncio
import shutil

from agent_core.devices.base import DeviceEntry
from agent_core.devices.hdc.device import HdcDevice
from agent_core.devices.hdc.parse import PREFIX, parse_targets
from agent_core.devices.hdc.transport import HdcProgram
from agent_core.devices.installed import InstalledApps
from agent_core.errors import CommandFailed, HdcNotFound
from agent_core.retry import Sleep

LIST_SECONDS = 5.0
VERSION_SECONDS = 10.0


class HdcServer:
    """The HarmonyOS phones of this computer; implements ``DeviceServer``.

    hdc starts its server itself and leaves it running; it is not ours to end.
    """

    def __init__(self, path: str) -> None:
        """path: the hdc program, by its path or by its name on the search path."""
        self._program = HdcProgram(shutil.which(path) or path)
        self._apps: dict[str, InstalledApps] = {}

    @property
    def path(self) -> str:
        return self._program.path

    async def version(self) -> str:
        """Return the output of ``hdc -v`` (``Ver: 3.1.0e``). Raises HdcNotFound if there is no such program."""
        said = (await self._program.run("-v", seconds=VERSION_SECONDS)).strip()
        if not said.startswith("Ver:"):
            raise HdcNotFound(f"{self.path} is no hdc: it says {said[:100]!r}.", key="hdc_other", path=self.path)
        return said.removeprefix("Ver:").strip()

    async def devices(self) -> list[DeviceEntry]:
        said = await self._program.run("list", "targets", "-v", seconds=LIST_SECONDS)
        found = parse_targets(said)
        if not found and "[Empty]" not in said and said.strip():
            why = said.strip()[:300]
            raise CommandFailed(f"hdc did not list its phones: {why}", key="hdc_refused", why=why)
        return found

    def device(self, serial: str, *, sleep: Sleep = asyncio.sleep) -> HdcDevice:
        """Return the phone of this serial (``hdc:KEY``)."""
        key = serial.removeprefix(PREFIX)
        return HdcDevice(self._program, key, sleep=sleep, apps=self._apps.setdefault(key, InstalledApps()))

    async def close(self) -> None:
        """Do nothing: every call was a separate process."""
