"""Files and small programs: cat, ls, rm, mkdir, cp, mv, stat, sleep, true, id, date, test …"""

from __future__ import annotations

import asyncio
import base64
import binascii
import errno
import hashlib
import re
import stat
import time

from simulator.phone.commands.base import COMMANDS, Call, CommandFailure, command, number, split_flags
from simulator.phone.files import FileStat, refusal

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "b": "\b", "e": "\x1b", "0": "\0"}


@command("echo")
async def echo(call: Call) -> int:
    arguments = list(call.arguments)
    newline, escapes = True, False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        flags = arguments.pop(0)
        newline = newline and "n" not in flags
        escapes = escapes or "e" in flags
    text = " ".join(arguments)
    if escapes:
        text = re.sub(r"\\([ntr\\abe0])", lambda found: _ESCAPES[found[1]], text)
    call.out(text + ("\n" if newline else ""))
    return 0


@command("printf")
async def printf(call: Call) -> int:
    if not call.arguments:
        raise CommandFailure("printf: Needs 1 argument")
    pattern, *values = call.arguments
    values.reverse()
    pattern = re.sub(r"\\([ntr\\abe0])", lambda found: _ESCAPES[found[1]], pattern)
    call.out(re.sub(r"%([sd%])", lambda found: "%" if found[1] == "%" else (values.pop() if values else ""), pattern))
    return 0


@command("true")
async def true(call: Call) -> int:
    return 0


@command("false")
async def false(call: Call) -> int:
    return 1


@command("sleep")
async def sleep(call: Call) -> int:
    if not call.arguments or not re.fullmatch(r"\d{1,9}(\.\d{1,9})?s?", call.arguments[0], re.ASCII):
        raise CommandFailure("sleep: Needs 1 argument" if not call.arguments else f"sleep: bad '{call.arguments[0]}'")
    await asyncio.sleep(float(call.arguments[0].removesuffix("s")))
    return 0


@command("id")
async def identity(call: Call) -> int:
    call.line("2000" if call.arguments == ["-u"] else "uid=2000(shell) gid=2000(shell) groups=2000(shell),1004(input)")
    return 0


@command("whoami")
async def whoami(call: Call) -> int:
    call.line("shell")
    return 0


@command("uname")
async def uname(call: Call) -> int:
    call.line("Linux localhost 5.15.41-android13 aarch64" if "-a" in call.arguments else "Linux")
    return 0


@command("date")
async def date(call: Call) -> int:
    """In UTC, as ``persist.sys.timezone`` is not looked at."""
    pattern = next(
        (argument[1:] for argument in call.arguments if argument.startswith("+")), "%a %b %d %H:%M:%S UTC %Y"
    )
    now = time.gmtime(call.files.now())
    fields = {"s": str(call.files.now()), "N": "000000000", "n": "\n", "t": "\t", "%": "%"}

    def field(found: re.Match[str]) -> str:
        letter = found[1]
        if letter in fields:
            return fields[letter]
        return time.strftime(f"%{letter}", now) if letter in "aAbBcCdDeFgGHIjmMpSTuUVwyYZ" else f"%{letter}"

    call.line(re.sub(r"%(.)", field, pattern[:1000]))
    return 0


@command("pwd")
async def pwd(call: Call) -> int:
    call.line(call.folder)
    return 0


@command("cat")
async def cat(call: Call) -> int:
    code = 0
    for name in call.arguments or ["-"]:
        try:
            call.out(await call.read_input() if name == "-" else call.files.read(call.path(name)))
        except OSError as error:
            call.err(f"cat: {name}: {error.strerror}\n")
            code = 1
    return code


@command("ls")
async def list_files(call: Call) -> int:
    flags, names = split_flags(call, "1aAdlhRtrsn")
    code = 0
    names = names or ["."]
    for name in names:
        path = call.path(name)
        found = call.files.stat(path)
        if found is None:
            call.err(f"ls: {name}: No such file or directory\n")
            code = 1
        elif not found.is_folder or "d" in flags:
            call.line(_listed(name, found, flags))
        else:
            if len(names) > 1:
                call.line(f"\n{name}:")
            if "l" in flags:
                call.line("total 0")
            for entry, state in call.files.names(path):
                if not entry.startswith(".") or flags & {"a", "A"}:
                    call.line(_listed(entry, state, flags))
    return code


def _listed(name: str, found: FileStat, flags: set[str]) -> str:
    if "l" not in flags:
        return name
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(found.mtime))
    return f"{stat.filemode(found.mode)} 1 shell shell {found.size:>8} {when} {name}"


@command("rm")
async def remove(call: Call) -> int:
    flags, names = split_flags(call, "rRfiv")
    if not names and "f" not in flags:
        raise CommandFailure("rm: Needs 1 argument")
    code = 0
    for name in names:
        try:
            call.files.remove(call.path(name), recursive=bool(flags & {"r", "R"}))
        except OSError as error:
            if error.errno == errno.ENOENT and "f" in flags:
                continue
            call.err(f"rm: {name}: {error.strerror}\n")
            code = 1
    return code


@command("mkdir")
async def make_folder(call: Call) -> int:
    flags, names = split_flags(call, "pv")
    for name in names:
        try:
            call.files.make_folder(call.path(name), parents="p" in flags)
        except OSError as error:
            raise CommandFailure(f"mkdir: '{name}': {error.strerror}") from error
    return 0


