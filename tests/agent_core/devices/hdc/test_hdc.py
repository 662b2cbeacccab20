"""HarmonyOS's own ways: what hdc says, old versions, and what its stand-in refuses as the real one does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_core.devices.base import Battery, DeviceEntry, Look, ScreenState, System, Window, WindowKind
from agent_core.devices.hdc import parse
from agent_core.devices.hdc.device import HdcDevice
from agent_core.devices.hdc.keyboard import refusal
from agent_core.devices.hdc.server import HdcServer
from agent_core.devices.hdc.transport import HdcProgram, HdcTransport
from agent_core.devices.pictures import digest
from agent_core.errors import (
    CommandFailed,
    DeviceOffline,
    DeviceUnauthorized,
    HdcNotFound,
    ScreenshotFailed,
    TextInputFailed,
    TreeUnavailable,
)
from simulator.phone.hdc.host import HdcHost, HdcTarget, serve_hdc, write_program
from simulator.phone.phone import VirtualPhone
from tests.agent_core.devices.systems import shortly

KEY = "FMR0223C13000649"


@dataclass
class Desk:
    host: HdcHost
    target: HdcTarget
    program: HdcProgram
    server: HdcServer

    @property
    def phone(self) -> VirtualPhone:
        return self.target.phone

    def device(self, key: str = KEY) -> HdcDevice:
        return self.server.device(f"hdc:{key}", sleep=shortly)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    target = HdcTarget(VirtualPhone(), KEY)
    async with serve_hdc([target]) as host:
        path = str(write_program(tmp_path, host.port))
        yield Desk(host, target, HdcProgram(path), HdcServer(path))


# -- the list of phones


async def test_the_phones_are_listed_with_their_states(desk: Desk) -> None:
    others = [HdcTarget(VirtualPhone(), key) for key in ("192.168.1.20:5555", "23E0000000000001")]
    others[0].status, others[1].status = "Offline", "Unauthorized"
    desk.host.targets += others
    assert await desk.server.devices() == [
        DeviceEntry(f"hdc:{KEY}", "device", "", "usb", System.HARMONYOS),
        DeviceEntry("hdc:192.168.1.20:5555", "offline", "", "tcp", System.HARMONYOS),
        DeviceEntry("hdc:23E0000000000001", "unauthorized", "", "usb", System.HARMONYOS),
    ]
    desk.host.targets.clear()
    assert await desk.server.devices() == []


def test_a_serial_port_and_noise_are_no_phones() -> None:
    said = "COM5\t\tUART\tReady\tunknown...\thdc\n[Empty]\nhdc is starting\n"
    assert parse.parse_targets(said) == []


async def test_a_program_that_is_no_hdc(tmp_path: Path) -> None:
    with pytest.raises(HdcNotFound):
        await HdcServer(str(tmp_path / "none")).devices()
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho Android Debug Bridge version 1.0.41\n")
    other.chmod(0o755)
    with pytest.raises(HdcNotFound):
        await HdcServer(str(other)).version()
    with pytest.raises(CommandFailed):
        await HdcServer(str(other)).devices()


async def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    hanging = tmp_path / "hdc"
    hanging.write_text("#!/bin/sh\nexec sleep 600\n")
    hanging.chmod(0o755)
    with pytest.raises(CommandFailed, match="did not end"):
        await HdcProgram(str(hanging)).run("list", "targets", seconds=0.2)
    task = asyncio.create_task(HdcProgram(str(hanging)).run("list", "targets"))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# -- who may not be reached


async def test_a_phone_that_nobody_knows_or_that_waits_for_its_owner(desk: Desk) -> None:
    with pytest.raises(DeviceOffline):
        await desk.device("OTHER").look()
    desk.target.status = "Unauthorized"
    with pytest.raises(DeviceUnauthorized):
        await desk.device().look()
    with pytest.raises(DeviceUnauthorized):
        await desk.device().screenshot()


async def test_a_touch_is_tried_again_only_if_no_phone_was_asked(desk: Desk) -> None:
    device = desk.device()
    desk.target.status = "Offline"

    async def attach() -> None:
        while len(desk.host.calls) < 2:
            await asyncio.sleep(0.01)
        desk.target.status = "Connected"

    attaching = asyncio.create_task(attach())
    await device._act(("uitest", "uiInput", "click", "300", "500"))
    await attaching
    assert len(desk.phone.report()["taps"]) == 1
    before = len(desk.host.calls)
    with pytest.raises(CommandFailed):
        await device._act(("uitest", "uiInput", "click", "300"))
    assert len(desk.host.calls) == before + 1


async def test_what_may_have_been_done_is_not_done_again(desk: Desk) -> None:
    transport = HdcTransport(desk.program, KEY, sleep=shortly)
    acting = asyncio.create_task(transport.shell(("sleep", "60")))
    while not desk.target.running:
        await asyncio.sleep(0.01)
    desk.phone.set_fault("dropped")
    with pytest.raises(DeviceOffline):
        await acting
    assert len(desk.host.calls) == 1
    with pytest.raises(DeviceOffline):
        await transport.shell(("true",), safe=True)
    assert len(desk.host.calls) == 5  # the retry table's


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        ("[Fail]Not match target founded, check connect-key please", True),
        ("[Fail][E001005] Device not found or connected", True),
        ("[Fail]Connect server failed", True),
        ("[Fail]session is dead", False),
        ("[Fail]Failed to communicate with daemon", False),
        ("tapped\n[Fail]Not match target founded, check connect-key please", False),
        ("", False),
    ],
)
async def test_an_act_is_repeated_only_if_hdc_had_nobody_to_ask(tmp_path: Path, words: str, repeated: bool) -> None:
    program, calls, said = tmp_path / "hdc", tmp_path / "calls", tmp_path / "said"
    program.write_text(f"#!/bin/sh\necho call >> {calls}\ncat {said}\n")
    program.chmod(0o755)
    said.write_text(f"{words}\n")
    transport = HdcTransport(HdcProgram(str(program)), KEY, sleep=shortly)
    with pytest.raises(DeviceOffline):
        await transport.shell(("uitest", "uiInput", "click", "1", "1"))
    assert (len(calls.read_text().splitlines()) > 1) == repeated
    calls.unlink()
    with pytest.raises(DeviceOffline):
        await HdcTransport(HdcProgram(str(program)), KEY, sleep=shortly).shell(("true",), safe=True)
    assert len(calls.read_text().splitlines()) > 1


# -- pictures


async def test_a_phone_without_base64_gives_its_pictures_as_files(desk: Desk) -> None:
    device = desk.device()
    whole = await device.observe()
    assert len(desk.host.calls) == 1
    desk.target.shell.commands = {name: f for name, f in desk.target.shell.commands.items() if name != "base64"}
    assert (await device.observe()).frame.digest == whole.frame.digest
    assert [call[2] for call in desk.host.calls] == ["shell", "shell", "file"]
    assert [name for name, _ in desk.target.files.names("/data/local/tmp") if "phonedesk" in name]
    await device.close()
    assert not [name for name, _ in desk.target.files.names("/data/local/tmp") if "phonedesk" in name]


async def test_where_snapshot_display_refuses_uitest_takes_the_picture(desk: Desk) -> None:
    device = desk.device()
    desk.target.shell.commands = {n: f for n, f in desk.target.shell.commands.items() if n != "snapshot_display"}
    frame = await device.screenshot()
    assert frame.digest == digest((await desk.phone.shown()).convert("RGB"))  # a PNG; the clock may go on meanwhile
    desk.target.shell.commands = {n: f for n, f in desk.target.shell.commands.items() if n != "uitest"}
    with pytest.raises(ScreenshotFailed, match="not found"):
        await device.screenshot()


# -- text


async def test_an_old_uitest_types_at_the_place_of_the_field(desk: Desk) -> None:
    desk.host.targets[:] = [HdcTarget(desk.phone, KEY, api=12)]
    desk.phone.show_chat("11")
    device = desk.device()
    async with device.keyboard() as keyboard:
        with pytest.raises(TextInputFailed, match="no field has the focus"):
            await keyboard.type("您好")
        field = next(node for node in await device.tree() if node.class_name == "EditText")
        await keyboard.tap(field.box.center)
        await keyboard.type("您好\n'再见' ")
    assert desk.phone.report()["drafts"] == {"11": "您好\n'再见' "}


def test_success_is_said_once_an_event() -> None:
    assert refusal("No Error\n") is None
    assert refusal("") is None  # as older versions
    assert refusal("No Error\nNo Error\n", 2) is None
    assert refusal("Missing parameter. \n\nUSAGE :\n") == "Missing parameter."
    assert refusal("Inject failed\nNo Error\n", 2) == "Inject failed"


# -- what the tools print


def test_what_is_in_front() -> None:
    missions = (
        "User ID #100\n  current mission lists:{\n"
        "    Mission ID #52  mission name #[#com.tencent.wework.hmos:phone:EntryAbility]\n"
        "        app name [com.tencent.wework.hmos]\n        main name [EntryAbility]\n"
        "        bundle name [com.tencent.wework.hmos]\n        state #BACKGROUND  start time [1]\n"
        "        app state #FOREGROUND\n"
        "    Mission ID #47  mission name #[#com.tencent.mqq:entry:QQAbility]\n        main name [QQAbility]\n"
        "        bundle name [com.tencent.mqq]\n        state #FOREGROUND  start time [2]\n"
        "        app state #FOREGROUND\n }\n"
    )
    power, lock = "Current State: AWAKE  Reason: 20  Time: 1\n", " * screenLocked  \t\tfalse\t\twhether\n"
    windows = (
        "WindowName           DisplayId Pid     WinId Type Mode Flag ZOrd Orientation [ x    y    w    h    ]\n"
        "SCBDropdownPanel8    0         2230    7     2109 1    0    4    0           [ 0    0    720  1280 ]\n"
        "qq0                  0         1572    13    1    1    0    1    0           [ 0    0    720  1280 ]\n"
        "Focus window: {}\ntotal window num: 2\n"
    )
    on = ScreenState(True, False)
    assert parse.parse_look(missions, power, lock, windows.format(13)) == Look(
        Window("com.tencent.mqq", "QQAbility"), on
    )
    assert parse.parse_look(missions, power, lock, windows.format(7)).window.kind is WindowKind.SHADE
    assert parse.parse_look("", power, lock, "").window == Window(parse.DESKTOP)
    off = parse.parse_look(missions, power.replace("AWAKE", "SLEEP"), lock, "")
    assert off == Look(Window(None, None, WindowKind.NONE), ScreenState(False, False))
    locked = parse.parse_look(missions, power, lock.replace("false", "true"), "")
    assert locked == Look(Window(None, None, WindowKind.LOCK), ScreenState(True, True))


def test_what_is_installed() -> None:
    assert parse.parse_packages("ID: 100:\n\tcom.tencent.mqq\n\tcom.huawei.hmos.settings\n") == (
        "com.tencent.mqq",
        "com.huawei.hmos.settings",
    )
    dump = (
        'com.tencent.mqq:\n{"versionName": "9.1.0", "mainEntry": "entry", "hapModuleInfos": ['
        '{"moduleName": "lib", "mainAbility": "Other"}, {"moduleName": "entry", "mainAbility": "QQAbility"}]}\n'
    )
    assert parse.parse_bundle(dump) == parse.Bundle("9.1.0", "QQAbility")
    by_action = (
        '{"hapModuleInfos": [{"abilityInfos": [{"name": "A", "skills": [{"actions": ["action.system.home"]}]}]}]}'
    )
    assert parse.parse_bundle(f"x:\n{by_action}") == parse.Bundle(None, "A")
    for text in (
        "error: failed to get information and the parameters may be wrong.",
        "{",
        "[1]",
        '{"applicationInfo": 5}',
    ):
        assert parse.parse_bundle(text) is None


def test_battery() -> None:
    assert parse.parse_battery("capacity: 87 \npluggedType: 0 \n") == Battery(87, False)
    assert parse.parse_battery("capacity: 999\n") == Battery(None, None)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"children": []}', '{"attributes": {"bounds": 5, "type": "x"}}', '{"attributes": []}']
)
def test_a_tree_that_is_none(text: str) -> None:
    with pytest.raises(TreeUnavailable):
        parse.parse_tree(text)


def test_a_tree_without_an_end() -> None:
    text = '{"attributes": {}, "children": [' * 5000 + "]}" * 5000
    with pytest.raises(TreeUnavailable):
        parse.parse_tree(text)


def test_nodes_keep_to_the_screen_and_know_their_app() -> None:
    text = (
        '{"attributes": {"bounds": "[0,0][720,1280]", "type": ""}, "children": [{"attributes": {"bounds":'
        ' "[0,0][720,1280]", "type": "root", "bundleName": "a.b"}, "children": [{"attributes": {"bounds":'
        ' "[-10,1200][900,1400]", "type": "TextInput", "text": "x", "focused": "true", "id": "in"}, "children": []},'
        ' {"attributes": {"bounds": "[0,0][10,10]", "type": "Text", "visible": "false"}, "children": []}]}]}'
    )
    root, field = parse.parse_tree(text)
    assert (root.package, field.package, field.class_name, field.resource_id) == ("a.b", "a.b", "EditText", "in")
    assert (field.box.left, field.box.right, field.box.bottom, field.focused) == (0, 720, 1280, True)


# -- the stand-in is strict


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Unknown operation command"),
        (("devices",), "Unknown operation command"),
        (("-t", KEY, "screencap"), "Unknown operation command"),
        (("-t", "OTHER", "shell", "true"), "[Fail]Not match target founded"),
        (("-t", KEY, "shell"), "[Fail]"),
        (("-t", KEY, "file", "recv", "/none"), "[Fail]"),
        (("-t", KEY, "file", "recv", "/none", "x"), "[Fail]Error opening file: no such file"),
        (("-t", KEY, "shell", "getprop"), "inaccessible or not found"),
        (("-t", KEY, "shell", "uitest uiInput click 0 5"), "coordinate values are correct"),
        (("-t", KEY, "shell", "uitest uiInput click 5"), "number of parameters"),
        (("-t", KEY, "shell", "uitest uiInput tap 5 5"), "Invalid parameters"),
        (("-t", KEY, "shell", "uitest uiInput text a b c"), "number of parameters"),
        (("-t", KEY, "shell", "uitest uiInput keyEvent Enter"), "Invalid parameters"),
        (("-t", KEY, "shell", "snapshot_display -f /data/local/tmp/x.png"), "suffix must be .jpeg"),
        (("-t", KEY, "shell", "aa start -a Main -b com.tencent.mqq"), "error: failed to start ability"),
        (("-t", KEY, "shell", "bm dump -n com.tencent.mobileqq"), "error: failed to get information"),
    ],
)
async def test_what_the_real_one_refuses_is_refused_with_status_0(
    desk: Desk, arguments: tuple[str, ...], said: str
) -> None:
    assert said in await desk.program.run(*arguments)
    assert not desk.phone.report()["taps"]
    assert not desk.phone.report()["typed"]


async def test_a_word_with_blanks_loses_its_quotes_as_on_the_way_to_a_phone(desk: Desk) -> None:
    """hdc puts a word with blanks in double quotes; the phone takes only the outermost off."""
    assert await desk.program.run("-t", KEY, "shell", 'echo "a  b"') == "a  b\n"
    assert await desk.program.run("-t", KEY, "shell", "echo", "a  b") == "a  b\n"
    assert await desk.program.run("-t", KEY, "shell", "echo", '"', "x") != '" x\n'


async def test_a_line_that_is_too_long_never_leaves(desk: Desk) -> None:
    transport = HdcTransport(desk.program, KEY)
    with pytest.raises(CommandFailed):
        await transport.shell(("echo", "x" * 70_000))
    assert (transport.round_trips, desk.host.calls) == (0, [])
