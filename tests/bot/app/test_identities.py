"""One phone with several names in adb is one phone; two phones that look alike are two."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.parse import CONNECT, PAIRING
from agent_core.devices.base import DeviceEntry
from agent_core.errors import DeviceOffline, LeaseLost
from bot.app.core import Core, open_core
from bot.app.identities import merged
from bot.app.run_here import run_here
from bot.tools.demo.world import World, demo_world
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from scheduler.runs.lease import lease_of
from simulator.phone.adbd import AdbdServer
from simulator.phone.phone import VirtualPhone
from storage.contacts import Contacts, NewContact
from storage.hosts import Phones
from storage.runs import NewRun, Runs
from tests.support.adb_stand_in import Announcing, announcing

SERIAL, ANDROID_ID = "VPHONE0001", "9f3c2a1b00d4e5f6"
TASK = "QQ回复联系人11"
pytestmark = pytest.mark.device


class Stage:
    """The demo's phone, which tells who it is, and a second way to it."""

    def __init__(self, world: World, core: Core, stack: AsyncExitStack) -> None:
        self.world, self.core, self._stack = world, core, stack
        self.first = world.settings.device.serial

    async def second_way(self) -> AdbdServer:
        link = self.world.phone.link
        assert isinstance(link, AdbdServer)
        return await self._serve(AdbdServer(self.world.phone, files=link.files))

    async def other_phone(self, android_id: str = ANDROID_ID) -> AdbdServer:
        phone = VirtualPhone()
        phone.settings["secure", "android_id"] = android_id
        return await self._serve(AdbdServer(phone))

    async def _serve(self, adbd: AdbdServer) -> AdbdServer:
        await self._stack.enter_async_context(adbd)
        await (await self.core.attached.adb()).connect(f"127.0.0.1:{adbd.port}")
        return adbd

    async def serials(self) -> dict[str, tuple[str, ...]]:
        return {
            entry.serial: entry.transports for entry in await self.core.attached.phones() if entry.state == "device"
        }


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr("bot.app.attached.CONNECT_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("bot.app.identities.AGAIN_SECONDS", 0.0)
    async with AsyncExitStack() as stack:
        world = await stack.enter_async_context(demo_world(lang="en"))
        world.phone.settings["secure", "android_id"] = ANDROID_ID
        core = await stack.enter_async_context(open_core(world.settings))
        yield Stage(world, core, stack)


async def test_a_phone_is_known_by_its_own_serial_whatever_the_address(stage: Stage) -> None:
    assert await stage.serials() == {SERIAL: (stage.first,)}
    for written in ("", SERIAL, stage.first):
        device = await stage.core.attached.device(written)
        assert device.serial == SERIAL
        await device.close()


async def test_two_ways_to_one_phone_are_one_entry_and_one_lease(stage: Stage) -> None:
    second = f"127.0.0.1:{(await stage.second_way()).port}"
    assert await stage.serials() == {SERIAL: (stage.first, second)}, "the address of the settings goes first"
    device = await stage.core.attached.device(second)
    assert (device.serial, (await device.info()).connection) == (SERIAL, "tcp")
    async with lease_of(stage.core.db, device, owner="somebody", why="run"):
        with pytest.raises(LeaseLost):
            await run_here(
                stage.core,
                TASK,
                serial=second,
                human=StoredHuman(stage.core.db, hold_seconds=0),
                store=StoredRuns(stage.core.db),
            )
    await device.close()


async def test_a_run_goes_on_by_the_other_way(stage: Stage) -> None:
    second = await stage.second_way()
    await stage.serials()
    device = await stage.core.attached.device(f"127.0.0.1:{second.port}")
    before = len(second.calls)
    await device.look()
    assert len(second.calls) > before, "the address that was named goes first"
    await second.close()
    assert (await device.look()).window.package is not None
    await device.close()


async def test_without_another_way_the_phone_is_offline(stage: Stage) -> None:
    device = await stage.core.attached.device()
    assert isinstance(device, AdbDevice)
    link = stage.world.phone.link
    assert isinstance(link, AdbdServer)
    await link.close()
    await (await stage.core.attached.adb()).disconnect(stage.first)
    with pytest.raises(DeviceOffline):
        await device.look()
    await device.close()


async def test_a_phone_that_comes_back_elsewhere_keeps_its_name_and_tags(stage: Stage) -> None:
    await stage.serials()
    second = f"127.0.0.1:{(await stage.second_way()).port}"
    await (await stage.core.attached.adb()).disconnect(stage.first)
    device = stage.core.settings.device.model_copy(
        update={"names": {stage.first: "Counter"}, "serial": "", "connect": ()}
    )
    stage.core.settings = stage.core.settings.model_copy(update={"device": device})
    entries = await stage.core.attached.glance()
    book = await stage.core.attached.book(entries)
    assert book.name(SERIAL) == "Counter"
    assert {book.serial(written) for written in ("counter", second, SERIAL)} == {SERIAL}


async def test_a_run_that_waits_for_an_address_gets_the_phone_that_is_there(stage: Stage) -> None:
    run_id = await Runs(stage.core.db).create(NewRun(TASK, stage.first))
    assert run_id is not None
    contacts = Contacts(stage.core.db)
    for name, serial in (("one", stage.first), ("two", stage.first), ("two", SERIAL)):
        await contacts.add(NewContact("qq", name, serial))
    await stage.serials()
    assert {(row.name, row.serial) for row in await contacts.all()} == {
        ("one", SERIAL),
        ("two", SERIAL),
        ("two", stage.first),
    }
    row = await Runs(stage.core.db).get(run_id)
    assert row is not None
    assert row.serial == SERIAL


async def test_two_phones_with_one_serial_are_two(stage: Stage) -> None:
    other = f"127.0.0.1:{(await stage.other_phone('0123456789abcdef')).port}"
    found = await stage.serials()
    assert sorted(found.values()) == sorted([(stage.first,), (other,)])
    assert SERIAL in found
    async with open_core(stage.world.settings) as later:
        again = {entry.serial: entry.transports for entry in await later.attached.glance()}
    assert again == found, "another process agrees"


async def test_copies_of_one_phone_are_known_by_their_addresses(stage: Stage) -> None:
    other = f"127.0.0.1:{(await stage.other_phone()).port}"
    assert await stage.serials() == {stage.first: (), other: ()}
    await (await stage.core.attached.adb()).disconnect(other)
    async with open_core(stage.world.settings) as later:
        assert [entry.serial for entry in await later.attached.glance()] == [stage.first]


@pytest.mark.parametrize(
    ("serial", "android_id"),
    [("0123456789ABCDEF", ANDROID_ID), ("unknown", ANDROID_ID), ("", ANDROID_ID), (SERIAL, "")],
)
async def test_a_phone_that_nothing_tells_apart_is_known_by_its_address(
    stage: Stage, serial: str, android_id: str
) -> None:
    stage.world.phone.properties["ro.serialno"] = serial
    stage.world.phone.settings["secure", "android_id"] = android_id
    assert await stage.serials() == {stage.first: ()}


async def test_a_phone_that_is_still_starting_is_not_taken_under_another_name(stage: Stage) -> None:
    phone = stage.world.phone
    phone.properties["sys.boot_completed"] = ""
    phone.settings["secure", "android_id"] = ""
    assert await stage.serials() == {}
    phone.properties["sys.boot_completed"] = "1"
    phone.settings["secure", "android_id"] = ANDROID_ID
    assert await stage.serials() == {SERIAL: (stage.first,)}


async def test_an_address_belongs_to_the_phone_that_was_there_last(stage: Stage) -> None:
    phones = Phones(stage.core.db)
    assert await phones.identify("S1ABCDEF", "S1ABCDEF 11", "10.0.0.2:5555", address=True) == "S1ABCDEF"
    assert await phones.identify("S2ABCDEF", "S2ABCDEF 22", "10.0.0.2:5555", address=True) == "S2ABCDEF"
    assert await phones.addresses() == {"10.0.0.2:5555": "S2ABCDEF"}
    assert await phones.identify("S1ABCDEF", "S1ABCDEF 11", "S1ABCDEF", address=False) == "S1ABCDEF"


async def test_another_phone_at_the_same_address_is_another_phone(stage: Stage) -> None:
    await stage.serials()
    adb, link = await stage.core.attached.adb(), stage.world.phone.link
    assert isinstance(link, AdbdServer)
    await link.close()
    await adb.disconnect(stage.first)
    other = VirtualPhone()
    other.properties["ro.serialno"] = "OTHER0001"
    other.settings["secure", "android_id"] = "0123456789abcdef"
    async with AdbdServer(other, port=link.port):
        await adb.connect(stage.first)  # nobody has looked at the list meanwhile
        assert await stage.serials() == {"OTHER0001": (stage.first,)}
        with pytest.raises(DeviceOffline):
            await stage.core.attached.device(SERIAL)


def test_the_cable_goes_first_unless_an_address_is_named() -> None:
    cable, network = DeviceEntry("S1", "device", "M"), DeviceEntry("10.0.0.2:5555", "device", connection="tcp")
    assert merged("S1", [network, cable], ()).transports == ("S1", "10.0.0.2:5555")
    assert merged("S1", [cable, network], ("10.0.0.2:5555",)).transports == ("10.0.0.2:5555", "S1")
    assert merged("S1", [network, replace(cable, state="offline")], ()) == replace(
        network, serial="S1", transports=("10.0.0.2:5555",)
    )
    assert merged("S1", [cable], ()).transports == ()


# Wireless debugging ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def moving(stage: Stage) -> AsyncIterator[tuple[Announcing, Core, AdbdServer]]:
    """The phone, known at the address of the settings, has gone from there to another port."""
    device = stage.world.settings.device
    assert device.adb_port is not None
    async with announcing(device.adb_port) as (network, port):
        settings = stage.world.settings.model_copy(update={"device": device.model_copy(update={"adb_port": port})})
        async with open_core(settings) as core:
            assert [entry.serial for entry in await core.attached.phones()] == [SERIAL]
            link = stage.world.phone.link
            assert isinstance(link, AdbdServer)
            moved = AdbdServer(stage.world.phone, files=link.files)
            async with moved:
                await link.close()
                await (await core.attached.adb()).disconnect(stage.first)
                yield network, core, moved


def announced(serial: str, port: int, kind: str = CONNECT) -> str:
    return f"adb-{serial}-AbCd12\t{kind}\t127.0.0.1:{port}\n"


async def test_a_phone_with_a_new_port_is_found_by_its_announcement(
    moving: tuple[Announcing, Core, AdbdServer],
) -> None:
    network, core, moved = moving
    network.services = announced("OTHER0001", 9) + announced(SERIAL, 9, PAIRING) + announced(SERIAL, moved.port)
    (entry,) = await core.attached.phones()
    assert (entry.serial, entry.state, entry.transports) == (SERIAL, "device", (f"127.0.0.1:{moved.port}",))
    asked = list(network.asked)
    await core.attached.phones()
    assert not [one for one in network.asked[len(asked) :] if "connect" in one], "the old address is left alone"
    device = await core.attached.device(core.settings.device.serial)
    assert device.serial == SERIAL
    await device.close()


async def test_a_run_finds_the_new_port_by_the_retry_table(stage: Stage) -> None:
    device = stage.world.settings.device
    assert device.adb_port is not None
    link = stage.world.phone.link
    assert isinstance(link, AdbdServer)
    async with announcing(device.adb_port) as (network, port), AdbdServer(stage.world.phone, files=link.files) as moved:
        settings = stage.world.settings.model_copy(update={"device": device.model_copy(update={"adb_port": port})})
        async with open_core(settings) as core:
            phone = await core.attached.device()
            network.services = announced(SERIAL, moved.port)
            await link.close()
            await (await core.attached.adb()).disconnect(stage.first)
            assert (await phone.look()).window.package is not None
            await phone.close()


@pytest.mark.parametrize("services", [None, "", announced("OTHER0001", 1)])
async def test_without_its_announcement_nothing_else_is_connected_to(
    moving: tuple[Announcing, Core, AdbdServer], services: str | None
) -> None:
    network, core, _ = moving
    network.services = services
    network.asked.clear()
    assert [entry for entry in await core.attached.phones() if entry.state == "device"] == []
    tried = {one for one in network.asked if one.startswith("host:connect")}
    assert tried == {f"host:connect:{core.settings.device.serial}"}
