"""A stand-in for an adb server in whose network a phone pairs: a real one pairs with real phones only, over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from agent_core.devices.adb.parse import CONNECT, PAIRING
from agent_core.devices.adb.server import AdbServer

GUID = "adb-SER1-AbCd12"
# As adb 36 answered `host:mdns:services` when both were announced in the network; the address is made up.
HEARD = f"phonedesk-abc\t{PAIRING}\t192.0.2.2:37861\n{GUID}\t{CONNECT}\t192.0.2.2:37862\n"


@dataclass
class StandIn:
    """The adb server's side of the protocol, as adb 36 speaks it, with a phone that pairs. Anything else is refused."""

    code: str
    services: str = ""
    attaches: str = ""  # the serial under which the server attaches the phone by itself
    paired: bool = False
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readexactly(int(await reader.readexactly(4), 16))).decode()
        self.asked.append(request)
        serial = self.attaches if self.paired else ""
        match request.split(":", 2)[1:]:
            case ["version"]:
                writer.write(_okay("0029"))
            case ["devices-l"] | ["devices"]:
                writer.write(_okay(f"{serial}\tdevice\n" if serial else ""))
            case ["mdns", "check"]:
                writer.write(_okay("mdns daemon version [Openscreen discovery 0.0.0]"))
            case ["mdns", "services"]:
                writer.write(_okay(self.services))
            case ["pair", rest]:
                code, _, address = rest.partition(":")
                self.paired = code == self.code
                said = f"Successfully paired to {address} [guid={GUID}]"
                wrong = _text("Failed: Wrong password or connection was dropped.")
                writer.write(_okay(said) if self.paired else b"OKAYFAIL" + wrong)
            case ["connect", address]:
                self.attaches = address
                writer.write(_okay(f"connected to {address}"))
            case ["track-devices-l"]:
                writer.write(_okay(f"{serial}\tdevice\n" if serial else ""))
                await reader.read()
            case _:
                writer.write(b"FAIL" + _text("unknown host service"))
        writer.close()


def _text(text: str) -> bytes:
    return b"%04x" % len(text.encode()) + text.encode()


def _okay(text: str) -> bytes:
    return b"OKAY" + _text(text)


@asynccontextmanager
async def standing_in(stand_in: StandIn) -> AsyncIterator[AdbServer]:
    listening = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
    try:
        yield AdbServer("127.0.0.1", listening.sockets[0].getsockname()[1])
    finally:
        listening.close()


@dataclass
class Announcing:
    """A real adb server, and what it would hear in a network with phones: these two requests are answered here.

    services: the answer to ``host:mdns:services``; None is the refusal of adb 29, which does not know the request.
    """

    port: int  # of the real server
    services: str | None = ""
    asked: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readexactly(4)
        request = await reader.readexactly(int(head, 16))
        self.asked.append(request.decode())
        if request.startswith(b"host:mdns:"):
            check = request == b"host:mdns:check"
            heard = "mdns daemon version [Openscreen discovery 0.0.0]" if check else self.services or ""
            writer.write(b"FAIL" + _text("unknown host service") if self.services is None else _okay(heard))
            writer.close()
            return
        real_reader, real_writer = await asyncio.open_connection("127.0.0.1", self.port)
        real_writer.write(head + request)
        await asyncio.gather(_copied(reader, real_writer), _copied(real_reader, writer))


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes, until one of the two ends."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def announcing(port: int) -> AsyncIterator[tuple[Announcing, int]]:
    """Stand in front of the adb server at ``port``; yields with the port to ask instead."""
    stand_in = Announcing(port)
    listening = await asyncio.start_server(stand_in.serve, "127.0.0.1", 0)
    try:
        yield stand_in, listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
