"""One connection of an adb server to the phone: packets, authentication, and the streams that it carries.

A packet is a header of 24 bytes (six little-endian numbers: command, two arguments, length, checksum, command inverted)
and a payload. The host speaks first. On a stream one WRTE is in flight at a time, acknowledged when it was consumed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import Awaitable, Callable
from typing import Protocol

from simulator.phone.adbd_keys import TOKEN_BYTES, PublicKey

log = logging.getLogger(__name__)


def _code(name: bytes) -> int:
    return int.from_bytes(name, "little")


CNXN, AUTH, OPEN, OKAY, CLSE, WRTE = map(_code, (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"CLSE", b"WRTE"))
AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3
VERSION = 0x01000001  # from this version on checksums are not looked at
MAX_PAYLOAD = 1024 * 1024
MIN_PAYLOAD = 4096  # the payload of the oldest hosts
MAX_PAYLOAD_BEFORE_ONLINE = 64 * 1024
MAX_SERVICE_BYTES = 65_535
MAX_STREAMS = 256
MAX_UNREAD = 2 * MAX_PAYLOAD  # a host that keeps to the protocol never comes near it
MAX_UNSENT = 16 * MAX_PAYLOAD
MAX_SIGNATURES = 64
HANDSHAKE_SECONDS = 60.0
HEADER = struct.Struct("<6I")

Payload = bytes | bytearray | memoryview


class StreamClosed(ConnectionResetError):
    """The host closed the stream, or the connection went away."""


class BadPacket(Exception):
    """The data is not the protocol: the connection is closed."""


class Stream:
    """One service that a host has opened.

    ``ends_input``: the host closes the stream to end its input, and the service continues with the input so far. Shell
    v2 has a separate packet for that; there a closed stream means that the host is gone.
    """

    def __init__(self, transport: Transport, local: int, remote: int, *, ends_input: bool) -> None:
        self.local = local
        self.remote = remote
        self.ends_input = ends_input
        self.closed = False  # by the host
        self.task: asyncio.Task[None] | None = None
        self._transport = transport
        self._incoming: asyncio.Queue[bytes] = asyncio.Queue()  # b"" is the end
        self._unread = 0
        self._buffer = bytearray()
        self._acknowledged = asyncio.Event()
        self._reading = False

    async def read(self) -> bytes:
        """Return the next piece that the host sent, empty at the end.

        It is acknowledged only now, so a host must wait.
        """
        if self._buffer:
            piece = bytes(self._buffer)
            self._buffer.clear()
            return piece
        if self.closed and self._incoming.empty():
            return b""
        self._reading = True
        try:
            piece = await self._incoming.get()
        finally:
            self._reading = False
        self._unread -= len(piece)
        if piece and not self.closed:
            self._transport.post(OKAY, self.local, self.remote)
        return piece

    async def read_exactly(self, count: int) -> bytes:
        """Read ``count`` bytes. Raises ``asyncio.IncompleteReadError`` if the stream ends before."""
        held = self._buffer
        self._buffer = bytearray()
        while len(held) < count:
            piece = await self.read()
            if not piece:
                raise asyncio.IncompleteReadError(bytes(held), count)
            held += piece
        wanted = bytes(held[:count])
        del held[:count]
        self._buffer = held
        return wanted

    async def write(self, data: Payload) -> None:
        """Send, and wait until the host has taken it. Raises StreamClosed if the host has closed the stream."""
        view = memoryview(data)
        while view:
            part = view[: self._transport.max_payload]
            self._acknowledged.clear()
            if self.closed:
                raise StreamClosed("the host closed the stream")
            await self._transport.send(WRTE, self.local, self.remote, part)
            await self._acknowledged.wait()
            if self.closed:
                raise StreamClosed("the host closed the stream")
            view = view[len(part) :]

    def feed(self, data: bytes) -> None:
        self._unread += len(data)
        if self._unread > MAX_UNREAD:
            raise BadPacket("the host does not wait for acknowledgements")
        if data:
            self._incoming.put_nowait(data)
        else:
            self._transport.post(OKAY, self.local, self.remote)

    def acknowledge(self) -> None:
        self._acknowledged.set()

    def host_closed(self, *, gone: bool) -> None:
        """Record that the host sends no more. A service that still reads gets the rest and ends itself; others are
        stopped.

        ``gone``: the whole connection is lost, and no service continues.
        """
        self.closed = True
        finishing = not gone and self.ends_input and (self._reading or not self._incoming.empty())
        self._incoming.put_nowait(b"")
        self._acknowledged.set()
        if self.task is not None and not finishing:
            self.task.cancel()


class Host(Protocol):
    """The part of the server that a connection needs."""

    def banner(self) -> bytes: ...

    def asks_for_key(self) -> bool: ...

    def is_mute(self) -> bool: ...

    def knows(self, token: bytes, signature: bytes) -> bool: ...

    def offered(self, transport: Transport, key: PublicKey) -> None: ...

    def service(self, name: str) -> Callable[[Stream], Awaitable[None]] | None: ...


class Transport:
    def __init__(self, host: Host, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.online = False
        self.max_payload = MIN_PAYLOAD
        self._host = host
        self._reader = reader
        self._writer = writer
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._next = 1
        self._version = 0x01000000
        self._connected = False  # a CNXN has come
        self._token = b""
        self._signatures = 0

    @property
    def running(self) -> int:
        """The number of running services."""
        return len(self._tasks)

    async def run(self) -> None:
        """Read packets until the host goes away, sends anything but the protocol, or ``abort`` is called."""
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS):
                await self._one_packet()
            while True:
                await self._one_packet()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            log.debug("adb connection ended")
        except BadPacket as error:
            log.warning("adb connection closed: %s", error)
        finally:
            self.abort()
            for stream in list(self._streams.values()):
                stream.host_closed(gone=True)
            self._streams.clear()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def abort(self) -> None:
        """Cut the connection as a pulled cable would: nothing more is sent."""
        self.online = False
        self._writer.transport.abort()

    def go_online(self) -> None:
        self.online = True
        self.post(CNXN, VERSION, MAX_PAYLOAD, self._host.banner())

    def post(self, command: int, first: int, second: int, data: Payload = b"") -> None:
        """Queue a small packet without waiting."""
        if self._writer.transport.is_closing():
            return
        self._put(command, first, second, data)
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT:
            log.warning("adb connection closed: the host takes nothing")
            self.abort()

    async def send(self, command: int, first: int, second: int, data: Payload) -> None:
        self._put(command, first, second, data)
        await self._writer.drain()

    def _put(self, command: int, first: int, second: int, data: Payload) -> None:
        checked = self._version < VERSION or command in {CNXN, AUTH}
        checksum = sum(data) & 0xFFFFFFFF if checked else 0
        self._writer.write(HEADER.pack(command, first, second, len(data), checksum, command ^ 0xFFFFFFFF))
        if len(data):
            self._writer.write(data)

    # -- incoming packets

    async def _one_packet(self) -> None:
        command, first, second, length, _, inverted = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        if inverted != command ^ 0xFFFFFFFF:
            raise BadPacket("bad magic")
        if length > (MAX_PAYLOAD if self.online else MAX_PAYLOAD_BEFORE_ONLINE):
            raise BadPacket(f"payload of {length} bytes")
        data = await self._reader.readexactly(length) if length else b""
        if command == CNXN:
            self._on_connect(first, second)
        elif not self._connected:
            raise BadPacket("the first packet is not CNXN")
        elif command == AUTH:
            self._on_auth(first, data)
        elif self.online:
            self._on_stream_packet(command, first, second, data)

    def _on_connect(self, version: int, max_payload: int) -> None:
        if max_payload < MIN_PAYLOAD:
            raise BadPacket(f"largest payload of {max_payload} bytes")
        self._connected = True
        self._version = min(version, VERSION)
        self.max_payload = min(max_payload, MAX_PAYLOAD)
        for stream in list(self._streams.values()):  # a host that starts again has forgotten its streams
            stream.host_closed(gone=True)
        self._streams.clear()
        self.online = False
        if self._host.is_mute():
            return
        if self._host.asks_for_key():
            self._ask_for_key()
        else:
            self.go_online()

    def _ask_for_key(self) -> None:
        self._token = os.urandom(TOKEN_BYTES)
        self.post(AUTH, AUTH_TOKEN, 0, self._token)

    def _on_auth(self, kind: int, data: bytes) -> None:
        if self.online or not self._token:
            return
        if kind == AUTH_SIGNATURE:
            self._signatures += 1
            if self._signatures > MAX_SIGNATURES:
                raise BadPacket("too many signatures")
            if self._host.knows(self._token, data):
                self.go_online()
            else:
                self._ask_for_key()  # the host tries its next key, then offers one
        elif kind == AUTH_PUBLIC_KEY:
            try:
                key = PublicKey.parse(data)
            except ValueError as error:
                raise BadPacket(str(error)) from error
            self._host.offered(self, key)

    def _on_stream_packet(self, command: int, first: int, second: int, data: bytes) -> None:
        if command == OPEN:
            self._on_open(first, data)
            return
        stream = self._streams.get(second)
        if command == WRTE:
            if stream is None:
                self.post(CLSE, 0, first)
            else:
                stream.feed(data)
        elif command == OKAY and stream is not None:
            stream.acknowledge()
        elif command == CLSE and stream is not None:
            del self._streams[second]
            stream.host_closed(gone=False)
            self.post(CLSE, stream.local, stream.remote)  # some hosts wait for it

    def _on_open(self, remote: int, data: bytes) -> None:
        service = None
        name = data.rstrip(b"\0")
        if len(name) > MAX_SERVICE_BYTES or len(self._streams) >= MAX_STREAMS:
            log.warning("adb stream refused: %d bytes, %d streams open", len(name), len(self._streams))
        else:
            service = self._host.service(name.decode("utf-8", "replace"))
        if service is None:
            self.post(CLSE, 0, remote)
            return
        stream = Stream(self, self._next, remote, ends_input=b",v2" not in name.partition(b":")[0])
        self._next = self._next % 0xFFFFFFFF + 1
        self._streams[stream.local] = stream
        self.post(OKAY, stream.local, remote)
        stream.task = asyncio.create_task(self._serve(stream, service))
        self._tasks.add(stream.task)
        stream.task.add_done_callback(self._tasks.discard)

    async def _serve(self, stream: Stream, service: Callable[[Stream], Awaitable[None]]) -> None:
        try:
            await service(stream)
        except (ConnectionError, asyncio.IncompleteReadError):
            log.debug("adb stream ended by the host")
        except Exception:
            log.exception("a service of the virtual phone failed")
        finally:
            if self._streams.pop(stream.local, None) is not None:
                self.post(CLSE, stream.local, stream.remote)
