"""Finding, starting and ending the adb server; attaching and choosing phones."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from agent_core.devices.adb import server as server_module
from agent_core.devices.adb import transport
from agent_core.devices.adb.discovery import connect, find_device, list_devices
from agent_core.devices.adb.parse import connection_of
from agent_core.devices.adb.server import open_adb
from agent_core.devices.base import DeviceEntry
from agent_core.errors import AdbNotFound, ConfigInvalid, DeviceOffline, DeviceUnauthorized, InputRejected
from agent_core.texts import told
from simulator.phone.server import serve
from tests.support.adb import adb_server

# -- the server


async def test_a_running_server_is_used_and_left_running() -> None:
    async with adb_server() as adb:
        async with await open_adb(port=adb.port) as server:
            assert not server.owned
            assert await server.devices() == []
        assert (await adb.run("devices")).code == 0


async def test_the_port_of_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    async with adb_server() as adb:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb.port))
        assert (await open_adb()).port == adb.port


@pytest.mark.device
async def test_a_server_of_our_own_ends_with_us(tmp_path: Path) -> None:
    async with await open_adb(port=0, usb=False, home=tmp_path) as server, serve() as running:
        assert server.owned
        await server.connect(running.address)
        assert (tmp_path / ".android").exists()
        port = server.port
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_server_of_our_own_ends_when_we_are_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom agent_core.devices.adb.server import open_adb\n"
        "async def main():\n"
        "    server = await open_adb(port=0, usb=False, home=Path(sys.argv[1]))\n"
        "    print(server.port, file=sys.stderr, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stderr=asyncio.subprocess.PIPE, env=with_our_path()
    )
    assert killed.stderr is not None
    try:
        port = int(await killed.stderr.readline())
    finally:
        killed.kill()
        await killed.wait()
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionResetError:  # it ends at this moment
                continue
            except ConnectionRefusedError:
                break
            writer.close()
            await asyncio.sleep(0.05)


def with_our_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


async def test_a_server_that_died_is_not_replaced_behind_our_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # adbutils by itself would run this program and leave a detached server.
    started, program = tmp_path / "started", tmp_path / "adb"
    program.write_text(f"#!/bin/sh\ntouch {started}\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("ADBUTILS_ADB_PATH", str(program))
    async with adb_server() as adb:
        server = await open_adb(port=adb.port)
        adb.stop()
        for call in (server.devices, lambda: server.connect("127.0.0.1:1")):
            with pytest.raises(DeviceOffline, match="No adb server"):
                await call()
    assert not started.exists()


async def test_no_program() -> None:
    with pytest.raises(AdbNotFound, match="PHONEDESK_DEVICE__ADB_PATH"):
        await open_adb("/no/such/adb", port=0)


@pytest.mark.device
async def test_a_program_that_is_no_adb(tmp_path: Path) -> None:
    program = tmp_path / "adb"
    program.write_text("#!/bin/sh\necho cannot bind >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(AdbNotFound, match="cannot bind"):
        await open_adb(str(program), port=0)


async def test_no_server_on_another_host() -> None:
    with pytest.raises(AdbNotFound, match="Start it there"):
        await open_adb(host="127.0.0.2", port=1)


@pytest.mark.device
async def test_phones_on_a_cable_are_found_unless_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    program = tmp_path / "adb"
    program.write_text(f'#!/bin/sh\necho "usb=$ADB_USB home=$HOME $*" > {seen}\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.delenv("ADB_USB", raising=False)
    with pytest.raises(AdbNotFound):
        await open_adb(str(program), port=0)
    assert seen.read_text().startswith(f"usb= home={os.environ['HOME']} -P ")
    with pytest.raises(AdbNotFound):
        await open_adb(str(program), port=0, usb=False, home=tmp_path)
    assert seen.read_text().startswith(f"usb=0 home={tmp_path} -P ")


# -- attaching


async def test_connect_and_list() -> None:
    async with adb_server() as adb, serve() as running:
        server = await open_adb(port=adb.port)
        await server.connect(running.address)
        await server.connect(running.address)  # again is no error
        assert await server.devices() == [DeviceEntry(running.address, "device", "VP_1", "tcp")]
        (info,) = await list_devices(server)
        assert (info.model, info.size, info.status, info.connection) == ("VP-1", (1080, 2400), "device", "tcp")
        await server.disconnect(running.address)
        assert await server.devices() == []


async def test_nobody_at_the_address() -> None:
    async with adb_server() as adb:
        with pytest.raises(DeviceOffline, match="cannot be reached") as caught:
            await (await open_adb(port=adb.port)).connect("127.0.0.1:1")
        assert told(caught.value, "zh").startswith("连不上手机 127.0.0.1:1（那个端口没有应答）。")


@pytest.mark.parametrize("address", ["", "127.0.0.1", "host:", ":5555", "a b:1", "host:5555;id", "-x:1", "h:123456"])
async def test_what_is_no_address(address: str) -> None:
    async with adb_server() as adb:
        with pytest.raises(InputRejected):
            await (await open_adb(port=adb.port)).connect(address)


async def test_a_phone_that_has_not_allowed_this_computer() -> None:
    async with adb_server() as adb, serve(auth="unauthorized") as running:
        server = await open_adb(port=adb.port)
        with pytest.raises(DeviceUnauthorized, match="allow USB debugging"):
            await server.connect(running.address)
        with pytest.raises(DeviceUnauthorized):
            await find_device(server)
        with pytest.raises(DeviceUnauthorized):
            await server.device(running.address).look()
        assert [info.status for info in await list_devices(server)] == ["unauthorized"]


async def test_a_connection_that_died_is_made_anew() -> None:
    async with adb_server() as adb, serve() as running:
        server = await open_adb(port=adb.port)
        device = await connect(server, running.address)
        running.phone.set_fault("dropped")
        await adb.wait_state(running.address, "offline")
        running.phone.set_fault("dropped", False)
        await server.connect(running.address)
        assert (await device.look()).screen.awake


async def test_a_phone_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECT_SECONDS", 0.3)  # adb itself gives up after 10 s
    async with adb_server() as adb, serve(auth="mute") as running:
        server = await open_adb(port=adb.port)
        with pytest.raises(DeviceOffline):
            await server.connect(running.address)


async def test_pairing_checks_what_it_is_given() -> None:
    async with adb_server() as adb:
        server = await open_adb(port=adb.port)
        for address, code in (("host", "123456"), ("host:1", "12345"), ("host:1", "12345x"), ("host:1", "123456:x")):
            with pytest.raises(InputRejected):
                await server.pair(address, code)


async def test_track_tells_of_every_change() -> None:
    async with adb_server() as adb, serve() as running:
        server = await open_adb(port=adb.port)
        async with asyncio.timeout(10), aclosing(server.track()) as lists:
            assert await anext(lists) == []
            await server.connect(running.address)
            while [entry.state for entry in await anext(lists)] != ["device"]:
                pass
            await server.disconnect(running.address)
            while await anext(lists):
                pass


async def test_a_list_that_is_followed_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def counted(host: str, port: int, request: str, **rest: float) -> str:
        asked.append(request)
        return await query(host, port, request, **rest)

    query = transport.query
    async with adb_server() as adb, serve() as running, await open_adb(port=adb.port) as server:
        monkeypatch.setattr(transport, "query", counted)
        assert await server.listed() == []
        assert asked == ["host:devices-l"]
        await server.connect(running.address)
        asked.clear()
        async with asyncio.timeout(10):
            while await server.listed() != [DeviceEntry(running.address, "device", "VP_1", "tcp")]:
                await asyncio.sleep(0.01)
            running.phone.set_fault("dropped")
            while [entry.state for entry in await server.listed()] == ["device"]:
                await asyncio.sleep(0.01)
        assert asked == []
        adb.stop()
        async with asyncio.timeout(10):
            while server._following is not None and not server._following.done():
                await asyncio.sleep(0.01)
        with pytest.raises(DeviceOffline):
            await server.listed()


async def test_track_ends_with_the_server() -> None:
    async with adb_server() as adb:
        server = await open_adb(port=adb.port)
        async with aclosing(server.track()) as lists:
            await anext(lists)
            adb.stop()
            with pytest.raises(DeviceOffline):
                await anext(lists)


# -- choosing


async def test_the_only_phone_is_found_by_itself_but_of_two_none() -> None:
    async with adb_server() as adb, serve() as one, serve() as two:
        server = await open_adb(port=adb.port)
        with pytest.raises(DeviceOffline, match="No phone"):
            await find_device(server)
        await server.connect(one.address)
        assert (await find_device(server)).serial == one.address
        assert (await find_device(server, two.address)).serial == two.address  # connected on the way
        with pytest.raises(ConfigInvalid, match="Several phones"):
            await find_device(server)
        assert (await find_device(server, one.address)).serial == one.address


async def test_a_serial_that_is_not_attached_is_never_replaced_by_another() -> None:
    async with adb_server() as adb, serve() as one:
        server = await open_adb(port=adb.port)
        await server.connect(one.address)
        with pytest.raises(DeviceOffline, match="not attached"):
            await find_device(server, "R58M12ABCDE")


@pytest.mark.parametrize("serial", ["", "a b", "x;y", "-s", "a\nb", "host:transport-any\0"])
async def test_what_is_no_serial(serial: str) -> None:
    async with adb_server() as adb:
        with pytest.raises(InputRejected):
            (await open_adb(port=adb.port)).device(serial)


@pytest.mark.parametrize(
    ("serial", "connection"),
    [
        ("R58M12ABCDE", "usb"),
        ("192.168.1.20:5555", "tcp"),
        ("emulator-5554", "tcp"),
        ("adb-R58M12ABCDE-x1Y2z3._adb-tls-connect._tcp", "tcp"),
    ],
)
def test_the_serial_tells_the_connection(serial: str, connection: str) -> None:
    assert connection_of(serial) == connection
