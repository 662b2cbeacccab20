"""A knowledge service that does its worst, on 127.0.0.1: one case a call, named by the first part of the path.

    async with HostileKnowledge() as service:
        base = DifyKnowledge(f"{service.url}/gzip_bomb", "set", TOKEN, timeout=1)

It speaks over a bare socket, because no HTTP server would send most of this. It reads requests strictly: a malformed
request, or one that does not ask for an answer in the right form, is recorded in ``refused``.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cache

from simulator.knowledge.answers import BODIES, Form, wrapped

TOKEN = "key-geheim-0123456789"  # noqa: S105 - what the service expects
_BLOCK = b"x" * 65_536
_GIGABYTE = 2**30
_DRIP = 0.05  # seconds between two bytes of a service that takes its time
_GOOD = "[]"


@dataclass(slots=True)
class Call:
    """One call to answer. ``elsewhere`` is the address that a redirect leads to."""

    form: Form
    elsewhere: str
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def forever(self, data: bytes, *, pause: float = 0) -> None:
        while True:
            await self.send(data)
            await asyncio.sleep(pause)

    async def head(self, *headers: str, status: str = "200 OK") -> None:
        """Send the beginning of an answer, with exactly the given headers."""
        lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", "Connection: close", *headers]
        await self.send("".join(f"{line}\r\n" for line in [*lines, ""]).encode())

    async def whole(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        await self.head(f"Content-Length: {len(body)}", *headers, status=status)
        await self.send(body)

    @property
    def good(self) -> bytes:
        """An answer with no records."""
        return wrapped(self.form, _GOOD)


Case = Callable[[Call], Awaitable[None]]
CASES: dict[str, Case] = {}


def _case(case: Case) -> Case:
    CASES[case.__name__] = case
    return case


# -- bodies


@_case
async def endless_body(call: Call) -> None:
    await call.head()
    await call.forever(_BLOCK)


@_case
async def endless_error(call: Call) -> None:
    await call.head(status="401 Unauthorized")
    await call.forever(_BLOCK)


@_case
async def gigabyte(call: Call) -> None:
    await call.head(f"Content-Length: {_GIGABYTE}")
    await call.forever(_BLOCK)


@_case
async def gzip_bomb(call: Call) -> None:
    await call.whole(bomb(), "Content-Encoding: gzip")


@_case
async def gzip_bomb_of_an_error(call: Call) -> None:
    await call.whole(bomb(), "Content-Encoding: gzip", status="403 Forbidden")


@_case
async def gzip_twice(call: Call) -> None:
    await call.whole(gzip.compress(bomb()), "Content-Encoding: gzip, gzip")


@_case
async def packed_unasked(call: Call) -> None:
    await call.whole(gzip.compress(call.good), "Content-Encoding: gzip")


@_case
async def slow_drip(call: Call) -> None:
    await call.head("Content-Length: 100000")
    await call.forever(b" ", pause=_DRIP)


@_case
async def slow_drip_of_an_error(call: Call) -> None:
    await call.head("Content-Length: 100000", status="500 Internal Server Error")
    await call.forever(b" ", pause=_DRIP)


@_case
async def length_too_long(call: Call) -> None:
    await call.head(f"Content-Length: {len(call.good) + 1000}")
    await call.send(call.good)


@_case
async def length_too_short(call: Call) -> None:
    await call.head(f"Content-Length: {len(call.good) - 3}")
    await call.send(call.good)


@_case
async def length_below_zero(call: Call) -> None:
    await call.head("Content-Length: -5")
    await call.send(call.good)


@_case
async def two_lengths(call: Call) -> None:
    await call.head("Content-Length: 5", f"Content-Length: {len(call.good)}")
    await call.send(call.good)


# -- chunks


@_case
async def tiny_chunks(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.forever(b"1\r\n \r\n" * 10_000)


@_case
async def not_a_chunk(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(b"zz\r\n" + call.good + b"\r\n0\r\n\r\n")


@_case
async def chunk_cut_off(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(b"fff\r\n" + call.good)


@_case
async def terabyte_chunk(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(b"ffffffffff\r\n")
    await call.forever(_BLOCK)


@_case
async def chunk_size_overflow(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(b"f" * 40 + b"\r\n" + call.good)


@_case
async def endless_chunk_extension(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(b"5;a=")
    await call.forever(_BLOCK)


@_case
async def endless_trailers(call: Call) -> None:
    await call.head("Transfer-Encoding: chunked")
    await call.send(f"{len(call.good):x}\r\n".encode() + call.good + b"\r\n0\r\n")
    await call.forever(b"X-More: " + _BLOCK[:1000] + b"\r\n")


# -- heads


@_case
async def endless_headers(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    await call.forever(b"X-More: " + _BLOCK[:1000] + b"\r\n")


@_case
async def endless_header_line(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\nX-More: ")
    await call.forever(_BLOCK)


@_case
async def endless_header_name(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    await call.forever(_BLOCK)


@_case
async def endless_status_line(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 ")
    await call.forever(_BLOCK)


@_case
async def endless_early_hints(call: Call) -> None:
    await call.forever(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 500)


@_case
async def slow_headers(call: Call) -> None:
    await call.send(b"HTTP/1.1 200 OK\r\n")
    await call.forever(b"X: y\r\n", pause=_DRIP)


@_case
async def silence(call: Call) -> None:
    await asyncio.Event().wait()


@_case
async def closed_at_once(call: Call) -> None:
    return


@_case
async def not_http(call: Call) -> None:
    await call.send(b"SSH-2.0-OpenSSH_9.2\r\n")


@_case
async def odd_status(call: Call) -> None:
    await call.whole(call.good, status="999 What")


@_case
async def switching_protocols(call: Call) -> None:
    await call.head("Upgrade: websocket", status="101 Switching Protocols")
    await call.forever(_BLOCK)


@_case
async def redirect(call: Call) -> None:
    await call.whole(b"", f"Location: {call.elsewhere}", status="302 Found")


@_case
async def redirect_that_keeps_the_method(call: Call) -> None:
    await call.whole(b"", f"Location: {call.elsewhere}", status="307 Temporary Redirect")


@_case
async def later_again_and_again(call: Call) -> None:
    await call.whole(b"{}", "Retry-After: 0.3", status="429 Too Many Requests")


@_case
async def much_later(call: Call) -> None:
    await call.whole(b"{}", "Retry-After: " + "9" * 400, status="503 Service Unavailable")


@_case
async def later_than_time(call: Call) -> None:
    await call.whole(b"{}", "Retry-After: Fri, 31 Dec 99999 23:59:59 GMT", status="503 Service Unavailable")


def _answers(name: str) -> Case:
    async def answer(call: Call) -> None:
        await call.whole(body_of(name, call.form))

    return answer


CASES |= {name: _answers(name) for name in BODIES}


@cache
def body_of(name: str, form: Form) -> bytes:
    """Return the body of a case; the big ones take a while when they are made first."""
    return BODIES[name](form)


@cache
def bomb() -> bytes:
    """Return a valid JSON text of 300 MB, packed by gzip into 300 KB (RFC 1952)."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    head, blank, tail = b'{"records": []', b" " * 2**20, b"}"
    packed = [packer.compress(head), packer.flush(zlib.Z_FULL_FLUSH)]
    packed += [packer.compress(blank) + packer.flush(zlib.Z_FULL_FLUSH)] * 300  # behind a full flush all are alike
    packed += [packer.compress(tail), packer.flush()]
    check = zlib.crc32(head)
    for _ in range(300):
        check = zlib.crc32(blank, check)
    size = len(head) + 300 * len(blank) + len(tail)
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return b"".join([header, *packed, struct.pack("<II", zlib.crc32(tail, check), size % 2**32)])


