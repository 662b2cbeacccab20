"""Commands for a phone's shell: quoted, cut to the length that a line takes, and tried again.

Arguments are quoted only here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import TypeVar

from agent_core.errors import CommandFailed, DeviceError, DeviceOffline
from agent_core.retry import Sleep, with_retries

MAX_COMMAND = 60_000  # bytes; adbd closes the stream at 65,535, and older versions of hdc have a buffer of 60 KiB

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Raw:
    """A piece of shell that is written by us and holds no data: ``|``, ``&&``, ``2>/dev/null``."""

    text: str


PIPE, AND, OR, QUIET = Raw("|"), Raw("&&"), Raw("||"), Raw("2>/dev/null")


def command_line(*commands: Sequence[str | Raw]) -> str:
    """Quote lists of arguments into one line, which runs them one after the other even if one fails."""
    return "; ".join(_quoted(command) for command in commands)


def _quoted(command: Sequence[str | Raw]) -> str:
    return " ".join(part.text if isinstance(part, Raw) else quote(part) for part in command)


def chunks(text: str, size: int) -> Iterator[str]:
    """Cut ``text`` between characters into parts of at most ``size`` bytes of UTF-8. An empty text has no part."""
    start = used = 0
    for index, character in enumerate(text):
        width = len(character.encode("utf-8", "surrogatepass"))
        if used + width > size:
            yield text[start:index]
            start, used = index, 0
        used += width
    if start < len(text):
        yield text[start:]


def check_length(line: str) -> None:
    """Raise CommandFailed if the line is too long for a phone."""
    if len(line.encode()) > MAX_COMMAND:
        raise CommandFailed(
            f"The command is too long for the phone (over {MAX_COMMAND} bytes): {short(line)}",
            key="command_too_long",
            most=MAX_COMMAND,
            command=short(line),
        )


def short(line: str) -> str:
    """Return the line as it is shown in an error."""
    return line if len(line) <= 80 else line[:77] + "…"


class PhoneCalls:
    """Calls to one phone over a shell of the host, adb's or hdc's, that are tried again by the retry table."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._gone = False  # the last call could not reach it in any of its tries
        self._tidying = 0

    @contextmanager
    def tidying(self) -> Iterator[None]:
        """Try a phone that was away already only once a call inside the block, so that cleaning up does not wait
        again.
        """
        self._tidying += 1
        try:
            yield
        finally:
            self._tidying -= 1

    async def _retried(self, call: Callable[[], Awaitable[T]]) -> T:
        try:
            once = self._gone and self._tidying
            result = await (call() if once else with_retries(call, sleep=self._sleep))
        except DeviceOffline as error:
            self._gone = error.retried = True
            raise
        if not isinstance(result, DeviceError):  # one that is handed back says nothing about the next call
            self._gone = False
        return result
