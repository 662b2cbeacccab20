"""Every fault of the virtual phone against the agent: what it says, or how it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_core.devices.adb import server as server_module
from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.server import open_adb
from agent_core.devices.base import WindowKind
from agent_core.devices.pictures import digest
from agent_core.errors import (
    CommandFailed,
    DeviceError,
    DeviceOffline,
    DeviceUnauthorized,
    InputDenied,
    ScreenOff,
    ScreenshotFailed,
    TextInputFailed,
    TreeUnavailable,
)
from agent_core.geometry import Point
from agent_core.texts import told
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Faults, PhonePart, Scenario, TreeMode
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from tests.agent_core.devices.adb.conftest import QQ, Bench
from tests.support.adb import adb_server

PAYMENT, SETTINGS = "com.eg.android.AlipayGphone", "com.android.settings"
Act = Callable[[AdbDevice], Awaitable[object]]


async def _type(device: AdbDevice) -> None:
    async with device.keyboard() as keyboard:
        await keyboard.type("你好")


# What is wrong, what is done then, the error, and what it says in English and Chinese.
REFUSED: tuple[tuple[dict[str, object], Act, type[DeviceError], str, str], ...] = (
    ({"black": True}, AdbDevice.observe, ScreenshotFailed, "black", "黑"),
    ({"capture": "fails"}, AdbDevice.observe, ScreenshotFailed, "Failed to take screenshot", "没有给出画面"),
    ({"capture": "half"}, AdbDevice.observe, ScreenshotFailed, "did not come whole", "没有完整传过来"),
    ({"asleep": True}, AdbDevice.observe, ScreenOff, "screen of the phone is off", "屏幕"),
    ({"input_denied": True}, lambda device: device.tap(Point(1, 1)), InputDenied, "refuses taps", "点击"),
    ({"ime_refused": "set", "clipboard": "denied"}, _type, TextInputFailed, "its keyboard be", "更换输入法"),
    (
        {"ime_refused": "list", "clipboard": "denied"},
        _type,
        TextInputFailed,
        "not let its keyboard",
        "更换输入法",
    ),
    ({"app_update": "installing"}, lambda device: device.launch(QQ), CommandFailed, "being updated", "正在更新"),
    ({"no_focus": "null"}, lambda device: device.launch(QQ), CommandFailed, "did not come to the front", QQ),
)
_WATCHER, _TOUCHES = "tests/scheduler/watches/test_watcher.py", "tests/agent_core/devices/adb/test_touches.py"
# Where the other faults are tried: they concern more than the phone's driver.
ELSEWHERE = {
    "slow": "tests/agent_core/reply/test_races.py::test_a_slow_screen",
    "locked": "tests/agent_core/devices/adb/test_screen_lock.py::test_a_run_opens_the_phone_and_locks_it_again",
    "dropped": "tests/agent_core/devices/adb/test_server.py::test_a_connection_that_died_is_made_anew",
    "popup": "tests/agent_core/perception/test_reader.py::test_other_pages_are_no_chat",
    "update": "tests/simulator/phone/test_looks.py::test_an_update_dialog_lies_over_the_app",
    "app_update": "tests/agent_core/reply/test_several.py::test_after_an_update_the_first_answer_is_confirmed",
    "stuck_keyboard": "tests/agent_core/test_reply.py::test_a_keyboard_that_types_nothing",
    "clipboard": "tests/agent_core/devices/adb/test_typing_ways.py::test_a_way_that_fails_gives_way_to_the_next",
    "ignored_taps": "tests/agent_core/reply/test_races.py::test_what_cannot_be_sent_is_not_sent_and_leaves_nothing",
    "settings_denied": "tests/agent_core/devices/adb/test_setup.py::test_a_phone_that_refuses_is_left_as_it_was",
    "install_denied": "tests/agent_core/devices/adb/test_setup.py::test_a_phone_that_refuses_is_left_as_it_was",
    "send_fails": "tests/agent_core/test_reply.py::test_a_red_mark_is_not_sent_again",
    "send_slow": "tests/agent_core/reply/test_races.py::test_a_spinner_is_waited_for",
    "not_logged_in": "tests/scheduler/sweeps/test_attempt.py::test_a_list_that_cannot_be_had_or_read_is_said",
    "banner": "tests/agent_core/perception/test_wechat.py::test_the_strip_of_no_network_is_no_message",
    "getevent_denied": f"{_TOUCHES}::test_a_phone_that_refuses_sees_none_and_says_so_once",
    "hidden_previews": f"{_WATCHER}::test_where_previews_are_hidden_the_list_is_looked_at_once_a_change",
}
HERE = {"unauthorized", "offline", "rotation", "two_displays", "sleeps"}


def test_no_fault_is_without_a_test() -> None:
    assert set(Faults.model_fields) == HERE | {fault for case in REFUSED for fault in case[0]} | set(ELSEWHERE)
    for fault, form in (("ime_refused", "list"), ("app_update", "installing")):
        assert any(case[0].get(fault) == form for case in REFUSED)
    for fault, place in ELSEWHERE.items():
        file, _, name = place.partition("::")
        text = (Path(__file__).parents[4] / file).read_text(encoding="utf-8")
        assert fault in text, fault
        assert f"def {name}(" in text or not name, place


async def test_each_refusal_has_its_message_and_ends_with_its_fault(bench: Bench) -> None:
    for faults, act, kind, english, chinese in REFUSED:
        for name, value in faults.items():
            bench.phone.set_fault(name, value)
        with pytest.raises(kind) as refused:
            await act(bench.device)
        assert english in told(refused.value, "en"), faults
        assert chinese in told(refused.value, "zh"), faults
        for name in faults:
            bench.phone.set_fault(name, False)
    for mode in (TreeMode.FAILING, TreeMode.EMPTY):
        bench.phone.set_tree(mode)
        if mode is TreeMode.FAILING:
            with pytest.raises(TreeUnavailable, match="could not get idle state"):
                await bench.device.tree()
        else:
            assert len(await bench.device.tree()) == 1
    assert not (await bench.device.observe()).look.screen.locked
    bench.phone.set_fault("no_focus", "unsaid")
    assert (await bench.device.window()).package == bench.phone.window().package


async def test_what_stands_before_a_picture_and_a_second_display(bench: Bench) -> None:
    await bench.device.launch(SETTINGS)  # a page without a clock below the status bar
    shown = digest(await bench.phone.shown())
    for fault, value in (("capture", "warns"), ("two_displays", "first"), ("two_displays", "second")):
        bench.phone.set_fault(fault, value)
        for device in (bench.device, bench.another()):  # one that knows the phone by now, and one that does not
            for _ in range(3):  # by both ways of taking a picture
                frame = (await device.observe()).frame
                assert frame.digest == shown, (fault, value)
        bench.phone.set_fault(fault, False)


@pytest.mark.parametrize("turn", ["rotation", "wm size"])
async def test_places_are_those_of_the_picture_however_the_screen_is(bench: Bench, turn: str) -> None:
    await bench.device.observe()
    if turn == "rotation":
        bench.phone.set_fault("rotation", 3)
        size = (2400, 1080)
    else:
        bench.phone.set_setting("global", "display_size_forced", "720,1600")
        size = (720, 1600)
    await bench.device.launch(SETTINGS)
    assert (await bench.device.observe()).frame.size == size
    assert (await bench.device.info()).size == size
    row = next(node for node in await bench.device.tree() if node.text == "WLAN")
    assert row.box.right < size[0]
    await bench.device.tap(row.box.center)
    assert [element.text for element in bench.phone.elements() if element.id == "title"] == ["WLAN"]
    bench.phone.set_fault("rotation", False)
    bench.phone.set_setting("global", "display_size_forced", None)
    assert (await bench.device.observe()).frame.size == (1080, 2400)


async def test_a_protected_page_is_black_and_nothing_is_done_on_it(bench: Bench) -> None:
    await bench.device.launch(PAYMENT)
    code = next(node for node in await bench.device.tree() if node.text == "收付款")
    await bench.device.tap(code.box.center)
    with pytest.raises(ScreenshotFailed, match="black"):
        await bench.device.observe()
    assert bench.phone.window().kind is WindowKind.APP


async def test_a_phone_that_falls_asleep_is_kept_awake_for_a_run() -> None:
    now = datetime(2026, 5, 4, 9, tzinfo=UTC)
    scenario = default_scenario().model_copy(update={"faults": Faults(sleeps=True)})
    phone = VirtualPhone(scenario, clock=lambda: now)
    async with adb_server() as adb, serve(phone=phone) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        device = server.device(running.address)
        async with device.kept_awake():
            now += timedelta(hours=1)
            await device.observe()
        now += timedelta(minutes=2)
        with pytest.raises(ScreenOff):
            await device.observe()
        await device.wake()
        await device.observe()


async def test_unauthorised_and_offline_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECT_SECONDS", 0.5)  # adb itself gives up after 10 s
    closed, mute = (Scenario(faults=Faults(**{fault: True})) for fault in ("unauthorized", "offline"))
    async with adb_server() as adb, serve(closed) as first, serve(mute) as second:
        server = await open_adb(port=adb.port)
        with pytest.raises(DeviceUnauthorized) as unauthorized:
            await server.connect(first.address)
        with pytest.raises(DeviceOffline) as offline:
            await server.connect(second.address)
        assert told(unauthorized.value, "en") != told(offline.value, "en")
        first.phone.set_fault("unauthorized", False)  # allowed, and the phone is there the next time
        async with asyncio.timeout(30):
            await adb.run("disconnect", first.address)
            await adb.connect(first.adb_port)
        assert (await server.device(first.address).look()).screen.awake


async def test_an_old_phone_tells_no_exit_codes_and_refuses_in_other_words() -> None:
    scenario = Scenario(phone=PhonePart(sdk=23, android="6.0", size=(360, 800)))
    async with adb_server() as adb, serve(scenario) as running, await open_adb(port=adb.port) as server:
        await server.connect(running.address)
        device = server.device(running.address)
        await device.launch(QQ)
        running.phone.set_fault("input_denied")
        with pytest.raises(InputDenied):
            await device.tap(Point(10, 10))
        refused = await adb.run("-s", running.address, "shell", "input", "tap", "1", "1")
        assert (refused.code, "requires INJECT_EVENTS permission" in refused.text) == (0, True)
