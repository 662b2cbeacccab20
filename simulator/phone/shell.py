"""The shell of the virtual phone: runs a line of a vocabulary (Android's, or another system's) on the phone.

Nothing ever reaches the host.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from simulator.phone.commands import COMMANDS
from simulator.phone.commands.base import STDERR, STDOUT, Call, Command, CommandFailure, JavaFailure
from simulator.phone.files import FileTree, normal, refusal
from simulator.phone.port import InputRefused, ShellPhone
from simulator.phone.shell_syntax import (
    MAX_DEPTH,
    CommandList,
    Group,
    Part,
    Pipeline,
    Redirect,
    ShellSyntaxError,
    Simple,
    Word,
    parse,
)

log = logging.getLogger(__name__)

SHELL = "/system/bin/sh"
NOT_FOUND = 127
Chunks = list[tuple[int, bytes]]
ReadInput = Callable[[], Awaitable[bytes]]
Live = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ShellResult:
    """The result of a line. ``chunks``: the output, in order: (1 standard output or 2 standard error, bytes)."""

    exit_code: int
    chunks: list[tuple[int, bytes]]

    @property
    def out(self) -> bytes:
        return b"".join(data for descriptor, data in self.chunks if descriptor == STDOUT)

    @property
    def err(self) -> bytes:
        return b"".join(data for descriptor, data in self.chunks if descriptor == STDERR)

    def merged(self) -> bytes:
        return b"".join(data for _, data in self.chunks)


BIG = 1 << 20  # bytes


class Shell:
    """The shell of a virtual phone.

    ``stdin`` of a run is the bytes, or a coroutine function that gets them all; it is called only if a command reads.
    """

    def __init__(self, phone: ShellPhone, files: FileTree, commands: Mapping[str, Command] = COMMANDS) -> None:
        """commands: the vocabulary, by the commands' names."""
        self.phone = phone
        self.files = files
        self.commands = commands

    def session(self) -> ShellSession:
        return ShellSession(self.phone, self.files, self.commands)

    async def run(self, line: str, *, stdin: bytes | ReadInput = b"") -> ShellResult:
        """Run one line in a shell of its own. Cancelling it stops the command that runs."""
        return await self.session().run(line, stdin=stdin)


