"""The file service: with real adb programs both ways, and by hand with both versions and what no host would send."""

from __future__ import annotations

import random
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from simulator.phone.adbd import AdbdServer
from simulator.phone.files import FileTree
from tests.simulator.phone.raw_host import RawHost, raw_host
from tests.simulator.phone.small_phone import SmallPhone
from tests.support.adb import AdbServerProcess


async def test_push_and_pull_twenty_megabytes(
    adb: AdbServerProcess, serial: str, adbd: AdbdServer, tmp_path: Path
) -> None:
    data = random.Random(2).randbytes(20_000_000)
    (tmp_path / "out").write_bytes(data)
    assert (await adb.run("-s", serial, "push", str(tmp_path / "out"), "/sdcard/Download/big")).code == 0
    assert adbd.files.read("/sdcard/Download/big") == data
    assert (await adb.run("-s", serial, "pull", "/sdcard/Download/big", str(tmp_path / "in"))).code == 0
    assert (tmp_path / "in").read_bytes() == data


async def test_folders_both_ways(adb: AdbServerProcess, serial: str, adbd: AdbdServer, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "sub" / "中文.txt").write_text("b")
    assert (await adb.run("-s", serial, "push", str(source), "/sdcard/")).code == 0
    assert adbd.files.read("/sdcard/tree/sub/中文.txt") == b"b"
    assert (await adb.run("-s", serial, "pull", "/sdcard/tree", str(tmp_path / "back"))).code == 0
    assert (tmp_path / "back" / "sub" / "中文.txt").read_text() == "b"
    listed = (await adb.run("-s", serial, "ls", "/sdcard/tree")).text
    assert "a.txt" in listed
    assert "sub" in listed


