"""A phone with a PIN: opened for a run, locked again after it, and never shut out by a wrong PIN."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import open_adb
from agent_core.devices.base import ScreenState
from agent_core.errors import CommandFailed, DeviceOffline
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from tests.agent_core.devices.adb.conftest import Bench, FastTime
from tests.support.adb import adb_server

PIN = "274913"
MARKER = ("global", "phonedesk_screen_lock")
OPEN, SHUT = ScreenState(awake=True, locked=False), ScreenState(awake=False, locked=True)


@pytest.fixture
async def locked() -> AsyncIterator[Bench]:
    """A phone that sleeps behind a PIN, and that knows the right one from the settings."""
    scenario = default_scenario()
    scenario = scenario.model_copy(update={"phone": scenario.phone.model_copy(update={"pin": PIN})})
    async with adb_server() as adb, serve(scenario) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        clock = FastTime()
        bench = Bench(running, server, server.device(running.address, clock=clock.clock, sleep=clock.sleep), clock)
        bench.device.unlock_with(SecretStr(PIN))
        await bench.phone.key("SLEEP")
        yield bench


def another(bench: Bench, pin: str) -> AdbDevice:
    device = bench.another()
    device.unlock_with(SecretStr(pin))
    return device


def typed(bench: Bench) -> int:
    return sum("input text" in call for call in bench.calls)


async def test_a_run_opens_the_phone_and_locks_it_again(locked: Bench) -> None:
    before = dict(locked.phone.settings)
    await locked.device.recover()
    await locked.device.wake()
    async with locked.device.kept_awake():
        assert locked.phone.screen() == OPEN
    assert locked.phone.screen() == OPEN  # it is still brought to its home screen
    await locked.device.leave()
    assert locked.phone.screen() == SHUT
    assert locked.phone.settings == before


async def test_closing_does_nothing_to_the_phone(locked: Bench) -> None:
    await locked.device.wake()
    async with locked.device.kept_awake():
        pass
    before = len(locked.calls)
    await locked.device.close()
    assert len(locked.calls) == before


async def test_a_phone_that_was_open_stays_open(locked: Bench) -> None:
    locked.phone.uncover()
    await locked.device.recover()
    await locked.device.wake()
    async with locked.device.kept_awake():
        pass
    await locked.device.leave()
    assert locked.phone.screen() == OPEN
    assert typed(locked) == 0


async def test_a_pin_is_typed_on_the_lock_screen_alone(locked: Bench) -> None:
    locked.phone.uncover()  # a person was faster than the typing
    with pytest.raises(CommandFailed):
        await locked.device._power.screen_lock.open()
    assert not locked.phone.report()["typed"]
    assert "KEYCODE_ENTER" not in "".join(call for call in locked.calls if "dumpsys window" not in call)


async def test_no_pin_is_typed_into_a_call_over_the_lock_screen(locked: Bench) -> None:
    before = dict(locked.phone.settings)
    await locked.phone.key("WAKEUP")
    locked.phone.occluded = True
    with pytest.raises(CommandFailed) as raised:
        await locked.device._power.screen_lock.open()
    assert raised.value.key == "pin_covered"
    assert (locked.phone.lock.wrong, locked.phone.settings) == (0, before)
    locked.phone.occluded = False
    await locked.device.wake()
    assert locked.phone.screen() == OPEN


async def test_a_call_that_comes_during_the_typing_is_no_unlocking(locked: Bench) -> None:
    async def ring(text: str) -> None:
        locked.phone.occluded = True

    keys: list[str] = []
    typing, locked.phone.text = locked.phone.text, ring  # type: ignore[method-assign]
    press = locked.phone.key

    async def key(name: str) -> None:
        keys.append(name)
        await press(name)

    locked.phone.key = key  # type: ignore[method-assign]
    with pytest.raises(CommandFailed) as raised:
        await locked.device.wake()
    assert raised.value.key == "pin_covered"
    assert not [name for name in keys if "ENTER" in name]
    locked.phone.occluded, locked.phone.text = False, typing  # type: ignore[method-assign]
    with pytest.raises(CommandFailed, match="did not open it before"):
        await locked.device.wake()
    await locked.device.leave()
    assert locked.phone.screen().awake, "it was not unlocked by us, so it is not ours to lock"


async def test_after_a_single_action_the_next_one_finds_it_open(locked: Bench) -> None:
    await locked.device.wake()
    await locked.device.leave()
    assert locked.phone.screen() == OPEN


async def test_without_a_pin_it_says_what_can_be_done(locked: Bench) -> None:
    locked.device.unlock_with(None)
    with pytest.raises(CommandFailed, match="asks for a PIN") as raised:
        await locked.device.wake()
    assert "PHONEDESK_DEVICE__PINS" in raised.value.advice
    assert typed(locked) == 0


async def test_a_wrong_pin_is_typed_once_until_a_person_opens_the_phone(locked: Bench) -> None:
    with pytest.raises(CommandFailed, match="does not open the phone"):
        await another(locked, "111111").wake()
    for pin in ("111111", "222222", PIN):  # of another process, too, and a corrected one
        with pytest.raises(CommandFailed, match="did not open it before"):
            await another(locked, pin).wake()
    assert (typed(locked), locked.phone.lock.wrong) == (1, 1)
    locked.phone.uncover()
    await locked.device.wake()
    await locked.phone.key("SLEEP")
    await locked.device.wake()
    assert locked.phone.screen() == OPEN


async def test_the_pin_stands_in_no_error(locked: Bench, caplog: pytest.LogCaptureFixture) -> None:
    async def drop(text: str) -> None:
        locked.phone.set_fault("dropped")

    locked.phone.text = drop  # type: ignore[method-assign]
    with pytest.raises(DeviceOffline, match="input text …") as raised:
        await another(locked, "555555").wake()
    told = [raised.value, raised.value.__cause__, raised.value.__context__]
    assert not any("555555" in f"{error!r} {getattr(error, 'values', '')}" for error in told)
    assert "555555" not in caplog.text


async def test_a_phone_that_refuses_the_note_gets_no_pin(locked: Bench) -> None:
    put = locked.phone.set_setting

    def refuse(namespace: str, key: str, value: str | None) -> None:
        if (namespace, key) != MARKER:
            put(namespace, key, value)

    locked.phone.set_setting = refuse  # type: ignore[method-assign]
    with pytest.raises(CommandFailed, match="no PIN is typed"):
        await locked.device.wake()
    assert typed(locked) == 0


async def test_what_a_dead_run_unlocked_the_next_one_locks(locked: Bench) -> None:
    dead = another(locked, PIN)
    await dead.wake()
    async with dead.kept_awake():
        pass  # and its process ends before it leaves the phone
    await locked.device.recover()
    await locked.device.wake()
    async with locked.device.kept_awake():
        await dead.leave()  # who lost the phone leaves it to who has it
        assert locked.phone.screen() == OPEN
    await locked.device.leave()
    assert locked.phone.screen() == SHUT
    assert MARKER not in locked.phone.settings


async def test_the_lock_screen_is_shut_after_five_wrong_pins(locked: Bench) -> None:
    await locked.phone.key("WAKEUP")
    await locked.phone.key("MENU")
    for _ in range(5):
        await locked.phone.text("0000")
        await locked.phone.key("ENTER")
    await locked.phone.text(PIN)
    await locked.phone.key("ENTER")
    assert locked.phone.screen().locked
    assert locked.phone.lock.wrong == 5
