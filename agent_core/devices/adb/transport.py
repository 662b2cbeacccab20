"""The adb server's smart-socket protocol over asyncio: one connection a call, no sleeps, nothing kept open.

A request is four hexadecimal digits of length and the text; the answer is ``OKAY``, or ``FAIL`` and a text of the same
form (adb's ``SERVICES.TXT``, ``OVERVIEW.TXT`` and ``SYNC.TXT``).
"""

from __future__ import annotations

import asyncio
import re
import stat
import struct
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog

from agent_core.devices.adb.brands import PROPERTIES, Brand, brand_of, input_denied
from agent_core.devices.adb.connection import AdbConnection
from agent_core.devices.adb.parse import denies_input, first_line
from agent_core.devices.shell import PhoneCalls, check_length, command_line, short
from agent_core.errors import CommandFailed, DeviceError, DeviceOffline, DeviceUnauthorized
from agent_core.retry import Sleep
from agent_core.texts import Worded

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5.0
PUSH_SECONDS = 120.0
SYNC_PIECE = 64 * 1024  # bytes; the most that a DATA message may have
_EXIT_MARK = re.compile(rb"phonedesk-exit:(\d+)\s*$")
_STDOUT, _STDERR, _EXIT = 1, 2, 3

T = TypeVar("T")
Elsewhere = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The result of a command on the phone.

    code: the exit status. out, err: the output as text (UTF-8; broken bytes are replaced).
    """

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return self.out + self.err


def require(result: ShellResult) -> None:
    """Raise InputDenied or CommandFailed if the phone refused or failed, whatever its exit status."""
    if denies_input(result.text):
        raise input_denied("other")
    if result.code != 0 or "Exception occurred" in result.text:
        why = first_line(result.text) or f"exit code {result.code}"
        raise CommandFailed(f"The phone said: {why}", key="phone_said", why=why)


class Transport(PhoneCalls):
    """Calls to one phone through one adb server. ``round_trips`` counts the streams that were opened to the phone.

    serial: the phone's name in errors and logs.
    at: the name by which the adb server reaches it; the serial if left out. One phone may have several.
    elsewhere: returns the name by which the phone can be reached now, "" if by none. It is asked if ``at`` fails.
    """

    def __init__(
        self,
        host: str,
        port: int,
        serial: str,
        *,
        sleep: Sleep = asyncio.sleep,
        at: str = "",
        elsewhere: Elsewhere | None = None,
    ) -> None:
        super().__init__(sleep)
        self.host, self.port, self.serial = host, port, serial
        self.at = at or serial
        self._elsewhere = elsewhere
        self.round_trips = 0
        self._features: frozenset[str] | None = None
        self._brand: Brand | None = None

    async def shell(
        self, line: str, *, seconds: float = 15.0, safe: bool = False, shown: str | None = None
    ) -> ShellResult:
        """Run ``line`` on the phone and wait until it ends.

        safe: the line only reads, or changes nothing if it is run twice. All of it is then retried by the retry table;
        otherwise only the part before the phone was asked anything.
        shown: the text for errors in place of the line, if the line holds a secret.

        Raises CommandFailed if the line takes longer than ``seconds`` or is too long, DeviceOffline if the connection
        breaks.
        """
        v2 = "shell_v2" in await self.features()
        request = f"shell,v2,raw:{line}" if v2 else f"shell:{line}; echo phonedesk-exit:$?"
        return await self._call(request, shown or line, seconds, safe, _read_v2 if v2 else _read_v1)

    async def exec_out(self, line: str, *, seconds: float = 20.0, into: bytearray | None = None) -> bytearray:
        """Return the output of ``line``, including stderr, without an exit status.

        into: an array for the output, which is returned then. Its old content is overwritten.
        """
        array = bytearray() if into is None else into
        return await self._call(f"exec:{line}", line, seconds, False, lambda connection: connection.rest(array))

    @asynccontextmanager
    async def stream(self, line: str) -> AsyncGenerator[AsyncGenerator[bytes, None], None]:
        """Start ``line`` on the phone, on a terminal, and yield its output as it comes (line ends ``\\r\\n``).

        The program ends on the phone with this context: it is hung up when its terminal goes away. Nothing is retried.
        Raises DeviceOffline if the phone cannot be reached; reading the pieces raises it if the connection breaks.
        """
        # The terminal makes every program write line by line; into a pipe some keep 4 kB back.
        v2 = "shell_v2" in await self.features()
        connection = await self._attach()
        try:
            self.round_trips += 1
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await _ask(connection, f"shell,v2,TERM=dumb,pty:{line}" if v2 else f"shell:{line}")
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
                raise DeviceOffline(
                    f"The connection to {self.serial} broke during `{short(line)}`.",
                    key="phone_broke_off",
                    phone=self.serial,
                ) from error
            yield _pieces(connection, framed=v2)
        finally:
            connection.close()

    async def push(self, data: bytes, path: str, *, seconds: float = PUSH_SECONDS) -> None:
        """Write a file on the phone.

        Raises CommandFailed with the phone's words if it cannot be written, DeviceOffline if the connection breaks.
        """

        async def send(connection: AdbConnection) -> None:
            place = f"{path},{stat.S_IFREG | 0o644}".encode()
            pieces = (data[at : at + SYNC_PIECE] for at in range(0, len(data), SYNC_PIECE))
            connection.send(b"SEND" + struct.pack("<I", len(place)) + place)
            connection.send(b"".join(b"DATA" + struct.pack("<I", len(piece)) + piece for piece in pieces))
            connection.send(b"DONE" + struct.pack("<I", int(time.time())))
            status, length = struct.unpack("<4sI", await connection.exactly(8))
            if status != b"OKAY":
                why = first_line(_text(await connection.exactly(length))) or f"{status!r}"
                raise CommandFailed(f"The phone said: {why}", key="phone_said", why=why)

        await self._call("sync:", f"push {path}", seconds, False, send)

    async def features(self) -> frozenset[str]:
        """Return the features of the phone's adbd. They are asked for once."""
        if self._features is None:
            answer = await self._tried(lambda: query(self.host, self.port, f"host-serial:{self.at}:features"))
            self._features = frozenset(answer.strip().split(","))
        return self._features

    async def brand(self) -> Brand:
        """Return the phone's brand; asked once."""
        if self._brand is None:
            line = command_line(*(("getprop", name) for name in PROPERTIES))
            self._brand = brand_of(*(await self.shell(line, safe=True)).out.splitlines())
        return self._brand

    async def _call(
        self, request: str, line: str, seconds: float, safe: bool, read: Callable[[AdbConnection], Awaitable[T]]
    ) -> T:
        check_length(line)
        if safe:
            return await self._tried(lambda: self._once(self._attach, request, line, seconds, read))
        return await self._once(lambda: self._tried(self._attach), request, line, seconds, read)

    async def _tried(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self._retried(lambda: self._by_any_way(call))

    async def _by_any_way(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call; if the phone is lost, have the next try take another way to it."""
        try:
            return await call()
        except DeviceOffline:
            if self._elsewhere is not None and (at := await self._elsewhere()) and at != self.at:
                log.info("adb.other_way", serial=self.serial, lost=self.at, taken=at)
                self.at = at
            raise

    async def _once(
        self,
        attach: Callable[[], Awaitable[AdbConnection]],
        request: str,
        line: str,
        seconds: float,
        read: Callable[[AdbConnection], Awaitable[T]],
    ) -> T:
        connection = await attach()
        try:
            async with asyncio.timeout(seconds):
                self.round_trips += 1
                await _ask(connection, request)
                return await read(connection)
        except TimeoutError as error:
            raise CommandFailed(
                f"`{short(line)}` did not end within {seconds:g} s.",
                key="command_late",
                command=short(line),
                seconds=f"{seconds:g}",
            ) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise DeviceOffline(
                f"The connection to {self.serial} broke during `{short(line)}`.",
                key="phone_broke_off",
                phone=self.serial,
            ) from error
        finally:
            connection.close()

    async def _attach(self) -> AdbConnection:
        """Open a connection to the phone. Nothing has been asked of the phone yet."""
        return await _open(self.host, self.port, f"host:transport:{self.at}")


async def query(host: str, port: int, request: str, *, seconds: float = CONNECT_SECONDS) -> str:
    """Return the server's answer to ``host:…``. Raises DeviceOffline if no server answers in time."""
    try:
        async with asyncio.timeout(seconds):
            connection = await _open(host, port, request, seconds)
            try:
                return (await _read_block(connection)).decode("utf-8", "replace")
            finally:
                connection.close()
    except (TimeoutError, asyncio.IncompleteReadError, ConnectionError) as error:
        raise DeviceOffline(
            f"The adb server at {host}:{port} gave no answer.", key="adb_silent", place=f"{host}:{port}"
        ) from error


async def subscribe(host: str, port: int, request: str) -> AsyncGenerator[str, None]:
    """Yield every text that the server sends after ``request``. Raises DeviceOffline when the server ends."""
    connection = await _open(host, port, request)
    try:
        while True:
            yield (await _read_block(connection)).decode("utf-8", "replace")
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise DeviceOffline(
            f"The adb server at {host}:{port} went away.", key="adb_gone", place=f"{host}:{port}"
        ) from error
    finally:
        connection.close()


async def _open(host: str, port: int, request: str, seconds: float = CONNECT_SECONDS) -> AdbConnection:
    connection: AdbConnection | None = None
    try:
        async with asyncio.timeout(seconds):
            connection = await AdbConnection.connect(host, port)
            await _ask(connection, request)
            return connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, (OSError, asyncio.IncompleteReadError, TimeoutError)):
            raise DeviceOffline(
                f"No adb server answers at {host}:{port}.", key="adb_absent", place=f"{host}:{port}"
            ) from error
        raise


async def _ask(connection: AdbConnection, request: str) -> None:
    data = request.encode()
    connection.send(b"%04x" % len(data) + data)
    status = await connection.exactly(4)
    if status == b"FAIL":
        raise failure((await _read_block(connection)).decode("utf-8", "replace"))
    if status != b"OKAY":
        raise DeviceOffline(f"The adb server answered {status!r}, which is not its protocol.", key="adb_strange")


async def _read_block(connection: AdbConnection) -> bytes:
    head = await connection.exactly(4)
    if head == b"FAIL":  # `pair` says OKAY first, to the request
        raise failure((await _read_block(connection)).decode("utf-8", "replace"))
    try:
        length = int(head, 16)
    except ValueError as error:
        raise DeviceOffline(
            f"The adb server answered {head!r}, which is not its protocol.", key="adb_strange"
        ) from error
    return await connection.exactly(length)


def failure(words: str) -> DeviceError:
    """Return the error for the server's words, if it did not answer OKAY."""
    line = words.strip().splitlines()[0] if words.strip() else "no reason given"
    if "unauthorized" in line:
        return DeviceUnauthorized(f"The phone does not accept this computer ({line}).", key="not_accepted")
    offline = ("not found", "offline", "no devices", "still connecting", "still authorizing", "device error")
    if any(word in line for word in offline) or line == "closed":  # it went away before it began the request
        return DeviceOffline(f"The phone cannot be reached ({line}).", key="phone_not_reached", why=in_words(line))
    return CommandFailed(f"The adb server refused: {line}.", key="adb_refused", why=line)


async def _read_v2(connection: AdbConnection) -> ShellResult:
    out, err = bytearray(), bytearray()
    while True:
        kind, length = struct.unpack("<BI", await connection.exactly(5))
        data = await connection.exactly(length)
        if kind == _EXIT:
            return ShellResult(data[0], _text(out), _text(err))
        if kind == _STDOUT:
            out += data
        elif kind == _STDERR:
            err += data


async def _pieces(connection: AdbConnection, *, framed: bool) -> AsyncGenerator[bytes, None]:
    """Yield the output until the program ends. Raises DeviceOffline if the connection breaks."""
    try:
        while framed:
            kind, length = struct.unpack("<BI", await connection.exactly(5))
            data = await connection.exactly(length)
            if kind == _EXIT:
                return
            yield data
        while data := await connection.some(4096):
            yield data
    except (asyncio.IncompleteReadError, ConnectionError) as error:
        raise DeviceOffline("The connection broke while the phone was listened to.", key="listening_broke") from error


async def _read_v1(connection: AdbConnection) -> ShellResult:
    # Before Android 7 a shell has a terminal, which makes line ends \r\n, and no exit status: we print it ourselves.
    data = (await connection.rest(bytearray())).replace(b"\r\n", b"\n")
    mark = _EXIT_MARK.search(data)
    if mark is None:
        raise asyncio.IncompleteReadError(bytes(data), None)
    return ShellResult(int(mark[1]), _text(data[: mark.start()]), "")


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


_REASONS = {
    "connection refused": "adb.refused",
    "no route to host": "adb.no_route",
    "network is unreachable": "adb.no_route",
    "timed out": "adb.timed_out",
    "device offline": "adb.offline",
}


def in_words(answer: str) -> str:
    """Return what adb said of a phone that it did not reach: in words of ours if the reason is known."""
    key = next((key for said, key in _REASONS.items() if said in answer.casefold()), None)
    return Worded(key) if key else answer