class ShellSession:
    """A shell that keeps its folder, variables and last exit code from line to line."""

    def __init__(self, phone: ShellPhone, files: FileTree, commands: Mapping[str, Command] = COMMANDS) -> None:
        self.phone = phone
        self.files = files
        self.commands = commands
        self.folder = "/"
        self.variables = {"PATH": "/system/bin", "HOME": "/", "EXTERNAL_STORAGE": "/sdcard"}
        self.code = 0
        self.left = False  # ``exit`` was run
        self._depth = 0
        self._live: Live | None = None

    async def run(self, line: str, *, stdin: bytes | ReadInput = b"", live: Live | None = None) -> ShellResult:
        """Run a line. ``live`` gets the output of a command that does not end by itself, as it comes."""
        self._live = live
        try:
            parsed = parse(line)
        except ShellSyntaxError as error:
            self.code = 1
            return ShellResult(1, [(STDERR, f"{SHELL}: syntax error: {error}\n".encode())])
        chunks = await self._run_list(parsed, _reader(stdin))
        return ShellResult(self.code, _joined(chunks))

    async def _run_list(self, commands: CommandList, read_input: ReadInput) -> Chunks:
        chunks: Chunks = []
        for operator, pipeline in commands.entries:
            if (operator == "&&" and self.code) or (operator == "||" and not self.code):
                continue
            chunks += await self._run_pipeline(pipeline, read_input)
            if self.left:
                break
            await asyncio.sleep(0)  # a long list must not hold the loop
        return chunks

    async def _run_pipeline(self, pipeline: Pipeline, read_input: ReadInput) -> Chunks:
        """Run the commands one after the other: the output of one is complete before the next one reads it."""
        chunks: Chunks = []
        last = pipeline.commands[-1]
        piped = len(pipeline.commands) > 1
        live = self._live
        for item in pipeline.commands:
            self._live = live if item is last else None
            written = await self._run_redirected(item, read_input)
            self._live = live
            if item is last:
                chunks += written
            else:
                chunks += [chunk for chunk in written if chunk[0] == STDERR]
                read_input = _reader(b"".join(data for descriptor, data in written if descriptor == STDOUT))
        if pipeline.negated:
            self.code = int(not self.code)
        if piped:
            self.left = False  # ``exit`` in a pipe leaves only its part of it
        return chunks

    # -- redirections

    async def _run_redirected(self, item: Simple | Group, read_input: ReadInput) -> Chunks:
        try:
            targets, read_input = await self._open_redirects(item.redirects, read_input)
        except OSError as error:
            self.code = 1
            verb = "open" if error.filename2 else "create"
            return [(STDERR, f"{SHELL}: can't {verb} {error.filename}: {error.strerror}\n".encode())]
        if targets != _INHERITED:
            self._live = None
        if isinstance(item, Group):
            chunks = await self._run_list(item.body, read_input)
        else:
            chunks = await self._run_simple(item, read_input)
        return chunks if targets == _INHERITED else self._route(chunks, targets)

    async def _open_redirects(
        self, redirects: list[Redirect], read_input: ReadInput
    ) -> tuple[dict[int, int | str], ReadInput]:
        """Return the target of each descriptor: an outer descriptor, or a file.

        Files are emptied now, as a shell does.
        """
        targets = dict(_INHERITED)
        for redirect in redirects:
            if isinstance(redirect.target, int):
                targets[redirect.descriptor] = targets[redirect.target]
                continue
            name = normal(" ".join(await self._expand(redirect.target)), self.folder)
            if redirect.descriptor == 0:
                try:
                    read_input = _reader(self.files.read(name))
                except OSError as error:
                    raise OSError(error.errno, error.strerror, name, None, "input") from None
                continue
            if not (redirect.append and self.files.stat(name)):
                self.files.write(name, b"")
            targets[redirect.descriptor] = name
            if redirect.both:
                targets[STDERR] = name
        return targets, read_input

    def _route(self, chunks: Chunks, targets: dict[int, int | str]) -> Chunks:
        kept: Chunks = []
        filed: dict[str, bytearray] = {}
        for descriptor, data in chunks:
            target = targets[descriptor]
            if isinstance(target, int):
                kept.append((target, data))
            elif target == "/dev/tty":
                kept.append((STDOUT, data))
            else:
                filed.setdefault(target, bytearray()).extend(data)
        for name, content in filed.items():
            try:
                self.files.append(name, bytes(content))
            except OSError as error:
                self.code = 1
                kept.append((STDERR, f"{SHELL}: {name}: {error.strerror}\n".encode()))
        return kept

    # -- simple commands

    async def _run_simple(self, item: Simple, read_input: ReadInput) -> Chunks:
        words: list[str] = []
        for word in item.words:
            words += await self._expand(word)
        if not words:
            for name, value in item.assignments:
                self.variables[name] = " ".join(await self._expand(value))
            self.code = 0 if item.assignments or not item.words else self.code
            return []
        if words[0] == "exec" and len(words) > 1:
            words = words[1:]
            self.left = True  # nothing comes after what takes the shell's place
        name, arguments = words[0], words[1:]
        if name in {"cd", "exit", "export", "unset", ":", "set"}:
            return self._builtin(name, arguments)
        if name in {"sh", SHELL} and arguments[:1] == ["-c"]:
            return await self._nested(" ".join(arguments[1:2]), read_input)
        own = {variable: " ".join(await self._expand(value)) for variable, value in item.assignments}
        return await self._run_command(name, arguments, read_input, own)

    def _builtin(self, name: str, arguments: list[str]) -> Chunks:
        self.code = 0
        if name == "exit":
            self.left = True
            self.code = int(arguments[0]) & 0xFF if arguments and arguments[0].isdecimal() else 0
        elif name == "cd":
            folder = normal(arguments[0] if arguments else "/", self.folder)
            found = self.files.stat(folder)
            if found is None or not found.is_folder:
                self.code = 2
                why = refusal(errno.ENOTDIR if found else errno.ENOENT, folder).strerror
                return [(STDERR, f"{SHELL}: cd: {folder}: {why}\n".encode())]
            self.folder = folder
        elif name == "export":
            self.variables.update(dict(pair.split("=", 1) for pair in arguments if "=" in pair))
        elif name == "unset":
            for variable in arguments:
                self.variables.pop(variable, None)
        return []

    async def _nested(self, line: str, read_input: ReadInput, *, inside: bool = False) -> Chunks:
        """Run a line in a shell below this one; its exit code becomes ours. ``inside``: for ``$(…)``."""
        below = ShellSession(self.phone, self.files, self.commands)
        below.folder, below.variables, below._depth = self.folder, dict(self.variables), self._depth + 1
        below.code = self.code
        if below._depth > MAX_DEPTH:
            self.code = 1
            return [(STDERR, f"{SHELL}: nested too deeply\n".encode())]
        result = await below.run(line, stdin=read_input, live=None if inside else self._live)
        self.code = result.exit_code
        return result.chunks

    async def _run_below(self, line: str) -> tuple[int, bytes]:
        """Run a line that a command started, in a shell below this one; its exit status and all that it printed."""
        code = self.code
        chunks = await self._nested(line, _reader(b""), inside=True)
        below, self.code = self.code, code
        return below, b"".join(data for _, data in chunks)

    async def _run_command(
        self, name: str, arguments: list[str], read_input: ReadInput, own: Mapping[str, str]
    ) -> Chunks:
        """Run a command of the vocabulary. ``own``: variables that were set only for it."""
        function = self.commands.get(name.removeprefix("/system/bin/").removeprefix("/system/xbin/"))
        if function is None:
            self.code = NOT_FOUND
            return [(STDERR, f"{SHELL}: {name}: inaccessible or not found\n".encode())]
        call = Call(
            name.rpartition("/")[2],
            arguments,
            self.phone,
            self.files,
            self.folder,
            read_input,
            live=self._live,
            variables={**self.variables, **own},
            run=self._run_below,
        )
        try:
            self.code = await function(call)
        except CommandFailure as failure:
            self.code = failure.code
            call.chunks.append((STDERR, f"{failure.message}\n".encode("utf-8", "replace")))
        except OSError as error:
            self.code = 1
            call.chunks.append((STDERR, f"{call.name}: {error.filename or ''}: {error.strerror}\n".encode()))
        except JavaFailure as failure:
            self.code = 255
            call.chunks.append((STDERR, _java(call, failure.kind, failure.message)))
        except InputRefused as refused:
            self.code = 255
            call.chunks.append((STDERR, _java(call, "java.lang.SecurityException", str(refused) or _INJECT)))
        except Exception:
            log.exception("the virtual phone's command %s failed", call.name)
            self.code = 255
            call.chunks.append((STDERR, _java(call, "java.lang.RuntimeException", "internal error of the phone")))
        return call.chunks

    # -- words

    async def _expand(self, word: Word) -> list[str]:
        """Return the arguments of a word: variables and commands inserted, split at blanks, file patterns matched."""
        fields: list[list[tuple[str, bool]]] = [[]]  # of (text, quoted)
        for part in word:
            text = await self._value(part)
            if part.quoted or part.kind == "text":
                fields[-1].append((text, part.quoted))
                continue
            pieces = text.split()
            if text[:1].isspace() and fields[-1]:
                fields.append([])
            for at, piece in enumerate(pieces):
                if at:
                    fields.append([])
                fields[-1].append((piece, False))
            if pieces and text[-1:].isspace():
                fields.append([])
        arguments: list[str] = []
        for pieces_of_field in fields:
            if pieces_of_field:
                arguments += self._matched(pieces_of_field)
        return arguments

    def _matched(self, pieces: list[tuple[str, bool]]) -> list[str]:
        whole = "".join(text for text, _ in pieces)
        if not any(not quoted and re.search(r"[*?]", text) for text, quoted in pieces):
            return [whole]
        pattern = "".join(re.sub(r"([*?\[])", r"[\1]", text) if quoted else text for text, quoted in pieces)
        return list(self.files.glob(pattern, self.folder)) or [whole]

    async def _value(self, part: Part) -> str:
        if part.kind == "text":
            return part.value
        if part.kind == "variable":
            return {"?": str(self.code), "$": "4321", "#": "0"}.get(part.value) or self.variables.get(part.value, "")
        chunks = await self._nested(part.value, _reader(b""), inside=True)
        return b"".join(data for fd, data in chunks if fd == STDOUT).decode("utf-8", "replace").rstrip("\n")


