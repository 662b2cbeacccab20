"""The phones of this process, as their owner arranges them: connect, pair, name and set them up.

Lasting changes are in the settings file, from which a running server takes them over, and on the phone itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from agent_core.devices.adb.pairing import PairingOffer, attach_paired, pair_by_scan
from agent_core.devices.adb.parse import connection_of
from agent_core.devices.adb.setup import PhoneSetup, SetupReport
from agent_core.devices.adb.transport import Transport
from agent_core.devices.base import Device, System, system_of
from agent_core.errors import ConfigInvalid
from bot.app.config_check import incomplete
from bot.app.core import Core
from bot.app.settings.files import config_file
from bot.app.settings.loading import load
from bot.app.settings.names import find
from bot.app.settings.sections import DeviceSettings
from bot.app.settings.writing import Written, set_value, unset
from bot.desk.actors import BadRequest, no_phone
from bot.desk.views import PhoneKept
from scheduler.runs.lease import HeldLease, lease_of
from storage.hosts import Phones

WHY = "setup"  # in the lease's row, instead of a run's id
LOCK, LOCK_SECONDS = "settings.lock", 30.0  # beside the database

KEYBOARD_FILE = Path("ADBKeyboard.apk")  # in the folder that we were started from; taken if no other file is named


class OwnPhones:
    """The phones of this process. ``written``: a phone's serial, name or model, as people write it."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- connecting

    async def connect(self, address: str) -> PhoneKept:
        """Connect to the phone at host:port, now and at each start. Raises as ``AdbServer.connect``."""
        _only_android(address)
        await (await self._core.attached.adb()).connect(address)
        await self._core.attached.of_adb()  # whose address it is, is known from now on
        return await self._keep_addresses(address, lambda kept: [*kept, address])

    async def disconnect(self, written: str) -> PhoneKept:
        """Disconnect a phone of the network, now and for later starts, unless another setting names its address.

        written: one of its addresses to disconnect only that, else all of them.
        Raises NotFound if there is no such phone, LeaseLost if a run, or another owner, has it.
        """
        attached = self._core.attached
        entries = await attached.of_adb()
        settings = await _written()
        book = await attached.book(entries, settings.names)
        serial = book.serial(written)
        _only_android(serial)
        there = [name for entry in entries if entry.serial == serial for name in entry.reached_by]
        its = [name for name in dict.fromkeys([*there, *settings.connect]) if book.serial(name) == serial]
        gone = [written] if written in its else [name for name in its if connection_of(name) == "tcp"]
        if not gone:
            raise no_phone(written)
        adb = await attached.adb()
        async with self._lease_of(adb.device(serial, at=gone[0])):
            done = PhoneKept(gone[0] if len(gone) == 1 else serial, str(config_file()))
            if set(gone) & set(settings.connect):
                done = await self._keep_addresses(done.serial, lambda now: [one for one in now if one not in gone])
            for address in gone:
                await adb.disconnect(address)
            again = "PHONEDESK_DEVICE__CONNECT" if done.hidden else ""
            return replace(done, again="PHONEDESK_DEVICE__SERIAL" if settings.serial in gone else again)

    async def pair(self, address: str, code: str) -> str:
        """Pair with the phone whose pairing dialog shows this address and code; return its serial."""
        adb = await self._core.attached.adb()
        return await self._paired(await attach_paired(adb, await adb.pair(address, code), address))

    async def can_scan(self) -> None:
        """Raise DeviceOffline if no phone that scans a QR code could be found."""
        await (await self._core.attached.adb()).mdns_services()

    async def pair_by_scan(self, offer: PairingOffer) -> str:
        """Wait for a phone to scan the offer, pair with it and return its serial."""
        return await self._paired(await pair_by_scan(await self._core.attached.adb(), offer))

    async def _paired(self, transport: str) -> str:
        """Return the serial of a phone that was just paired. If we had to connect to it, we do so at each start."""
        if ":" in transport:
            await self._keep_addresses(transport, lambda kept: [*kept, transport])
        return await self.serial(transport)

    async def _keep_addresses(self, address: str, change: Callable[[Sequence[str]], Sequence[str]]) -> PhoneKept:
        return await self._keep("connect", "", lambda now: ",".join(dict.fromkeys(change(now.connect))), address)

    # -- names and tags

    async def name(self, written: str, name: str) -> PhoneKept:
        """Call a phone by a name; "" takes it away. Raises SettingsWrong if another phone is called so."""
        serial = await self.known(written)
        key = await self._key((await _written()).names, serial)
        return await self._keep("names", key, lambda _: name, serial)

    async def tag(self, written: str, tags: Sequence[str], *, away: bool = False) -> PhoneKept:
        """Add tags to a phone, or take them ``away``; without any, take away all."""
        serial = await self.known(written)
        key = await self._key((await _written()).tags, serial)
        plain = [tag.lstrip("#") for tag in tags]

        def change(settings: DeviceSettings) -> str:
            now = settings.tags.get(key, ())
            wanted = [one for one in now if plain and one not in plain] if away else [*now, *plain]
            return ", ".join(dict.fromkeys(wanted))

        return await self._keep("tags", key, change, serial)

    async def _key(self, settings: Mapping[str, object], serial: str) -> str:
        """Return the name under which these settings have a phone: its serial, or an address of it."""
        book = await self._core.attached.book(await self._core.attached.of_adb(), {})
        return next((key for key in (serial, *settings) if key in settings and book.serial(key) == serial), serial)

    async def _keep(self, setting: str, inside: str, change: Callable[[DeviceSettings], str], serial: str) -> PhoneKept:
        """Write a setting of phones. ``change``: returns the new value for the settings at that moment."""
        name, _ = find(f"device.{setting}")
        file = config_file()
        lock = FileLock(self._core.settings.data_dir / LOCK, timeout=LOCK_SECONDS)

        def write() -> Written:
            # Two writers of the settings, in this process or in another, take turns.
            with lock:
                text = change(load().device)
                # It builds the parts that the settings describe, in a separate event loop.
                if text:
                    return set_value(name, inside, text, file, incomplete)
                return unset(name, inside, file, incomplete)

        try:
            done = await asyncio.to_thread(write)
        except Timeout as error:
            said = f"{file} cannot be written: somebody else has been changing the settings for {LOCK_SECONDS:.0f} s."
            raise ConfigInvalid(said, key="file_unwritten", file=file, why=error) from None
        return PhoneKept(serial, str(file), hidden=bool(done.over))

    async def called(self, serial: str) -> str:
        """Return the name of a phone for people."""
        return await self._core.attached.name(serial)

    async def serial(self, written: str) -> str:
        """Return the serial of the phone that is called so, or ``written`` if none is."""
        attached = self._core.attached
        return (await attached.book(await attached.glance(), (await _written()).names)).serial(written)

    async def known(self, written: str) -> str:
        """Return the serial of a phone that was ever seen here, or is named in the settings, or an address.

        Raises NotFound if ``written`` is none of these.
        """
        serial = await self.serial(written)
        if ":" in serial:
            return serial
        device = await _written()
        seen = {*await Phones(self._core.db).models(), *device.names, *device.tags, *device.connect}
        if serial not in seen and serial not in {entry.serial for entry in await self._core.attached.phones()}:
            raise no_phone(written)
        return serial

    # -- setting up

    async def plan(self, written: str = "", apk: Path | None = None) -> SetupReport:
        """Return the changes that ``set_up`` would make to a phone; nothing is changed."""
        async with self._setup(written, changes=False) as setup:
            return await setup.plan(await _keyboard_file(apk))

    async def set_up(self, written: str = "", apk: Path | None = None) -> SetupReport:
        """Set up a phone, see ``PhoneSetup.apply``. Raises LeaseLost if a run, or somebody else, has the phone."""
        async with self._setup(written) as setup:
            return await setup.apply(await _keyboard_file(apk))

    async def undo(self, written: str = "") -> SetupReport:
        """Put back what ``set_up`` changed, see ``PhoneSetup.undo``. Raises LeaseLost as ``set_up``."""
        async with self._setup(written) as setup:
            return await setup.undo()

    @asynccontextmanager
    async def _setup(self, written: str, *, changes: bool = True) -> AsyncIterator[PhoneSetup]:
        serial = await self.known(written) if written else ""
        _only_android(serial or self._core.settings.device.serial)
        device = await self._core.attached.device(serial)
        try:
            _only_android(device.serial)
            adb = await self._core.attached.adb()
            at = await self._core.attached.transport(device.serial)
            setup = PhoneSetup(Transport(adb.host, adb.port, device.serial, at=at))
            if not changes:
                yield setup
                return
            async with self._lease_of(device):
                await device.recover()  # the changes of a dead run must not be taken for the owner's
                yield setup
        finally:
            await asyncio.shield(device.close())

    def _lease_of(self, device: Device) -> AbstractAsyncContextManager[HeldLease]:
        return lease_of(self._core.db, device, owner=f"setup-{os.getpid()}", why=WHY)


async def _written() -> DeviceSettings:
    """Return the settings as they are written now; a running server takes a change over a moment later."""
    return (await asyncio.to_thread(load)).device


async def _keyboard_file(named: Path | None) -> Path | None:
    """Return the file to install ADB Keyboard from, if it is missing on the phone; None for none."""
    if named is not None:
        return named
    return KEYBOARD_FILE if await asyncio.to_thread(KEYBOARD_FILE.is_file) else None


def _only_android(serial: str) -> None:
    """Raise BadRequest for a phone that adb does not reach."""
    if system_of(serial) is not System.ANDROID:
        raise BadRequest(f"{serial} is no Android phone; this goes over adb.", key="only_android", phone=serial)
