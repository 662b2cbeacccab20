"""Breaks lines that are wider than the terminal: at word boundaries, Chinese between its characters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from rich.cells import cell_len, chop_cells

from bot.channels.cli.terminal.commands import whole_commands

_OPENS = "（「『“‘《【〈"  # the next character stays with it
_ENDS = "，。；：！？、）」』”’》】〉…—"  # stays with the character before
_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"


@cache
def _atoms() -> re.Pattern[str]:
    """Match the units that are never broken: a command, a Latin word, a Chinese character, each with its marks and
    spaces.
    """
    word = rf"[^\s{_OPENS}{_ENDS}{_CJK}][^\s{_OPENS}{_CJK}”’…—]*"
    marks = rf"(?:[{_ENDS}]|[,.;:!?)](?![A-Za-z0-9_]))*"  # but not the point of .env
    return re.compile(rf"\s*[{_OPENS}]*(?:{whole_commands()}|{word}|[{_CJK}]|[{_ENDS}])?{marks}\s*")


# An indented line begins its text behind the mark of an entry: a number, [1] or a sign. At the left edge only a sign is
# one, because a sentence may begin with a number.
_INDENT = re.compile(r" +(?:(?:\d+\.?|\[\d+\]|[→•–!✓✗-]) +)?|[•–✓✗] +")


def indent(line: str, width: int) -> int:
    """Return the column at which the text of a line begins, and goes on after a break; 0 if there is no room."""
    found = _INDENT.match(line)
    column = cell_len(found[0]) if found else 0
    return column if column * 2 < width else 0


def breaks(line: str, width: int, *, whole: bool, fold: bool = True, indented: int = 0) -> list[int]:
    """Return the positions at which ``line`` is broken into pieces of at most ``width`` columns.

    indented: the columns that are left free in front of all pieces but the first.
    A longer command or word stays in one piece if ``whole``, because a terminal breaks it so that it can be copied;
    else it is broken at spaces, and if it has none, anywhere if ``fold``.
    """
    places: list[int] = []
    column = 0
    for start, atom in _split(line, width - indented, whole=whole, fold=fold):
        if column > indented * bool(places) and column + cell_len(atom.rstrip()) > width:
            places.append(start)
            column = indented
        column += cell_len(atom)
    return places


def _split(line: str, width: int, *, whole: bool, fold: bool) -> Iterator[tuple[int, str]]:
    """Yield the atoms of a line, each with its position."""
    for found in _atoms().finditer(line):
        atom, place = found[0], found.start()
        if whole or cell_len(atom.rstrip()) <= width:
            parts = [atom] if atom else []
        else:
            words = re.findall(r"\s*\S+\s*|\s+", atom)
            parts = [part for word in words for part in (chop_cells(word, width) if fold else [word])]
        for part in parts:
            yield place, part
            place += len(part)
