"""The file service of adbd (``sync:``), versions 1 and 2, over the phone's file tree.

A request is an id of four letters, a little-endian length and a path. The layouts are those of the Android Open Source
Project's ``file_sync_protocol.h``.
"""

from __future__ import annotations

import errno
import logging
import stat
import struct
from typing import Protocol

from simulator.phone.files import MAX_PATH_CHARACTERS, FileStat, FileTree

log = logging.getLogger(__name__)

MAX_DATA = 64 * 1024  # of one DATA message, both ways
MAX_PATH_BYTES = MAX_PATH_CHARACTERS * 4
BATCH = 15  # DATA messages written at once: just under 1 MiB

_REQUEST = struct.Struct("<4sI")
_STAT_1 = struct.Struct("<4sIII")
_STAT_2 = struct.Struct("<4sIQQIIIIQqqq")
_ENTRY_1 = struct.Struct("<4sIIII")
_ENTRY_2 = struct.Struct("<4sIQQIIIIQqqqI")
_RECEIVE_2 = struct.Struct("<4sI")
_SEND_2 = struct.Struct("<4sII")


class ByteStream(Protocol):
    async def read_exactly(self, count: int) -> bytes: ...

    async def write(self, data: bytes | bytearray | memoryview) -> None: ...


class ProtocolViolation(Exception):
    """The host sent something that no host sends; the stream ends after an error message."""


async def serve_sync(stream: ByteStream, files: FileTree) -> None:
    """Answer requests until QUIT or the end of the stream (``asyncio.IncompleteReadError``)."""
    service = _SyncService(stream, files)
    try:
        while await service.one_request():
            pass
    except ProtocolViolation as error:
        log.warning("file service: %s", error)
        await service.fail(str(error))


class _SyncService:
    def __init__(self, stream: ByteStream, files: FileTree) -> None:
        self._stream = stream
        self._files = files

    async def one_request(self) -> bool:
        """Serve one request. Return False if the host has said QUIT."""
        name, length = _REQUEST.unpack(await self._stream.read_exactly(_REQUEST.size))
        if name == b"QUIT":
            return False
        handler = {
            b"STAT": self._stat_1,
            b"STA2": self._stat_2,
            b"LST2": self._link_stat_2,
            b"LIST": self._list_1,
            b"LIS2": self._list_2,
            b"RECV": self._receive_1,
            b"RCV2": self._receive_2,
            b"SEND": self._send_1,
            b"SND2": self._send_2,
        }.get(name)
        if handler is None:
            raise ProtocolViolation(f"unknown command {name!r}")
        if length > MAX_PATH_BYTES:
            raise ProtocolViolation("path too long")
        path = (await self._stream.read_exactly(length)).decode("utf-8", "replace") if length else ""
        await handler(path)
        return True

    async def fail(self, message: str) -> None:
        words = message.encode()
        await self._stream.write(_REQUEST.pack(b"FAIL", len(words)) + words)

    # -- looking

    async def _stat_1(self, path: str) -> None:
        found = self._files.stat(path) or FileStat(0, 0, 0)
        await self._stream.write(_STAT_1.pack(b"STAT", found.mode, found.size & 0xFFFFFFFF, found.mtime))

    async def _stat_2(self, path: str) -> None:
        await self._answer_stat(b"STA2", path)

    async def _link_stat_2(self, path: str) -> None:
        await self._answer_stat(b"LST2", path)

    async def _answer_stat(self, name: bytes, path: str) -> None:
        found = self._files.stat(path)
        if found is None:
            await self._stream.write(_STAT_2.pack(name, errno.ENOENT, *[0] * 10))
            return
        times = (found.mtime,) * 3
        await self._stream.write(_STAT_2.pack(name, 0, 1, 1, found.mode, 1, 0, 0, found.size, *times))

    async def _list_1(self, path: str) -> None:
        answer = bytearray()
        for name, found in self._entries(path):
            size = found.size & 0xFFFFFFFF
            answer += _ENTRY_1.pack(b"DENT", found.mode, size, found.mtime, len(name)) + name
        await self._stream.write(answer + _ENTRY_1.pack(b"DONE", 0, 0, 0, 0))

    async def _list_2(self, path: str) -> None:
        answer = bytearray()
        for name, found in self._entries(path):
            times = (found.mtime,) * 3
            answer += _ENTRY_2.pack(b"DNT2", 0, 1, 1, found.mode, 1, 0, 0, found.size, *times, len(name)) + name
        await self._stream.write(answer + _ENTRY_2.pack(b"DONE", *[0] * 12))

    def _entries(self, path: str) -> list[tuple[bytes, FileStat]]:
        try:
            return [(name.encode(), found) for name, found in self._files.names(path)]
        except OSError:  # a host sees an empty listing, as from adbd
            return []

    # -- phone to host

    async def _receive_2(self, path: str) -> None:
        _, flags = _RECEIVE_2.unpack(await self._stream.read_exactly(_RECEIVE_2.size))
        if flags:
            raise ProtocolViolation("compression was not offered")
        await self._receive_1(path)

    async def _receive_1(self, path: str) -> None:
        try:
            data = memoryview(self._files.read(path))
        except OSError as error:
            await self.fail(error.strerror or "read failed")
            return
        for start in range(0, len(data), BATCH * MAX_DATA):
            batch = bytearray()
            for offset in range(start, min(start + BATCH * MAX_DATA, len(data)), MAX_DATA):
                part = data[offset : offset + MAX_DATA]
                batch += _REQUEST.pack(b"DATA", len(part))
                batch += part
            await self._stream.write(batch)
        await self._stream.write(_REQUEST.pack(b"DONE", 0))

    # -- host to phone

    async def _send_1(self, spec: str) -> None:
        path, comma, mode = spec.rpartition(",")
        if not comma or len(mode) > 6 or not (mode.isascii() and mode.isdecimal()):
            raise ProtocolViolation("missing mode in SEND")
        await self._take(path, int(mode))

    async def _send_2(self, path: str) -> None:
        _, mode, flags = _SEND_2.unpack(await self._stream.read_exactly(_SEND_2.size))
        if flags:
            raise ProtocolViolation("compression was not offered")
        await self._take(path, mode)

    async def _take(self, path: str, mode: int) -> None:
        """Read a file to its end, kept or refused: the host listens for the answer only after it has sent all."""
        refused = "" if stat.S_IFMT(mode) in {0, stat.S_IFREG} else "couldn't create file: Operation not permitted"
        try:
            self._files.check_writable(path)
        except OSError as error:
            refused = f"couldn't create file: {error.strerror}"
        data = bytearray()
        while True:
            name, length = _REQUEST.unpack(await self._stream.read_exactly(_REQUEST.size))
            if name == b"DONE":
                break
            if name != b"DATA" or length > MAX_DATA:
                raise ProtocolViolation("oversize data message" if name == b"DATA" else "invalid data message")
            part = await self._stream.read_exactly(length)
            if not refused and not self._files.has_room(len(data) + length):
                refused = "write failed: No space left on device"
                data.clear()
            if not refused:
                data += part
        if not refused:
            try:
                self._files.write(path, bytes(data), mode=mode, mtime=length, parents=True)
            except OSError as error:
                refused = f"couldn't create file: {error.strerror}"
        if refused:
            await self.fail(refused)
        else:
            await self._stream.write(_REQUEST.pack(b"OKAY", 0))
