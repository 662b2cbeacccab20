"""A connection to an adb server, against a peer that sends in pieces, floods and breaks off."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from agent_core.devices.adb.connection import AdbConnection

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def connected(peer: Peer) -> AsyncIterator[AdbConnection]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        connection = await AdbConnection.connect(*server.sockets[0].getsockname())
        try:
            yield connection
        finally:
            connection.close()


def sends(*pieces: bytes) -> Peer:
    async def peer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    return peer


async def test_what_comes_in_pieces_is_read_whole_and_the_rest_after_it() -> None:
    async with connected(sends(b"OK", b"AY12", b"34", b"5678" * 50_000)) as connection:
        assert await connection.exactly(4) == b"OKAY"
        assert await connection.some(3) in (b"12", b"123")
        array = bytearray(b"old content" * 100)
        found = await connection.rest(array)
        assert found is array
        assert b"".join((b"12", b"34", b"5678" * 50_000)).endswith(found)
        assert len(found) >= 200_001
        assert await connection.some(10) == b""


async def test_an_array_is_used_again_whatever_it_held() -> None:
    array = bytearray()
    for content in (b"a" * 300_000, b"b" * 10, b"", b"c" * 300_001):
        async with connected(sends(content)) as connection:
            assert await connection.rest(array) is array
            assert array == content


async def test_an_end_that_comes_too_early_is_no_answer() -> None:
    async with connected(sends(b"OK")) as connection:
        with pytest.raises(asyncio.IncompleteReadError):
            await connection.exactly(4)


@pytest.mark.parametrize(
    "read", [lambda one: one.rest(bytearray()), lambda one: one.exactly(1), lambda one: one.some(1)]
)
async def test_a_connection_that_breaks_raises_and_never_passes_for_its_end(
    read: Callable[[AdbConnection], Awaitable[object]],
) -> None:
    was_read = asyncio.Event()

    async def peer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 1000)
        await was_read.wait()
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with connected(peer) as connection:
        assert await connection.exactly(1000) == b"x" * 1000
        was_read.set()
        with pytest.raises(ConnectionError):
            await read(connection)
        with pytest.raises(ConnectionError):
            await connection.rest(bytearray())


async def test_whoever_sends_more_than_is_read_waits() -> None:
    sent = 0

    async def peer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _ in range(400):
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    async with connected(peer) as connection:
        assert await connection.exactly(10) == b"x" * 10
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 400 * 65_536
        assert len(await connection.rest(bytearray())) == 400 * 65_536 - 10


async def test_a_cancelled_read_can_be_read_again() -> None:
    ready = asyncio.Event()

    async def peer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ready.wait()
        writer.write(b"late")

    async with connected(peer) as connection:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await connection.exactly(4)
        ready.set()
        assert await connection.exactly(4) == b"late"
