"""The public API of adbutils against the virtual phone, behind each adb program that is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import adbutils
import pytest

from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import ContactPart, PhonePart, Scenario
from simulator.phone.server import serve
from tests.simulator.phone.hand import START
from tests.support.adb import adb_server, programs

HOME, QQ = "com.android.launcher3", "com.tencent.mobileqq"
SIZE = (360, 800)


@dataclass
class Attached:
    phone: VirtualPhone
    serial: str
    client: adbutils.AdbClient
    device: adbutils.AdbDevice

    async def do(self, call: Callable[[], Any]) -> Any:
        """Make a call of the library, which blocks, while the phone's loop goes on."""
        return await asyncio.to_thread(call)


@pytest.fixture(params=list(programs()))
async def attached(request: pytest.FixtureRequest) -> AsyncIterator[Attached]:
    program = programs()[request.param]
    if program is None:
        pytest.skip(f"no {request.param} adb on this machine")
    scenario = Scenario(phone=PhonePart(size=SIZE), contacts=[ContactPart(name="11")])
    phone = VirtualPhone(scenario, clock=lambda: START)  # or two pictures may show different minutes
    async with serve(phone=phone) as running, adb_server(program) as adb:
        serial = await adb.connect(running.adb_port)
        client = adbutils.AdbClient("127.0.0.1", adb.port)
        yield Attached(running.phone, serial, client, client.device(serial))


async def test_every_call_is_answered_as_by_a_phone(attached: Attached, tmp_path: Path) -> None:
    """One test for all: what costs time is the server that each program needs."""
    await _devices_and_shells(attached)
    await _apps(attached)
    await _screen(attached)
    await _keys_and_text(attached)
    await _files(attached, tmp_path)
    await _ports(attached)


async def _devices_and_shells(attached: Attached) -> None:
    do, client, device = attached.do, attached.client, attached.device
    assert [found.serial for found in await do(client.device_list)] == [attached.serial]
    (listed,) = await do(lambda: client.list(extended=True))
    assert (listed.serial, listed.state, listed.tags["model"]) == (attached.serial, "device", "VP_1")
    assert await do(device.get_state) == "device"
    assert await do(lambda: (device.prop.model, device.prop.name)) == ("VP-1", "VP-1")
    assert await do(lambda: device.shell(["echo", "a b", "c'd", "$(e)"])) == "a b c'd $(e)"
    assert await do(lambda: device.shell("echo x; echo y", encoding=None)) == b"x\ny\n"
    framed = await do(lambda: device.shell2("echo out; echo err >&2; exit 3", v2=True))
    assert (framed.returncode, framed.stdout, framed.stderr) == (3, "out\n", "err\n")
    plain = await do(lambda: device.shell2("cat /none"))
    assert (plain.returncode, "No such file" in plain.output) == (1, True)
    with pytest.raises(adbutils.AdbTimeout):
        await do(lambda: device.shell("sleep 30", timeout=0.2))


async def _apps(attached: Attached) -> None:
    do, device, phone = attached.do, attached.device, attached.phone
    assert (await do(device.app_current)).package == HOME
    await do(lambda: device.app_start(QQ))
    current = await do(device.app_current)
    assert (current.package, current.activity) == (QQ, "com.tencent.mobileqq.activity.SplashActivity")
    await do(lambda: device.app_start("com.android.settings", ".Settings"))
    assert phone.window().package == "com.android.settings"
    await do(lambda: device.app_stop("com.android.settings"))
    assert phone.window().package == HOME
    await do(lambda: device.open_browser("example.com"))
    assert phone.window().package == "com.android.browser"
    assert set(await do(device.list_packages)) == set(phone.apps)
    info = await do(lambda: device.app_info(QQ))
    assert (info.version_name, info.flags) == (phone.apps[QQ].version, ["HAS_CODE", "ALLOW_CLEAR_USER_DATA"])
    assert info.first_install_time < info.last_update_time
    assert await do(lambda: device.app_info("com.example.none")) is None


