"""Setting up a phone for good, and putting back exactly what was there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_core.devices.adb.brands import brand_of, owner_steps
from agent_core.devices.adb.server import AdbServer, open_adb
from agent_core.devices.adb.setup import MARKER, PhoneSetup, check_keyboard_file
from agent_core.devices.adb.transport import Transport
from agent_core.errors import (
    CommandFailed,
    DeviceError,
    DeviceOffline,
    InputDenied,
    InputRejected,
    SettingsDenied,
)
from agent_core.geometry import Point
from agent_core.texts import LANGUAGES, told
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Faults, KeyboardPart, PhonePart, Scenario
from simulator.phone.server import serve
from tests.agent_core.devices.adb.conftest import ADB_KEYBOARD, SOGOU
from tests.support.adb import AdbServerProcess, adb_server
from tests.support.apk import keyboard_apk

Settings = dict[tuple[str, str], str]
WINDOW, AWAKE = ("global", "window_animation_scale"), ("global", "stay_on_while_plugged_in")


class WatchedPhone(VirtualPhone):
    """Calls ``then`` before each change of a setting."""

    then: Callable[[str], None] | None = None

    def set_setting(self, namespace: str, key: str, value: str | None) -> None:
        if self.then is not None:
            self.then(key)
        super().set_setting(namespace, key, value)


@dataclass
class Desk:
    server: AdbServer
    address: str
    phone: WatchedPhone
    apk: Path

    def setup(self) -> PhoneSetup:
        """As a process that knows nothing of an earlier one would have it."""
        transport = Transport(self.server.host, self.server.port, self.address, sleep=lambda _: asyncio.sleep(0))
        return PhoneSetup(transport)

    def state(self) -> tuple[Settings, tuple[str, ...], tuple[str, ...]]:
        return dict(self.phone.settings), tuple(self.phone.input_methods), tuple(sorted(self.phone.apps))


@pytest.fixture(scope="module")
def adb() -> object:
    with adb_server() as server:
        yield server


@asynccontextmanager
async def desk(
    adb: AdbServerProcess, folder: Path, brand: str = "Xiaomi", *, faults: Faults | None = None
) -> AsyncIterator[Desk]:
    """A phone without ADB Keyboard, whose owner has chosen some settings."""
    scenario = Scenario(
        phone=PhonePart(brand=brand), keyboard=KeyboardPart(adb_installed=False), faults=faults or Faults()
    )
    phone = WatchedPhone(scenario)
    phone.set_setting(*WINDOW, "0.5")
    phone.set_setting(*AWAKE, "8")
    async with serve(phone=phone) as running:
        server = await open_adb(port=adb.port)
        await server.connect(running.address)
        yield Desk(server, running.address, phone, keyboard_apk(folder / "keyboard.apk"))


async def test_what_was_set_up_is_put_back_exactly(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.state()
        planned = await here.setup().plan(here.apk)
        assert here.state() == before
        report = await here.setup().apply(here.apk)
        assert report == replace(planned, input_denied=False)
        assert planned.input_denied is None
        assert report.keyboard
        assert report.brand == "xiaomi"
        assert {change.key: (change.old, change.new) for change in report.changes} == {
            "keyboard_app": ("absent", "installed"),
            "keyboard": ("disabled", "enabled"),
            "stay_awake": ("8", "15"),  # what the owner chose stays among it
            "window_animations": ("0.5", "0"),
            "transition_animations": ("null", "0"),
            "animator_durations": ("null", "0"),
        }
        assert ADB_KEYBOARD in here.phone.settings["secure", "enabled_input_methods"]
        assert here.phone.report()["input_method"] != ADB_KEYBOARD  # allowed, not chosen
        assert (await here.setup().apply(here.apk)).changes == ()
        undone = await here.setup().undo()
        assert (len(undone.changes), undone.left) == (6, ())
        assert here.state() == before
        assert (await here.setup().undo()).changes == ()


async def test_what_the_owner_changed_since_is_left(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path) as here:
        await here.setup().apply(here.apk)
        here.phone.set_setting(*WINDOW, "2.0")
        here.phone.choose_input_method(ADB_KEYBOARD)
        undone = await here.setup().undo()
        assert [change.key for change in undone.left] == ["window_animations", "keyboard", "keyboard_app"]
        assert here.phone.settings[WINDOW] == "2.0"
        assert here.phone.report()["input_method"] == ADB_KEYBOARD
        assert here.phone.settings[AWAKE] == "8"
        assert set(json.loads(here.phone.settings["global", MARKER])) == {"keyboard_app", "keyboard"}
        here.phone.choose_input_method(SOGOU)
        undone = await here.setup().undo()
        assert [change.key for change in undone.changes] == ["keyboard", "keyboard_app"]
        assert undone.left == ()
        assert ADB_KEYBOARD.partition("/")[0] not in here.phone.apps
        assert ("global", MARKER) not in here.phone.settings


async def test_what_the_phone_does_not_put_back_stays_stored(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.state()
        await here.setup().apply(here.apk)
        put = here.phone.set_setting

        def ignore(namespace: str, key: str, value: str | None) -> None:
            if (namespace, key) != WINDOW:
                put(namespace, key, value)

        here.phone.set_setting = ignore  # type: ignore[method-assign]
        with pytest.raises(SettingsDenied):
            await here.setup().undo()
        assert "window_animations" in json.loads(here.phone.settings["global", MARKER])
        here.phone.set_setting = put  # type: ignore[method-assign]
        await here.setup().undo()
        assert here.state() == before


async def test_a_plan_does_nothing_to_the_phone(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.phone.report()["actions"]
        await here.setup().plan(here.apk)
        assert here.phone.report()["actions"] == before


async def test_a_second_setup_puts_back_what_was_there_at_its_time(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path) as here:
        await here.setup().apply()
        here.phone.set_setting(*WINDOW, "1.5")
        assert [change.key for change in (await here.setup().apply()).changes] == ["window_animations"]
        await here.setup().undo()
        assert (here.phone.settings[WINDOW], here.phone.settings[AWAKE]) == ("1.5", "8")


@pytest.mark.parametrize("at", ["enabled_input_methods", "stay_on_while_plugged_in", "animator_duration_scale"])
async def test_undo_after_a_crash_in_the_middle(adb: AdbServerProcess, tmp_path: Path, at: str) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.state()
        stored = []

        def die(key: str) -> None:
            if key == at:
                stored.append(json.loads(here.phone.settings["global", MARKER]))
                here.phone.set_fault("dropped")

        here.phone.then = die
        with pytest.raises(DeviceOffline):
            await here.setup().apply(here.apk)
        here.phone.then = None
        assert here.state() != before
        here.phone.set_fault("dropped", False)
        await here.server.connect(here.address)
        assert set(stored[0]) >= {"keyboard_app", "stay_awake", "animator_durations"}  # before it was changed
        await here.setup().undo()
        assert here.state() == before


@pytest.mark.parametrize("at", [MARKER, "enabled_input_methods", "animator_duration_scale"])
async def test_a_setup_that_is_cancelled_is_taken_back(adb: AdbServerProcess, tmp_path: Path, at: str) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.state()
        task = asyncio.create_task(here.setup().apply(here.apk))

        def cancel(key: str) -> None:
            if key == at:
                here.phone.then = None
                task.cancel()

        here.phone.then = cancel
        with pytest.raises(asyncio.CancelledError):
            await task
        assert here.phone.then is None
        assert here.state() == before


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("settings_denied", SettingsDenied, "USB debugging (Security settings)"),
        ("ime_refused", SettingsDenied, "USB debugging (Security settings)"),
        ("install_denied", CommandFailed, "Install via USB"),
    ],
)
async def test_a_phone_that_refuses_is_left_as_it_was(
    adb: AdbServerProcess, tmp_path: Path, fault: str, error: type[DeviceError], says: str
) -> None:
    async with desk(adb, tmp_path, faults=Faults.model_validate({fault: True})) as here:
        before = here.state()
        with pytest.raises(error) as refused:
            await here.setup().apply(here.apk)
        assert here.state() == before
        assert says in told(refused.value, "en")
        assert "小米账号" in told(refused.value, "zh") or "USB 安装" in told(refused.value, "zh")


async def test_a_phone_that_ignores_a_change_without_a_word_is_left_as_it_was(
    adb: AdbServerProcess, tmp_path: Path
) -> None:
    async with desk(adb, tmp_path) as here:
        before = here.state()

        def forget(_: str) -> None:
            here.phone.settings.pop(("global", "transition_animation_scale"), None)

        here.phone.then = forget
        with pytest.raises(SettingsDenied):
            await here.setup().apply()
        here.phone.then = None
        assert here.state() == before


async def test_refused_taps_and_keyboards_are_explained_by_brand(adb: AdbServerProcess, tmp_path: Path) -> None:
    async with desk(adb, tmp_path, "vivo", faults=Faults(input_denied=True)) as here:
        report = await here.setup().apply(here.apk)
        assert report.input_denied
        device = here.server.device(here.address)
        with pytest.raises(InputDenied) as denied:
            await device.tap(Point(10, 10))
        assert "USB simulated tap" in told(denied.value, "en")
        assert "USB 模拟点击" in told(denied.value, "zh")
        here.phone.faults.ime_refused = "set"
        async with device.keyboard() as keyboard:
            with pytest.raises(InputDenied) as refused:
                await keyboard.type("你好")
        assert "USB simulated tap" in told(refused.value, "en")


def test_only_adb_keyboard_is_taken_for_it(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-16-le"):
        check_keyboard_file(keyboard_apk(tmp_path / "good.apk", encoding=encoding))
    (tmp_path / "text.apk").write_text("no ZIP")
    keyboard_apk(tmp_path / "other.apk", "com.example.other")
    for name, key in (("none.apk", "no_apk"), ("text.apk", "not_an_apk"), ("other.apk", "another_apk")):
        with pytest.raises(InputRejected) as rejected:
            check_keyboard_file(tmp_path / name)
        assert rejected.value.key == key


@pytest.mark.parametrize(
    ("names", "brand"),
    [
        (("Xiaomi", "Redmi"), "xiaomi"),
        (("realme", "realme"), "oppo"),
        (("OnePlus", "OnePlus"), "oppo"),
        (("HUAWEI", "HONOR"), "honor"),
        (("HUAWEI", "HUAWEI"), "huawei"),
        (("samsung", "samsung"), "samsung"),
        (("Google", "google"), "other"),
        ((), "other"),
    ],
)
def test_brands(names: tuple[str, ...], brand: str) -> None:
    assert brand_of(*names) == brand
    for lang in LANGUAGES:
        steps = owner_steps(brand_of(*names), lang)
        assert len(steps) == (3 if brand == "other" else 4)
