"""A host that speaks the adb transport by hand, for what no real adb would send."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HEADER = struct.Struct("<6I")
CONNECT = b"host::features=shell_v2,cmd,stat_v2,ls_v2,sendrecv_v2"


class RawHost:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, name: bytes, first: int = 0, second: int = 0, data: bytes = b"") -> None:
        command = int.from_bytes(name, "little")
        self.writer.write(HEADER.pack(command, first, second, len(data), sum(data), command ^ 0xFFFFFFFF) + data)

    async def receive(self) -> tuple[bytes, int, int, bytes]:
        """Name, both arguments and payload. IncompleteReadError or ConnectionError where the phone has cut it."""
        async with asyncio.timeout(10):
            command, first, second, length, _, _ = HEADER.unpack(await self.reader.readexactly(24))
            return command.to_bytes(4, "little"), first, second, await self.reader.readexactly(length)

    async def connect(self, version: int = 0x01000001, payload: int = 1 << 20) -> bytes:
        """The phone's banner."""
        self.send(b"CNXN", version, payload, CONNECT)
        name, _, _, banner = await self.receive()
        assert name == b"CNXN"
        return banner

    async def open(self, service: str, local: int = 7) -> int:
        """The phone's id of the stream."""
        self.send(b"OPEN", local, 0, service.encode() + b"\0")
        name, remote, ours, _ = await self.receive()
        assert (name, ours) == (b"OKAY", local)
        return remote

    async def is_cut(self) -> bool:
        try:
            while True:
                await self.receive()
        except (asyncio.IncompleteReadError, ConnectionError):
            return True
        except TimeoutError:
            return False


@asynccontextmanager
async def raw_host(port: int) -> AsyncIterator[RawHost]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    try:
        yield RawHost(reader, writer)
    finally:
        writer.transport.abort()
