"""Two real proxies that count what goes through them: HTTP (RFC 9110, CONNECT and absolute form) and SOCKS5.

    async with HttpProxy({"model.example": port}) as proxy:
        ChatModel("http://model.example/v1", …, proxy=ProxySetting("…", proxy.url))
        assert proxy.asked == ["model.example:80"]

``hosts`` are the names that only the proxy can resolve, with ports of this machine; any other host cannot be reached.
With ``login`` (user, password) nobody else gets through.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Self
from urllib.parse import quote, urlsplit

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def free_port() -> int:
    """A port of this machine at which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Proxy:
    scheme = ""

    def __init__(self, hosts: Mapping[str, int], *, login: tuple[str, str] | None = None, port: int = 0) -> None:
        self.hosts = hosts
        self.login = login
        self._wanted_port = port
        self.asked: list[str] = []  # HOST:PORT of each connection, whether it was made or not
        self.turned_away = 0  # without the login
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        login = f"{quote(self.login[0], safe='')}:{quote(self.login[1], safe='')}@" if self.login else ""
        return f"{self.scheme}://{login}{self.address}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._wanted_port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def _reach(self, host: str, port: int) -> _Streams | None:
        self.asked.append(f"{host}:{port}")
        if host not in self.hosts:
            return None
        return await asyncio.open_connection("127.0.0.1", self.hosts[host])


class HttpProxy(_Proxy):
    scheme = "http"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(1)
        if not first.isalpha():  # such as a SOCKS client
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head[:-4].split("\r\n")
        method, target, version = line.split(" ")
        if not self._may(fields):
            self.turned_away += 1
            refusal = "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=proxy"
            writer.write(f"HTTP/1.1 {refusal}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        tunnel = method == "CONNECT"
        parts = urlsplit(f"//{target}" if tunnel else target)
        assert parts.hostname, f"neither CONNECT nor the absolute form: {line}"
        there = await self._reach(parts.hostname, parts.port or 80)
        if there is None:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:  # one request a connection, so that each is counted
            kept = [field for field in fields if not field.lower().startswith(("proxy-", "connection:"))]
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            head = "\r\n".join((f"{method} {path or '/'} {version}", *kept, "Connection: close"))
            there[1].write(f"{head}\r\n\r\n".encode("latin-1"))
        await _joined((reader, writer), there)

    def _may(self, fields: list[str]) -> bool:
        if self.login is None:
            return True
        given = dict(field.lower().split(": ", 1)[:1] + field.split(": ", 1)[1:] for field in fields)
        wanted = base64.b64encode(":".join(self.login).encode()).decode()
        return given.get("proxy-authorization") == f"Basic {wanted}"


class SocksProxy(_Proxy):
    """RFC 1928, with user and password as in RFC 1929. Names are resolved here."""

    scheme = "socks5"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, count = await reader.readexactly(2)
        methods = await reader.readexactly(count) if version == 5 else b""
        wanted = 2 if self.login else 0
        if wanted not in methods:
            self.turned_away += 1
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, wanted)))
        if self.login and not await self._logged_in(reader, writer):
            self.turned_away += 1
            return
        _, command, _, kind = await reader.readexactly(4)
        assert command == 1, "only CONNECT"
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii")
        else:
            raw = await reader.readexactly(4 if kind == 1 else 16)
            host = socket.inet_ntop(socket.AF_INET if kind == 1 else socket.AF_INET6, raw)
        port = int.from_bytes(await reader.readexactly(2), "big")
        there = await self._reach(host, port)
        writer.write(bytes((5, 0 if there else 4, 0, 1, 0, 0, 0, 0, 0, 0)))  # 4: host unreachable
        if there:
            await _joined((reader, writer), there)

    async def _logged_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        user, password = [(await reader.readexactly((await reader.readexactly(1))[0])).decode() for _ in range(2)]
        good = (user, password) == self.login
        writer.write(bytes((1, 0 if good else 1)))
        return good


async def _joined(one: _Streams, other: _Streams) -> None:
    """Carry bytes both ways until either side ends."""
    copies = [asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))]
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        other[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
