"""The phone as real adb programs, adbutils and hostile hosts see it."""

from __future__ import annotations

import asyncio
import base64
import io
import random
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from simulator.phone.adbd import AdbdServer, Auth
from tests.simulator.phone.raw_host import raw_host
from tests.simulator.phone.small_phone import ADB_KEYBOARD, QQ, SOGOU, SmallPhone
from tests.support.adb import AdbServerProcess
from tests.support.days import examples


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_devices(adb: AdbServerProcess, serial: str) -> None:
    listed = (await adb.run("devices", "-l")).text
    assert f"{serial} " in listed
    assert "product:small model:Small_Phone device:small" in listed
    assert (await adb.run("-s", serial, "get-state")).text.strip() == "device"


async def test_exit_codes_and_both_outputs(adb: AdbServerProcess, serial: str) -> None:
    done = await adb.run("-s", serial, "shell", "echo out; cat /none; exit 7")
    assert (done.code, done.out, done.err) == (7, b"out\n", b"cat: /none: No such file or directory\n")
    missing = await adb.run("-s", serial, "shell", "foo")
    assert (missing.code, missing.err) == (127, b"/system/bin/sh: foo: inaccessible or not found\n")


async def test_shell_version_1_merges_and_has_no_exit_code(adb: AdbServerProcess, phone: SmallPhone) -> None:
    async with AdbdServer(phone, features=("cmd",)) as old:
        serial = await adb.connect(old.port)
        done = await adb.run("-s", serial, "shell", "echo out; cat /none; echo end; exit 7")
        assert (done.code, done.out) == (0, b"out\ncat: /none: No such file or directory\nend\n")
        assert old.calls[-1].service.startswith("shell:")


async def test_standard_input_and_exec(adb: AdbServerProcess, serial: str, adbd: AdbdServer) -> None:
    data = random.Random(1).randbytes(300_000)
    await adb.run("-s", serial, "shell", "cat > /sdcard/a", stdin=data)
    assert adbd.files.read("/sdcard/a") == data
    assert (await adb.run("-s", serial, "exec-out", "cat /sdcard/a")).out == data
    await adb.run("-s", serial, "exec-in", "cat > /sdcard/b", stdin=data)
    await until(lambda: adbd.files.stat("/sdcard/b") is not None and adbd.files.read("/sdcard/b") == data)
    script = await adb.run("-s", serial, "shell", stdin=b"cd /sdcard\npwd\nls\nexit 3\necho no\n")
    assert (script.code, script.out) == (3, b"/sdcard\nDownload\na\nb\n")


