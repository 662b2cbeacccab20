"""hdc's side of this computer: the server that the stand-in program asks, and the phones that it knows.

The program (``program.py``) sends its arguments to a port of 127.0.0.1 and prints the answer, as the real one does with
its own server. Here the arguments are judged as strictly as hdc judges them, and answered in its words
(developtools_hdc, ``host/main.cpp``, ``host/server.cpp``, ``host/server_for_client.cpp``). A request is a line of JSON
``{"arguments": [...]}``; an answer a line ``{"out": TEXT, "file": PATH or null, "size": N}`` and then the file's bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aiohttp import web

from simulator.phone.files import FileTree
from simulator.phone.hdc.vocabulary import Vocabulary
from simulator.phone.phone import VirtualPhone
from simulator.phone.scenario import Faults
from simulator.phone.server import state_app
from simulator.phone.shell import Shell

HOST = "127.0.0.1"
PROGRAM = Path(__file__).with_name("program.py")
MAX_REQUEST = 1024 * 1024
Status = Literal["Connected", "Offline", "Unauthorized"]

NO_TARGET = "[Fail]Not match target founded, check connect-key please"
NO_DEVICE = "[Fail][E001005] Device not found or connected"
NEED_KEY = "[Fail]ExecuteCommand need connect-key? please confirm a device by help info"
UNAUTHORIZED = (
    "[Fail][E000003]:The device unauthorized.\r\nThis server's public key is not set.\r\n"
    "Please check for a confirmation dialog on your device."
)
UNKNOWN = "Unknown operation command..."
USAGE = "\n                         OpenHarmony device connector(HDC) ...\n"
VERSION = "Ver: 3.1.0e"


class HdcTarget:
    """A phone as hdc knows it. Implements ``core.Link``, so that the fault ``dropped`` takes it away."""

    def __init__(self, phone: VirtualPhone, key: str, *, api: int = 20) -> None:
        """key: its name in ``list targets``. api: of its HarmonyOS."""
        self.phone, self.key = phone, key
        self.files = FileTree()
        self.vocabulary = Vocabulary(phone, api=api)
        self.shell = Shell(phone, self.files, self.vocabulary.commands)
        self.status: Status = "Connected"
        self.follow(phone.faults)
        self.running: set[asyncio.Task[str]] = set()
        phone.link = self

    def drop(self) -> None:
        """End the running calls, as when the cable is pulled."""
        for task in self.running:
            task.cancel()

    def follow(self, faults: Faults, /) -> None:
        away = faults.dropped or faults.offline
        self.status = "Offline" if away else "Unauthorized" if faults.unauthorized else "Connected"


@dataclass(slots=True)
class Answer:
    out: str
    file: str | None = None
    data: bytes = b""


@dataclass
class HdcHost:
    """``calls`` are the arguments of every call, the newest last."""

    targets: list[HdcTarget] = field(default_factory=list)
    calls: list[list[str]] = field(default_factory=list)
    port: int = 0

    async def answer(self, arguments: list[str]) -> Answer:
        self.calls.append(arguments)
        match arguments:
            case ["-v"] | ["version"]:
                return Answer(f"{VERSION}\n")
            case ["list", "targets"] | ["list", "targets", "-v"]:
                return Answer(self._list(full=len(arguments) == 3))
            case ["-t", key, *command]:
                return await self._on_target(next((t for t in self.targets if t.key == key), None), command)
            case ["shell" | "file", *_]:
                connected = [target for target in self.targets if target.status == "Connected"]
                if len(connected) != 1:
                    return Answer(f"{NEED_KEY}\n")
                return await self._on_target(connected[0], arguments)
            case _:
                return Answer(f"{UNKNOWN}\n{USAGE}\n")

    def _list(self, *, full: bool) -> str:
        lines = []
        for target in self.targets:
            way = "TCP" if ":" in target.key else "USB"
            if full:
                lines.append(f"{target.key}\t\t{way}\t{target.status}\tlocalhost\thdc\n")
            elif target.status == "Connected":
                lines.append(f"{target.key}\n")
            elif target.status == "Unauthorized":
                lines.append(f"{target.key}\tUnauthorized\n")
        return "".join(lines) or "[Empty]\n"

    async def _on_target(self, target: HdcTarget | None, command: list[str]) -> Answer:
        if command[:1] not in (["shell"], ["file"]):
            return Answer(f"{UNKNOWN}\n{USAGE}\n")
        if target is None:
            return Answer(f"{NO_TARGET}\n")
        if target.status != "Connected":
            return Answer(f"{NO_DEVICE if target.status == 'Offline' else UNAUTHORIZED}\n")
        if command[0] == "file":
            return self._file(target, command[1:])
        if len(command) < 2:
            return Answer("[Fail][E002105] Unsupport command\n")  # an interactive shell needs a terminal
        return Answer(await self._shell(target, _line(command[1:])))

    async def _shell(self, target: HdcTarget, line: str) -> str:
        async def run() -> str:
            return (await target.shell.run(line)).merged().decode("utf-8", "replace")

        task = asyncio.create_task(run())
        target.running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled() or target.status == "Connected":
                task.cancel()
                raise
            return ""  # the phone went away: hdc prints nothing more
        finally:
            target.running.discard(task)

    def _file(self, target: HdcTarget, command: list[str]) -> Answer:
        match command:
            case ["recv", remote, local]:
                try:
                    data = target.files.read(remote)
                except OSError as error:
                    why = (error.strerror or "failed").lower()
                    return Answer(f"[Fail]Error opening file: {why}, path:{remote}\n")
                said = f"FileTransfer finish, Size:{len(data)}, File count = 1, time:3ms rate:{len(data) / 3:.2f}kB/s\n"
                return Answer(said, local, data)
            case _:
                return Answer("[Fail][E005200] Unsupport file command\n")


def _line(words: Iterable[str]) -> str:
    """Return the line that the phone runs.

    hdc joins the words, with double quotes around a word that has a blank, and the phone removes one pair of quotes.
    """
    line = " ".join(f'"{word}"' if " " in word else word for word in words).strip()
    return line[1:-1] if len(line) > 1 and line[0] == line[-1] == '"' else line


@asynccontextmanager
async def serve_hdc(targets: Iterable[HdcTarget], port: int = 0) -> AsyncIterator[HdcHost]:
    """Answer the stand-in program for these phones, on ``port`` of 127.0.0.1 (0: any free one)."""
    host = HdcHost(list(targets))
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is None:
            raise RuntimeError("a connection is served in a task")
        serving.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await _serve(host, reader, writer)
        finally:
            serving.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, HOST, port, limit=MAX_REQUEST)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
    finally:
        server.close()
        for task in list(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await server.wait_closed()
        for target in host.targets:
            target.phone.link = None


async def _serve(host: HdcHost, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    arguments = json.loads(await reader.readline())["arguments"]
    answer = await host.answer([str(argument) for argument in arguments])  # also for a program that is gone
    head = {"out": answer.out, "file": answer.file, "size": len(answer.data)}
    writer.write(json.dumps(head).encode() + b"\n" + answer.data)
    await writer.drain()


def write_program(folder: Path, port: int) -> Path:
    """Write the executable ``hdc`` of this server into ``folder`` and return its path."""
    path = folder / "hdc"
    source = PROGRAM.read_text(encoding="utf-8").replace("PORT = 0", f"PORT = {port}", 1)
    path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
    path.chmod(0o755)
    return path


async def run_harmonyos_phone(
    port: int, phone: VirtualPhone, state_port: int, *, up: Callable[[Path, str, str], object]
) -> None:
    """Serve the phone to a program ``hdc`` of its own until cancelled.

    up: called with the program's path, the phone's serial and the state server's address, once they can be used.
    """
    target = HdcTarget(phone, phone.serial)
    runner = web.AppRunner(state_app(phone), access_log=None, shutdown_timeout=1.0)
    with tempfile.TemporaryDirectory(prefix="phonedesk-hdc-") as folder:
        async with serve_hdc([target], port) as host:
            try:
                await runner.setup()
                site = web.TCPSite(runner, HOST, state_port)
                await site.start()
                program = write_program(Path(folder), host.port)
                up(program, f"hdc:{target.key}", f"http://{HOST}:{site.port}")
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()
