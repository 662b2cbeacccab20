"""The phones that are attached to this computer: Androids over adb, HarmonyOS over hdc, iPhones by WebDriverAgent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import structlog

from agent_core.apps.names import known_on
from agent_core.devices.adb.discovery import connect, find_device, only_usable
from agent_core.devices.adb.parse import connection_of
from agent_core.devices.adb.server import AdbServer, open_adb, unusable
from agent_core.devices.base import Device, DeviceEntry, DeviceServer, System, system_of
from agent_core.devices.hdc.server import HdcServer
from agent_core.devices.wda.server import WdaServer
from agent_core.errors import DeviceOffline, HdcNotFound, PhonedeskError
from bot.app.identities import PhoneIdentities
from bot.app.settings.sections import DeviceSettings
from bot.desk.phonebook import PhoneBook, book_of
from storage.engine import Database
from storage.hosts import Phones

log = structlog.get_logger(__name__)

CONNECT_EVERY_SECONDS = 10.0  # between two attempts to connect to a phone by network
CONNECT_WAIT_SECONDS = 1.0  # how long a list waits for a missing phone if others are there
FIRST_PHONE_SECONDS = 4.0  # and if none is; adb itself gives up on a phone that is off after 10 s


class AttachedPhones:
    """The phones of this machine: found and connected here. ``close`` ends the adb server if it was started here."""

    def __init__(self, db: Database, settings: Callable[[], DeviceSettings]) -> None:
        self._db = db
        self._settings = settings  # the newest ones
        self._adb: AdbServer | None = None
        self._connect_again_at = 0.0
        self._noted: dict[str, str] = {}  # the phones that are stored, with models
        self._connecting: dict[str, asyncio.Task[PhonedeskError | None]] = {}  # by address
        self._missed: set[str] = set()  # the addresses at which no phone was reached, until it is back
        self._opening = asyncio.Lock()
        self._identities = PhoneIdentities(db)
        self._others: dict[System, DeviceServer] = {
            System.IOS: WdaServer(self._iphones, known_apps=partial(known_on, System.IOS))
        }
        self._unlisted: dict[System, str] = {}  # why a tool did not list its phones, as last logged

    async def adb(self) -> AdbServer:
        """Return the adb server: a running one, or ours. One that has ended meanwhile is started again."""
        async with self._opening:
            if self._adb is not None and not await self._adb.answers():
                log.warning("adb_server_gone", port=self._adb.port)
                await self._adb.close()
                self._adb = None
            if self._adb is None:
                device = self._settings()
                self._adb = await open_adb(device.adb_path or None, device.adb_host, device.adb_port)
            return self._adb

    async def phones(self, *, wanted: Sequence[str] = ()) -> list[DeviceEntry]:
        """Connect to the missing phones of the settings and of ``wanted``, and return the phones that are attached.

        wanted: serials, or addresses as host:port. A phone that is away is looked for at its last address.
        """
        entries = [*await self._connected(wanted), *await self._of_other_systems()]
        await self._note(entries)
        return entries

    async def _connected(self, wanted: Sequence[str] = ()) -> list[DeviceEntry]:
        """Return the attached Androids, once the missing ones are connected as ``phones`` says."""
        adb, entries = await self._listed_by_adb()
        usable = {entry.serial for entry in entries if entry.state == "device"}
        for address in sorted(self._missed & usable):
            log.info("phone_connected_again", address=address)
        self._missed -= usable
        missing = [address for address in await self.addresses(wanted) if address not in usable]
        if missing:
            missing = await self._still_missing(adb, missing, entries)
        if missing and time.monotonic() >= self._connect_again_at:
            self._connect_again_at = time.monotonic() + CONNECT_EVERY_SECONDS
            for address in missing:
                if address not in self._connecting:
                    connecting = self._connect(adb, address)
                    self._connecting[address] = asyncio.create_task(connecting, name=f"connect-{address}")
        if self._connecting:
            await self._wait_for_phones(one_is_there=bool(usable))
            entries = await adb.devices()
        return await self._one_each(adb, entries)

    async def _one_each(self, adb: AdbServer, listed: Sequence[DeviceEntry]) -> list[DeviceEntry]:
        return await self._identities.one_each(adb, listed, (self._settings().serial,))

    async def _wait_for_phones(self, *, one_is_there: bool) -> None:
        """Wait a moment for the phones that are being connected, and a little longer for the first one.

        adb takes 10 s for a phone that is off. Neither phones that are there nor a person at a command wait that long.
        """
        waited = set(self._connecting.values())
        until = time.monotonic() + FIRST_PHONE_SECONDS
        while waited and not one_is_there and (seconds := until - time.monotonic()) > 0:
            done, waited = await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            one_is_there = any(not task.cancelled() and task.result() is None for task in done)
        if waited and one_is_there:
            await asyncio.wait(waited, timeout=CONNECT_WAIT_SECONDS)

    async def glance(self) -> list[DeviceEntry]:
        """Return the phones that are attached, at once and without connecting to any."""
        return [*await self.of_adb(), *await self._of_other_systems()]

    async def of_adb(self) -> list[DeviceEntry]:
        """Return the attached Androids, as ``glance``."""
        return await self._one_each(*await self._listed_by_adb())

    async def _listed_by_adb(self) -> tuple[AdbServer, list[DeviceEntry]]:
        """Return the adb server and its list. Whether it still runs shows when it is asked."""
        if self._adb is not None:
            with suppress(DeviceOffline):
                return self._adb, await self._adb.listed()
        adb = await self.adb()
        return adb, await adb.listed()

    async def book(self, entries: Sequence[DeviceEntry], names: Mapping[str, str] | None = None) -> PhoneBook:
        """Return the names of the phones, those attached now (``entries``) and those seen before.

        names: those in the settings, if they are newer than ours.
        """
        return await book_of(self._db, self._settings().names if names is None else names, entries)

    async def name(self, serial: str) -> str:
        """Return the name by which people are told of a phone that was seen here."""
        return (await self.book(())).name(serial)

    async def _of_other_systems(self) -> list[DeviceEntry]:
        """Return the phones of the other systems; all tools are asked at once."""
        lists = await asyncio.gather(*(self._listed(*one) for one in self.other_servers().items()))
        return [entry for entries in lists for entry in entries]

    async def _listed(self, system: System, server: DeviceServer) -> list[DeviceEntry]:
        """Return the phones of one tool.

        A tool that fails, or is late, has none, and does not affect the other tools.
        """
        try:
            found = await server.devices()
        except PhonedeskError as error:
            if self._unlisted.get(system) != str(error):
                self._unlisted[system] = str(error)
                log.warning("phones_not_listed", system=system.value, error=str(error))
            return []
        self._unlisted.pop(system, None)
        return found

    def other_servers(self) -> dict[System, DeviceServer]:
        """Return the servers of phones that are not Androids, if the settings name any."""
        if (path := self._settings().hdc_path) and System.HARMONYOS not in self._others:
            self._others[System.HARMONYOS] = HdcServer(path)
        return self._others

    def _iphones(self) -> list[str]:
        """Return the addresses of WebDriverAgent in the settings."""
        device = self._settings()
        own = [device.serial] if system_of(device.serial) is System.IOS else []
        return [*device.wda, *own]

    async def _note(self, entries: Sequence[DeviceEntry]) -> None:
        """Store which phones there are, so that a phone that is away has a name."""
        seen = {entry.serial: entry.model or self._noted.get(entry.serial, "") for entry in entries}
        new = {serial: model for serial, model in seen.items() if self._noted.get(serial) != model}
        if new:
            await Phones(self._db).saw(new)
            self._noted.update(new)

    async def _still_missing(
        self, adb: AdbServer, addresses: Sequence[str], listed: Sequence[DeviceEntry]
    ) -> list[str]:
        """Leave out the addresses of phones that are reached at another one now."""
        there = {
            entry.serial
            for entry in await self._one_each(adb, listed)
            if entry.state == "device" and any(connection_of(name) == "tcp" for name in entry.reached_by)
        }
        known = await Phones(self._db).addresses()
        return [address for address in addresses if known.get(address) not in there]

    async def _connect(self, adb: AdbServer, address: str) -> PhonedeskError | None:
        """Connect to the phone of this address, wherever it is now. Return why it cannot be used; None if it can."""
        try:
            await connect(adb, await self._announced(adb, address) or address)
        except PhonedeskError as error:
            log.warning("phone_not_connected", address=address, error=str(error))
            self._missed.add(address)
            return error
        finally:
            del self._connecting[address]
        return None

    async def _announced(self, adb: AdbServer, address: str) -> str:
        """Return the address at which the phone that was last at this address announces itself now; "" if it does not.

        Wireless debugging has a new port each time that it is switched on.
        """
        maker_serial = await Phones(self._db).maker_serial_at(address)
        if not maker_serial:
            return ""
        try:
            services = await adb.mdns_services()
        except PhonedeskError:  # an adb that is too old for it, or does not listen
            return ""
        return next((one.address for one in services if one.is_of(maker_serial)), "")

    async def addresses(self, wanted: Sequence[str] = ()) -> list[str]:
        """Return the addresses of the Androids to connect to: those of the settings, and of the ``wanted`` phones."""
        device = self._settings()
        own = [device.serial] if ":" in device.serial else []
        if any(":" not in serial for serial in wanted):
            last = {its: address for address, its in (await Phones(self._db).addresses()).items()}  # the newest one
            wanted = [place for serial in wanted if ":" in (place := last.get(serial, serial))]
        # Each only once, because of two simultaneous connections to one phone one fails.
        return [
            address
            for address in dict.fromkeys([*device.connect, *own, *wanted])
            if system_of(address) is System.ANDROID
        ]

    async def device(self, serial: str = "") -> Device:
        """Return the phone with this serial, name or address; without one the phone of the settings, else the only one.

        If it is reached in several ways, an address that is named here or in the settings goes first, then a cable.
        """
        written = serial or self._settings().serial
        if system_of(written) is not System.ANDROID:
            return await self._other_device(written)
        # A phone that is there need not wait until others are connected, or until the tools of other systems answer.
        entries = await (self.of_adb() if written else self.glance())
        wanted = await self._serial(written, entries)
        if wanted not in _usable(entries):
            entries = await (self._connected([wanted]) if written else self.phones())
        if (connecting := self._connecting.get(written)) is not None:
            # Of two simultaneous connections to one phone one fails; a second one afterwards fails as the first.
            if (refused := await asyncio.shield(connecting)) is not None:
                raise refused
            entries = await self.of_adb()
        wanted = await self._serial(written, entries) or only_usable(entries)
        if system_of(wanted) is not System.ANDROID:
            return await self._other_device(wanted)
        is_listed = wanted in {entry.serial for entry in entries}
        if wanted not in _usable(entries) and (":" in written or not is_listed):
            # Raises if it cannot be used, else it is connected now.
            await find_device(await self.adb(), written if ":" in written else wanted)
            entries = await self.of_adb()
            wanted = await self._serial(written, entries)
        device = await self._device(wanted, written, entries)
        try:
            # A run that is left for later can then wait for this phone, like for one that a host has seen.
            await self._note([entry for entry in entries if entry.serial == device.serial])
        except BaseException:
            await device.close()
            raise
        return device

    async def _serial(self, written: str, entries: Sequence[DeviceEntry]) -> str:
        return (await self.book(entries)).serial(written) if written else ""

    async def _device(self, serial: str, written: str, entries: Sequence[DeviceEntry]) -> Device:
        entry = _usable(entries).get(serial)
        if entry is None:
            raise unusable(serial, next((entry.state for entry in entries if entry.serial == serial), "absent"))
        at = written if written in entry.reached_by else entry.reached_by[0]
        phone = (await self.adb()).device(serial, at=at, elsewhere=partial(self.transport, serial))
        phone.unlock_with((await self.book(entries)).by_serial(self._settings().pins).get(serial))
        return phone

    async def _other_device(self, serial: str) -> Device:
        """Return a phone of another system; only its own tool is asked."""
        server = self.other_servers().get(system := system_of(serial))
        if server is None:
            raise HdcNotFound(f"{serial} is a HarmonyOS phone, and no hdc is set.", key="hdc_unset", phone=serial)
        await self._note([entry for entry in await self._listed(system, server) if entry.serial == serial])
        return server.device(serial)

    async def transport(self, serial: str) -> str:
        """Return the name by which adb reaches this phone now, "" if by none. Its addresses are connected to."""
        try:
            entry = _usable(await self._connected([serial])).get(serial)
        except PhonedeskError:
            return ""
        return entry.reached_by[0] if entry is not None else ""

    async def close(self) -> None:
        """Give up open connections, and close the adb server if it is ours."""
        connecting = list(self._connecting.values())
        for task in connecting:
            task.cancel()
        await asyncio.gather(*connecting, return_exceptions=True)
        for server in self.other_servers().values():
            await server.close()
        if self._adb is not None:
            await self._adb.close()


def _usable(entries: Sequence[DeviceEntry]) -> dict[str, DeviceEntry]:
    return {entry.serial: entry for entry in entries if entry.state == "device"}
