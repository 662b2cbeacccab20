"""What a command of the virtual phone's shell works with, and the table of all of them."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.phone.files import FileTree, normal
from simulator.phone.port import ShellPhone

STDOUT, STDERR = 1, 2
MAX_OUTPUT = 128 * 1024 * 1024
MAX_PATTERN = 1000


class CommandFailure(Exception):
    """Ends a command: ``message`` goes to standard error (a new line is added), ``code`` is its exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class JavaFailure(Exception):
    """A system service threw. Printed as Android prints an exception of a shell command; exit code 255."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


async def _no_shell(line: str) -> tuple[int, bytes]:
    raise CommandFailure(f"sh: {line[:100]}: not found", 127)


@dataclass(slots=True)
class Call:
    """One command being run. ``arguments`` are without the command's name."""

    name: str
    arguments: list[str]
    phone: ShellPhone
    files: FileTree
    folder: str
    read_input: Callable[[], Awaitable[bytes]]
    chunks: list[tuple[int, bytes]] = field(default_factory=list)
    size: int = 0
    verb: str = ""  # the first word taken away: what Android names in an exception
    live: Callable[[bytes], Awaitable[None]] | None = None  # writes to the host now; None in a pipe or into a file
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment
    run: Callable[[str], Awaitable[tuple[int, bytes]]] = _no_shell  # a line in a shell of its own; status and output

    def out(self, data: str | bytes) -> None:
        self._put(STDOUT, data)

    def err(self, data: str | bytes) -> None:
        self._put(STDERR, data)

    def line(self, text: str) -> None:
        self.out(text + "\n")

    def path(self, path: str) -> str:
        return normal(path, self.folder)

    def shifted(self) -> str | None:
        """Take the first argument away and return it."""
        if not self.arguments:
            return None
        word = self.arguments.pop(0)
        self.verb = self.verb or word
        return word

    def _put(self, descriptor: int, data: str | bytes) -> None:
        raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
        self.size += len(raw)
        if self.size > MAX_OUTPUT:
            raise CommandFailure(f"{self.name}: No space left on device")
        if raw:
            self.chunks.append((descriptor, raw))


Command = Callable[[Call], Awaitable[int]]

COMMANDS: dict[str, Command] = {}


def command(*names: str) -> Callable[[Command], Command]:
    """Make a coroutine function a command of the shell under these names."""

    def register(function: Command) -> Command:
        COMMANDS.update(dict.fromkeys(names, function))
        return function

    return register


def split_flags(call: Call, known: str) -> tuple[set[str], list[str]]:
    """Single-letter flags (``-rf``) and the rest. CommandFailure for a flag that is not in ``known``."""
    flags: set[str] = set()
    rest: list[str] = []
    arguments = list(call.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument == "--":
            rest += arguments
            break
        if argument.startswith("-") and len(argument) > 1:
            unknown = next((letter for letter in argument[1:] if letter not in known), None)
            if unknown:
                raise CommandFailure(f"{call.name}: Unknown option '{unknown}' (see \"{call.name} --help\")")
            flags.update(argument[1:])
        else:
            rest.append(argument)
    return flags, rest


def number(call: Call, text: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,12}", text, re.ASCII):
        raise CommandFailure(f"{call.name}: not integer: {text}")
    return int(text)


def option(arguments: Sequence[str], name: str) -> str | None:
    """The value after ``name``."""
    for at, argument in enumerate(arguments[:-1]):
        if argument == name:
            return arguments[at + 1]
    return None
