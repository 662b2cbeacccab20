"""Phones: those attached to this machine or another host, and their screens."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from PIL import Image

from agent_core.devices.base import DeviceEntry
from agent_core.errors import DeviceOffline
from agent_core.perception.observer import SeenPage
from bot.desk.actors import Actor, BadRequest, Role, no_phone
from bot.desk.context import DeskService
from bot.desk.live_screens import encoded
from bot.desk.phonebook import PhoneBook
from bot.desk.views import PhoneKept, PhoneView
from scheduler.runs.host import ANSWER_SECONDS
from storage.hosts import FAILED, GONE, USABLE, HostPhone, Hosts
from storage.leases import Leases

if TYPE_CHECKING:
    from agent_core.devices.adb.pairing import PairingOffer
    from agent_core.devices.adb.setup import SetupReport
    from bot.app.phones import OwnPhones

POLL_SECONDS = 0.2  # between two looks for another host's answer

State = Literal["free", "busy", "offline", "unauthorized", "away"]


class DeskPhones(DeskService):
    """The service for phones and their screens. Viewers may use it."""

    async def all(self) -> list[PhoneView]:
        """Return the attached phones, and those of hosts that have stopped reporting. Checks no rights."""
        return await self.beside(await self.context.entries())

    async def beside(self, entries: Sequence[DeviceEntry], expected: Iterable[str] = ()) -> list[PhoneView]:
        """Return the phones that are attached here (``entries``) and those of other hosts, as ``all``.

        expected: serials, or as the settings write them; those that are not there follow as offline.
        """
        async with self._db.one_view():
            leases = await Leases(self._db, seconds=self._fleet.seconds).held()
            book = await self._book(entries)
            elsewhere = await self._elsewhere()
        held = {lease.serial: lease.run_id for lease in leases}
        local = _local(entries, elsewhere)
        tags = book.by_serial(self.context.tags)
        here = [
            PhoneView(
                entry.serial,
                book.name(entry.serial),
                _state(entry.state, entry.serial in held),
                held.get(entry.serial, ""),
                tags=tuple(tags.get(entry.serial, ())),
            )
            for entry in local
        ]
        known = {entry.serial for entry in local}
        here += [
            self._view(phone, book.name(phone.serial), held, tuple(tags.get(phone.serial, ())))
            for phone in elsewhere
            if phone.serial not in known and phone.state != GONE
        ]
        there = {"", *(phone.serial for phone in here)}
        missing = dict.fromkeys(serial for written in expected if (serial := book.serial(written)) not in there)
        return here + [PhoneView(serial, book.name(serial), "offline") for serial in missing]

    def _view(self, phone: HostPhone, name: str, held: Mapping[str, str], tags: tuple[str, ...]) -> PhoneView:
        run_id = held.get(phone.serial, "")
        if phone.alive:
            state = _state(phone.state, phone.serial in held)
            return PhoneView(phone.serial, name, state, run_id, phone.host, tags=tags)
        since = phone.since.astimezone(self._zone)
        return PhoneView(phone.serial, name, "away", run_id, phone.host, since, tags)

    async def names(self, serials: Sequence[str]) -> tuple[str, ...]:
        """Return the names of these phones."""
        return (await self._book()).list(serials)

    async def screenshot(self, actor: Actor, serial: str | None = None, *, full: bool = False) -> bytes:
        """Return the phone's screen as JPEG; ``full``: in full resolution. Takes no lease, because it only reads.

        Raises NotFound for a phone that is not there, DeviceOffline if its host does not answer in time.
        """
        wanted, host = await self._seen_phone(actor, serial)
        if host is None:
            return await self.context.screens.jpeg(wanted, self.context.device, full=full)
        return await asyncio.to_thread(encoded, await self._shown_by(host), full=full)

    async def page(self, actor: Actor, serial: str | None = None) -> SeenPage:
        """Return the reading of the phone's screen. Raises BadRequest for a phone of another host."""
        wanted, host = await self._seen_phone(actor, serial)
        if host is not None:
            said = f"The phone {host.serial} is at the host {host.host}; its screen can be shown here, but not read."
            advice = "Ask for the picture alone, or give a screenshot to phonedesk read."
            raise BadRequest(said, advice=advice, key="read_elsewhere", host=host.host)
        device = await self.context.device(wanted)
        try:
            return await self.context.page(device)
        finally:
            await device.close()

    # -- arranging them, for owners

    async def connect(self, actor: Actor, address: str) -> PhoneKept:
        """Connect to the phone at host:port, now and at each start."""
        return await (await self._arranging(actor, "connect", address)).connect(address)

    async def disconnect(self, actor: Actor, phone: str) -> PhoneKept:
        """Disconnect a phone of the network, now and for later starts."""
        return await (await self._arranging(actor, "disconnect", phone)).disconnect(phone)

    async def pair(self, actor: Actor, address: str, code: str) -> str:
        """Pair with the phone that shows this address and code, and return its serial."""
        return await (await self._arranging(actor, "pair")).pair(address, code)

    async def can_scan(self, actor: Actor) -> None:
        """Raise DeviceOffline if a phone that scans a QR code could not be found."""
        await (await self._arranging(actor, "pair")).can_scan()

    async def pair_by_scan(self, offer: PairingOffer) -> str:
        """Wait for a phone to scan the offer, pair with it and return its serial. Checks no rights: see ``can_scan``.

        Raises DeviceOffline if none does so in time.
        """
        return await self._own().pair_by_scan(offer)

    async def rename(self, actor: Actor, phone: str, name: str) -> PhoneKept:
        """Call a phone by a name; "" takes it away."""
        return await (await self._arranging(actor, "name", phone)).name(phone, name)

    async def tag(self, actor: Actor, phone: str, tags: Sequence[str], *, away: bool = False) -> PhoneKept:
        """Add tags to a phone, or take them ``away``; without any, take away all."""
        return await (await self._arranging(actor, "tag", phone)).tag(phone, tags, away=away)

    async def plan_setup(self, actor: Actor, phone: str) -> SetupReport:
        """Return the changes that ``set_up`` would make to a phone ("" for the only one); nothing is changed."""
        phones, serial = await self._checked(actor, "setup", phone)
        return await phones.plan(serial)

    async def set_up(self, actor: Actor, phone: str) -> SetupReport:
        """Set up a phone for the desk. Raises LeaseLost if somebody else has the phone."""
        phones, serial = await self._checked(actor, "setup.apply", phone)
        return await phones.set_up(serial)

    async def undo_setup(self, actor: Actor, phone: str) -> SetupReport:
        """Put back the changes of ``set_up``. Raises LeaseLost if another owner has the phone."""
        phones, serial = await self._checked(actor, "setup.undo", phone)
        return await phones.undo(serial)

    async def _arranging(self, actor: Actor, verb: str, phone: str = "") -> OwnPhones:
        """Check the rights. ``phone``: as it was written; an owner with limits may arrange only their own phones."""
        return (await self._checked(actor, verb, phone))[0]

    async def _checked(self, actor: Actor, verb: str, phone: str) -> tuple[OwnPhones, str]:
        """Check the rights as ``_arranging``, and return the serial that they were checked for, too."""
        book = await self._book(await self.context.entries())
        serial = book.serial(phone) if phone else ""
        wanted = self._phone_for(actor, serial, book) if actor.phones else serial
        await self._allow(actor, Role.OWNER, f"devices.{verb}", phone=wanted, serial=wanted)
        return self._own(), wanted

    def _own(self) -> OwnPhones:
        if self.context.own_phones is None:
            raise BadRequest(
                "No phone is worked by this process.",
                advice="Use phonedesk devices on the machine that has the phone.",
                key="devices_elsewhere",
            )
        return self.context.own_phones

    async def _seen_phone(self, actor: Actor, serial: str | None) -> tuple[str, HostPhone | None]:
        """Return the serial of a phone that the actor may see ("" for the default one), and its row at another host.

        The row is None if the phone is attached here. Raises NotFound if it is nowhere.
        """
        entries = await self.context.entries()
        named = serial or self.context.serial
        exact = not named or any(entry.serial == named for entry in entries)  # a page asks five times a second
        book = PhoneBook({}, {}, {}) if exact else await self._book(entries)
        serial = book.serial(serial) if serial else ""
        wanted = self._phone_for(actor, serial, book) if actor.phones else serial
        await self._allow(actor, Role.VIEWER, "screen", phone=wanted, serial=wanted)
        others = await self._elsewhere()
        here = {entry.serial for entry in _local(entries, others)}
        elsewhere = {phone.serial: phone for phone in others if phone.serial not in here}
        if not wanted and not self.context.serial and not here and len(elsewhere) == 1:
            wanted = next(iter(elsewhere))
        meant = wanted or book.serial(self.context.serial)
        if meant in elsewhere:
            return meant, elsewhere[meant]
        if wanted and wanted not in here:  # never connect to an address that somebody made up
            raise no_phone(wanted)
        return wanted, None

    async def _shown_by(self, phone: HostPhone) -> Image.Image:
        """Return the screen of another host's phone. Raises DeviceOffline if that host does not answer in time."""
        if not phone.usable:
            since = phone.since.astimezone(self._zone).strftime("%m-%d %H:%M")
            why = "does not reach it" if phone.alive else f"was last heard at {since}"
            raise DeviceOffline(
                f"The phone {phone.serial} is at the host {phone.host}, which {why}.",
                key="host_without_phone" if phone.alive else "host_not_heard",
                phone=phone.serial,
                host=phone.host,
                since=since,
            )
        hosts, until = Hosts(self._db), time.monotonic() + ANSWER_SECONDS
        number = await hosts.want(phone.host, phone.serial)
        try:
            while time.monotonic() < until:
                waiter = self._db.signal("phone_requests").waiter()
                answer = await hosts.answer(number)
                if answer is not None and answer.state == FAILED:
                    raise DeviceOffline(
                        f"The host {phone.host} says: {answer.error}",
                        key="host_says",
                        host=phone.host,
                        why=answer.error,
                    )
                if answer is not None and answer.jpeg is not None:
                    return await asyncio.to_thread(_opened, answer.jpeg)
                await waiter.wait(POLL_SECONDS)
        finally:
            await hosts.withdraw(number)
        raise DeviceOffline(
            f"The host {phone.host} gave no picture of the phone {phone.serial} within {ANSWER_SECONDS:.0f} s.",
            key="host_no_picture",
            host=phone.host,
            phone=phone.serial,
            seconds=f"{ANSWER_SECONDS:.0f}",
        )


