"""The pages of the documentation, and the commands that stand in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CHINESE = ".zh-CN.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = ("sh", "bash", "console")
_ASSIGNED = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)", re.DOTALL)
_BEFORE = re.compile(r"time|sudo(?: -u \w+)?|docker(?: compose)? exec \w+")  # what may stand before a program's name


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, *languages: str) -> list[str]:
    """The code blocks of a page, or those of some languages."""
    return [body for name, body in _FENCE.findall(read(page)) if not languages or name in languages]


def prose(page: Path) -> str:
    """What stands outside the code blocks."""
    return _FENCE.sub("", read(page))


def spans(page: Path) -> list[str]:
    """What stands between backticks in the prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


@dataclass(frozen=True)
class Call:
    """A program with its arguments, as a line of a shell calls it."""

    program: str
    arguments: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = field(default=(), compare=False)  # variables that stand before it
    page: str = field(default="", compare=False)

    def __str__(self) -> str:
        return shlex.join([self.program, *self.arguments])


def calls(page: Path) -> Iterator[Call]:
    """The calls of programs in a page's blocks for a shell, in their order."""
    name = str(page.relative_to(ROOT))
    for block in blocks(page, *_SHELL):
        for line in block.replace("\\\n", " ").splitlines():
            yield from calls_of(line, name)


def calls_of(line: str, page: str = "") -> Iterator[Call]:
    """The calls of one line; what they read from and write to a file is left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    tokens = iter(lexer)
    for token in tokens:
        if token in ("&&", ";", "|"):
            yield from _call(words, page)
            words = []
        elif token in ("<", ">"):
            next(tokens)
        else:
            words.append(token)
    yield from _call(words, page)


def _call(words: list[str], page: str) -> Iterator[Call]:
    settings = []
    while words and (assigned := _ASSIGNED.fullmatch(words[0])):
        settings.append((assigned[1], assigned[2]))
        words = words[1:]
    for count in range(len(words) - 1, 0, -1):
        if _BEFORE.fullmatch(" ".join(words[:count])):
            words = words[count:]
            break
    if words:
        yield Call(words[0].rpartition("/")[2], tuple(words[1:]), tuple(settings), page)
