"""Programs that pick from text: grep, head, tail, wc, sort, uniq, cut, tr."""

from __future__ import annotations

import re

from simulator.phone.commands.base import MAX_PATTERN, Call, CommandFailure, command, number, split_flags


async def _inputs(call: Call, names: list[str]) -> list[tuple[str, bytes]]:
    if not names:
        return [("-", await call.read_input())]
    return [(name, await call.read_input() if name == "-" else call.files.read(call.path(name))) for name in names]


def _basic_to_extended(pattern: str) -> str:
    r"""A basic expression as Python reads it: ``\|``, ``\(``, ``\+`` are operators, the bare characters are not."""
    return re.sub(r"\\([|(){}+?])|([|(){}+?])", lambda found: found[1] or f"\\{found[2]}", pattern)


@command("grep", "egrep", "fgrep")
async def grep(call: Call) -> int:
    counts: dict[str, str] = {}
    patterns: list[str] = []
    arguments = list(call.arguments)
    kept: list[str] = []
    while arguments:  # options with a value
        argument = arguments.pop(0)
        if argument[:2] in {"-e", "-m", "-A", "-B", "-C"} and (len(argument) > 2 or arguments):
            value = argument[2:] or arguments.pop(0)
            if argument[1] == "e":
                patterns += value.split("\n")
            else:
                counts[argument[1]] = value
        else:
            kept.append({"--color=never": "-s", "--line-buffered": "-s"}.get(argument, argument))
    call.arguments = kept
    flags, names = split_flags(call, "EFivcqonahHlwxs")
    if not patterns:
        if not names:
            raise CommandFailure("grep: Needs 1 argument", 2)
        patterns = names.pop(0).split("\n")
    expression = _expression(call, flags, patterns)
    after = number(call, counts.get("A", counts.get("C", "0")))
    before = number(call, counts.get("B", counts.get("C", "0")))
    most = number(call, counts["m"]) if "m" in counts else None
    found_any = False
    inputs = await _inputs(call, names)
    for name, data in inputs:
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        if lines and not lines[-1]:
            lines.pop()
        hits = [at for at, line in enumerate(lines) if bool(expression.search(line)) != ("v" in flags)][:most]
        found_any = found_any or bool(hits)
        label = f"{name}:" if (len(inputs) > 1 and "h" not in flags) or "H" in flags else ""
        _show(call, flags, lines, hits, label, name, expression, before, after)
    return int(not found_any)


def _expression(call: Call, flags: set[str], patterns: list[str]) -> re.Pattern[str]:
    if sum(map(len, patterns)) > MAX_PATTERN:
        raise CommandFailure("grep: pattern too long", 2)
    if "F" in flags or call.name == "fgrep":
        parts = [re.escape(pattern) for pattern in patterns]
    elif "E" in flags or call.name == "egrep":
        parts = patterns
    else:
        parts = [_basic_to_extended(pattern) for pattern in patterns]
    parts = [part.replace("[[:space:]]", r"\s").replace("[[:digit:]]", r"\d") for part in parts]
    whole = "|".join(f"(?:{part})" for part in parts)
    if "w" in flags:
        whole = rf"\b(?:{whole})\b"
    if "x" in flags:
        whole = f"^(?:{whole})$"
    try:
        return re.compile(whole, re.IGNORECASE if "i" in flags else 0)
    except (re.error, RecursionError):
        raise CommandFailure(f"grep: bad regex '{patterns[0]}'", 2) from None


def _show(
    call: Call,
    flags: set[str],
    lines: list[str],
    hits: list[int],
    label: str,
    name: str,
    expression: re.Pattern[str],
    before: int,
    after: int,
) -> None:
    if "q" in flags:
        return
    if "c" in flags:
        call.line(f"{label}{len(hits)}")
    elif "l" in flags:
        call.out(f"{name}\n" if hits else "")
    elif "o" in flags:
        for at in hits:
            for match in expression.finditer(lines[at]):
                if match[0]:
                    call.line(label + match[0])
    else:
        shown = sorted({at for hit in hits for at in range(max(0, hit - before), min(len(lines), hit + after + 1))})
        for at in shown:
            numbered = f"{at + 1}:" if "n" in flags else ""
            call.out((label + numbered + lines[at] + "\n").encode("utf-8", "surrogateescape"))


@command("head", "tail")
async def head(call: Call) -> int:
    lines: str | None = "10"
    characters: str | None = None
    names: list[str] = []
    arguments = list(call.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument[:2] in {"-n", "-c"} and (len(argument) > 2 or arguments):
            value = argument[2:] or arguments.pop(0)
            lines, characters = (value, None) if argument[1] == "n" else (None, value)
        elif re.fullmatch(r"-\d+", argument, re.ASCII):
            lines, characters = argument[1:], None
        else:
            names.append(argument)
    for _, data in await _inputs(call, names):
        wanted = lines if lines is not None else characters or "0"
        count = number(call, wanted)
        if call.name == "head":
            part = slice(0, count)
        elif wanted.startswith("+"):
            part = slice(max(0, count - 1), None)
        else:
            part = slice(-abs(count), None) if count else slice(0, 0)
        call.out(b"".join(data.splitlines(keepends=True)[part]) if lines is not None else data[part])
    return 0


@command("wc")
async def count(call: Call) -> int:
    flags, names = split_flags(call, "lwcm")
    for name, data in await _inputs(call, names):
        figures = {
            "l": data.count(b"\n"),
            "w": len(data.split()),
            "c": len(data),
            "m": len(data.decode("utf-8", "replace")),
        }
        wanted = [letter for letter in "lwmc" if letter in flags] or ["l", "w", "c"]
        call.line(" ".join(str(figures[letter]) for letter in wanted) + (f" {name}" if names else ""))
    return 0


@command("sort", "uniq")
async def sort(call: Call) -> int:
    flags, names = split_flags(call, "rnuc")
    lines = [line for _, data in await _inputs(call, names) for line in data.decode("utf-8", "replace").splitlines()]
    if call.name == "uniq":
        lines = [line for at, line in enumerate(lines) if not at or lines[at - 1] != line]
    else:
        lines = sorted(dict.fromkeys(lines) if "u" in flags else lines, reverse="r" in flags)
        if "n" in flags:
            lines.sort(key=_leading_number, reverse="r" in flags)
    call.out("".join(f"{line}\n" for line in lines))
    return 0


def _leading_number(line: str) -> int:
    found = re.match(r"\s*(-?\d{1,18})", line, re.ASCII)
    return int(found[1]) if found else 0


@command("tr")
async def translate(call: Call) -> int:
    """``tr -d SET`` and ``tr A B`` for plain characters."""
    arguments = [argument.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t") for argument in call.arguments]
    text = (await call.read_input()).decode("utf-8", "replace")
    if arguments[:1] == ["-d"] and len(arguments) == 2:
        call.out("".join(character for character in text if character not in arguments[1]))
    elif len(arguments) == 2 and all(arguments):
        first, second = arguments
        call.out(text.translate(str.maketrans(first, second.ljust(len(first), second[-1])[: len(first)])))
    else:
        raise CommandFailure("tr: Needs 2 arguments")
    return 0
