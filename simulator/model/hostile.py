"""A model's server that does what no honest one does: one kind of attack at a time, over real HTTP.

    async with HostileModel("gzip bomb") as server:
        model = ChatModel(server.url, "m", "key")
        ...
    assert not server.elsewhere      # the requests to the host that it redirects to

The names of the attacks are in ``ATTACKS``. ``GET /v1/models`` is attacked in the same way as the completions.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

PIECE = 64 * 1024
_ENDLESS = 2**40

_SSE = {"Content-Type": "text/event-stream"}
_JSON = {"Content-Type": "application/json"}

Parts = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Attack:
    """The answer of an attack, after the status line. ``chunked``: each part is sent as a chunk; otherwise as it is."""

    body: Callable[[], Parts]
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=lambda: _SSE)
    chunked: bool = False


def _event(delta: object, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n".encode()


def _call(index: int, name: str, arguments: str) -> bytes:
    function = {"name": name, "arguments": arguments}
    return _event({"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]})


async def _once(*parts: bytes) -> Parts:
    for part in parts:
        yield part


async def _again(part: bytes, *, begin: bytes = b"", times: int = _ENDLESS, pause: float = 0.0) -> Parts:
    """Yield ``begin``, then ``part`` again and again, many at once if there is no pause."""
    yield begin
    if pause:
        while True:
            yield part
            await asyncio.sleep(pause)
    block = max(1, PIECE // len(part))
    while times > 0:
        yield part * min(block, times)
        times -= block


async def _singly(part: bytes, times: int, *, begin: bytes = b"") -> Parts:
    """Yield the same as ``_again``, each ``part`` by itself."""
    yield begin
    for _ in range(times):
        yield part


async def _indexes() -> Parts:
    for index in range(_ENDLESS):
        yield _call(index, "Tap", "")


async def _bomb(megabytes: int = 1024) -> Parts:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    begin = b'{"choices": [{"message": {"content": "'
    yield packer.compress(begin)
    for _ in range(megabytes):
        yield packer.compress(b"a" * 2**20)
    yield packer.compress(b'"}}]}') + packer.flush()


def _whole(text: str) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}]}).encode()


_CONTENT = b'{"choices": [{"message": {"role": "assistant", "content": "'
_HALF = b'data: {"choices": [{"index": 0, "delta": {"content": "\\ud83d"}, "finish_reason": null}]}\n\n'
_ANSWER = _whole('finish(message="ok")')

ATTACKS: Mapping[str, Attack] = {
    "endless JSON": Attack(lambda: _again(b"a" * PIECE, begin=_CONTENT), headers=_JSON),
    "1 GB of JSON": Attack(
        lambda: _again(b"a" * PIECE, begin=_CONTENT, times=16 * 1024),
        headers={**_JSON, "Content-Length": str(len(_CONTENT) + 2**30)},
    ),
    "JSON of many objects": Attack(lambda: _again(b"{},", begin=b'{"choices": [', times=2_700_000), headers=_JSON),
    "JSON of many lists": Attack(lambda: _again(b"[],", begin=b'{"data": [', times=2_700_000), headers=_JSON),
    "JSON of many numbers": Attack(
        lambda: _once(b'{"choices": [], "data": [' + b"1e5," * 1_900_000 + b"1]}"), headers=_JSON
    ),
    "JSON of many wrong choices": Attack(lambda: _once(b'{"choices": [' + b"1e5," * 1_900_000 + b"1]}"), headers=_JSON),
    "deep JSON": Attack(lambda: _once(b"[" * 2_000_000 + b"]" * 2_000_000), headers=_JSON),
    "deep event": Attack(lambda: _once(b"data: " + b"[" * 500_000 + b"]" * 500_000 + b"\n\n")),
    "huge number": Attack(
        lambda: _once(b'{"choices": [{"index": ' + b"9" * 5_000_000 + b', "message": {"content": "x"}}]}'),
        headers=_JSON,
    ),
    "huge count of tokens": Attack(
        lambda: _once(b'data: {"choices": [], "usage": {"prompt_tokens": ' + b"9" * 500_000 + b"}}\n\n")
    ),
    "gzip bomb": Attack(_bomb, headers={**_JSON, "Content-Encoding": "gzip"}),
    "gzip bomb in a stream": Attack(
        lambda: _once(gzip.compress(_event({"content": "a"}) * 2_000_000)), headers={**_SSE, "Content-Encoding": "gzip"}
    ),
    "gzip in gzip": Attack(
        lambda: _once(gzip.compress(gzip.compress(b"a" * 2**27))), headers={**_JSON, "Content-Encoding": "gzip, gzip"}
    ),
    "unasked encoding": Attack(lambda: _once(_ANSWER), headers={**_JSON, "Content-Encoding": "zstd"}),
    "endless line": Attack(lambda: _again(b"a" * PIECE, begin=b"data: ")),
    "endless line in pieces": Attack(lambda: _singly(b"a" * 7, _ENDLESS, begin=b"data: "), chunked=True),
    "one event of 7 MB": Attack(lambda: _once(_event({"content": "好" * 2_300_000}))),
    "event of many choices": Attack(lambda: _once(b'data: {"choices": [' + b"{}," * 300_000 + b"{}]}\n\n")),
    "endless comments": Attack(lambda: _again(b": ping\n\n")),
    "endless blank lines": Attack(lambda: _again(b"\n")),
    "endless empty parts": Attack(lambda: _again(_event({"content": ""}))),
    "empty parts now and then": Attack(lambda: _again(_event({"content": ""}), pause=0.3)),
    "pings now and then": Attack(lambda: _again(b": ping\n\n", pause=0.3)),
    "a character now and then": Attack(lambda: _again(_event({"content": "a"}), pause=0.3)),
    "a character of JSON now and then": Attack(lambda: _again(b"a", begin=_CONTENT, pause=0.3), headers=_JSON),
    "endless empty tool calls": Attack(lambda: _again(_call(0, "", ""))),
    "empty tool calls now and then": Attack(lambda: _again(_call(0, "", ""), begin=_call(0, "Tap", ""), pause=0.3)),
    "endless indexes of tool calls": Attack(_indexes),
    "endless arguments": Attack(lambda: _again(_call(0, "", "}"), begin=_call(0, "Tap", '{"element": "'))),
    "1 MB in pieces of one character": Attack(lambda: _singly(_event({"content": "a"}), 1_000_000)),
    "1 MB of calls that do not end": Attack(lambda: _singly(_event({"content": "do("}), 350_000)),
    "1 MB of lines": Attack(lambda: _singly(_event({"content": "\n"}), 1_000_000)),
    "1 MB of brackets": Attack(lambda: _singly(_event({"content": "}"}), 1_000_000)),
    "1 MB of tags": Attack(lambda: _singly(_event({"content": "</think><think>"}), 70_000)),
    "1 MB of thinking": Attack(lambda: _singly(_event({"reasoning_content": "想"}), 350_000)),
    "1 MB as halves of characters": Attack(lambda: _singly(_HALF, 150_000)),
    "redirect": Attack(lambda: _once(b""), status="307 Temporary Redirect"),
    "permanent redirect": Attack(lambda: _once(b""), status="308 Permanent Redirect"),
    "redirect of another method": Attack(lambda: _once(b""), status="302 Found"),
    "endless error": Attack(
        lambda: _again(b"<b>error</b> sk-12345 ", begin=b"<html>"),
        status="500 Internal Server Error",
        headers={"Content-Type": "text/html"},
    ),
    "error now and then": Attack(
        lambda: _again(b"no ", begin=b"{", pause=0.3), status="400 Bad Request", headers=_JSON
    ),
    "endless headers": Attack(lambda: _again(b"X-Header: 1\r\n"), headers={}),
    "headers now and then": Attack(lambda: _again(b"X-Header: 1\r\n", pause=0.3), headers={}),
    "one long header": Attack(lambda: _again(b"a" * PIECE, begin=b"X-Header: "), headers={}),
    "pause of a year": Attack(
        lambda: _once(b"{}"), status="429 Too Many Requests", headers={**_JSON, "Retry-After": "31536000"}
    ),
    "no HTTP": Attack(lambda: _again(b"\x00\xff" * 1000), status=""),
    "broken chunks": Attack(lambda: _once(b"zz\r\nabc\r\n"), headers={**_SSE, "Transfer-Encoding": "chunked"}),
    "shorter than it says": Attack(lambda: _once(_ANSWER[:20]), headers={**_JSON, "Content-Length": "4000"}),
    "silence": Attack(lambda: _again(b"", begin=b": hello\n\n", pause=3600)),
}


class HostileModel:
    """A model server that attacks its client. ``url`` ends with ``/v1``.

    ``requests``: the requests that came. ``elsewhere``: those that were sent after a redirect.
    """

    def __init__(self, attack: str) -> None:
        self._attack = ATTACKS[attack]
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._other = ""
        self.url = ""
        self.requests: list[bytes] = []
        self.elsewhere: list[bytes] = []

    async def __aenter__(self) -> HostileModel:
        self._other = await self._listen(self._take_elsewhere)
        self.url = await self._listen(self._answer) + "/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> str:
        async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = cast("asyncio.Task[None]", asyncio.current_task())
            self._tasks.add(task)
            try:
                await handle(reader, writer)
            except (ConnectionError, TimeoutError, asyncio.CancelledError):
                pass  # the client has had enough, or the server ends
            finally:
                writer.close()
                self._tasks.discard(task)

        server = await asyncio.start_server(served, "127.0.0.1", 0, limit=2**24)
        self._servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _take_elsewhere(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.elsewhere.append(await _request(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_ANSWER))
        writer.write(_ANSWER)
        await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append(await _request(reader))
        attack = self._attack
        head = f"HTTP/1.1 {attack.status}\r\n" if attack.status else ""
        headers = dict(attack.headers)
        if attack.status.startswith("3"):
            headers |= {"Location": f"{self._other}/v1/chat/completions", "Content-Length": "0"}
        if attack.chunked:
            headers["Transfer-Encoding"] = "chunked"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(head.encode() + (b"\r\n" if headers else b""))
        async for part in attack.body():
            if attack.chunked and part:
                part = b"%x\r\n%s\r\n" % (len(part), part)  # noqa: PLW2901 - as it goes over the wire
            writer.write(part)
            await writer.drain()
        if attack.chunked:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _request(reader: asyncio.StreamReader) -> bytes:
    """Head and body of one request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
    return head + await reader.readexactly(int(length.partition(b":")[2]))
