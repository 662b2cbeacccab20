"""The device side of adb over TCP, so that any real adb client can use the virtual phone.

One server is one phone on one port of 127.0.0.1. ``adb connect 127.0.0.1:PORT`` attaches it to a real adb server.
"""

from __future__ import annotations

import asyncio
import logging
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from simulator.phone.adbd_keys import PublicKey
from simulator.phone.adbd_transport import Stream, Transport
from simulator.phone.files import FileTree
from simulator.phone.port import ShellPhone
from simulator.phone.scenario import Faults
from simulator.phone.shell import Shell, ShellResult
from simulator.phone.sync import serve_sync

log = logging.getLogger(__name__)

Auth = Literal["none", "key", "unauthorized", "mute"]
# Without "cmd", as before Android 7, `adb install` copies the file and calls `pm`; with it, it streams the file.
FEATURES = ("shell_v2", "stat_v2", "ls_v2", "fixed_push_mkdir", "sendrecv_v2")
KEPT_CALLS = 2000
KEPT_CALL_CHARACTERS = 4000
MAX_STDIN = 64 * 1024 * 1024
MAX_SCRIPT_LINE = 65_535
READ_LIMIT = 2 * 1024 * 1024

_STDIN, _STDOUT, _EXIT, _CLOSE_STDIN = 0, 1, 3, 4  # packet ids of shell v2
_PACKET = struct.Struct("<BI")
_FRAMEBUFFER = struct.Struct("<14I")


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """A service that a host opened, as it named it: ``shell,v2,raw:input tap 1 2``. ``at`` is time.monotonic()."""

    at: float
    service: str