@command("rmdir")
async def remove_folder(call: Call) -> int:
    for name in split_flags(call, "p")[1]:
        if call.files.names(call.path(name)):
            raise CommandFailure(f"rmdir: {name}: Directory not empty")
        call.files.remove(call.path(name), recursive=True)
    return 0


@command("touch")
async def touch(call: Call) -> int:
    for name in split_flags(call, "acm")[1]:
        path = call.path(name)
        found = call.files.stat(path)
        if found is None or not found.is_folder:
            call.files.write(path, call.files.read(path) if found else b"")
    return 0


@command("cp", "mv")
async def copy(call: Call) -> int:
    _, names = split_flags(call, "fapr")
    if len(names) != 2:
        raise CommandFailure(f"{call.name}: Needs 2 arguments")
    source, target = (call.path(name) for name in names)
    found = call.files.stat(target)
    if found is not None and found.is_folder:
        target = f"{target}/{source.rpartition('/')[2]}"
    call.files.write(target, call.files.read(source))
    if call.name == "mv" and source != target:
        call.files.remove(source)
    return 0


@command("stat")
async def show_stat(call: Call) -> int:
    arguments = list(call.arguments)
    pattern = ""
    if arguments[:1] == ["-c"] and len(arguments) > 1:
        pattern = arguments[1]
        arguments = arguments[2:]
    for name in arguments:
        found = call.files.stat(call.path(name))
        if found is None:
            raise CommandFailure(f"stat: '{name}': No such file or directory")
        fields = {
            "s": str(found.size),
            "Y": str(found.mtime),
            "n": name,
            "a": f"{stat.S_IMODE(found.mode):o}",
            "F": "directory" if found.is_folder else "regular file",
        }
        wanted = pattern or "  File: %n\n  Size: %s\t %F\nAccess: (%a)\nModify: %Y"
        call.line(re.sub(r"%([sYnaF])", lambda match, of=fields: of[match[1]], wanted))  # type: ignore[misc]  # bound now
    return 0


@command("md5sum", "sha1sum", "sha256sum")
async def digest(call: Call) -> int:
    for name in call.arguments or ["-"]:
        data = await call.read_input() if name == "-" else call.files.read(call.path(name))
        made = hashlib.new(call.name.removesuffix("sum"), data, usedforsecurity=False)
        call.line(f"{made.hexdigest()}  {name}")
    return 0


@command("base64")
async def base64_text(call: Call) -> int:
    arguments = list(call.arguments)
    width = 76
    if "-w" in arguments[:-1]:
        at = arguments.index("-w")
        width = number(call, arguments[at + 1])
        del arguments[at : at + 2]
    decoding = any(flag in arguments for flag in ("-d", "-D", "-di"))
    names = [name for name in arguments if not name.startswith("-")]
    data = call.files.read(call.path(names[0])) if names else await call.read_input()
    if decoding:
        try:
            call.out(base64.b64decode(re.sub(rb"\s", b"", data), validate=True))
        except binascii.Error:
            raise CommandFailure("base64: bad input") from None
        return 0
    text = base64.b64encode(data).decode("ascii")
    if width <= 0:
        call.out(text)
    for start in range(0, len(text) if width > 0 else 0, max(1, width)):
        call.line(text[start : start + width])
    return 0


@command("which")
async def which(call: Call) -> int:
    known = [name for name in call.arguments if name in COMMANDS]
    for name in known:
        call.line(f"/system/bin/{name}")
    return int(len(known) != len(call.arguments))


@command("test", "[", "[[")
async def test(call: Call) -> int:
    arguments = list(call.arguments)
    if call.name != "test":
        closing = "]" if call.name == "[" else "]]"
        if arguments[-1:] != [closing]:
            raise CommandFailure(f"{call.name}: missing {closing}", 2)
        arguments.pop()
    return int(not _true(call, arguments))


def _true(call: Call, words: list[str]) -> bool:
    if words[:1] == ["!"]:
        return not _true(call, words[1:])
    if len(words) == 2:
        return _true_of_one(call, *words)
    if len(words) == 3:
        left, operator, right = words
        if operator in {"=", "=="}:
            return left == right
        if operator == "!=":
            return left != right
        order = {"-eq": (0,), "-ne": (-1, 1), "-lt": (-1,), "-le": (-1, 0), "-gt": (1,), "-ge": (0, 1)}.get(operator)
        if order is None:
            raise CommandFailure(f"test: {operator}: unexpected operator/operand", 2)
        first, second = number(call, left), number(call, right)
        return (first > second) - (first < second) in order
    if len(words) > 3:
        raise CommandFailure(f"test: {words[3]}: unexpected operator/operand", 2)
    return bool(words and words[0])


def _true_of_one(call: Call, operator: str, word: str) -> bool:
    if operator in {"-n", "-z"}:
        return bool(word) == (operator == "-n")
    found = call.files.stat(call.path(word))
    if operator in {"-e", "-r", "-x", "-a"}:
        return found is not None
    if operator == "-f":
        return found is not None and stat.S_ISREG(found.mode)
    if operator == "-d":
        return found is not None and found.is_folder
    if operator == "-s":
        return found is not None and found.size > 0
    if operator == "-w":
        try:
            call.files.check_writable(call.path(word))
        except OSError as error:
            return error.errno == errno.EISDIR
        return found is not None
    raise CommandFailure(f"test: {operator}: {refusal(errno.EINVAL, word).strerror}", 2)
