"""Calls of the ``hdc`` program, HarmonyOS's counterpart of adb: one process a call, never through a shell of ours.

Facts from OpenHarmony's ``developtools_hdc`` (``host/main.cpp``, ``host/server.cpp``, ``common/base.cpp``):

- hdc exits with 0 in every case. Its own failures are lines that begin with ``[Fail]``, a missing authorisation with
  ``[E00000x]``. The exit status of a command on the phone is not passed on, so the line prints it itself.
- Everything after ``shell`` is best one argument: hdc puts it in double quotes without escaping anything, the phone
  removes the outer quotes and passes the rest to ``sh -c`` as it is.
- stderr of the phone arrives mixed with its stdout, in no certain order.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from agent_core.devices.shell import PhoneCalls, Raw, check_length, command_line, short
from agent_core.errors import CommandFailed, DeviceError, DeviceOffline, DeviceUnauthorized, HdcNotFound
from agent_core.retry import Sleep

CALL_SECONDS = 15.0
_EXIT = re.compile(r"\s*phonedesk-exit:(\d+)\s*\Z")
_FAIL = re.compile(r"^\[Fail\]\s*(?P<why>.*)$", re.MULTILINE)
_UNAUTHORIZED = re.compile(r"\[E00000[2-46]\]|unauthori[sz]ed", re.IGNORECASE)
# hdc has no phone, or no server, that it could hand the command to.
_NOT_ASKED = re.compile(
    r"Not match target founded|Device not found(?:ed)? or connected|need connect-key|\[E001005\]|Connect server failed",
    re.IGNORECASE,
)
# The way to the phone broke, perhaps after it was handed the command.
_BROKE_OFF = re.compile(r"session is dead|Failed to communicate with daemon", re.IGNORECASE)

T = TypeVar("T")


class HdcProgram:
    """The program at ``path``. Every call is a process that ends within its time, or is killed."""

    def __init__(self, path: str) -> None:
        self.path = path

    async def run(self, *arguments: str, seconds: float = CALL_SECONDS) -> str:
        """Return the output of ``hdc ARGUMENTS`` (UTF-8, ``\\r\\n`` made ``\\n``), whatever it says.

        Raises HdcNotFound if the program cannot be started, CommandFailed if it has not ended after ``seconds``.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                self.path,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
        except (OSError, ValueError) as error:
            raise HdcNotFound(f"{self.path} cannot be started: {error}.", key="hdc_absent", path=self.path) from error
        try:
            async with asyncio.timeout(seconds):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise CommandFailed(
                f"`hdc {short(' '.join(arguments))}` did not end within {seconds:g} s.",
                key="command_late",
                command=short(" ".join(("hdc", *arguments))),
                seconds=f"{seconds:g}",
            ) from error
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        return output.decode("utf-8", "replace").replace("\r\n", "\n")


class HdcTransport(PhoneCalls):
    """Calls to the phone with the connect key ``key``. ``round_trips`` counts the processes that were started."""

    def __init__(self, program: HdcProgram, key: str, *, sleep: Sleep = asyncio.sleep) -> None:
        super().__init__(sleep)
        self.key = key
        self.round_trips = 0
        self._program = program

    @property
    def serial(self) -> str:
        return f"hdc:{self.key}"

    async def shell(
        self, *commands: Sequence[str | Raw], seconds: float = CALL_SECONDS, safe: bool = False
    ) -> tuple[int, str]:
        """Run the commands on the phone, one after the other, and return the last one's exit status and all output.

        safe: they only read, or change nothing if they are run twice; they are then retried by the retry table.

        Raises DeviceOffline if the way to the phone breaks, DeviceUnauthorized, and CommandFailed after ``seconds``.
        """
        line = f"{command_line(*commands)}; echo phonedesk-exit:$?"
        check_length(line)
        return await self._tried(lambda: self._shell(line, seconds), safe=safe)

    async def receive(self, path: str) -> bytes:
        """Return the content of a file of the phone. Raises CommandFailed with hdc's words if there is none."""

        async def received() -> bytes:
            with tempfile.TemporaryDirectory(prefix="phonedesk-") as folder:
                target = Path(folder) / "received"
                output = await self._run("file", "recv", path, str(target))
                if not await asyncio.to_thread(target.is_file):
                    raise self._failure(output)
                return await asyncio.to_thread(target.read_bytes)

        return await self._tried(received, safe=True)

    async def _shell(self, line: str, seconds: float) -> tuple[int, str]:
        output = await self._run("shell", line, seconds=seconds)
        found = _EXIT.search(output)
        if found is None:
            raise self._failure(output)
        return int(found[1]), output[: found.start()]

    async def _run(self, *arguments: str, seconds: float = CALL_SECONDS) -> str:
        self.round_trips += 1
        return await self._program.run("-t", self.key, *arguments, seconds=seconds)

    def _failure(self, output: str) -> DeviceError:
        failed = _FAIL.search(output)
        why = (failed["why"] if failed else output).strip()[:300]
        if _UNAUTHORIZED.search(output):
            return DeviceUnauthorized(
                f"{self.serial} does not accept this computer ({why}).", key="phone_unauthorized", phone=self.serial
            )
        if _NOT_ASKED.search(output) or _BROKE_OFF.search(output):
            away = DeviceOffline(
                f"{self.serial} cannot be reached ({why}).", key="phone_unreachable", phone=self.serial, why=why
            )
            # If it says anything else, the phone may have done something.
            away.may_repeat = (
                _NOT_ASKED.search(output) is not None and re.match(r"\s*\[Fail\].*\s*\Z", output) is not None
            )
            return away
        if failed:
            return CommandFailed(f"The phone said: {why}", key="phone_said", why=why)
        return DeviceOffline(
            f"The connection to {self.serial} broke in the middle of a call.",
            key="phone_broke_off",
            phone=self.serial,
        )

    async def _tried(self, call: Callable[[], Awaitable[T]], *, safe: bool) -> T:
        """Try a call again by the retry table if it is safe to repeat, or if the phone was not asked anything yet."""

        async def attempt() -> T | DeviceError:
            try:
                return await call()
            except DeviceError as error:
                if safe or error.may_repeat:
                    raise
                return error

        result = await self._retried(attempt)
        if isinstance(result, DeviceError):
            raise result
        return result