class AdbdServer:
    """``auth``: ``none`` lets every host in; ``key`` the hosts whose key is approved; ``unauthorized`` nobody, until
    ``approve`` is called; ``mute`` takes the connection and never answers (the device shows as offline).

    ``features`` None are those of the phone's version of Android. ``files`` is the phone's file tree, ``calls`` the
    newest services that were opened.
    """

    def __init__(
        self,
        phone: ShellPhone,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        auth: Auth = "none",
        features: Iterable[str] | None = None,
        keys: Iterable[PublicKey] = (),
        files: FileTree | None = None,
    ) -> None:
        self.phone = phone
        self.port = port
        self.host = host
        self.auth: Auth = auth
        self._shut: Auth | None = None  # the auth that a fault puts in place of the other
        self.features = tuple(_features_of(phone) if features is None else features)
        self.keys = set(keys)
        self.files = files if files is not None else FileTree()
        self.shell = Shell(phone, self.files)
        self.calls: deque[ServiceCall] = deque(maxlen=KEPT_CALLS)
        self.offered_key: PublicKey | None = None
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], Transport] = {}
        self._waiting: list[tuple[Transport, PublicKey]] = []
        self._refusing = False
        self._reversed: dict[str, str] = {}  # ports of the phone, and their targets on the host

    # -- life

    async def start(self) -> None:
        """Start to listen; ``port`` is then the actual one."""
        self._server = await asyncio.start_server(self._accept, self.host, self.port, limit=READ_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, cut every connection and stop every service."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        self.drop()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if server is not None:
            await server.wait_closed()

    async def __aenter__(self) -> AdbdServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def connections(self) -> int:
        """The number of connected hosts."""
        return len(self._connections)

    @property
    def running_services(self) -> int:
        """The number of running services, over all connections."""
        return sum(transport.running for transport in self._connections.values())

    def drop(self) -> None:
        """Cut all connections, as if unplugged. A host comes back by itself unless it is refused."""
        for transport in self._connections.values():
            transport.abort()

    def refuse(self, refusing: bool) -> None:
        """Cut new connections at once while ``refusing`` is True: an unplugged phone stays unplugged."""
        self._refusing = refusing

    def follow(self, faults: Faults) -> None:
        """Let hosts in as the phone's faults have it, from their next connection on."""
        self.refuse(faults.dropped)
        self._shut = "mute" if faults.offline else "unauthorized" if faults.unauthorized else None

    def approve(self, *, always: bool = True) -> None:
        """Allow the hosts that have offered a key and wait, as a tap on the phone's dialog does.

        With ``always`` the key is known from then on. Raises LookupError if no host waits.
        """
        waiting = [(transport, key) for transport, key in self._waiting if transport in self._connections.values()]
        self._waiting.clear()
        if not waiting:
            raise LookupError("no host has offered a key")
        if self.auth == "unauthorized":
            self.auth = "key"
        for transport, key in waiting:
            if always:
                self.keys.add(key)
            transport.go_online()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            self.phone.screen()  # run the due events: nobody else can ask the phone while it is unplugged
        if self._refusing or self._server is None:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is served in a task")
        transport = Transport(self, reader, writer)
        self._connections[task] = transport
        try:
            await transport.run()
        except asyncio.CancelledError:
            log.debug("adb connection closed with its server")
        finally:
            del self._connections[task]
            self._waiting = [pair for pair in self._waiting if pair[0] is not transport]

    # -- requests of a connection

    def banner(self) -> bytes:
        names = ("ro.product.name", "ro.product.model", "ro.product.device")
        values = "".join(f"{name}={self.phone.properties.get(name, '')};" for name in names)
        return f"device::{values}features={','.join(self.features)}".encode()

    def asks_for_key(self) -> bool:
        return (self._shut or self.auth) != "none"

    def is_mute(self) -> bool:
        return "mute" in (self._shut, self.auth)

    def knows(self, token: bytes, signature: bytes) -> bool:
        return self._shut is None and self.auth == "key" and any(key.signed(token, signature) for key in self.keys)

    def offered(self, transport: Transport, key: PublicKey) -> None:
        self.offered_key = key
        self._waiting.append((transport, key))

    def service(self, name: str) -> Callable[[Stream], Awaitable[None]] | None:
        """Return the handler of this service; None if the phone does not have it."""
        self.calls.append(ServiceCall(time.monotonic(), name[:KEPT_CALL_CHARACTERS]))
        head, _, rest = name.partition(":")
        kind, *options = head.split(",")
        if kind == "shell":
            return lambda stream: self._serve_shell(stream, rest, options)
        if kind == "exec":
            return lambda stream: self._serve_raw(stream, rest)
        if kind == "sync":
            return lambda stream: serve_sync(stream, self.files)
        if kind == "framebuffer":
            return self._serve_framebuffer
        if kind == "reverse":
            return lambda stream: stream.write(self._reverse(rest))
        if kind == "reboot":
            return self._serve_reboot
        fixed = {
            "root": "adbd cannot run as root in production builds\n",
            "unroot": "adbd not running as root\n",
            "remount": "remount failed\n",
            "tcpip": f"restarting in TCP mode port: {rest}\n",
            "usb": "restarting in USB mode\n",
        }.get(kind)
        if fixed is None:
            log.info("service not offered by the virtual phone: %.200s", name)
            return None
        return lambda stream: stream.write(fixed.encode())

    # -- services

    async def _serve_framebuffer(self, stream: Stream) -> None:
        """Send the picture behind a header of version 2: depth, colour space, sizes, and where each colour is."""
        picture = await self.phone.picture()
        pixels = await asyncio.to_thread(lambda: picture.convert("RGBA").tobytes())
        colors = (0, 8, 16, 8, 8, 8, 24, 8)  # offset and length in bits of red, blue, green, alpha
        header = _FRAMEBUFFER.pack(2, 32, 1, len(pixels), picture.width, picture.height, *colors)
        await stream.write(header + pixels)

    def _reverse(self, request: str) -> bytes:
        """Store, list and drop the ports of ``adb reverse``. No app of this phone ever connects to such a port."""
        verb, _, rest = request.partition(":")
        if verb == "list-forward":
            text = "".join(f"(reverse) {remote} {local}\n" for remote, local in self._reversed.items()).encode()
            return f"{len(text):04x}".encode() + text
        if verb == "forward":
            remote, _, local = rest.removeprefix("norebind:").partition(";")
            if rest.startswith("norebind:") and remote in self._reversed:
                return _failed(f"cannot rebind existing socket '{remote}'")
            self._reversed[remote] = local
        elif verb == "killforward-all":
            self._reversed.clear()
        elif verb == "killforward":
            if self._reversed.pop(rest, None) is None:
                return _failed(f"listener '{rest}' not found")
        else:
            return _failed(f"unknown command 'reverse:{request}'")
        return b"OKAY"

    async def _serve_reboot(self, stream: Stream) -> None:
        self.drop()

    async def _serve_raw(self, stream: Stream, line: str) -> None:
        """Serve ``exec:`` and shell v1: standard output and error in one stream of bytes, no exit code."""
        result = await self.shell.session().run(line, stdin=lambda: _read_all(stream), live=stream.write)
        for _, data in result.chunks:
            await stream.write(data)

    async def _serve_shell(self, stream: Stream, line: str, options: list[str]) -> None:
        framed = "v2" in options
        if not line:
            await self._serve_interactive(stream, framed=framed, terminal="raw" not in options)
        elif framed:
            terminal = "pty" in options

            async def live(data: bytes) -> None:
                await stream.write(_framed_piece(_STDOUT, _on_terminal(data) if terminal else data))

            result = await self.shell.session().run(line, stdin=lambda: _read_all_framed(stream), live=live)
            if terminal:
                result = ShellResult(result.exit_code, [(_STDOUT, _on_terminal(result.merged()))])
            # All at once: a command costs one packet and one acknowledgement.
            await stream.write(_framed(result))
        else:
            await self._serve_raw(stream, line)

    async def _serve_interactive(self, stream: Stream, *, framed: bool, terminal: bool) -> None:
        """Run lines as they come, with a prompt if there is a terminal, until ``exit`` or the end."""
        session = self.shell.session()

        async def say(data: bytes) -> None:
            data = _on_terminal(data) if terminal else data
            if data:
                await stream.write(_framed_piece(_STDOUT, data) if framed else data)

        prompt = f"{self.phone.properties.get('ro.product.device', 'phone')}:/ $ ".encode() if terminal else b""
        await say(prompt)
        code = 0
        pending = bytearray()
        ended = False
        while not ended:
            piece = await (_read_framed(stream) if framed else stream.read())
            ended = not piece
            if terminal:
                await say(piece.replace(b"\r", b"\n"))
            pending += piece.replace(b"\r", b"\n") if piece else b"\n"
            if len(pending) > MAX_SCRIPT_LINE:
                raise ConnectionResetError("a line of an interactive shell is too long")
            while b"\n" in pending and not session.left:
                line, _, rest = bytes(pending).partition(b"\n")
                pending[:] = rest
                result = await session.run(line.decode("utf-8", "replace"))
                code = result.exit_code
                await say(result.merged() + (b"" if session.left else prompt))
            ended = ended or session.left
        if framed:
            await stream.write(_PACKET.pack(_EXIT, 1) + bytes([code & 0xFF]))


def _features_of(phone: ShellPhone) -> tuple[str, ...]:
    """Return the features of adbd on the phone's Android: none before version 7."""
    return FEATURES if int(phone.properties.get("ro.build.version.sdk", "33")) >= 24 else ()


def _failed(why: str) -> bytes:
    return b"FAIL" + f"{len(why.encode()):04x}{why}".encode()


async def _read_all(stream: Stream) -> bytes:
    """Read everything until the host ends the stream."""
    held = bytearray()
    while piece := await stream.read():
        held += piece
        _check_input(held)
    return bytes(held)


async def _read_framed(stream: Stream) -> bytes:
    """Return the next piece of standard input in shell v2, empty if it is closed."""
    while True:
        try:
            kind, length = _PACKET.unpack(await stream.read_exactly(_PACKET.size))
        except asyncio.IncompleteReadError:
            return b""
        if length > MAX_STDIN:
            raise ConnectionResetError("oversize shell packet")
        data = await stream.read_exactly(length) if length else b""
        if kind == _CLOSE_STDIN:
            return b""
        if kind == _STDIN and data:
            return data


async def _read_all_framed(stream: Stream) -> bytes:
    held = bytearray()
    while piece := await _read_framed(stream):
        held += piece
        _check_input(held)
    return bytes(held)


def _check_input(held: bytearray) -> None:
    if len(held) > MAX_STDIN:
        raise ConnectionResetError("too much standard input")


def _on_terminal(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def _framed_piece(descriptor: int, data: bytes) -> bytes:
    return _PACKET.pack(descriptor, len(data)) + data


def _framed(result: ShellResult) -> bytes:
    packets = bytearray()
    for descriptor, data in result.chunks:
        packets += _framed_piece(descriptor, data)
    return bytes(packets + _PACKET.pack(_EXIT, 1) + bytes([result.exit_code & 0xFF]))
