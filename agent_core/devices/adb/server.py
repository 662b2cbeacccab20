"""The adb server: found, or started as a child of ours, and asked about its phones."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import structlog

from agent_core.devices.adb import guard, transport
from agent_core.devices.adb.capture import CaptureHistory
from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.adb.parse import MdnsService, parse_devices, parse_mdns_services
from agent_core.devices.adb.program import carried_adb, find_adb, version_of
from agent_core.devices.base import DeviceEntry
from agent_core.devices.installed import InstalledApps
from agent_core.errors import AdbNotFound, CommandFailed, DeviceError, DeviceOffline, DeviceUnauthorized, InputRejected
from agent_core.retry import Sleep

log = structlog.get_logger(__name__)

DEFAULT_PORT = 5037
END_SECONDS = guard.END_SECONDS + 2
START_SECONDS = 20.0
USB = Path("/dev/bus/usb")
POLL_SECONDS = 0.02
CONNECT_SECONDS = 15.0  # `connect` waits for TCP and for the phone's answer
STATE_SECONDS = 2.0  # from attached to usable; a phone that asks its owner first is not waited for longer
CONNECT_TRIES = 4
_SERIAL = re.compile(r"[A-Za-z0-9][\w.:\-\[\]%]{0,127}", re.ASCII)
_ADDRESS = re.compile(r"(?:[A-Za-z0-9][\w.\-]*|\[[0-9A-Fa-f:.%\w]+\]):\d{1,5}", re.ASCII)
_CODE = re.compile(r"\d{6}|[A-Za-z0-9]{12}", re.ASCII)  # typed by a person; from a QR code
_GUID = re.compile(r"\[guid=([^\]\s]+)\]")  # behind "Successfully paired to HOST:PORT "


class AdbServer:
    """A running adb server. ``async with`` or ``close()`` ends the process only if we started it."""

    def __init__(self, host: str, port: int, child: Child | None = None, *, adb_path: str | None = None) -> None:
        self.host, self.port = host, port
        self._child = child
        self._adb_path = adb_path
        self._apps: dict[str, InstalledApps] = {}
        self._pictures: dict[str, CaptureHistory] = {}  # by connection
        self._list: list[DeviceEntry] | None = None  # while it is followed
        self._following: asyncio.Task[None] | None = None

    @property
    def owned(self) -> bool:
        return self._child is not None

    async def answers(self) -> bool:
        """Tell whether the server is still running: anybody on this machine may have ended it."""
        return await _answers(self.host, self.port)

    async def devices(self) -> list[DeviceEntry]:
        """Return all attached phones, whatever their state."""
        return list(parse_devices(await transport.query(self.host, self.port, "host:devices-l")))

    async def listed(self) -> list[DeviceEntry]:
        """Return all attached phones, as the server told them last: whoever asks often opens no connection each time.

        The server is followed from the first call until ``close``. If it ends, the next call asks it as ``devices``.
        """
        if self._following is None or self._following.done():
            self._following = asyncio.create_task(self._follow(), name="adb-list")
        return await self.devices() if self._list is None else list(self._list)

    async def _follow(self) -> None:
        try:
            async with aclosing(self.track()) as lists:
                async for entries in lists:
                    self._list = entries
        except (DeviceOffline, CommandFailed):
            pass  # whoever asks next is told
        finally:
            self._list = None

    async def connect(self, address: str) -> None:
        """Attach a phone over the network (``host:port``) and wait until it can be used.

        Raises InputRejected if the address is malformed, DeviceUnauthorized if the phone has yet to allow it,
        DeviceOffline for everything else.
        """
        if not _ADDRESS.fullmatch(address):
            said = f"{address!r} is no address of a phone; it looks like 192.168.1.20:5555."
            raise InputRejected(said, key="bad_address", said=address)
        state = "absent"
        for _ in range(CONNECT_TRIES):
            answer = await self._connect(address)
            # The server says "already connected" also of a connection that died, and while it drops one.
            waits = 0.0 if answer.startswith("already") else STATE_SECONDS
            state = await self._settled(address, waits)
            if state == "device":
                return
            if state == "offline":
                await self.disconnect(address)
            elif state != "absent":
                break
            await asyncio.sleep(POLL_SECONDS)
        raise unusable(address, state)

    async def _connect(self, address: str) -> str:
        request = f"host:connect:{address}"
        answer = (await transport.query(self.host, self.port, request, seconds=CONNECT_SECONDS)).strip()
        # The server answers OKAY in every case; only the words tell.
        if "failed to authenticate" in answer:
            raise DeviceUnauthorized(
                f"{address} does not accept this computer ({answer}).", key="phone_unauthorized", phone=address
            )
        if not answer.startswith(("connected to", "already connected to")):
            raise DeviceOffline(
                f"{address} cannot be reached ({answer}).",
                key="phone_unreachable",
                phone=address,
                why=transport.in_words(answer),
            )
        return answer

    async def disconnect(self, address: str) -> None:
        """Forget a phone of the network. It is no error if there is none with that name."""
        with suppress(CommandFailed):
            await transport.query(self.host, self.port, f"host:disconnect:{address}")

    async def pair(self, address: str, code: str) -> str:
        """Have a phone with Android 11 or newer accept this computer permanently.

        address: host:port of the phone's pairing dialog, whose port is not the one to connect to.
        code: the six digits that the phone shows there, or the password of the QR code that it scanned.

        Returns the name under which the phone announces itself in the network from now on; "" if adb does not tell.
        Raises InputRejected if address or code are malformed, DeviceUnauthorized if the phone or the way to it refuses,
        AdbNotFound if the adb server is too old for pairing.
        """
        if not _ADDRESS.fullmatch(address) or not _CODE.fullmatch(code):
            raise InputRejected(
                "Pairing needs the address (host:port) and the six digits that the phone shows.", key="pairing_form"
            )
        try:
            answer = await transport.query(self.host, self.port, f"host:pair:{code}:{address}", seconds=CONNECT_SECONDS)
        except CommandFailed as error:
            answer = await self._why(error)
        if not answer.startswith("Successfully paired"):
            why = answer.strip().removeprefix("Failed: ").rstrip(".")
            raise DeviceUnauthorized(
                f"{address} could not be paired ({why}).",
                advice="Ask the phone for a new code, and give the port of the pairing dialog.",
                key="not_paired",
                phone=address,
                why=why,
            )
        guid = _GUID.search(answer)
        return guid[1] if guid else ""

    async def mdns_services(self) -> tuple[MdnsService, ...]:
        """Return the phones that announce themselves in the network, as the adb server hears them.

        Raises DeviceOffline if the server does not listen (``ADB_MDNS=0``), AdbNotFound if it is too old to do so.
        """
        try:
            state = await transport.query(self.host, self.port, "host:mdns:check")
            found = await transport.query(self.host, self.port, "host:mdns:services")
        except CommandFailed as error:
            state, found = f"ERROR: {await self._why(error)}", ""
        if state.startswith("ERROR"):
            why = state.removeprefix("ERROR:").strip()
            raise DeviceOffline(
                f"The adb server does not look for phones in the network ({why}).",
                advice="Pair with the address and the code that the phone shows.",
                key="no_mdns",
                why=why,
            )
        return parse_mdns_services(found)

    async def _why(self, error: CommandFailed) -> str:
        """Return the server's words for a refusal. Raises AdbNotFound if the server does not know the request at all.

        An old server that another user started is left alone: they may be using it. A newer one beside it could pair,
        but the old one could not connect to the phone then, because it does not support TLS.
        """
        why = str(error.values.get("why", error.message))
        if "unknown host service" not in why:
            return why
        values = {"place": f"{self.host}:{self.port}", "port": self.port}
        program = await asyncio.to_thread(find_adb, self._adb_path)
        version = await asyncio.to_thread(version_of, program)
        values |= {"program": program, "version": version.text or "?"}
        if version.pairs:
            raise AdbNotFound(
                f"The adb server at {values['place']} is too old for pairing; phonedesk did not start it.",
                advice=f"End it with adb -P {self.port} kill-server, and pair again.",
                key="adb_server_old",
                **values,
            ) from error
        newer = await asyncio.to_thread(carried_adb)
        raise AdbNotFound(
            f"{program} is adb {values['version']}, too old for pairing over the network.",
            advice=f"Set PHONEDESK_DEVICE__ADB_PATH to {newer or 'adb 30 or newer'}, and end the old server.",
            key="adb_chosen_old" if newer else "adb_too_old",
            newer=newer,
            **values,
        ) from error

    async def track(self) -> AsyncGenerator[list[DeviceEntry], None]:
        """Yield the whole list at once, and again after each change. Raises DeviceOffline when the server ends."""
        async with aclosing(transport.subscribe(self.host, self.port, "host:track-devices-l")) as lists:
            async for text in lists:
                yield list(parse_devices(text))

    def device(
        self,
        serial: str,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Sleep = asyncio.sleep,
        at: str = "",
        elsewhere: transport.Elsewhere | None = None,
    ) -> AdbDevice:
        """Return the phone with this serial. Whether it is attached shows at the first call.

        at: the name by which this server reaches it, if that is not the serial. elsewhere: see ``Transport``.
        """
        if not _SERIAL.fullmatch(at or serial):
            raise InputRejected(f"{serial!r} is no serial of a phone.", key="bad_serial", said=serial)
        if clock is not None:
            return AdbDevice(self, serial, clock=clock, sleep=sleep, at=at, elsewhere=elsewhere)
        apps = self._apps.setdefault(serial, InstalledApps())
        pictures = self._pictures.setdefault(at or serial, CaptureHistory())
        return AdbDevice(self, serial, sleep=sleep, apps=apps, pictures=pictures, at=at, elsewhere=elsewhere)

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _settled(self, serial: str, seconds: float) -> str:
        """Return the phone's state once it is ``device`` or gone, or after ``seconds`` (0: the state now)."""
        state = "absent"
        try:
            async with aclosing(self.track()) as lists, asyncio.timeout(seconds or STATE_SECONDS):
                async for entries in lists:
                    state = next((entry.state for entry in entries if entry.serial == serial), "absent")
                    if state in {"device", "absent"} or not seconds:
                        break
        except TimeoutError:
            pass
        return state