async def test_a_terminal(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as host:
        await host.connect()
        remote = await host.open("shell:")
        seen = b""

        async def until_seen(wanted: bytes) -> None:
            nonlocal seen
            while wanted not in seen:
                name, _, _, data = await host.receive()
                if name == b"WRTE":
                    seen += data
                    host.send(b"OKAY", 7, remote)

        await until_seen(b"small:/ $ ")
        host.send(b"WRTE", 7, remote, b"echo hi\r")
        await until_seen(b"hi\r\nsmall:/ $ ")


async def test_what_open_autoglm_does(
    adb: AdbServerProcess, serial: str, adbd: AdbdServer, phone: SmallPhone, tmp_path: Path
) -> None:
    async def shell(*words: str) -> str:
        done = await adb.run("-s", serial, "shell", *words)
        assert done.code == 0, done
        return done.text

    assert "Events injected: 1" in await shell("monkey", "-p", QQ, "-c", "android.intent.category.LAUNCHER", "1")
    assert "mCurrentFocus" in await shell("dumpsys", "window")
    assert QQ in next(line for line in (await shell("dumpsys", "window")).splitlines() if "mCurrentFocus" in line)
    await shell("screencap", "-p", "/sdcard/tmp.png")
    target = tmp_path / "screen.png"
    assert (await adb.run("-s", serial, "pull", "/sdcard/tmp.png", str(target))).code == 0
    with Image.open(target) as picture:
        assert picture.size == phone.size
    await shell("input", "tap", "60", "220")
    keyboard = await shell("settings", "get", "secure", "default_input_method")
    assert keyboard.strip() == SOGOU
    await shell("ime", "set", ADB_KEYBOARD)
    await shell("am", "broadcast", "-a", "ADB_CLEAR_TEXT")
    text = base64.b64encode("亲，今天就发货😀".encode()).decode()
    assert "result=0" in await shell("am", "broadcast", "-a", "ADB_INPUT_B64", "--es", "msg", text)
    await shell("ime", "set", keyboard.strip())
    assert phone.field_text == "亲，今天就发货😀"
    assert ("tap", 60.0, 220.0) in phone.events
    assert phone.settings["secure", "default_input_method"] == SOGOU


async def test_many_commands_at_once(adb: AdbServerProcess, serial: str) -> None:
    done = await asyncio.gather(*(adb.run("-s", serial, "shell", f"sleep 0.05; echo {n}") for n in range(20)))
    assert [item.out for item in done] == [f"{n}\n".encode() for n in range(20)]


async def test_a_large_picture_arrives_whole(adb: AdbServerProcess, phone: SmallPhone) -> None:
    phone.size = (1080, 2400)
    async with AdbdServer(phone) as big:
        serial = await adb.connect(big.port)
        raw = (await adb.run("-s", serial, "exec-out", "screencap")).out
        assert len(raw) == 16 + 1080 * 2400 * 4
        png = (await adb.run("-s", serial, "exec-out", "screencap -p")).out
        assert Image.open(io.BytesIO(png)).size == (1080, 2400)


# -- who may come in


async def test_a_phone_that_has_not_been_allowed(adb: AdbServerProcess, phone: SmallPhone) -> None:
    async with AdbdServer(phone, auth="unauthorized") as closed:
        serial = f"127.0.0.1:{closed.port}"
        with pytest.raises(ConnectionError, match="failed to authenticate"):
            await adb.connect(closed.port)
        assert await adb.state(serial) == "unauthorized"
        assert b"unauthorized" in (await adb.run("-s", serial, "shell", "echo")).err
        await until(lambda: closed.offered_key is not None)
        closed.approve()
        await adb.wait_state(serial, "device")
        assert (await adb.run("-s", serial, "shell", "echo in")).out == b"in\n"


async def test_an_approved_key_is_known_from_then_on(adb: AdbServerProcess, phone: SmallPhone) -> None:
    async with AdbdServer(phone, auth="key") as first:
        with pytest.raises(ConnectionError, match="failed to authenticate"):
            await adb.connect(first.port)
        await until(lambda: first.offered_key is not None)
        first.approve()
        with pytest.raises(LookupError):
            first.approve()
        keys = first.keys
        assert len(keys) == 1
    async with AdbdServer(phone, auth="key", keys=keys) as second:
        serial = await adb.connect(second.port)
        assert await adb.state(serial) == "device"
        assert second.offered_key is None


async def test_a_mute_phone_is_offline(adb: AdbServerProcess, phone: SmallPhone) -> None:
    async with AdbdServer(phone, auth="mute") as mute:
        serial = f"127.0.0.1:{mute.port}"
        connecting = asyncio.create_task(adb.run("connect", serial))
        await adb.wait_state(serial, "offline")
        assert b"offline" in (await adb.run("-s", serial, "shell", "echo")).err
        connecting.cancel()
        await asyncio.gather(connecting, return_exceptions=True)


# -- coming and going


async def test_unplugged_in_the_middle_of_a_transfer(
    adb: AdbServerProcess, serial: str, adbd: AdbdServer, tmp_path: Path
) -> None:
    adbd.files.write("/sdcard/big", bytes(60_000_000))
    pulling = asyncio.create_task(adb.run("-s", serial, "pull", "/sdcard/big", str(tmp_path / "big")))
    await until(lambda: any(call.service == "sync:" for call in adbd.calls))
    adbd.refuse(True)
    adbd.drop()
    assert (await pulling).code != 0
    await until(lambda: not adbd.connections)
    assert await adb.state(serial) in {"offline", "absent"}
    assert (await adb.run("-s", serial, "shell", "echo")).code != 0
    adbd.refuse(False)
    assert await adb.connect(adbd.port) == serial
    assert (await adb.run("-s", serial, "shell", "echo back")).out == b"back\n"


async def test_adb_comes_back_by_itself(adb: AdbServerProcess, serial: str, adbd: AdbdServer) -> None:
    adbd.drop()
    await until(lambda: adbd.connections == 0)
    await until(lambda: adbd.connections == 1, seconds=25)
    await adb.wait_state(serial, "device")
    assert (await adb.run("-s", serial, "shell", "echo back")).out == b"back\n"


async def test_a_command_stops_when_its_host_goes(adb: AdbServerProcess, serial: str, adbd: AdbdServer) -> None:
    running = asyncio.create_task(adb.run("-s", serial, "shell", "sleep 1000"))
    await until(lambda: adbd.running_services == 1)
    running.cancel()  # ends the adb client, whose stream the server then closes
    await asyncio.gather(running, return_exceptions=True)
    await until(lambda: adbd.running_services == 0)
    assert (await adb.run("-s", serial, "shell", "echo still")).out == b"still\n"


async def test_closing_stops_everything(adb: AdbServerProcess, phone: SmallPhone) -> None:
    server = AdbdServer(phone)
    await server.start()
    serial = await adb.connect(server.port)
    running = asyncio.create_task(adb.run("-s", serial, "shell", "sleep 1000"))
    await until(lambda: server.running_services == 1)
    started = time.monotonic()
    await server.close()
    assert time.monotonic() - started < 2
    assert (server.running_services, server.connections) == (0, 0)
    assert (await running).out == b""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)
    await server.close()