def _opened(jpeg: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(jpeg))
    picture.load()
    return picture


def _local(entries: Sequence[DeviceEntry], elsewhere: Sequence[HostPhone]) -> list[DeviceEntry]:
    """Return this machine's own phones. adb still lists a network phone that only another host reaches by now."""
    theirs = {phone.serial for phone in elsewhere if phone.usable}
    return [entry for entry in entries if entry.state == USABLE or entry.serial not in theirs]


def _state(state: str, held: bool) -> State:
    """Return a phone's state for people. ``state``: as adb writes it."""
    if state == "device":
        return "busy" if held else "free"
    return "unauthorized" if state == "unauthorized" else "offline"


def away_from(wanted: str, entries: Sequence[DeviceEntry], elsewhere: Mapping[str, HostPhone]) -> State | Literal[""]:
    """Return the state of a phone that no host reaches, or "" if one does. ``wanted`` is "" for any phone."""
    if any(entry.state == "device" and wanted in {"", entry.serial} for entry in entries):
        return ""
    if any(phone.usable and wanted in {"", phone.serial} for phone in elsewhere.values()):
        return ""
    states = {entry.serial: entry.state for entry in entries}
    phone = elsewhere.get(wanted)
    if wanted in states or phone is None:
        return _state(states.get(wanted, "offline"), held=False)
    if not phone.alive and phone.state != GONE:
        return "away"
    return _state(phone.state, held=False)
