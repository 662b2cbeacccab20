"""A connection to the adb server whose bytes are received where they stay.

A raw picture is 10 MB, and asyncio's streams copy each of its bytes four times on the way. Here the system writes them
into the array that the caller gets, and gives again for the next picture, because new memory costs as much as a copy.
"""

from __future__ import annotations

import asyncio
from typing import cast

_PIECE = 64 * 1024  # bytes by which an array grows
_ALL = 2**63


class AdbConnection(asyncio.BufferedProtocol):
    """An open connection, from ``connect``. One task reads at a time.

    Reading raises ConnectionError if the connection breaks, asyncio.IncompleteReadError if it ends too early.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._data = bytearray(_PIECE)
        self._begin = self._end = 0  # of what has come and was not read yet
        self._wanted = 0  # bytes that somebody waits for
        self._waiter: asyncio.Future[None] | None = None
        self._paused = self._over = False
        self._error: Exception | None = None

    @classmethod
    async def connect(cls, host: str, port: int) -> AdbConnection:
        """Connect. Raises OSError."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        return connection

    def send(self, data: bytes) -> None:
        """Send. If that fails, the next read raises."""
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Close at once. What was not sent yet is not sent any more."""
        if self._transport is not None:
            self._transport.abort()

    async def exactly(self, count: int) -> bytes:
        """Read so many bytes."""
        await self._until(count)
        if self._there < count:
            raise asyncio.IncompleteReadError(self._taken(self._there), count)
        return self._taken(count)

    async def some(self, most: int) -> bytes:
        """Read what is there, at least one byte; b"" at the end."""
        await self._until(1)
        return self._taken(min(most, self._there))

    async def rest(self, into: bytearray) -> bytearray:
        """Read all until the end, and return it: in ``into`` if it can be enlarged. Its old content is overwritten."""
        left = self._taken(self._there)
        if len(into) < len(left):
            into.extend(bytes(len(left) - len(into)))
        into[: len(left)] = left
        self._data, self._begin, self._end = into, 0, len(left)
        await self._until(_ALL)
        del self._data[self._end :]
        data, self._data, self._end = self._data, bytearray(), 0
        return data

    @property
    def _there(self) -> int:
        return self._end - self._begin

    def _taken(self, count: int) -> bytes:
        taken = bytes(memoryview(self._data)[self._begin : self._begin + count])
        self._begin += count
        if self._begin == self._end:
            self._begin = self._end = 0
        return taken

    async def _until(self, count: int) -> None:
        """Wait until so many bytes are there, or the connection has ended."""
        if self._there < count and not self._over:
            self._wanted, self._waiter = count, asyncio.get_running_loop().create_future()
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._error is not None and self._there < count:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done() and (self._over or self._there >= self._wanted):
            self._waiter.set_result(None)

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        if self._end == len(self._data):
            try:
                self._data.extend(bytes(_PIECE))
            except BufferError:  # the loop of Windows holds the last view meanwhile
                self._data = self._data + bytes(_PIECE)
        return memoryview(self._data)[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        if self._waiter is None and self._end == len(self._data) and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()  # nobody reads: the sender waits
        self._wake()

    def eof_received(self) -> None:
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._over, self._error = True, exc
        self._wake()
