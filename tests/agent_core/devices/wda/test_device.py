"""An iPhone through WebDriverAgent: what it shows and what is done to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import pytest
from PIL import ImageChops

from agent_core.devices.base import Battery, Device, DeviceInfo, Key, ScreenState, System, Window, WindowKind
from agent_core.devices.wda import client
from agent_core.errors import (
    AppNotFound,
    CommandFailed,
    DeviceError,
    DeviceOffline,
    ScreenOff,
    ScreenshotFailed,
    TreeUnavailable,
)
from agent_core.geometry import Box, Point
from tests.agent_core.devices.wda.conftest import NOT_THERE, QQ, Bench

SPRINGBOARD = "com.apple.springboard"

# -- what it is


async def test_info(bench: Bench) -> None:
    device: Device = bench.device
    serial = f"wda:127.0.0.1:{bench.wda.port}"
    assert await device.info() == DeviceInfo(serial, "VP-1", (720, 1600), 17, "device", "tcp", System.IOS)
    assert (device.serial, device.system) == (serial, System.IOS)


async def test_properties_are_what_ios_can_answer(bench: Bench) -> None:
    found = await bench.device.properties("ro.build.version.release", "ro.product.model", "no.such")
    assert found == {"ro.build.version.release": "17.5.1", "ro.product.model": "iPhone", "no.such": ""}
    assert await bench.device.properties() == {}


async def test_battery(bench: Bench) -> None:
    assert await bench.device.battery() == Battery(87, True)


async def test_the_version_of_ios_stands_for_that_of_an_app(bench: Bench) -> None:
    assert await bench.device.app_version(QQ) == "iOS 17.5.1"
    before = bench.device.round_trips
    await bench.device.app_version(QQ)
    assert bench.device.round_trips == before


# -- which apps it has


async def test_known_apps_that_ios_has_a_state_of_are_kept_for_an_hour(bench: Bench) -> None:
    found = await bench.device.packages()
    assert QQ in found
    assert NOT_THERE not in found
    before = bench.device.round_trips
    await bench.time.sleep(3500)
    await bench.device.packages()
    assert bench.device.round_trips == before
    await bench.time.sleep(100)
    await bench.device.packages()
    assert bench.device.round_trips > before


async def test_an_app_that_ios_does_not_find_is_taken_out(bench: Bench) -> None:
    bench.wda.state_of_missing = 1  # what iOS says of an app that is not running
    assert NOT_THERE in await bench.device.packages()
    with pytest.raises(AppNotFound):
        await bench.device.launch(NOT_THERE)
    assert NOT_THERE not in await bench.device.packages()


@pytest.mark.parametrize("package", [NOT_THERE, "com.tencent.mobileqq", "; rm -rf /", ""])
async def test_an_app_that_is_not_there_is_not_launched(bench: Bench, package: str) -> None:
    with pytest.raises(AppNotFound):
        await bench.device.launch(package)
    assert bench.phone.report()["opened"] == []


async def test_launched_apps_are_in_front(bench: Bench) -> None:
    await bench.device.launch(QQ)
    assert await bench.device.window() == Window(QQ)
    await bench.device.key(Key.HOME)
    assert await bench.device.window() == Window(SPRINGBOARD)


async def test_apps_that_begin_afresh_are_ended_once(bench: Bench) -> None:
    await bench.open_chat()
    bench.device.start_apps_afresh()
    await bench.device.launch(QQ)
    await bench.device.key(Key.HOME)
    await bench.device.launch(QQ)
    assert bench.paths().count("/wda/apps/terminate") == 1
    assert not bench.phone.keyboard_shown()


async def test_an_app_of_a_developer_who_is_not_trusted(bench: Bench) -> None:
    bench.wda.untrusted.add(QQ)
    with pytest.raises(CommandFailed) as caught:
        await bench.device.launch(QQ)
    assert caught.value.key == "wda_untrusted"


async def test_a_locked_phone_launches_nothing(bench: Bench) -> None:
    bench.phone.set_fault("locked")
    with pytest.raises(CommandFailed) as caught:
        await bench.device.launch(QQ)
    assert caught.value.key == "locked_phone"


async def test_an_address_opens_its_page_in_its_own_app_alone(bench: Bench) -> None:
    await bench.open_chat()
    assert bench.phone.report()["chats_opened"] == ["11"]
    with pytest.raises(CommandFailed):
        await bench.device.open_url("mqqwpa://im/chat?uin=1", "com.tencent.xin")
    with pytest.raises(CommandFailed):
        await bench.device.open_url("no address", QQ)


# -- what it shows


@pytest.mark.parametrize("turned", [False, True])
async def test_pictures_are_what_the_phone_shows(bench: Bench, turned: bool) -> None:
    bench.wda.screen.turned = turned
    await bench.device.launch(QQ)
    frame = await bench.device.screenshot()
    shown = bench.wda.screen.picture(await bench.phone.shown())
    assert frame.size == ((1600, 720) if turned else (720, 1600))
    assert ImageChops.difference(frame.image, shown).getbbox() is None
    assert (await bench.device.screenshot()).digest == frame.digest
    await bench.device.key(Key.HOME)
    assert (await bench.device.screenshot()).digest != frame.digest


async def test_a_picture_and_the_look_take_three_calls(bench: Bench) -> None:
    await bench.device.launch(QQ)
    await bench.device.observe()
    before = bench.device.round_trips
    seen = await bench.device.observe()
    assert seen.look.window == Window(QQ)
    assert seen.look.screen == ScreenState(awake=True, locked=False)
    assert bench.device.round_trips == before + 3


async def test_black_pictures_are_refused(bench: Bench) -> None:
    bench.phone.set_fault("black")
    with pytest.raises(ScreenshotFailed) as caught:
        await bench.device.screenshot()
    assert caught.value.key == "black_screenshot"


async def test_a_picture_that_does_not_fit_the_window_is_refused(bench: Bench) -> None:
    bench.wda.screen.scale = 1
    await bench.device.screenshot()
    bench.wda.screen.scale, bench.wda.screen.turned = 2, True  # the device knows the old scale
    with pytest.raises(ScreenshotFailed) as caught:
        await bench.device.screenshot()
    assert caught.value.key == "wda_size"


@pytest.mark.parametrize("turned", [False, True])
async def test_nodes_have_their_boxes_in_pixels(bench: Bench, turned: bool) -> None:
    bench.wda.screen.turned = turned
    await bench.open_chat()
    width = bench.phone.size[0]
    expected = {}
    for node in await bench.phone.tree():
        left, top, right, bottom = node.box.as_tuple()
        box = Box(top, width - right, bottom, width - left) if turned else node.box
        if node.text:
            expected[box] = node.text
    found = {node.box: node.text or node.description for node in await bench.device.tree()}
    assert expected.items() <= found.items()
    assert "你好，请问几天能发货？" in expected.values()


async def test_an_empty_field_does_not_say_its_hint(bench: Bench) -> None:
    await bench.open_chat()
    (field,) = [node for node in await bench.device.tree() if node.class_name == "android.widget.EditText"]
    assert field.text == ""
    async with bench.device.keyboard() as keyboard:
        await keyboard.type("您好")
    (field,) = [node for node in await bench.device.tree() if node.class_name == "android.widget.EditText"]
    assert field.text == "您好"


@pytest.mark.parametrize("mode", ["failing", "slow"])
async def test_a_tree_that_cannot_be_had(bench: Bench, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.devices.wda.display.TREE_SECONDS", 0.3)
    bench.phone.set_tree(mode)
    with pytest.raises(TreeUnavailable):
        await bench.device.tree()


async def test_notifications_are_not_told(bench: Bench) -> None:
    with pytest.raises(CommandFailed) as caught:
        await bench.device.notifications()
    assert caught.value.key == "no_notifications"


async def test_a_dialog_in_front_is_in_the_tree_and_can_be_closed(bench: Bench) -> None:
    await bench.device.launch(QQ)
    bench.phone.set_fault("popup")
    close = [node for node in await bench.device.tree() if node.text == "关闭"]
    await bench.device.tap(close[0].box.center)
    assert not bench.phone.faults.popup
    assert await bench.device.window() == Window(QQ)


# -- locked and off


@pytest.mark.parametrize("fault", ["asleep", "locked"])
async def test_a_locked_phone_counts_as_off_until_it_is_woken(bench: Bench, fault: str) -> None:
    await bench.device.launch(QQ)
    bench.phone.set_fault(fault)
    assert await bench.device.screen() == ScreenState(awake=False, locked=True)
    assert (await bench.device.window()).kind is WindowKind.LOCK
    with pytest.raises(ScreenOff):
        await bench.device.observe()
    await bench.device.wake()
    assert await bench.device.screen() == ScreenState(awake=True, locked=False)
    assert (await bench.device.observe()).look.window == Window(QQ)


async def test_a_phone_that_is_off_gives_no_picture(bench: Bench) -> None:
    bench.phone.set_fault("asleep")
    with pytest.raises(ScreenOff):
        await bench.device.screenshot()


async def test_a_passcode_is_told(bench: Bench) -> None:
    bench.phone.set_fault("locked")
    bench.wda.passcode = True
    with pytest.raises(CommandFailed) as caught:
        await bench.device.wake()
    assert caught.value.key == "locked_phone"


async def test_waking_a_phone_that_is_awake_does_nothing(bench: Bench) -> None:
    await bench.device.wake()
    assert bench.paths() == ["/wda/locked"]


# -- touches


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("scale", [1, 2, 3])
async def test_every_pixel_is_met_whichever_way_the_phone_is_turned(bench: Bench, turned: bool, scale: int) -> None:
    bench.wda.screen.turned, bench.wda.screen.scale = turned, scale
    width, height = (1600, 720) if turned else (720, 1600)
    points = [Point(41, 77), Point(width // 3, height // 2 + 1), Point(width - 1, 100), Point(333, height - 61)]
    for point in points:
        await bench.device.tap(point)
    upright = [(719 - point.y, point.x) if turned else (point.x, point.y) for point in points]
    assert bench.taps() == upright


async def test_a_tap_is_one_call(bench: Bench) -> None:
    await bench.device.tap(Point(100, 300))
    before = bench.device.round_trips
    await bench.device.tap(Point(100, 300))
    assert bench.device.round_trips == before + 1


async def test_touches(bench: Bench) -> None:
    await bench.device.launch(QQ)
    await bench.device.double_tap(Point(600, 1000))
    assert bench.taps() == [(600, 1000)] * 2
    await bench.device.long_press(Point(600, 1000), 1.5)
    await bench.device.swipe(Point(360, 1200), Point(360, 500), 0.4)
    done = [(act["what"], act["detail"]) for act in bench.phone.report()["actions"]]
    assert ("long_press", "600,1000 600,1000 1.50") in done
    assert ("swipe", "360,1200 360,500 0.40") in done
    for seconds in (-1, 31):
        with pytest.raises(CommandFailed):
            await bench.device.swipe(Point(1, 1), Point(9, 9), seconds)


async def test_places_off_the_screen_are_refused(bench: Bench) -> None:
    with pytest.raises(CommandFailed):
        await bench.device.tap(Point(720, 100))
    assert bench.taps() == []


async def test_back_is_a_swipe_from_the_left_edge(bench: Bench) -> None:
    await bench.open_chat()
    await bench.device.key(Key.BACK)
    assert not bench.phone.keyboard_shown()
    texts = [node.text for node in await bench.device.tree()]
    assert "老客户A" in texts  # the list of chats
    await bench.device.key(Key.BACK)
    assert await bench.device.window() == Window(QQ)  # iOS leaves no app by it


@pytest.mark.parametrize("key", [Key.HOME, Key.APP_SWITCH])
async def test_keys_that_leave_the_app(bench: Bench, key: Key) -> None:
    await bench.device.launch(QQ)
    await bench.device.key(key)
    assert await bench.device.window() == Window(SPRINGBOARD)


# -- what goes wrong


async def _offline(act: Callable[[], Awaitable[object]]) -> DeviceOffline:
    with pytest.raises(DeviceOffline) as caught:
        await act()
    return caught.value


async def test_a_phone_that_goes_away_and_comes_back(bench: Bench) -> None:
    await bench.device.launch(QQ)
    bench.phone.set_fault("dropped")
    assert (await _offline(bench.device.look)).retried
    assert bench.time.slept[-3:] == [1, 2, 4]
    slept = len(bench.time.slept)
    await _offline(bench.device.look)
    assert len(bench.time.slept) == slept  # it is known to be away
    await _offline(lambda: bench.device.tap(Point(100, 300)))
    bench.phone.set_fault("dropped", False)
    assert await bench.device.window() == Window(QQ)
    assert bench.taps() == []


async def test_nobody_at_the_address(bench: Bench) -> None:
    await bench.wda.close()
    error = await _offline(lambda: bench.device.tap(Point(1, 300)))
    assert error.key == "wda_absent"
    assert error.may_repeat


async def test_what_is_no_webdriveragent_is_named(bench: Bench) -> None:
    with pytest.raises(DeviceError) as caught:
        await _other(bench.running.state_url).look()
    assert caught.value.key == "wda_strange"


def _other(url: str) -> Device:
    from agent_core.devices.wda.device import WdaDevice

    async def no_sleep(seconds: float) -> None:
        pass

    return WdaDevice("127.0.0.1", int(url.rpartition(":")[2]), sleep=no_sleep)


async def test_an_answer_that_does_not_come(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def mute() -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(bench.phone, "picture", lambda: mute().__anext__())
    monkeypatch.setattr(client, "READ_SECONDS", 0.2)
    with pytest.raises(CommandFailed) as caught:
        await bench.device._client.read("/screenshot", seconds=0.2)
    assert caught.value.key == "wda_late"


async def test_a_cancelled_read_leaves_the_phone_usable(bench: Bench) -> None:
    bench.phone.set_tree("slow")
    reading = asyncio.create_task(bench.device.tree())
    await asyncio.sleep(0)
    while not bench.wda.calls:
        await asyncio.sleep(0.01)
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading
    assert reading.cancelled()
    await bench.device.tap(Point(100, 300))
    assert bench.taps() == [(100, 300)]


# -- the session


async def test_reads_need_no_session_and_acts_join_the_one_that_is_there(bench: Bench) -> None:
    await bench.device.observe()
    assert bench.wda.session == ""
    await bench.device.tap(Point(100, 300))
    session = bench.wda.session
    await bench.another().tap(Point(200, 300))
    assert bench.wda.session == session
    assert len(bench.taps()) == 2


async def test_webdriveragent_does_not_wait_for_the_app_to_rest(bench: Bench) -> None:
    await bench.device.recover()
    (call,) = [call for call in bench.wda.calls if call.path.endswith("/appium/settings")]
    assert call.body == {"settings": {"waitForIdleTimeout": 0, "animationCoolOffTimeout": 0}}


async def test_a_lost_session_is_made_anew_for_reads(bench: Bench) -> None:
    await bench.device.battery()
    bench.wda.end_session()
    assert (await bench.device.battery()).percent == 87


async def test_an_act_in_a_lost_session_is_not_repeated_by_itself(bench: Bench) -> None:
    await bench.device.tap(Point(100, 300))
    bench.wda.end_session()
    with pytest.raises(CommandFailed) as caught:
        await bench.device.tap(Point(200, 300))
    assert caught.value.key == "wda_session_lost"
    assert caught.value.may_repeat
    assert bench.taps() == [(100, 300)]
    await bench.device.tap(Point(200, 300))
    assert bench.taps() == [(100, 300), (200, 300)]


async def test_apps_that_were_installed_meanwhile_are_seen_when_asked_for(bench: Bench) -> None:
    there = bench.phone.apps
    bench.phone.apps = {name: app for name, app in there.items() if "mobileqq" not in name}
    assert QQ not in await bench.device.packages()
    await bench.time.sleep(60)
    bench.phone.apps = {name: replace(app) for name, app in there.items()}
    assert QQ not in await bench.device.packages()
    assert QQ in await bench.device.packages(fresh=True)