# -- the service


class HostileKnowledge:
    """A knowledge service that attacks its client.

    ``calls``: the cases that were asked for. ``refused``: the faults of requests. ``elsewhere``: the requests that came
    to the host of the redirects.
    """

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[str] = []
        self.refused: list[str] = []
        self.elsewhere: list[bytes] = []
        self._elsewhere_url = ""
        self._stack = AsyncExitStack()
        self._answering: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> HostileKnowledge:
        self.url = await self._listen(self._serve)
        self._elsewhere_url = await self._listen(self._serve_elsewhere)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _listen(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._stack.callback(server.close)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve_elsewhere(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.elsewhere.append(await reader.read(65_536))
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answering = asyncio.create_task(self._answer(reader, writer))
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):  # a client that has had enough hangs up
                name, form = await self._read(reader)
                self.calls.append(name)
                await CASES[name](Call(form, self._elsewhere_url, writer))
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> tuple[str, Form]:
        """Read a request. Return its case and its form."""
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
        method, path, version = lines[0].split(" ")
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        if (method, version) != ("POST", "HTTP/1.1") or not (body.get("query") or body.get("question")):
            self.refused.append(f"{lines[0]} {body}")
        if headers.get("accept-encoding") != "identity":
            self.refused.append(f"accept-encoding: {headers.get('accept-encoding')}")
        if headers.get("authorization") != f"Bearer {TOKEN}":
            self.refused.append("no token")
        _, name, rest = path.split("/", 2)
        form: Form = "dify" if rest.startswith("v1/datasets/") else "ragflow" if rest == "api/v1/retrieval" else "http"
        return name, form
