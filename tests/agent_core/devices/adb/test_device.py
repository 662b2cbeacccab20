"""The phone through adb: what it shows and what is done to it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_core.apps.profile import profile
from agent_core.devices.adb.capture import Way
from agent_core.devices.base import DeviceInfo, Key, ScreenState, Window, WindowKind
from agent_core.devices.pictures import digest
from agent_core.errors import (
    AppNotFound,
    CommandFailed,
    DeviceError,
    DeviceOffline,
    InputDenied,
    ScreenOff,
    ScreenshotFailed,
    TreeUnavailable,
)
from agent_core.geometry import Point
from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from tests.agent_core.devices.adb.conftest import QQ, Bench

VERSION = LOOKS[DEFAULT_LOOKS["qq"]].version

# -- what it is


async def test_info(bench: Bench) -> None:
    info = await bench.device.info()
    assert info == DeviceInfo(bench.running.address, "VP-1", (1080, 2400), 33, "device", "tcp")


async def test_properties(bench: Bench) -> None:
    found = await bench.device.properties("ro.build.version.release", "no.such", "ro.serialno")
    assert found == {"ro.build.version.release": "13", "no.such": "", "ro.serialno": "VPHONE0001"}
    assert await bench.device.properties() == {}
    with pytest.raises(CommandFailed):
        await bench.device.properties("a; reboot")


async def test_packages_are_kept_for_an_hour(bench: Bench) -> None:
    assert QQ in await bench.device.packages()
    before = bench.device.round_trips
    await bench.time.sleep(3500)
    await bench.device.packages()
    assert bench.device.round_trips == before
    await bench.time.sleep(100)
    await bench.device.packages()
    assert bench.device.round_trips == before + 1


async def test_an_app_that_was_installed_or_removed_meanwhile_is_found_out(bench: Bench) -> None:
    assert "com.example.new" not in await bench.device.packages()
    await bench.time.sleep(60)
    bench.phone.apps = {**bench.phone.apps, "com.example.new": replace(bench.phone.apps[QQ], package="com.example.new")}
    assert "com.example.new" not in await bench.device.packages()
    assert "com.example.new" in await bench.device.packages(fresh=True)
    before = bench.device.round_trips
    await bench.device.packages(fresh=True)  # it was just read
    assert bench.device.round_trips == before
    bench.phone.apps = {name: app for name, app in bench.phone.apps.items() if name != QQ}
    with pytest.raises(AppNotFound):
        await bench.device.launch(QQ)
    assert QQ not in await bench.device.packages()


async def test_the_next_run_on_a_phone_does_not_read_its_apps_again(bench: Bench) -> None:
    first, second = (bench.server.device(bench.device.serial) for _ in range(2))
    assert await first.packages() == await second.packages()
    assert (first.round_trips, second.round_trips) == (1, 0)


async def test_version_of_an_app(bench: Bench) -> None:
    before = bench.device.round_trips
    assert await bench.device.app_version(QQ) == VERSION
    assert await bench.device.app_version(QQ) == VERSION
    assert bench.device.round_trips == before + 1
    assert await bench.device.app_version("com.not.there") is None


@pytest.mark.parametrize("listed", [True, False], ids=["the list was read anew", "an hour has passed"])
async def test_version_of_an_app_that_was_updated(bench: Bench, listed: bool) -> None:
    await bench.device.packages()
    assert await bench.device.app_version(QQ) == VERSION
    bench.phone.apps = {**bench.phone.apps, QQ: replace(bench.phone.apps[QQ], version="9.9.9")}
    assert await bench.device.app_version(QQ) == VERSION
    await bench.time.sleep(3600)
    if listed:
        await bench.device.packages()
    assert await bench.device.app_version(QQ) == "9.9.9"


# -- what it shows


async def test_a_look_is_one_call(bench: Bench) -> None:
    await bench.device.launch(QQ)
    before = bench.device.round_trips
    look = await bench.device.look()
    assert bench.device.round_trips == before + 1
    assert look.window == Window(QQ, f"{QQ}.activity.SplashActivity")
    assert look.screen == ScreenState(awake=True, locked=False)


async def test_shade_lock_and_sleep_are_told_apart(bench: Bench) -> None:
    await bench.phone.open_shade(True)
    assert (await bench.device.window()).kind is WindowKind.SHADE
    await bench.phone.open_shade(False)
    bench.phone.set_fault("locked")
    assert (await bench.device.window()).kind is WindowKind.LOCK
    assert await bench.device.screen() == ScreenState(awake=True, locked=True)
    bench.phone.set_fault("asleep")
    assert await bench.device.screen() == ScreenState(awake=False, locked=True)


async def test_pictures_are_what_the_phone_shows_whichever_way_they_came(bench: Bench) -> None:
    frames = [await bench.device.screenshot() for _ in range(6)]
    shown = await bench.phone.picture()
    assert all(frame.image.tobytes() == shown.tobytes() for frame in frames)
    assert len({frame.digest for frame in frames}) == 1
    assert [frame.taken_at for frame in frames] == sorted(frame.taken_at for frame in frames)
    captures = [call for call in bench.calls if call.startswith("exec:screencap")]
    assert captures[:4].count("exec:screencap -p") == 2
    assert captures[:4].count("exec:screencap") == 2
    assert captures[4] == ("exec:screencap -p" if bench.device.capture_way is Way.PNG else "exec:screencap")


async def test_pictures_that_are_taken_at_once_do_not_write_over_each_other(bench: Bench) -> None:
    frames = [await bench.device.screenshot() for _ in range(5)]  # both ways are known
    known = {frames[-1].digest}
    for act in (bench.device.launch(QQ), bench.device.key(Key.HOME), bench.device.launch(QQ)):
        await act
        known.add((await bench.server.device(bench.device.serial).screenshot()).digest)
        frames += await asyncio.gather(*(bench.device.screenshot() for _ in range(3)))
    assert len(known) == 2
    assert {digest(frame.image) for frame in frames} == {frame.digest for frame in frames} == known


async def test_a_later_run_knows_the_faster_way_already(bench: Bench) -> None:
    first, later = (bench.server.device(bench.device.serial) for _ in range(2))
    for _ in range(4):
        await first.screenshot()
    begun = len(bench.calls)
    faster = first.capture_way
    await later.screenshot()
    assert bench.calls[begun:] == ["exec:screencap -p" if faster is Way.PNG else "exec:screencap"]
    other = bench.server.device("another-phone")
    assert other.capture_way is Way.PNG  # nothing is known of it


async def test_another_page_is_another_digest(bench: Bench) -> None:
    home = await bench.device.screenshot()
    await bench.device.launch(QQ)
    assert (await bench.device.screenshot()).digest != home.digest


async def test_observing_is_one_call(bench: Bench) -> None:
    await bench.device.launch(QQ)
    before = bench.device.round_trips
    seen = await bench.device.observe()
    assert bench.device.round_trips == before + 1
    assert seen.look.window.package == QQ
    assert seen.frame.digest == (await bench.device.screenshot()).digest


async def test_a_black_picture_is_refused_after_the_retries(bench: Bench) -> None:
    bench.phone.set_fault("black")
    with pytest.raises(ScreenshotFailed, match="black"):
        await bench.device.screenshot()
    assert bench.time.slept == [1, 2]


async def test_black_for_a_moment_is_tried_again(bench: Bench) -> None:
    bench.phone.set_fault("black")

    async def lighten() -> None:
        bench.phone.set_fault("black", False)

    bench.time.then = lighten
    assert (await bench.device.screenshot()).size == (1080, 2400)


async def test_a_screen_that_is_off_is_said_at_once(bench: Bench) -> None:
    bench.phone.set_fault("asleep")
    with pytest.raises(ScreenOff):
        await bench.device.screenshot()
    with pytest.raises(ScreenOff):
        await bench.device.observe()
    assert bench.time.slept == []


async def test_tree(bench: Bench) -> None:
    await bench.device.launch(QQ)
    nodes = await bench.device.tree()
    assert any(node.text == "11" for node in nodes)
    assert all(0 <= node.box.left < node.box.right <= 1080 for node in nodes)


async def test_a_tree_that_fails_or_is_slow(bench: Bench) -> None:
    bench.phone.set_tree("failing")
    with pytest.raises(TreeUnavailable, match="idle state"):
        await bench.device.tree()
    bench.phone.set_tree("slow")
    hasty = bench.another()
    hasty.tree_seconds = 0.05
    with pytest.raises(TreeUnavailable, match=r"over 0\.05 s"):
        await hasty.tree()
    assert bench.time.slept == []  # the picture is used instead: nothing is tried again


async def test_notifications(bench: Bench) -> None:
    bench.phone.receive("11", "打印机 (型号 X1)\n怎么连？")
    found = [note for note in await bench.device.notifications() if note.title == "11(2条新消息)"]  # one waited before
    assert found[-1].package == QQ
    assert any("打印机 (型号 X1)" in note.text for note in found)


# -- what is done to it


async def test_taps_land_where_they_should(bench: Bench) -> None:
    await bench.device.tap(Point(100, 200))
    await bench.device.double_tap(Point(5, 2399))
    taps = [(tap["x"], tap["y"]) for tap in bench.phone.report()["taps"]]
    assert taps == [(100, 200), (5, 2399), (5, 2399)]


async def test_swipes_presses_and_keys(bench: Bench) -> None:
    await bench.device.swipe(Point(500, 1800), Point(500, 600), 0.25)
    await bench.device.long_press(Point(10, 20), 1.5)
    for key in Key:
        await bench.device.key(key)
    actions = [(action["what"], action["detail"]) for action in bench.phone.report()["actions"]]
    assert actions[:2] == [("swipe", "500,1800 500,600 0.25"), ("long_press", "10,20 10,20 1.50")]
    assert [detail for what, detail in actions if what == "key"] == [key.value for key in Key]


@pytest.mark.parametrize("point", [Point(-1, 5), Point(5, 20_000)])
async def test_a_point_that_no_screen_has(bench: Bench, point: Point) -> None:
    with pytest.raises(CommandFailed):
        await bench.device.tap(point)
    assert bench.phone.report()["taps"] == []


async def test_refused_input_is_said_and_not_tried_again(bench: Bench) -> None:
    bench.phone.set_fault("input_denied")
    with pytest.raises(InputDenied, match="USB debugging"):
        await bench.device.tap(Point(1, 1))
    assert sum("input tap" in call for call in bench.calls) == 1
    assert bench.time.slept == []


async def test_launch_waits_until_the_app_is_in_front(bench: Bench) -> None:
    await bench.device.launch(QQ)
    assert bench.phone.window().package == QQ
    await bench.device.key(Key.HOME)
    before = bench.device.round_trips
    await bench.device.launch(QQ)  # the activity is known by now
    assert bench.device.round_trips == before + 1


@pytest.mark.parametrize("package", ["com.not.there", "com.tencent.mobileqqi", "com.android.adbkeyboard"])
async def test_an_app_that_is_not_there_or_cannot_be_started(bench: Bench, package: str) -> None:
    with pytest.raises(AppNotFound):
        await bench.device.launch(package)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("package", ["", "QQ", "com.a;reboot", "com.a b", "com.a\n.b", "-n", "com.a/.B", "a." * 200])
async def test_a_name_that_is_no_package_never_reaches_the_phone(bench: Bench, package: str) -> None:
    before = list(bench.calls)
    with pytest.raises(AppNotFound):
        await bench.device.launch(package)
    assert bench.calls == before


async def test_an_app_that_does_not_come_to_the_front(bench: Bench) -> None:
    bench.phone.set_fault("locked")
    with pytest.raises(CommandFailed, match="lock window"):
        await bench.device.launch(QQ)
    assert sum(bench.time.slept) == pytest.approx(10, abs=1)
    assert sum("am start" in call for call in bench.calls) == 1


async def test_open_url(bench: Bench) -> None:
    url = profile("qq").chat_url_of("20110011")
    assert url
    before = bench.device.round_trips
    await bench.device.open_url(url, QQ)
    assert bench.device.round_trips == before + 1
    assert bench.phone.report()["chats_opened"] == ["11"]
    assert bench.phone.report()["window"]["package"] == QQ


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("nobody://takes.this", QQ),
        ("mqqwpa://im/chat?uin=20110011", "com.tencent.mm"),  # another app's address
        ("mqqwpa://im/chat?uin=20110011", "com.not.there"),
        ("no address", QQ),
        ("mqqwpa://im/chat?uin=1; input tap 1 2", QQ),
    ],
)
async def test_a_url_that_the_app_does_not_open(bench: Bench, url: str, package: str) -> None:
    with pytest.raises(CommandFailed):
        await bench.device.open_url(url, package)
    assert bench.phone.report()["chats_opened"] == []


async def test_a_url_is_quoted(bench: Bench) -> None:
    await bench.device.open_url("mqqwpa://im/chat?uin=20110011&x=$(input;tap)'`reboot`", QQ)
    actions = bench.phone.report()["actions"]
    assert [item["detail"] for item in actions if item["what"] == "open_url"] == [
        "mqqwpa://im/chat?uin=20110011&x=$(input;tap)'`reboot`"
    ]


async def test_a_package_that_is_none(bench: Bench) -> None:
    with pytest.raises(AppNotFound):
        await bench.device.open_url("mqqwpa://im/chat?uin=1", "a b; reboot")


# -- waking


async def test_wake_and_unlock(bench: Bench) -> None:
    bench.phone.set_fault("asleep")
    bench.phone.set_fault("locked")
    await bench.device.wake()
    assert bench.phone.screen() == ScreenState(awake=True, locked=False)


async def test_wake_does_nothing_to_a_phone_that_is_awake(bench: Bench) -> None:
    before = bench.device.round_trips
    await bench.device.wake()
    assert bench.device.round_trips == before + 1


STAY_ON, TIMEOUT = ("global", "stay_on_while_plugged_in"), ("system", "screen_off_timeout")
MARKER = ("global", "phonedesk_previous_awake")


async def test_kept_awake_inside_and_as_before_outside(bench: Bench) -> None:
    before = dict(bench.phone.settings)
    async with bench.device.kept_awake():
        async with bench.device.kept_awake():
            assert bench.phone.settings[STAY_ON] == "7"
        assert bench.phone.settings[STAY_ON] == "7"
        assert bench.phone.settings[TIMEOUT] == "1800000"
    assert bench.phone.settings == before


async def test_a_setting_that_was_not_there_is_gone_again(bench: Bench) -> None:
    bench.phone.set_setting(*STAY_ON, None)
    async with bench.device.kept_awake():
        assert bench.phone.settings[STAY_ON] == "7"
    assert STAY_ON not in bench.phone.settings


async def test_the_screen_may_sleep_again_when_a_run_is_cancelled(bench: Bench) -> None:
    before = dict(bench.phone.settings)
    inside = asyncio.Event()

    async def run() -> None:
        async with bench.device.kept_awake():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.phone.settings == before


async def test_what_a_dead_run_set_is_put_back_by_the_next(bench: Bench) -> None:
    before = dict(bench.phone.settings)
    dead = bench.another().kept_awake()
    await dead.__aenter__()  # and never left
    assert MARKER in bench.phone.settings
    assert await bench.device.restore_awake()
    assert bench.phone.settings == before
    assert not await bench.device.restore_awake()


async def test_who_lost_the_phone_leaves_it_on_for_who_has_it(bench: Bench) -> None:
    before = dict(bench.phone.settings)
    lost = bench.another().kept_awake()
    await lost.__aenter__()
    async with bench.device.kept_awake():
        await lost.__aexit__(None, None, None)
        assert bench.phone.settings[STAY_ON] == "7"
        assert bench.phone.settings[TIMEOUT] == "1800000"
    assert bench.phone.settings == before


# -- the way to it


async def test_a_tap_that_may_have_landed_is_not_repeated(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    taps: list[float] = []

    async def tap_and_break(x: float, y: float) -> None:
        taps.append(x)
        assert bench.phone.link is not None
        bench.phone.link.drop()

    monkeypatch.setattr(bench.phone, "tap", tap_and_break)
    await bench.device.look()
    with pytest.raises(DeviceOffline):
        await bench.device.tap(Point(7, 7))
    assert taps == [7]
    assert bench.time.slept == []


async def test_a_phone_that_went_away(bench: Bench) -> None:
    bench.phone.set_fault("dropped")
    with pytest.raises(DeviceError) as caught:
        await bench.device.tap(Point(1, 1))
    assert isinstance(caught.value, DeviceOffline)
    assert bench.phone.report()["taps"] == []


async def test_a_phone_that_comes_back_while_it_is_waited_for(bench: Bench) -> None:
    bench.phone.set_fault("dropped")
    with pytest.raises(DeviceOffline):
        await bench.device.look()
    bench.time.slept.clear()

    async def attach() -> None:
        bench.phone.set_fault("dropped", False)
        await bench.server.connect(bench.running.address)

    bench.time.then = attach
    assert (await bench.device.look()).screen.awake
    assert bench.time.slept == [1]
