"""A run in this process, on the demo's stand-ins."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from agent_core.devices.adb.device import AdbDevice
from agent_core.errors import AdbNotFound, DeviceError, DeviceOffline, InputRejected, LeaseLost
from agent_core.loop.tasks import NO_RULES, TaskRules
from agent_core.ports import Event
from agent_core.session import Session, Status
from agent_core.texts import say
from bot.app import attached
from bot.app.core import Core, open_core
from bot.app.run_here import run_here, stopped_by_interrupt
from bot.app.worker import listing
from bot.channels.chat.texts import texts
from bot.tools.demo.world import demo_world
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import StoredRuns
from scheduler.runs.host import Fleet, Host
from scheduler.runs.human import StoredHuman
from scheduler.runs.stop import Reason, StopSignal
from simulator.phone.server import serve
from storage.contacts import Contacts, NewContact
from storage.events import Events
from storage.history import History
from storage.hosts import Hosts
from storage.leases import Leases
from storage.people import Audit
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.support.adb import adb_server
from tests.support.proxies import free_port

pytestmark = pytest.mark.device

TASK = "QQ回复联系人11"


@pytest.fixture
async def core() -> AsyncIterator[Core]:
    async with demo_world(lang="en") as world, open_core(world.settings) as made:
        yield made


def human(core: Core) -> StoredHuman:
    return StoredHuman(core.db, hold_seconds=0)


async def test_it_is_a_run_like_any_other(core: Core) -> None:
    session = await run_here(core, f" {TASK} ", human=human(core), store=StoredRuns(core.db))
    assert session.status is Status.SUCCEEDED
    assert [reply.delivered for reply in session.replies] == [True]
    row = await Runs(core.db).get(session.run_id)
    assert row is not None
    assert (row.status, row.task, row.serial) == ("succeeded", TASK, core.settings.device.serial)
    assert (row.requested_by, row.options["lang"]) == ("terminal", "en")
    assert row.session is not None
    assert await Leases(core.db).held() == []
    kinds = [event.kind for event in await Events(core.db).after(0, run_id=session.run_id)]
    assert kinds[0] == "status"
    assert {"started", "step", "reply", "outcome"} <= set(kinds)
    (noted,) = await Audit(core.db).last()
    assert (noted.actor, noted.channel, noted.command, noted.detail["task"]) == ("terminal", "terminal", "run", TASK)


async def test_a_dry_run_touches_nothing(core: Core) -> None:
    session = await run_here(core, TASK, human=human(core), store=StoredRuns(core.db), max_steps=1, dry_run=True)
    assert len(session.steps) <= 1
    assert session.dry_run
    assert session.replies == []
    row = await Runs(core.db).get(session.run_id)
    assert row is not None
    assert row.final


async def test_a_contact_of_the_list_is_named_whole(core: Core) -> None:
    await Contacts(core.db).add(NewContact("qq", "11的小店", number="20110099"))
    settings = core.agent_settings()
    session = await core.session("QQ回复联系人11的小店的问题", "p", settings, run_id="r1", rules=NO_RULES)
    assert (session.gate.contact, session.gate.number) == ("11的小店", "20110099")
    session = await core.session("QQ回复联系人11的问题", "p", settings, run_id="r2", rules=NO_RULES)
    assert session.gate.contact == "11"


async def test_a_phone_in_use_makes_no_run(core: Core) -> None:
    assert await Leases(core.db).acquire(core.settings.device.serial, "other", "r0") is not None
    with pytest.raises(LeaseLost):
        await run_here(core, TASK, human=human(core), store=StoredRuns(core.db))
    assert not await Runs(core.db).find()  # nothing was tried that could have failed


async def test_who_has_the_phone_is_said_where_the_task_was_typed(core: Core) -> None:
    serial, words = core.settings.device.serial, {lang: texts(lang) for lang in ("zh", "en")}
    holder = await Runs(core.db).create(NewRun("QQ回复联系人12", serial, begun=True))
    assert holder is not None
    assert await Leases(core.db).acquire(serial, "other", holder) is not None
    number = await History(core.db).number_of(holder)
    for asks in (False, True):
        if asks:
            payload = {"id": "q1", "kind": "stuck", "text": "?"}
            await Questions(core.db).ask("q1", run_id=holder, kind="stuck", payload=payload)
        with pytest.raises(LeaseLost) as caught:
            await run_here(core, TASK, human=human(core), store=StoredRuns(core.db))
        for said in (str(caught.value), *(one.error(caught.value) for one in words.values())):
            assert f"#{number}" in said
            assert "QQ回复联系人12" in said
            assert "Ctrl-C" in said
            assert ("phonedesk questions" in said) is asks


async def test_what_is_no_task_makes_no_run(core: Core) -> None:
    with pytest.raises(InputRejected):
        await run_here(core, "  ", human=human(core), store=StoredRuns(core.db))
    for task, app in (("打开抖音", "抖音"), ("打开QQ", "设置")):  # not installed; another one is meant
        with pytest.raises(InputRejected, match=app):
            await run_here(core, task, human=human(core), store=StoredRuns(core.db), rules=TaskRules(apps=(app,)))
    assert await Runs(core.db).find() == []


async def test_a_phone_that_goes_before_the_run_begins_is_let_go(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, close = [], AdbDevice.close

    async def gone(device: AdbDevice, *, fresh: bool = False, also: Sequence[str] = ()) -> None:
        raise DeviceError("It does not answer.")

    async def counted(device: AdbDevice) -> None:
        closed.append(device.serial)
        await close(device)

    monkeypatch.setattr(AdbDevice, "packages", gone)
    monkeypatch.setattr(AdbDevice, "close", counted)
    with pytest.raises(DeviceError):
        await run_here(core, "打开QQ", human=human(core), store=StoredRuns(core.db), rules=TaskRules(apps=("QQ",)))
    assert closed == [core.settings.device.serial]


class StopsAtFirstStep(StoredRuns):
    """Somebody presses Ctrl-C as soon as something was done."""

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        await super().event(run_id, event, picture=picture, session=session)
        if event.kind == "step":
            os.kill(os.getpid(), signal.SIGINT)


async def test_ctrl_c_stops_it_and_gives_the_phone_back(core: Core) -> None:
    session: Session = await run_here(core, TASK, human=human(core), store=StopsAtFirstStep(core.db))
    assert session.status is Status.STOPPED
    row = await Runs(core.db).get(session.run_id)
    assert row is not None
    assert row.status == "stopped"
    assert await Leases(core.db).held() == []
    assert [(noted.command, noted.detail.get("run_id")) for noted in await Audit(core.db).last()] == [
        ("stop", session.run_id),
        ("run", None),
    ]


@pytest.mark.parametrize("moment", ["create", "acquire"])
async def test_ctrl_c_before_the_first_look_ends_the_run_that_is_stored(
    core: Core, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A run that was left running would be continued by the server beside it."""
    owner = Leases if moment == "acquire" else Runs
    done = getattr(owner, moment)

    async def interrupted(self: Any, *args: Any, **values: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return await done(self, *args, **values)

    monkeypatch.setattr(owner, moment, interrupted)
    session = await run_here(core, TASK, human=human(core), store=StoredRuns(core.db))
    assert (session.status, session.steps) == (Status.STOPPED, [])
    assert session.message == say("en", "run.stopped_first")
    row = await Runs(core.db).get(session.run_id)
    assert row is not None
    assert row.status == "stopped"
    assert await Leases(core.db).held() == []


class StopsByRow(StoredRuns):
    """Somebody taps Stop in a chat, which is another process, as soon as something was done."""

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        await super().event(run_id, event, picture=picture, session=session)
        if event.kind == "step":
            assert await self._runs.request_stop(run_id) in {"running", None}
            await asyncio.sleep(5)  # longer than it takes to be seen


async def test_a_stop_from_a_chat_is_heard(core: Core) -> None:
    session = await run_here(core, TASK, human=human(core), store=StopsByRow(core.db))
    assert (session.status, len(session.steps)) == (Status.STOPPED, 1)
    row = await Runs(core.db).get(session.run_id)
    assert row is not None
    assert row.status == "stopped"
    assert await Leases(core.db).held() == []


async def test_an_adb_server_that_was_ended_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("ADB_USB", "ADB_LIBUSB", "ADB_EMU", "ADB_MDNS"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("HOME", str(tmp_path))
    async with adb_server() as adb, demo_world() as world:
        device = world.settings.device.model_copy(update={"adb_port": adb.port})
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            first, same = await asyncio.gather(core.attached.adb(), core.attached.adb())
            assert first is same
            adb.stop()
            entries = await core.attached.phones()
            assert [entry.serial for entry in entries if entry.state == "device"] == [device.serial]


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a connection and never answer."""
    await reader.read()
    writer.close()


async def test_a_phone_that_is_being_connected_to_is_not_tried_a_second_time() -> None:
    connections = []

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await mute(reader, writer)

    async with demo_world() as world, await asyncio.start_server(counted, "127.0.0.1", 0) as listening:
        off = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with open_core(world.settings) as core:
            with pytest.raises(DeviceOffline):
                await core.attached.device(off)
    assert len(connections) == 1


async def test_that_a_phone_is_reached_again_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "CONNECT_EVERY_SECONDS", 0.0)
    port = free_port()
    address = f"127.0.0.1:{port}"
    async with demo_world() as world:
        device = world.settings.device.model_copy(update={"connect": (address,), "serial": ""})
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            with capture_logs() as lines:
                await core.attached.phones()
                async with serve(port=port), asyncio.timeout(20):
                    while "phone_connected_again" not in [line["event"] for line in lines]:
                        await core.attached.phones()
                    await core.attached.phones()
    events = [line["event"] for line in lines if line.get("address") == address]
    assert events[0] == "phone_not_connected"
    assert events.count("phone_connected_again") == 1


async def test_a_phone_that_does_not_answer_keeps_nobody_waiting() -> None:
    async with demo_world() as world, await asyncio.start_server(mute, "127.0.0.1", 0) as listening:
        address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        device = world.settings.device.model_copy(update={"connect": (address,)})
        async with open_core(world.settings) as before, open_core(world.settings) as core:
            await before.attached.phones()  # the one that answers is attached
            core.settings = world.settings.model_copy(update={"device": device})
            begun = time.monotonic()
            entries = await core.attached.phones()
            assert time.monotonic() - begun < 5
            assert device.serial in [entry.serial for entry in entries if entry.state == "device"]


async def test_with_no_phone_there_the_first_that_comes_is_shown_and_none_that_is_off_is_waited_for() -> None:
    async with demo_world() as world, await asyncio.start_server(mute, "127.0.0.1", 0) as listening:
        off = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        device = world.settings.device.model_copy(update={"serial": ""})
        for wanted, there in (([off], []), ([off, world.settings.device.serial], [world.settings.device.serial])):
            async with open_core(world.settings.model_copy(update={"device": device})) as core:
                begun = time.monotonic()
                entries = await core.attached.phones(wanted=wanted)
                assert time.monotonic() - begun < 8, "adb gives up after 10 s"
                assert [entry.serial for entry in entries if entry.state == "device"] == there


async def test_a_phone_that_a_run_waits_for_by_its_address_is_connected_to_by_its_host() -> None:
    async with demo_world() as world:
        device = world.settings.device.model_copy(update={"serial": ""})
        address = world.settings.device.serial
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            await Runs(core.db).create(NewRun(TASK, "127.0.0.1:1"))
            hosts = Hosts(core.db)
            assert await hosts.register("other", "token") is None
            assert await hosts.sees("other", "token", {"127.0.0.1:1": "offline"})
            dispatcher = Dispatcher(core.db, None, phones=lambda: reached(core, dispatcher.awaited))
            await dispatcher.once()
            assert dispatcher.awaited == [], "the address of another host may be another phone here"
            await Runs(core.db).create(NewRun(TASK, address))
            await dispatcher.once()
            assert await reached(core, dispatcher.awaited) == [address]


async def reached(core: Core, wanted: Sequence[str]) -> list[str]:
    return list(await listing(core, wanted))


async def test_a_phone_that_a_command_has_used_is_known_once_it_is_away() -> None:
    async with demo_world() as world:
        address = world.settings.device.serial
        device = world.settings.device.model_copy(update={"serial": ""})
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            await (await core.attached.device(address)).close()
            known = (await Fleet(core.db).phones())[address]
            assert not known.usable


async def test_a_phone_with_a_pin_is_opened_by_the_settings() -> None:
    async with demo_world() as world:
        world.phone.lock.pin = "2749"
        await world.phone.key("SLEEP")
        pins = {world.settings.device.serial: SecretStr("2749")}
        device = world.settings.device.model_copy(update={"pins": pins})
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            phone = await core.attached.device()
            await phone.wake()
            async with phone.kept_awake():
                assert not world.phone.screen().locked
            await phone.leave()
            assert world.phone.screen().locked


async def test_the_phone_is_locked_again_before_its_lease_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with demo_world(lang="en") as world:
        world.phone.lock.pin = "2749"
        await world.phone.key("SLEEP")
        serial, press = world.settings.device.serial, world.phone.key
        device = world.settings.device.model_copy(update={"pins": {serial: SecretStr("2749")}})
        async with open_core(world.settings.model_copy(update={"device": device})) as core:
            held: list[list[str]] = []

            async def key(name: str) -> None:
                if name.removeprefix("KEYCODE_") == "SLEEP":
                    held.append([lease.serial for lease in await Leases(core.db).held()])
                await press(name)

            monkeypatch.setattr(world.phone, "key", key)
            session = await run_here(core, TASK, human=human(core), store=StoredRuns(core.db))
        assert session.status is Status.SUCCEEDED
        assert world.phone.screen().locked
        assert held == [[serial]]


async def test_without_adb_there_are_no_phones_and_no_end_of_the_server() -> None:
    async with demo_world() as world:
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            changes = {"adb_port": nobody.getsockname()[1], "adb_path": "/nowhere/adb"}
            device = world.settings.device.model_copy(update=changes)
            async with open_core(world.settings.model_copy(update={"device": device})) as core:
                assert await Host(core.db, "host", listing=lambda: listing(core)).look() == []
                with pytest.raises(AdbNotFound):
                    await core.attached.phones()


async def test_signals_ask_for_a_stop_only_meanwhile() -> None:
    stop = StopSignal()
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_interrupt(stop):
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(5):
            while stop.reason is None:
                await asyncio.sleep(0)
    assert stop.reason is Reason.STOP
    assert signal.getsignal(signal.SIGTERM) == before
