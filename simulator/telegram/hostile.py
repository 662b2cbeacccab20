"""A Bot API server that wants to do harm, on 127.0.0.1.

    async with HostileTelegram("endless_body") as server:
        bot = Bot(TOKEN, f"{server.url}/bot", …)

Each case answers any method in its own way; ``CASES`` names them. It speaks HTTP/1.1 byte by byte, because no server
library would send most of this.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from typing import Any, cast

TOKEN = "123456789:" + "A" * 35
MEGABYTE = 1024 * 1024
DRIP_SECONDS = 0.2

Case = Callable[["HostileTelegram"], AsyncIterator[bytes]]
CASES: dict[str, Case] = {}


class HostileTelegram:
    """A Bot API server that attacks its client.

    requests: the request lines that came.
    elsewhere: the URL that it sends clients to.
    path: the place of a file in the answer of getFile.
    """

    def __init__(self, case: str, *, elsewhere: str = "", path: str = "documents/a.csv") -> None:
        self._case = CASES[case]
        self.elsewhere = elsewhere
        self.path = path
        self.method = ""  # of the request that is answered
        self.requests: list[str] = []
        self.url = ""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> HostileTelegram:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        # The client has had enough, or the server ends.
        with closing(writer), suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line = head.partition("\r\n")[0]
            self.requests.append(line)
            self.method = line.split()[1].rpartition("/")[2].partition("?")[0]
            async for piece in self._case(self):
                writer.write(piece)
                await writer.drain()


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


def _head(*lines: str, status: str = "200 OK") -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode()


def _answer(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    return _head(f"Content-Length: {len(body)}", *lines, status=status) + body


def _result(value: Any) -> bytes:
    return _answer(json.dumps({"ok": True, "result": value}).encode())


async def _drip(pieces: Callable[[], bytes]) -> AsyncIterator[bytes]:
    while True:
        yield pieces()
        await asyncio.sleep(DRIP_SECONDS)


# Too much -------------------------------------------------------------------------------------------------------------


@case
async def endless_body(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _head() + b'{"ok": true, "result": "'
    while True:
        yield b"x" * MEGABYTE


@case
async def large_body(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _head(f"Content-Length: {1024 * MEGABYTE}")
    for _piece in range(1024):
        yield bytes(MEGABYTE)


@case
async def gzip_bomb(_: HostileTelegram) -> AsyncIterator[bytes]:
    """Send a gigabyte in a megabyte. After a full flush a block of deflate can be repeated as it is."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = packer.compress(b'{"ok": true, "result": "') + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(b"x" * MEGABYTE) + packer.flush(zlib.Z_FULL_FLUSH)
    yield _head("Content-Encoding: gzip") + begin + block * 1024


@case
async def many_values(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _answer(b'{"ok": true, "result": [' + b"{}," * (8 * MEGABYTE // 3 - 20) + b"{}]}")


@case
async def many_names(_: HostileTelegram) -> AsyncIterator[bytes]:
    names = ",".join(f'"{number:x}":0' for number in range(700_000))
    yield _answer(f'{{"ok": true, "result": {{{names}}}}}'.encode())


@case
async def deep(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _answer(b'{"ok": true, "result": ' + b"[" * 150_000 + b"]" * 150_000 + b"}")


@case
async def one_byte_pieces(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _head("Transfer-Encoding: chunked")
    while True:
        yield b"1\r\nx\r\n" * 10_000


@case
async def endless_head(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-Y: z\r\n" * 10_000


@case
async def large_error(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _answer(b"\x1b[2J<html>" * 700_000, status="502 Bad Gateway")


@case
async def large_description(_: HostileTelegram) -> AsyncIterator[bytes]:
    told = {"ok": False, "error_code": 400, "description": "\x1b(B" * 300_000, "parameters": {"x": "y" * 1_000_000}}
    yield _answer(json.dumps(told).encode(), status="400 Bad Request")


# Too long -------------------------------------------------------------------------------------------------------------


@case
async def silence(_: HostileTelegram) -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


@case
async def slow_head(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Y: "
    async for piece in _drip(lambda: b"z"):
        yield piece


@case
async def slow_body(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _head(f"Content-Length: {MEGABYTE}")
    async for piece in _drip(lambda: b" "):
        yield piece


@case
async def endless_promises(_: HostileTelegram) -> AsyncIterator[bytes]:
    async for piece in _drip(lambda: _head(status="100 Continue")):
        yield piece


# Elsewhere ------------------------------------------------------------------------------------------------------------


@case
async def redirect(server: HostileTelegram) -> AsyncIterator[bytes]:
    status = ("301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect")
    yield _answer(b"", f"Location: {server.elsewhere}/here", status=status[len(server.requests) % len(status)])


@case
async def file_elsewhere(server: HostileTelegram) -> AsyncIterator[bytes]:
    """Answer getFile with ``path``, and every request for a file with the file."""
    if server.method == "getFile":
        yield _result({"file_id": "F", "file_unique_id": "U", "file_size": 1, "file_path": server.path})
    else:
        yield _answer(b"from the server")


@case
async def file_too_large(server: HostileTelegram) -> AsyncIterator[bytes]:
    """Send an endless file that was announced with one byte."""
    async for piece in file_elsewhere(server) if server.method == "getFile" else endless_body(server):
        yield piece


# Nonsense -------------------------------------------------------------------------------------------------------------

NONSENSE = (
    *(b"", b"null", b"[]", b"1", b'"x"', b"{}", b"\xff\xfe", b"NaN", b'{"ok": true}', b'{"ok": true, "result": []}'),
    *(b'{"ok": true, "result": 1}', b'{"ok": true, "result": {"id": "x"}}', b'{"ok": true, "result": "\\ud800"}'),
    b'{"ok": true, "result": {"id": 1, "is_bot": true}}',
    b'{"ok": true, "result": ' + b"9" * 5000 + b"}",
)


@case
async def nonsense(server: HostileTelegram) -> AsyncIterator[bytes]:
    """Send a different piece of nonsense each time."""
    yield _answer(NONSENSE[(len(server.requests) - 1) % len(NONSENSE)])


ODD_PARAMETERS: tuple[Any, ...] = (
    *(1, [], {"retry_after": "x"}, {"retry_after": 10**300}, {"retry_after": -5}, {"retry_after": 1e300}),
    *({"retry_after": None}, {"migrate_to_chat_id": []}, {"migrate_to_chat_id": 10**30}),
)


@case
async def odd_errors(server: HostileTelegram) -> AsyncIterator[bytes]:
    """Send a different error each time."""
    odd = ODD_PARAMETERS[(len(server.requests) - 1) % len(ODD_PARAMETERS)]
    yield _answer(json.dumps({"ok": False, "description": ["x"], "parameters": odd}).encode(), status="429 Many")


@case
async def many_updates(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _result([{"update_id": number} for number in range(60_000)])


@case
async def many_broken_updates(_: HostileTelegram) -> AsyncIterator[bytes]:
    broken = b",".join(b'{"update_id": %d, "x": 00}' % number for number in range(60_000))
    yield _answer(b'{"ok": true, "result": [' + broken + b"]}")


@case
async def good(_: HostileTelegram) -> AsyncIterator[bytes]:
    yield _result({"id": 1, "is_bot": True, "first_name": "Desk", "username": "desk_bot"})