_INHERITED: dict[int, int | str] = {STDOUT: STDOUT, STDERR: STDERR}
_INJECT = (
    "Injecting input events requires the caller (or the source of the instrumentation, if any) to have the"
    " INJECT_EVENTS permission."
)


def _java(call: Call, kind: str, message: str) -> bytes:
    return (
        f"\nException occurred while executing '{call.verb or call.name}':\n{kind}: {message}\n"
        "\tat com.android.modules.utils.BasicShellCommandHandler.exec(BasicShellCommandHandler.java:97)\n"
        "\tat android.os.Binder.shellCommand(Binder.java:1049)\n"
    ).encode("utf-8", "replace")


def _reader(data: bytes | ReadInput) -> ReadInput:
    """Return a reader that gives everything once, and nothing afterwards."""
    given = False

    async def read() -> bytes:
        nonlocal given
        if given:
            return b""
        given = True
        return data if isinstance(data, bytes) else await data()

    return read


def _joined(chunks: Chunks) -> Chunks:
    """Join neighbouring chunks of the same descriptor; a big one, such as a picture, is not copied."""
    joined: list[tuple[int, list[bytes]]] = []
    for descriptor, data in chunks:
        if joined and joined[-1][0] == descriptor and len(data) < BIG:
            joined[-1][1].append(data)
        else:
            joined.append((descriptor, [data]))
    return [(descriptor, b"".join(pieces)) for descriptor, pieces in joined]