def unusable(serial: str, state: str) -> DeviceError:
    """Return the error for a phone that is listed in a state other than ``device``, or ``absent``."""
    if state in {"unauthorized", "authorizing"}:
        return DeviceUnauthorized(
            f"{serial} does not accept this computer yet.", key="phone_unauthorized", phone=serial
        )
    if state == "absent":
        return DeviceOffline(f"{serial} is not attached.", key="phone_absent", phone=serial)
    return DeviceOffline(f"{serial} is attached but {state}.", key="phone_offline", phone=serial, state=state)


async def open_adb(
    adb_path: str | None = None,
    host: str = "127.0.0.1",
    port: int | None = None,
    *,
    usb: bool = True,
    home: Path | None = None,
) -> AdbServer:
    """Return the adb server at ``host:port`` (default ``ANDROID_ADB_SERVER_PORT`` or 5037); start one if none answers.

    port: 0 always starts one, on a free port.
    usb: False ignores phones on a cable, and starts at once.
    home: the folder with the keys that phones have allowed (default: the user's).

    Raises AdbNotFound if there is no adb program, or no server came up.
    """
    wanted = _default_port() if port is None else port
    if wanted and await _answers(host, wanted):
        return AdbServer(host, wanted, adb_path=adb_path)
    if host not in {"127.0.0.1", "localhost", "::1"}:
        raise AdbNotFound(
            f"No adb server answers at {host}:{wanted}.",
            advice="Start it there, or use this machine's.",
            key="adb_absent_there",
            place=f"{host}:{wanted}",
        )
    program = await asyncio.to_thread(find_adb, adb_path)
    child = await _start(program, host, wanted or _free_port(), _environment(usb, home))
    return AdbServer(host, child.port, child if child.process.returncode is None else None, adb_path=adb_path)