async def test_a_reboot_cuts_the_connection(adb: AdbServerProcess, serial: str, adbd: AdbdServer) -> None:
    adbd.refuse(True)
    await adb.run("-s", serial, "reboot")
    await until(lambda: not adbd.connections)


# -- by hand: the protocol's limits


async def test_the_banner_and_a_plain_command(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as host:
        banner = await host.connect()
        assert banner.startswith(b"device::ro.product.name=small;ro.product.model=Small_Phone;ro.product.device=small;")
        assert b"shell_v2" in banner.partition(b"features=")[2]
        remote = await host.open("shell,v2,raw:echo hi; exit 3")
        assert await host.receive() == (b"WRTE", remote, 7, b"\x01\x03\0\0\0hi\n\x03\x01\0\0\0\x03")
        host.send(b"OKAY", 7, remote)
        assert (await host.receive())[:3] == (b"CLSE", remote, 7)


async def test_one_packet_is_in_flight_until_it_is_acknowledged(adbd: AdbdServer) -> None:
    adbd.files.write("/sdcard/a", bytes(10_000))
    async with raw_host(adbd.port) as host:
        await host.connect(payload=4096)
        remote = await host.open("exec:cat /sdcard/a")
        sizes = []
        for _ in range(3):
            name, _, _, data = await host.receive()
            assert name == b"WRTE"
            sizes.append(len(data))
            host.send(b"OPEN", 99, 0, b"none:\0")  # answered while the phone waits: nothing else was sent before
            assert (await host.receive())[0] == b"CLSE"
            host.send(b"OKAY", 7, remote)
        assert sizes == [4096, 4096, 1808]


async def test_what_is_unplugged_stays_unplugged(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as plugged:
        await plugged.connect()
        adbd.refuse(True)
        async with raw_host(adbd.port) as refused:
            assert await refused.is_cut()
        await plugged.open("exec:echo still")  # refusing cuts nobody who is there
        adbd.drop()
        assert await plugged.is_cut()
        adbd.refuse(False)
        async with raw_host(adbd.port) as again:
            await again.connect()


async def test_a_closed_stream_is_answered_and_its_command_stopped(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as host:
        await host.connect()
        remote = await host.open("exec:sleep 1000")
        await until(lambda: adbd.running_services == 1)
        host.send(b"CLSE", 7, remote)
        assert await host.receive() == (b"CLSE", remote, 7, b"")
        await until(lambda: adbd.running_services == 0)
        remote = await host.open("exec:echo still")
        assert (await host.receive())[3] == b"still\n"


@pytest.mark.parametrize("service", ["shell:echo " + "a" * 65_600, "tcp:80", "nothing", "jdwp:1", ""])
async def test_a_service_that_is_refused_closes_its_stream_only(adbd: AdbdServer, service: str) -> None:
    async with raw_host(adbd.port) as host:
        await host.connect()
        host.send(b"OPEN", 7, 0, service.encode() + b"\0")
        assert await host.receive() == (b"CLSE", 0, 7, b"")
        await host.open("exec:echo still")


async def test_the_longest_line_that_is_taken(adbd: AdbdServer) -> None:
    line = "exec:echo " + "a" * (65_535 - 10)
    async with raw_host(adbd.port) as host:
        await host.connect()
        await host.open(line)
        assert len((await host.receive())[3]) == 65_526


GARBAGE = {
    "http": b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n",
    "zeros": bytes(100),
    "bad magic": struct.pack("<6I", 0x4E584E43, 0x01000001, 4096, 0, 0, 0),
    "huge payload": struct.pack("<6I", 0x4E584E43, 0x01000001, 4096, 0xFFFFFFFF, 0, 0x4E584E43 ^ 0xFFFFFFFF),
    "not CNXN first": struct.pack("<6I", 0x4E45504F, 1, 0, 0, 0, 0x4E45504F ^ 0xFFFFFFFF),
    "tiny payload size": struct.pack("<6I", 0x4E584E43, 0x01000001, 0, 0, 0, 0x4E584E43 ^ 0xFFFFFFFF),
}


@pytest.mark.parametrize("name", list(GARBAGE))
async def test_garbage_closes_that_connection_only(adbd: AdbdServer, name: str) -> None:
    async with raw_host(adbd.port) as good:
        await good.connect()
        async with raw_host(adbd.port) as host:
            host.writer.write(GARBAGE[name])
            assert await host.is_cut()
        await good.open("exec:echo still")
        assert (await good.receive())[3] == b"still\n"


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=200), st.sampled_from(list(GARBAGE.values()))), max_size=6), st.booleans())
def test_the_server_lives_through_anything(pieces: list[bytes], connected: bool) -> None:
    async def once() -> None:
        async with AdbdServer(SmallPhone()) as server:
            async with raw_host(server.port) as host:
                if connected:
                    await host.connect()
                for piece in pieces:
                    host.writer.write(piece)
            async with raw_host(server.port) as host:
                await host.connect()

    asyncio.run(once())