async def test_what_cannot_be_had_or_kept(adb: AdbServerProcess, serial: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    absent = await adb.run("-s", serial, "pull", "/../../etc/passwd", str(tmp_path / "y"))
    assert absent.code != 0
    assert not (tmp_path / "y").exists()
    refused = await adb.run("-s", serial, "push", str(tmp_path / "x"), "/system/x")
    assert refused.code != 0
    assert "Read-only file system" in refused.text + refused.err.decode()


async def test_the_version_without_extensions(adb: AdbServerProcess, phone: SmallPhone, tmp_path: Path) -> None:
    async with AdbdServer(phone, features=()) as old:
        serial = await adb.connect(old.port)
        (tmp_path / "x").write_text("old")
        assert (await adb.run("-s", serial, "push", str(tmp_path / "x"), "/sdcard/x")).code == 0
        assert (await adb.run("-s", serial, "pull", "/sdcard/x", str(tmp_path / "y"))).code == 0
        assert (tmp_path / "y").read_text() == "old"


# -- by hand


class SyncHost:
    def __init__(self, host: RawHost, remote: int) -> None:
        self.host = host
        self.remote = remote
        self.held = b""

    def write(self, data: bytes) -> None:
        self.host.send(b"WRTE", 7, self.remote, data)

    def ask(self, name: bytes, path: bytes, more: bytes = b"") -> None:
        self.write(name + struct.pack("<I", len(path)) + path + more)

    async def read(self, count: int) -> bytes:
        while len(self.held) < count:
            name, _, _, data = await self.host.receive()
            if name == b"CLSE":
                break
            if name == b"WRTE":
                self.held += data
                self.host.send(b"OKAY", 7, self.remote)
        taken, self.held = self.held[:count], self.held[count:]
        return taken

    async def failure(self) -> str:
        name, length = struct.unpack("<4sI", await self.read(8))
        assert name == b"FAIL"
        return (await self.read(length)).decode()


@asynccontextmanager
async def sync_host(server: AdbdServer) -> AsyncIterator[SyncHost]:
    async with raw_host(server.port) as host:
        await host.connect()
        yield SyncHost(host, await host.open("sync:"))


async def test_stat_and_list_of_both_versions(adbd: AdbdServer) -> None:
    adbd.files.write("/sdcard/f", b"12345", mtime=99)
    async with sync_host(adbd) as host:
        host.ask(b"STAT", b"/sdcard/f")
        assert struct.unpack("<4sIII", await host.read(16)) == (b"STAT", 0o100660, 5, 99)
        host.ask(b"STAT", b"/none")
        assert struct.unpack("<4sIII", await host.read(16)) == (b"STAT", 0, 0, 0)
        host.ask(b"STA2", b"/sdcard/f")
        found = struct.unpack("<4sIQQIIIIQqqq", await host.read(72))
        assert (found[0], found[1], found[4], found[8], found[10]) == (b"STA2", 0, 0o100660, 5, 99)
        host.ask(b"LST2", b"/none")
        assert struct.unpack("<4sI", (await host.read(72))[:8]) == (b"LST2", 2)
        host.ask(b"LIST", b"/sdcard")
        entries = {}
        while (entry := struct.unpack("<4sIIII", await host.read(20)))[0] == b"DENT":
            entries[await host.read(entry[4])] = entry[2]
        assert entries == {b"Download": 4096, b"f": 5}
        host.ask(b"LIS2", b"/none")
        assert (await host.read(76))[:4] == b"DONE"


async def test_a_request_may_come_in_pieces(adbd: AdbdServer) -> None:
    adbd.files.write("/sdcard/f", b"12345")
    async with sync_host(adbd) as host:
        for byte in b"RECV" + struct.pack("<I", 9) + b"/sdcard/f":
            host.write(bytes([byte]))
            assert (await host.host.receive())[0] == b"OKAY"
        assert await host.read(21) == b"DATA" + struct.pack("<I", 5) + b"12345DONE" + bytes(4)


async def test_a_failed_request_leaves_the_service_usable(adbd: AdbdServer) -> None:
    async with sync_host(adbd) as host:
        host.ask(b"RECV", b"/sdcard/../../etc/passwd")
        assert await host.failure() == "No such file or directory"
        host.ask(b"SEND", b"/system/x,33188", b"DATA" + struct.pack("<I", 1) + b"xDONE" + bytes(4))
        assert await host.failure() == "couldn't create file: Read-only file system"
        host.ask(b"SEND", b"/sdcard/link,41471", b"DATA" + struct.pack("<I", 1) + b"xDONE" + bytes(4))
        assert await host.failure() == "couldn't create file: Operation not permitted"
        host.ask(b"SEND", b"/sdcard/../sdcard/ok,33188", b"DATA" + struct.pack("<I", 1) + b"xDONE" + bytes(4))
        assert await host.read(8) == b"OKAY" + bytes(4)
    assert adbd.files.read("/sdcard/ok") == b"x"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (b"NOPE" + bytes(4), "unknown command"),
        (b"RECV" + struct.pack("<I", 0xFFFFFFFF), "path too long"),
        (b"SEND" + struct.pack("<I", 9) + b"/sdcard/x", "missing mode"),
        (b"SEND" + struct.pack("<I", 16) + b"/sdcard/x,999999" * 1, "invalid data message"),
        (b"SEND" + struct.pack("<I", 15) + b"/sdcard/x,33188", "invalid data message"),
        (b"RCV2" + struct.pack("<I", 2) + b"/x" + b"RCV2" + struct.pack("<I", 1), "compression"),
    ],
)
async def test_what_no_host_sends_ends_the_stream(adbd: AdbdServer, request_: bytes, why: str) -> None:
    async with sync_host(adbd) as host:
        host.write(request_ + (b"JUNK" + bytes(4) if why == "invalid data message" else b""))
        assert why in await host.failure()
        assert await host.read(1) == b""  # closed
        await host.host.open("exec:echo still", 8)


async def test_an_oversize_data_message(adbd: AdbdServer) -> None:
    async with sync_host(adbd) as host:
        host.ask(b"SEND", b"/sdcard/x,33188", b"DATA" + struct.pack("<I", 65_537))
        assert "oversize" in await host.failure()
    assert adbd.files.stat("/sdcard/x") is None


async def test_a_full_phone_reads_on_and_says_so() -> None:
    async with AdbdServer(SmallPhone(), files=FileTree(max_bytes=100_000)) as server, sync_host(server) as host:
        host.ask(b"SEND", b"/sdcard/x,33188")
        for _ in range(3):
            host.write(b"DATA" + struct.pack("<I", 60_000) + bytes(60_000))
            while (await host.host.receive())[0] != b"OKAY":
                pass
        host.write(b"DONE" + bytes(4))
        assert "No space left on device" in await host.failure()
        assert server.files.stat("/sdcard/x") is None


async def test_a_transfer_that_is_cut_keeps_nothing(adbd: AdbdServer) -> None:
    adbd.files.write("/sdcard/x", b"before")
    async with sync_host(adbd) as host:
        host.ask(b"SEND", b"/sdcard/x,33188", b"DATA" + struct.pack("<I", 3) + b"new")
        assert (await host.host.receive())[0] == b"OKAY"
    assert adbd.files.read("/sdcard/x") == b"before"
