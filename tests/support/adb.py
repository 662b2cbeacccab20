"""A real adb server of a test's own: own port, no USB, no emulators, ended by its process id.

    async with adb_server() as adb:
        serial = await adb.connect(phone_port)
        result = await adb.run("-s", serial, "shell", "echo", "hello")

``with adb_server() as adb`` works too, for tests without an event loop; ``run_sync`` and ``connect_sync`` go with it.

The servers of a process have one key: to make one takes adb ten times as long as all else at its start.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import adbutils

START_SECONDS = 20.0
POLL_SECONDS = 0.01
_KEY = (".android/adbkey", ".android/adbkey.pub")
_made: dict[str, bytes] = {}  # the files of the key, once a server has made one


def bundled_program() -> Path | None:
    """The adb that the adbutils wheel carries (36), None where the wheel has none for this machine."""
    found = Path(adbutils.__file__).parent / "binaries" / "adb"
    return found if found.is_file() and os.access(found, os.X_OK) else None


def system_program() -> Path | None:
    """The adb of the system (Debian: 29), None where none is installed."""
    found = shutil.which("adb")
    return Path(found).resolve() if found else None


def programs() -> dict[str, Path | None]:
    """Both, by a name for a test's id; None where it is absent."""
    return {"bundled": bundled_program(), "system": system_program()}


@dataclass(frozen=True, slots=True)
class Completed:
    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace")


class AdbServerProcess:
    """``port`` is the server's; ``home`` holds its keys; ``program`` is used for server and client."""

    def __init__(self, program: Path | None = None) -> None:
        chosen = program or bundled_program() or system_program()
        if chosen is None:
            raise FileNotFoundError("no adb program: neither the adbutils wheel nor the system has one")
        self.program = chosen
        self.port = 0
        self.home = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a client of this server (for programs under test that start adb or use adbutils)."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ADB_", "ANDROID_"))}
        return kept | {
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "ADB_USB": "0",
            "ADB_LIBUSB": "0",
            "ADB_EMU": "0",
            "ADB_MDNS": "0",
            "ANDROID_ADB_SERVER_PORT": str(self.port),
        }

    # -- life

    def __enter__(self) -> AdbServerProcess:
        self.home = Path(tempfile.mkdtemp(prefix="adb-home-"))
        for name, content in _made.items():
            (self.home / name).parent.mkdir(exist_ok=True)
            (self.home / name).write_bytes(content)
        deadline = time.monotonic() + START_SECONDS
        try:
            while not self._start_once(deadline):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"the adb server did not start: {self.log()[-2000:]}")
            if not _made:
                _made.update({name: (self.home / name).read_bytes() for name in _KEY})
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    async def __aenter__(self) -> AdbServerProcess:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def stop(self) -> None:
        """End the server (it may be ended before the context is left: then clients find nobody)."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self) -> str:
        path = self.home / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _start_once(self, deadline: float) -> bool:
        """False where it ended at once: somebody took the port between our choosing it and its binding it."""
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            self.port = chosen.getsockname()[1]
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program, "-P", str(self.port), "nodaemon", "server"],
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._answers():
                return True
            time.sleep(POLL_SECONDS)
        self.stop()
        return False

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as server:
                server.sendall(b"000chost:version")
                return server.recv(4) == b"OKAY"
        except OSError:
            return False

    # -- use

    async def run(self, *args: str, stdin: bytes | None = None, timeout: float = 30) -> Completed:
        """``adb ARGS`` against this server. TimeoutError after ``timeout`` seconds (the client is ended)."""
        self._must_run()
        process = await asyncio.create_subprocess_exec(
            self.program,
            "-P",
            str(self.port),
            *args,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(timeout):
                out, err = await process.communicate(stdin)
        except BaseException:
            if process.returncode is None:
                process.kill()
                await process.wait()
            raise
        return Completed(process.returncode or 0, out, err)

    def run_sync(self, *args: str, stdin: bytes | None = None, timeout: float = 30) -> Completed:
        self._must_run()
        done = subprocess.run(
            [self.program, "-P", str(self.port), *args],
            env=self.environment,
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Completed(done.returncode, done.stdout, done.stderr)

    async def connect(self, port: int, timeout: float = 15) -> str:
        """Attach the device on 127.0.0.1:``port`` and wait until it can be used; its serial.

        ConnectionError with adb's words where it is refused, TimeoutError where it stays offline.
        """
        serial = f"127.0.0.1:{port}"
        async with asyncio.timeout(timeout):
            while True:
                _check_connected((await self.run("connect", serial)).text)
                # "already connected" is said of an old connection that is just going away, too.
                while (state := await self.state(serial)) not in {"device", "absent"}:
                    await asyncio.sleep(POLL_SECONDS)
                if state == "device":
                    return serial

    def connect_sync(self, port: int) -> str:
        """The same without an event loop, for a phone that lives in another thread or process."""
        serial = f"127.0.0.1:{port}"
        _check_connected(self.run_sync("connect", serial).text)
        done = self.run_sync("-s", serial, "wait-for-device", timeout=15)
        if done.code:
            raise ConnectionError(done.err.decode("utf-8", "replace"))
        return serial

    async def wait_state(self, serial: str, state: str, timeout: float = 15) -> None:
        """Until ``adb devices`` shows this state; ``absent`` where the device must be gone."""
        seen = ""
        try:
            async with asyncio.timeout(timeout):
                while (seen := await self.state(serial)) != state:
                    await asyncio.sleep(POLL_SECONDS * 2)
        except TimeoutError:
            raise TimeoutError(f"{serial} is {seen}, not {state}, after {timeout} s") from None

    async def state(self, serial: str) -> str:
        """``device``, ``offline``, ``unauthorized`` … as ``adb devices`` says, or ``absent``."""
        for line in (await self.run("devices")).text.splitlines():
            name, _, state = line.partition("\t")
            if name == serial:
                return state.strip()
        return "absent"

    def _must_run(self) -> None:
        # A client that finds no server would leave a detached one of its own behind.
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError("this adb server has ended")


def adb_server(program: Path | None = None) -> AdbServerProcess:
    """A server, to be used in ``with`` or ``async with``; adbutils' own adb, or the system's, unless told."""
    return AdbServerProcess(program)


def _check_connected(text: str) -> None:
    # adb exits with 0 however it went.
    if not text.startswith(("connected to", "already connected to")):
        raise ConnectionError(text.strip())