async def test_a_host_that_ignores_acknowledgements_is_cut(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as host:
        await host.connect()
        remote = await host.open("exec:sleep 1000")
        for _ in range(3):
            host.send(b"WRTE", 7, remote, bytes(1 << 20))
        assert await host.is_cut()


async def test_too_many_streams_are_refused(adbd: AdbdServer) -> None:
    async with raw_host(adbd.port) as host:
        await host.connect()
        for local in range(1, 300):
            host.send(b"OPEN", local, 0, b"exec:sleep 1000\0")
        names = [(await host.receive())[0] for _ in range(1, 300)]
        assert (names.count(b"OKAY"), names.count(b"CLSE")) == (256, 43)


@pytest.mark.parametrize("auth", ["key", "unauthorized"])
async def test_false_keys_and_signatures(phone: SmallPhone, auth: Auth) -> None:
    async with AdbdServer(phone, auth=auth) as server:
        for key in (b"", b"not base64 at all!", base64.b64encode(bytes(524)) + b" x@y\0", bytes(3000)):
            async with raw_host(server.port) as host:
                host.send(b"CNXN", 0x01000001, 4096, b"host::")
                assert (await host.receive())[:2] == (b"AUTH", 1)
                host.send(b"AUTH", 2, 0, bytes(256))
                assert (await host.receive())[:2] == (b"AUTH", 1)
                host.send(b"OPEN", 1, 0, b"exec:echo in\0")  # ignored: not online
                host.send(b"AUTH", 3, 0, key)
                assert await host.is_cut()
        assert not server.calls


async def test_the_log_of_calls_is_bounded(adbd: AdbdServer) -> None:
    for number in range(5000):
        adbd.service(f"nothing:{number}")
    assert len(adbd.calls) == 2000
    assert adbd.calls[-1].service == "nothing:4999"
