"""Commands for a phone's shell.

Arguments are quoted only here, and texts are cut here to the length that a line takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote


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
