"""What holds of a ``Device`` whatever its system: each test runs on the same virtual phone behind each tool."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from agent_core.devices.base import Key, ScreenState, System, WindowKind, system_of
from agent_core.devices.pictures import digest
from agent_core.errors import (
    AppNotFound,
    CommandFailed,
    DeviceError,
    DeviceOffline,
    LeaseLost,
    ScreenOff,
    ScreenshotFailed,
    TreeUnavailable,
)
from agent_core.geometry import Point
from simulator.phone.apps.looks import DEFAULT_LOOKS, LOOKS
from tests.agent_core.devices.systems import SYSTEMS, Phone

pytestmark = pytest.mark.rotating(parts=2)  # each behaviour every day, on the systems whose turn it is

SETTINGS = {
    System.ANDROID: "com.android.settings",
    System.HARMONYOS: "com.huawei.hmos.settings",
    System.IOS: "com.apple.Preferences",
}
UNICODE = '您好, "it\'s" $HOME `id` \\n ; rm -rf / && 💰👨‍👩‍👧 100%\n第二行\n\n末行 '
ASCII = 'Hello, "it\'s" $HOME `id` \\n ; rm -rf / && 100% %s %%s '


@pytest.fixture(params=list(SYSTEMS), ids=str)
async def phone(request: pytest.FixtureRequest) -> AsyncIterator[Phone]:
    async with SYSTEMS[request.param]() as made:
        yield made


def taps(phone: Phone) -> list[tuple[float, float]]:
    return [(tap["x"], tap["y"]) for tap in phone.virtual.report()["taps"]]


def actions(phone: Phone, what: str) -> list[str]:
    return [action["detail"] for action in phone.virtual.report()["actions"] if action["what"] == what]


async def open_chat(phone: Phone) -> None:
    """The chat with contact 11, its field focused."""
    phone.virtual.show_chat("11")
    field = next(node for node in await phone.device.tree() if node.class_name.endswith("EditText"))
    await phone.device.tap(field.box.center)


def draft(phone: Phone) -> str:
    return phone.virtual.report()["drafts"].get("11", "")


# -- what it is


async def test_it_says_what_it_is(phone: Phone) -> None:
    info = await phone.device.info()
    assert (info.model, info.size, info.system) == ("VP-1", (1080, 2400), phone.device.system)
    assert info.sdk > 0
    assert system_of(info.serial) is phone.device.system
    listed = await phone.server.devices()
    assert [(entry.serial, entry.state, entry.system) for entry in listed] == [
        (phone.device.serial, "device", phone.device.system)
    ]


async def test_battery(phone: Phone) -> None:
    battery = await phone.device.battery()
    assert battery.percent == phone.virtual.scenario.phone.battery
    assert battery.charging is True
    assert battery.celsius == (None if phone.device.system is System.IOS else 28.5)  # WebDriverAgent does not tell


async def test_apps_and_versions(phone: Phone) -> None:
    packages = await phone.device.packages()
    assert phone.qq in packages
    assert SETTINGS[phone.device.system] in packages
    phone.need("app versions")
    assert await phone.device.app_version(phone.qq) == LOOKS[DEFAULT_LOOKS["qq"]].version
    assert await phone.device.app_version("com.example.none") is None
    for name in ("com.tencent; reboot", "x", "$(id).x"):
        with pytest.raises(AppNotFound):
            await phone.device.app_version(name)


async def test_properties_are_asked_by_names_alone(phone: Phone) -> None:
    assert await phone.device.properties() == {}
    assert await phone.device.properties("no.such", "neither.this") == {"no.such": "", "neither.this": ""}
    with pytest.raises(CommandFailed):
        await phone.device.properties("a; reboot")


# -- what it shows


async def test_a_picture_is_what_the_phone_shows(phone: Phone) -> None:
    shown = await phone.virtual.shown()
    frame = await phone.device.screenshot()
    assert frame.size == shown.size
    assert frame.image.mode == "RGB"
    # A picture may be a JPEG, so pixels may be off by a little.
    pairs = zip(frame.image.resize((90, 200)).tobytes(), shown.convert("RGB").resize((90, 200)).tobytes(), strict=True)
    assert max(abs(one - other) for one, other in pairs) <= 24
    assert frame.digest == digest(frame.image, phone.status_bar)


async def test_equal_screens_have_equal_digests_and_others_have_not(phone: Phone) -> None:
    first, second = await phone.device.screenshot(), await phone.device.screenshot()
    assert first.digest == second.digest
    assert first.taken_at < second.taken_at <= time.monotonic()
    phone.virtual.show_chat("11")
    assert (await phone.device.screenshot()).digest != first.digest


async def test_a_picture_comes_with_the_look_of_its_moment(phone: Phone) -> None:
    phone.virtual.show_chat("11")
    seen = await phone.device.observe()
    assert seen.look.window.package == phone.qq
    assert seen.look.screen == ScreenState(awake=True, locked=False)
    assert seen.look == await phone.device.look()
    assert seen.look.window == await phone.device.window()


async def test_the_tree_has_nodes_in_their_places(phone: Phone) -> None:
    phone.virtual.show_chat("11")
    nodes = await phone.device.tree()
    field = next(node for node in nodes if node.class_name.endswith("EditText"))
    assert 0 < field.box.top < field.box.bottom <= 2400
    assert {node.package for node in nodes} == {phone.qq}
    assert any(node.text == "11" for node in nodes)
    phone.need("keyboard focus")
    assert not field.focused
    await phone.device.tap(field.box.center)
    assert [n.class_name.endswith("EditText") for n in await phone.device.tree() if n.focused] == [True]


@pytest.mark.parametrize("mode", ["failing", "empty"])
async def test_a_tree_that_cannot_be_had(phone: Phone, mode: str) -> None:
    phone.virtual.show_chat("11")
    phone.virtual.set_tree(mode)
    if mode == "failing":
        with pytest.raises(TreeUnavailable):
            await phone.device.tree()
    else:
        assert [node.text for node in await phone.device.tree() if node.text] == []


async def test_notifications_are_told_or_it_is_said_that_they_are_not(phone: Phone) -> None:
    phone.virtual.receive("11", "在吗")
    if phone.tells_notifications:
        assert any(note.text == "在吗" for note in await phone.device.notifications())
    else:
        with pytest.raises(CommandFailed):
            await phone.device.notifications()


# -- what is done to it


async def test_an_app_comes_to_the_front(phone: Phone) -> None:
    await phone.device.launch(phone.qq)
    window = await phone.device.window()
    assert (window.package, window.kind) == (phone.qq, WindowKind.APP)
    await phone.device.launch(SETTINGS[phone.device.system])
    assert (await phone.device.window()).package == SETTINGS[phone.device.system]
    await phone.device.key(Key.HOME)
    window = await phone.device.window()
    assert window.kind is WindowKind.APP
    assert window.package not in (phone.qq, SETTINGS[phone.device.system])


async def test_an_app_that_is_not_there(phone: Phone) -> None:
    for name in ("com.example.none", "x; reboot", "$(id).com"):
        with pytest.raises(AppNotFound):
            await phone.device.launch(name)
    assert phone.virtual.report()["opened"] == []


async def test_an_app_begins_anew_once(phone: Phone) -> None:
    await open_chat(phone)
    phone.device.start_apps_afresh()
    await phone.device.launch(phone.qq)
    assert len(actions(phone, "force_stop")) == 1
    await phone.device.launch(phone.qq)
    assert len(actions(phone, "force_stop")) == 1


async def test_touches_arrive_where_they_should(phone: Phone) -> None:
    await phone.device.tap(Point(300, 500))
    assert taps(phone) == [(300, 500)]
    await phone.device.double_tap(Point(301, 501))
    assert taps(phone)[1:] == [(301, 501), (301, 501)]
    await phone.device.tap(Point(0, 0))  # the very corner is a place, too
    assert max(taps(phone)[-1]) <= 1
    for place in (Point(-1, 5), Point(5, 30_000)):
        with pytest.raises(CommandFailed):
            await phone.device.tap(place)
    assert len(taps(phone)) == 4


async def test_a_long_press_is_no_tap(phone: Phone) -> None:
    phone.virtual.show_chat("11")
    await phone.device.long_press(Point(540, 900), 1.0)
    await phone.device.swipe(Point(540, 901), Point(540, 901), 1.0)
    assert [detail.rpartition(" ")[0] for detail in actions(phone, "long_press")] == [
        "540,900 540,900",
        "540,901 540,901",
    ]
    assert taps(phone) == []


async def test_a_swipe_goes_its_way_in_its_time(phone: Phone) -> None:
    await phone.device.swipe(Point(540, 1800), Point(540, 600), 0.5)
    way, _, seconds = actions(phone, "swipe")[0].rpartition(" ")
    assert way == "540,1800 540,600"
    assert float(seconds) == pytest.approx(0.5, abs=0.02)
    with pytest.raises(CommandFailed):
        await phone.device.swipe(Point(1, 1), Point(2, 2), 31)


async def test_keys(phone: Phone) -> None:
    phone.need("key of Back")
    await open_chat(phone)
    await phone.device.key(Key.BACK)  # the keyboard first, then the chat
    await phone.device.key(Key.BACK)
    assert not phone.virtual.report()["keyboard_shown"]
    for key in (Key.ENTER, Key.DELETE, Key.APP_SWITCH, Key.HOME):
        await phone.device.key(key)
    assert actions(phone, "key") == [
        "BACK", "BACK", "ENTER", "DEL", "APP_SWITCH", "HOME"
    ]  # fmt: skip


async def test_the_notification_shade_is_told(phone: Phone) -> None:
    phone.need("shade")
    await phone.device.swipe(Point(540, 5), Point(540, 1500), 0.3)
    assert (await phone.device.window()).kind is WindowKind.SHADE


async def test_an_app_opens_an_address_of_its_own(phone: Phone) -> None:
    await phone.device.open_url("mqqwpa://im/chat?chat_type=wpa&uin=20110011", phone.qq)
    assert phone.virtual.report()["chats_opened"] == ["11"]
    for url in ("no address", "other://x"):
        with pytest.raises(CommandFailed):
            await phone.device.open_url(url, phone.qq)


# -- the keyboard


async def test_any_text_is_typed_as_it_is_and_a_field_is_emptied(phone: Phone) -> None:
    text, letter = (ASCII, "z") if "Unicode" in phone.lacks else (UNICODE, "字")
    await open_chat(phone)
    async with phone.device.keyboard() as keyboard:
        await keyboard.type(text)
        assert draft(phone) == text
        await keyboard.confirm(arrived=True)
        await keyboard.clear()
        assert draft(phone) == ""
        await keyboard.type("")
        await keyboard.type("plain")
        await keyboard.type(letter * 10_000)
        await keyboard.key(Key.DELETE)
        assert draft(phone) == "plain" + letter * 9999
    assert phone.leftovers() == []
    assert phone.virtual.report()["sent"] == {}


async def test_nested_keyboards_are_one(phone: Phone) -> None:
    await open_chat(phone)
    async with phone.device.keyboard() as outer:
        async with phone.device.keyboard() as inner:
            await inner.type("a")
        await outer.type("b")
    assert draft(phone) == "ab"
    assert phone.leftovers() == []


async def test_the_keyboard_taps_too(phone: Phone) -> None:
    async with phone.device.keyboard() as keyboard:
        await keyboard.tap(Point(300, 500))
    assert taps(phone) == [(300, 500)]


async def test_who_lost_the_keyboard_types_nothing(phone: Phone) -> None:
    await open_chat(phone)
    other = phone.server.device(phone.device.serial)
    async with phone.device.keyboard() as late:
        await late.type("before")
        await other.recover()
        async with other.keyboard() as now:
            for act in (late.type("late"), late.tap(Point(5, 5)), late.key(Key.ENTER), late.clear()):
                with pytest.raises(LeaseLost):
                    await act
            await now.type(" after")
    await other.close()
    assert draft(phone) == "before after"


async def test_a_field_that_takes_nothing(phone: Phone) -> None:
    phone.need("keyboard that types nothing")
    await open_chat(phone)
    phone.virtual.set_fault("stuck_keyboard")
    async with phone.device.keyboard() as keyboard:
        await keyboard.type("lost")  # no error says that it was typed
    assert draft(phone) == ""


# -- on, off, locked


async def test_a_screen_that_is_off(phone: Phone) -> None:
    phone.virtual.set_fault("asleep")
    assert (await phone.device.screen()).awake is False
    with pytest.raises(ScreenOff):
        await phone.device.observe()
    with pytest.raises(ScreenOff):
        await phone.device.screenshot()
    await phone.device.wake()
    assert await phone.device.screen() == ScreenState(awake=True, locked=False)
    await phone.device.observe()


async def test_a_locked_phone_is_opened(phone: Phone) -> None:
    phone.virtual.set_fault("asleep")
    phone.virtual.set_fault("locked")
    assert (await phone.device.look()).window.kind is WindowKind.LOCK
    await phone.device.wake()
    assert await phone.device.screen() == ScreenState(awake=True, locked=False)


async def test_the_screen_stays_on_while_it_must(phone: Phone) -> None:
    phone.need("staying awake")
    async with phone.device.kept_awake(), phone.device.kept_awake():
        assert phone.leftovers()
    assert phone.leftovers() == []


async def test_what_a_dead_run_left_is_put_back(phone: Phone) -> None:
    phone.need("staying awake")
    dead = phone.server.device(phone.device.serial)
    holds = [dead.kept_awake(), dead.keyboard()]
    for hold in holds:
        await hold.__aenter__()
    assert phone.leftovers()
    await phone.device.recover()
    assert phone.leftovers() == []
    for hold in reversed(holds):
        await hold.__aexit__(None, None, None)
    await dead.close()


async def test_touches_of_nobody_are_not_seen(phone: Phone) -> None:
    async with phone.device.touch_watch() as watch:
        await phone.device.tap(Point(300, 500))
        watch.forget()
        assert not watch.touched


# -- what goes wrong


async def test_a_black_picture_is_refused(phone: Phone) -> None:
    phone.virtual.set_fault("black")
    with pytest.raises(ScreenshotFailed):
        await phone.device.screenshot()
    phone.virtual.set_fault("black", False)
    await phone.device.screenshot()


async def test_a_phone_that_goes_away_and_comes_back(phone: Phone) -> None:
    await open_chat(phone)
    phone.virtual.set_fault("dropped")
    with pytest.raises(DeviceOffline):
        await phone.device.look()
    with pytest.raises(DeviceError):
        await phone.device.tap(Point(300, 500))
    phone.virtual.set_fault("dropped", False)
    async with asyncio.timeout(30):
        while True:  # adb needs a moment to see it
            try:
                await phone.device.look()
                break
            except DeviceOffline:
                await asyncio.sleep(0.2)
    await phone.device.tap(Point(300, 501))
    assert (300, 501) in taps(phone)
    assert (300, 500) not in taps(phone)


async def test_a_phone_that_goes_away_in_the_middle(phone: Phone) -> None:
    phone.virtual.set_tree("slow")
    phone.virtual.show_chat("11")
    trees = phone.virtual.report()["trees"]
    reading = asyncio.create_task(phone.device.tree())
    while phone.virtual.report()["trees"] == trees:
        await asyncio.sleep(0.01)
    phone.virtual.set_fault("dropped")
    with pytest.raises(DeviceError):
        await reading


async def test_what_is_cancelled_leaves_nothing_behind(phone: Phone) -> None:
    await open_chat(phone)
    entered = asyncio.Event()

    async def type_for_ever() -> None:
        async with phone.device.kept_awake(), phone.device.keyboard() as keyboard:
            entered.set()
            while True:
                await keyboard.type("x")

    task = asyncio.create_task(type_for_ever())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert phone.leftovers() == []
    assert set(draft(phone)) <= {"x"}
    await phone.device.screenshot()


async def test_every_call_is_counted(phone: Phone) -> None:
    await phone.device.look()
    before = phone.device.round_trips
    await phone.device.look()
    assert phone.device.round_trips == before + phone.look_calls