@dataclass
class Child:
    """An adb server that is ours to end; ``process`` is its guard."""

    process: asyncio.subprocess.Process
    port: int
    output: IO[bytes]

    def last_words(self) -> str:
        self.output.seek(0)
        lines = [line for line in self.output.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return " ".join(lines[-2:])[:300]

    async def end(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()  # the guard ends it when this closes
        try:
            await asyncio.wait_for(self.process.wait(), END_SECONDS)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()
        self.output.close()


async def _start(program: str, host: str, port: int, environment: Mapping[str, str]) -> Child:
    output = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the child
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-IS",
        guard.__file__,
        program,
        "-P",
        str(port),
        "nodaemon",
        "server",
        env=environment,
        stdin=asyncio.subprocess.PIPE,  # closed by our end, however that comes
        stdout=output,
        stderr=output,
        # A Ctrl-C in the terminal must not end it: the phone is cleaned up through it.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
    )
    child = Child(process, port, output)
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _answers(host, port):
                if process.returncode is not None:
                    raise AdbNotFound(
                        f"The adb server ended at once: {child.last_words()}", key="adb_ended", why=child.last_words()
                    )
                await asyncio.sleep(POLL_SECONDS)
    except BaseException as error:
        await child.end()
        if isinstance(error, TimeoutError):
            raise AdbNotFound(
                f"The adb server did not start within {START_SECONDS:g} s.",
                key="adb_start_late",
                seconds=f"{START_SECONDS:g}",
            ) from error
        raise
    log.info("adb.server_started", port=port, program=program, pid=process.pid)
    return child


async def _answers(host: str, port: int) -> bool:
    try:
        await transport.query(host, port, "host:version", seconds=2)
    except (DeviceOffline, CommandFailed):
        return False
    return True


def _default_port() -> int:
    value = os.environ.get("ANDROID_ADB_SERVER_PORT", "")
    return int(value) if value.isdecimal() and 0 < int(value) < 65536 else DEFAULT_PORT


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def _environment(usb: bool, home: Path | None) -> dict[str, str]:
    environment = dict(os.environ)
    if sys.platform == "linux" and not USB.exists():
        environment.setdefault("ADB_LIBUSB", "0")  # without any USB libusb takes 3 s to say so, at every start
    if not usb:
        # The range of emulators' ports is not scanned either: a network phone there would be listed twice.
        environment |= {"ADB_USB": "0", "ADB_LIBUSB": "0", "ADB_EMU": "0", "ADB_MDNS": "0"}
    if home is not None:
        environment |= {"HOME": str(home), "USERPROFILE": str(home)}
    return environment
