"""The protocol of the adb server, against a peer that answers by a script: what no real server does on demand."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from agent_core.devices.adb.transport import ShellResult, Transport, query, require
from agent_core.errors import CommandFailed, DeviceError, DeviceOffline, DeviceUnauthorized, InputDenied

Answer = Callable[[str, asyncio.StreamWriter], Awaitable[bool]]


class Peer:
    """Stands for an adb server; ``requests`` are what it was asked, ``answer`` decides (False closes)."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[str] = []
        self.answer = answer
        self.port = 0
        self.waits: list[float] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = (await reader.readexactly(int(await reader.readexactly(4), 16))).decode()
                self.requests.append(request)
                if not await self.answer(request, writer):
                    return
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def transport(self) -> Transport:
        return Transport("127.0.0.1", self.port, "P1", sleep=self.sleep)


@asynccontextmanager
async def peer(answer: Answer) -> AsyncIterator[Peer]:
    found = Peer(answer)
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found


def block(text: str) -> bytes:
    return b"%04x" % len(text.encode()) + text.encode()


def packet(kind: int, data: bytes) -> bytes:
    return struct.pack("<BI", kind, len(data)) + data


def answering(service: bytes, *, features: str = "shell_v2,cmd", transport: bytes = b"OKAY") -> Answer:
    """``service`` is sent for a shell or exec, ``transport`` for the choice of the phone."""

    async def answer(request: str, writer: asyncio.StreamWriter) -> bool:
        if request.endswith(":features"):
            writer.write(b"OKAY" + block(features))
            return False
        if request.startswith("host:transport:"):
            writer.write(transport)
            return transport == b"OKAY"
        writer.write(service)
        return False

    return answer


async def test_shell_v2_keeps_output_errors_and_exit_status_apart() -> None:
    service = (
        b"OKAY"
        + packet(1, "你".encode()[:2])
        + packet(2, b"warn\r\n")
        + packet(1, "你".encode()[2:])
        + packet(3, b"\7")
    )
    async with peer(answering(service)) as server:
        assert await server.transport().shell("id") == ShellResult(7, "你", "warn\n")
        assert server.requests == ["host-serial:P1:features", "host:transport:P1", "shell,v2,raw:id"]


async def test_an_old_phone_prints_its_exit_status() -> None:
    async with peer(answering(b"OKAYone\r\ntwo\r\nphonedesk-exit:3\r\n", features="cmd")) as server:
        assert await server.transport().shell("id") == ShellResult(3, "one\ntwo\n", "")
        assert server.requests[-1] == "shell:id; echo phonedesk-exit:$?"


async def test_exec_gives_bytes() -> None:
    async with peer(answering(b"OKAY\r\n\0\xff")) as server:
        assert await server.transport().exec_out("screencap") == b"\r\n\0\xff"


@pytest.mark.parametrize(
    ("words", "kind", "waits"),
    [
        ("device 'P1' not found", DeviceOffline, [1, 2, 4]),
        ("device offline", DeviceOffline, [1, 2, 4]),
        ("device still authorizing", DeviceOffline, [1, 2, 4]),
        ("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", DeviceUnauthorized, []),
        ("unknown host service", CommandFailed, [1, 2]),
    ],
)
async def test_before_anything_was_sent_it_is_tried_again(
    words: str, kind: type[DeviceError], waits: list[float]
) -> None:
    async with peer(answering(b"", transport=b"FAIL" + block(words))) as server:
        with pytest.raises(kind):
            await server.transport().shell("input tap 1 2")
        assert server.waits == waits
        assert not any(request.startswith("shell") for request in server.requests)


async def test_what_acts_is_never_sent_twice() -> None:
    async with peer(answering(b"OKAY" + packet(1, b"half"))) as server:
        transport = server.transport()
        with pytest.raises(DeviceOffline, match="broke during"):
            await transport.shell("input tap 1 2")
        assert server.requests.count("shell,v2,raw:input tap 1 2") == 1
        assert server.waits == []
        assert transport.round_trips == 1


async def test_a_phone_that_goes_away_before_it_begins_is_away() -> None:
    async with peer(answering(b"FAIL" + block("closed"))) as server:
        with pytest.raises(DeviceOffline):
            await server.transport().shell("input tap 1 2")
        assert server.requests.count("shell,v2,raw:input tap 1 2") == 1


