"""One entry for each phone, whatever the number of ways by which adb reaches it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from agent_core.devices.adb.identity import Hardware, read_hardware
from agent_core.devices.adb.server import AdbServer
from agent_core.devices.adb.transport import Transport
from agent_core.devices.base import DeviceEntry
from agent_core.errors import DeviceOffline, PhonedeskError
from storage.engine import Database
from storage.hosts import USABLE, Phones

ASK_SECONDS = 3.0  # for a phone to tell who it is; the list of the others waits as long
AGAIN_SECONDS = 5.0  # after which a phone that did not is asked again

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Read:
    """The identity that was read over a transport.

    connection: the adb server's number of it, another one after each loss.
    """

    connection: str
    hardware: Hardware | None
    serial: str


class PhoneIdentities:
    """The identities of phones: which transports of the adb server lead to one phone, and its serial in the product.

    Each new connection is asked once. A phone with nothing that tells it from others is known by its transport's name.
    """

    def __init__(self, db: Database) -> None:
        self._phones = Phones(db)
        self._read: dict[str, _Read] = {}  # by transport, only the usable ones
        self._silent: dict[str, float] = {}  # transports whose phone did not answer, and when to ask it again
        self._reading = asyncio.Lock()

    async def one_each(self, adb: AdbServer, listed: Sequence[DeviceEntry], named: Iterable[str]) -> list[DeviceEntry]:
        """Return one entry for each phone of the list.

        A cable comes before the network, and ``named`` transports before others. A phone that does not tell who it is
        counts as offline, because nobody may take it under a second name.
        """
        async with self._reading:
            await self._follow(adb, listed)
            known = dict(self._read)  # another list may follow while this one waits
        stored = {} if known.keys() >= {entry.serial for entry in listed} else await self._phones.addresses()
        ways: dict[str, list[DeviceEntry]] = {}
        for entry in listed:
            transport = entry.serial
            if (read := known.get(transport)) is not None and not _is_twin(transport, read, known):
                serial = read.serial
            else:
                serial = stored.get(transport, transport)
                entry = replace(entry, state="offline" if entry.state == USABLE else entry.state)  # noqa: PLW2901
            ways.setdefault(serial, []).append(entry)
        return [merged(serial, entries, frozenset(named)) for serial, entries in ways.items()]

    async def _follow(self, adb: AdbServer, listed: Sequence[DeviceEntry]) -> None:
        """Ask every new connection who is there, and forget the old ones."""
        usable = {entry.serial: entry for entry in listed if entry.state == USABLE}
        self._read = {
            transport: read
            for transport, read in self._read.items()
            if transport in usable and usable[transport].number == read.connection
        }
        now = time.monotonic()
        self._silent = {transport: again for transport, again in self._silent.items() if transport in usable}
        new = [
            entry
            for transport, entry in usable.items()
            if transport not in self._read and self._silent.get(transport, now) <= now
        ]
        asked = await asyncio.gather(*(self._ask(adb, entry) for entry in new), return_exceptions=True)
        for entry, hardware in zip(new, asked, strict=True):
            if isinstance(hardware, PhonedeskError):
                if entry.serial not in self._silent:
                    log.warning("phone_not_identified", transport=entry.serial, error=str(hardware))
                self._silent[entry.serial] = time.monotonic() + AGAIN_SECONDS
            elif isinstance(hardware, BaseException):
                raise hardware
            else:
                self._silent.pop(entry.serial, None)
                self._read[entry.serial] = await self._known(entry, hardware)
        if new:
            await self._tell_copies_apart(adb)

    @staticmethod
    async def _ask(adb: AdbServer, entry: DeviceEntry) -> Hardware | None:
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await read_hardware(Transport(adb.host, adb.port, entry.serial))
        except TimeoutError as error:
            said = f"{entry.serial} did not tell who it is within {ASK_SECONDS:g} s."
            raise DeviceOffline(said, key="phone_offline", phone=entry.serial, state="mute") from error

    async def _known(self, entry: DeviceEntry, hardware: Hardware | None) -> _Read:
        if hardware is None:
            return _Read(entry.number, None, entry.serial)
        serial = await self._phones.identify(hardware.serial, hardware.key, entry.serial, address=":" in entry.serial)
        return _Read(entry.number, hardware, serial)

    async def _tell_copies_apart(self, adb: AdbServer) -> None:
        """Find phones that are there at once with one identity, but were not started at the same moment."""
        started: dict[str, set[str]] = {}
        for read in self._read.values():
            if read.hardware is not None and read.hardware.boot_id:
                started.setdefault(read.hardware.key, set()).add(read.hardware.boot_id)
        for key, boots in started.items():
            if len(boots) == 1 or len({await self._boot(adb, transport) for transport in self._of(key)} - {""}) <= 1:
                continue  # one phone, which may have been restarted since one of its transports was asked
            log.warning("phones_share_identity", serial=key.partition(" ")[0])
            await self._phones.share(key)
            shared = self._of(key)
            self._read = {
                transport: replace(read, serial=transport) if transport in shared else read
                for transport, read in self._read.items()
            }

    def _of(self, key: str) -> list[str]:
        """Return the transports over which this identity was read."""
        return [name for name, read in self._read.items() if read.hardware is not None and read.hardware.key == key]

    @staticmethod
    async def _boot(adb: AdbServer, transport: str) -> str:
        try:
            hardware = await read_hardware(Transport(adb.host, adb.port, transport))
        except PhonedeskError:
            return ""
        return "" if hardware is None else hardware.boot_id


def _is_twin(transport: str, read: _Read, known: Mapping[str, _Read]) -> bool:
    """Tell whether the adb server names a phone without an identity like another one that is there."""
    others = (other for name, other in known.items() if name != transport and other.hardware is not None)
    return read.hardware is None and any(other.serial == transport for other in others)


def merged(serial: str, entries: Sequence[DeviceEntry], named: Container[str]) -> DeviceEntry:
    """Return the entry of the phone that these transports lead to."""
    usable = [entry for entry in entries if entry.state == USABLE]
    best, *others = sorted(usable or entries, key=lambda one: (one.serial not in named, one.connection != "usb"))
    model = next((entry.model for entry in (best, *others) if entry.model), "")
    transports = tuple(entry.serial for entry in (best, *others))
    return replace(best, serial=serial, model=model, transports=() if transports == (serial,) else transports)