async def _screen(attached: Attached) -> None:
    do, device = attached.do, attached.device
    shown = await attached.phone.shown()
    assert (await do(device.screenshot)).tobytes() == shown.tobytes()
    assert (await do(lambda: device.screenshot(display_id=0, error_ok=False))).size == SIZE
    assert (await do(device.framebuffer)).convert("RGB").tobytes() == shown.tobytes()
    assert tuple(await do(device.window_size)) == SIZE
    assert await do(device.rotation) == 0
    assert 'resource-id="com.android.browser:id/heading"' in await do(device.dump_hierarchy)
    assert (await do(device.battery)).level == 87
    assert await do(lambda: (device.brightness_value, device.brightness_mode.value)) == (128, 0)
    assert await do(device.is_screen_on)
    await do(lambda: device.switch_screen(False))
    assert not await do(device.is_screen_on)
    await do(lambda: device.switch_screen(True))


async def _keys_and_text(attached: Attached) -> None:
    do, device, phone = attached.do, attached.device, attached.phone
    phone.show_chat("11")
    field = next(element for element in phone.elements() if element.kind.endswith("EditText"))
    scale = SIZE[0] / 1080
    await do(lambda: device.click(round((field.box[0] + 20) * scale), round((field.box[1] + 20) * scale)))
    await do(lambda: device.send_keys("hello world"))
    assert phone.report()["drafts"]["11"] == "hello world"
    await do(lambda: device.keyevent("DEL"))
    await do(lambda: device.keyevent(67))
    assert phone.report()["drafts"]["11"] == "hello wor"
    await do(lambda: device.keyevent("KEYCODE_HOME"))
    assert phone.window().package == HOME
    await do(lambda: device.swipe(0.5, 0.9, 0.5, 0.3, 0.1))
    assert any(element.id == "search_box" for element in phone.elements())  # the list of all apps


async def _files(attached: Attached, folder: Path) -> None:
    do, sync = attached.do, attached.device.sync
    source, copy = folder / "a.txt", folder / "b.txt"
    source.write_bytes(b"phone" * 20_000)
    assert await do(lambda: sync.push(source, "/sdcard/Download/", check=True)) == 100_000
    assert await do(lambda: sync.exists("/sdcard/Download/a.txt"))
    assert [found.path for found in await do(lambda: sync.list("/sdcard/Download"))] == ["a.txt"]
    assert await do(lambda: sync.pull("/sdcard/Download/a.txt", copy)) == 100_000
    assert copy.read_bytes() == source.read_bytes()
    await do(lambda: attached.device.remove("/sdcard/Download/a.txt"))
    assert not await do(lambda: sync.exists("/sdcard/Download/a.txt"))


async def _ports(attached: Attached) -> None:
    do, device = attached.do, attached.device
    assert await do(device.forward_list) == []
    port = await do(lambda: device.forward_port(8000))
    (item,) = await do(device.forward_list)
    assert (item.serial, item.local, item.remote) == (attached.serial, f"tcp:{port}", "tcp:8000")
    await do(device.forward_remove_all)
    assert await do(device.forward_list) == []
    with pytest.raises(adbutils.AdbError, match="closed"):  # nobody listens on the phone
        await do(lambda: device.create_connection("tcp", 8000))
    await do(lambda: device.reverse("tcp:9000", "tcp:9001"))
    assert [(item.remote, item.local) for item in await do(device.reverse_list)] == [("tcp:9000", "tcp:9001")]
    with pytest.raises(adbutils.AdbError, match="cannot rebind"):
        await do(lambda: device.reverse("tcp:9000", "tcp:9002", norebind=True))
    await do(lambda: device.reverse_remove("tcp:9000"))
    assert await do(device.reverse_list) == []
    with pytest.raises(adbutils.AdbError, match="not found"):
        await do(lambda: device.reverse_remove("tcp:9000"))
    await do(lambda: attached.client.disconnect(attached.serial))
    assert await do(attached.client.device_list) == []
    assert "connected" in await do(lambda: attached.client.connect(attached.serial))