async def test_what_only_reads_is_tried_again() -> None:
    async with peer(answering(b"OKAY" + packet(1, b"half"))) as server:
        with pytest.raises(DeviceOffline):
            await server.transport().shell("getprop", safe=True)
        assert server.requests.count("shell,v2,raw:getprop") == 4
        assert server.waits == [1, 2, 4]


async def test_a_command_that_hangs_ends_in_time() -> None:
    async def answer(request: str, writer: asyncio.StreamWriter) -> bool:
        if request.startswith("host"):
            return await answering(b"")(request, writer)
        writer.write(b"OKAY")
        return True  # and nothing more

    async with peer(answer) as server:
        with pytest.raises(CommandFailed, match=r"`sleep 9` did not end within 0\.05 s"):
            await server.transport().shell("sleep 9", seconds=0.05)


async def test_nobody_listens() -> None:
    async with peer(answering(b"")) as server:
        transport = server.transport()
    with pytest.raises(DeviceOffline, match="No adb server answers"):
        await transport.exec_out("id")
    assert server.waits == [1, 2, 4]


async def test_something_else_listens() -> None:
    async def answer(request: str, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        return False

    async with peer(answer) as server:
        with pytest.raises(DeviceOffline, match="not its protocol"):
            await query("127.0.0.1", server.port, "host:version")


async def test_a_line_that_would_close_the_stream_is_not_sent() -> None:
    async with peer(answering(b"")) as server:
        with pytest.raises(CommandFailed, match="too long"):
            await server.transport().exec_out("字" * 20_001)
        assert not server.requests


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (ShellResult(1, "", "Error: no\n"), CommandFailed),
        (ShellResult(0, "", "Exception occurred while executing 'tap':\njava.lang.X\n"), CommandFailed),
        (
            ShellResult(0, "", "java.lang.SecurityException: Injecting input events requires … INJECT_EVENTS"),
            InputDenied,
        ),
    ],
)
def test_failures_are_known_whatever_the_exit_status(result: ShellResult, kind: type[DeviceError]) -> None:
    with pytest.raises(kind):
        require(result)


def test_success_is_no_failure() -> None:
    require(ShellResult(0, "ok", "WARNING: linker"))


class SyncPeer:
    """Stands for an adb server that opens ``sync:``; ``reads``: it takes what is sent, then says ``status``."""

    def __init__(self, status: bytes, *, reads: bool = True) -> None:
        self.status, self.reads = status, reads
        self.opened = 0
        self.file = bytearray()
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for _ in range(2):  # the phone, the service
                await reader.readexactly(int(await reader.readexactly(4), 16))
                writer.write(b"OKAY")
            self.opened += 1
            if not self.reads:
                await self.go_on.wait()
            while True:
                kind, length = struct.unpack("<4sI", await reader.readexactly(8))
                if kind == b"DONE":
                    break
                data = await reader.readexactly(length)
                if kind == b"DATA":
                    self.file += data
            writer.write(self.status)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended.set()
            writer.close()


@asynccontextmanager
async def sync_peer(peer: SyncPeer) -> AsyncIterator[Transport]:
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    async with server:
        yield Transport("127.0.0.1", server.sockets[0].getsockname()[1], "P1", sleep=lambda _: asyncio.sleep(0))


async def test_a_file_is_pushed_whole() -> None:
    peer, data = SyncPeer(b"OKAY\0\0\0\0"), bytes(range(256)) * 1000
    async with sync_peer(peer) as transport:
        await transport.push(data, "/data/local/tmp/a")
    assert (bytes(peer.file), peer.opened) == (data, 1)


async def test_a_file_that_the_phone_does_not_take_is_told_in_its_words_and_not_sent_again() -> None:
    why = b"couldn't create file: No space left on device"
    peer = SyncPeer(b"FAIL" + struct.pack("<I", len(why)) + why)
    async with sync_peer(peer) as transport:
        with pytest.raises(CommandFailed, match="No space left"):
            await transport.push(b"x" * 100, "/data/local/tmp/a")
    assert peer.opened == 1


async def test_a_push_that_takes_too_long_is_broken_off_and_goes_on_nowhere() -> None:
    peer, data = SyncPeer(b"OKAY\0\0\0\0", reads=False), b"x" * 20_000_000
    async with sync_peer(peer) as transport:
        with pytest.raises(CommandFailed, match="did not end within"):
            await transport.push(data, "/data/local/tmp/a", seconds=0.1)
        peer.go_on.set()
        await asyncio.wait_for(peer.ended.wait(), 10)
    assert len(peer.file) < len(data)
    assert peer.opened == 1
