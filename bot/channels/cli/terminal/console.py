"""The terminal: all that a person reads there, or a program reads from standard output, goes through this module.

Ruff's banned-api rule (TID251 in pyproject.toml) forbids other ways.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import rich.console
import rich.text
from rich.cells import cell_len, chop_cells
from rich.console import ConsoleOptions, Group, JustifyMethod, OverflowMethod, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.status import Status
from rich.style import Style

from bot.app.escapes import escaped, to_json
from bot.channels.cli.terminal.greeting import withdraw
from bot.channels.cli.terminal.texts import whole_commands


class Text(rich.text.Text):
    """Rich's Text for words that may come from outside."""

    def __init__(self, text: str = "", style: str = "", **options: Any) -> None:
        super().__init__(escaped(text), style, **options)

    def append(self, text: rich.text.Text | str, style: str | Style | None = None) -> Text:
        super().append(escaped(text) if isinstance(text, str) else text, style)
        return self

    def wrap(
        self,
        console: rich.console.Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Break lines as ``breaks`` says; text over the whole width that can be copied stays in one piece.

        An entry of a list goes on in the column of its text.
        """
        if no_wrap or self.no_wrap or overflow == "ignore":
            return super().wrap(console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap)
        whole = width >= console.width
        lines = Lines()
        for line in self.split(allow_blank=True):
            column = indent(line.plain, width)
            fold = (overflow or self.overflow or "fold") == "fold"
            places = breaks(line.plain, width, whole=whole, fold=fold, indented=column)
            pieces = line.divide(places)
            for number, piece in enumerate(pieces):
                if number:
                    piece.pad_left(column)
                piece.rstrip_end(width)
                if piece is not pieces[-1]:
                    piece.rstrip()
                if not whole:
                    piece.truncate(width, overflow=overflow or self.overflow or "fold")
            lines.extend(pieces)
        return lines


class Console(rich.console.Console):
    """A console that prints texts from outside as they are.

    Control characters are escaped, and ``[red]`` and ``:smile:`` are not interpreted.

    Options are those of Rich's own console.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as Rich does, breaking texts at word boundaries.

        soft_wrap: lines stay as they are if a program reads them. In a terminal they are broken anyway, because it
        would otherwise cut them in the middle of a word.
        """
        if not self.quiet:
            withdraw()
        soft = options.get("soft_wrap")
        soft = self.soft_wrap if soft is None else soft
        plain_end = options.get("end", "\n") == "\n" and not options.get("no_wrap")
        if len(objects) == 1 and isinstance(objects[0], str | Text) and plain_end and (self.is_terminal or not soft):
            text = Text(objects[0]) if isinstance(objects[0], str) else objects[0]
            objects, options = (Group(text),), {**options, "soft_wrap": False, "crop": False}
        super().print(*objects, **options)

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        """Read a string as Rich does if it gets one in place of a Text."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as Rich does, and escape every segment.

        Texts were escaped when they were made, so that there is room for them; here anything that was missed is
        escaped. Segments with ``control`` are Rich's own.
        """
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))

    def status(self, status: RenderableType, **options: Any) -> Status:
        """Show the present activity, and return an object that changes the words; they are never read as markup."""
        return _PlainStatus(status, console=self, **options)


class _PlainStatus(Status):
    """A status whose words are not read as markup, as Rich does whatever its console says."""

    def __init__(self, status: RenderableType, **options: Any) -> None:
        super().__init__(_plain(status), **options)

    def update(self, status: RenderableType | None = None, **options: Any) -> None:
        super().update(None if status is None else _plain(status), **options)


def _plain(words: RenderableType) -> RenderableType:
    return Text(words) if isinstance(words, str) else words


err = Console(stderr=True, soft_wrap=True)  # a name that is broken in two cannot be copied


def watched() -> Console:
    """Return a console on standard error that prints only if that is a terminal: for progress."""
    return Console(stderr=True, quiet=not sys.stderr.isatty())


def confirm(question: str, *, wrong: str) -> bool:
    """Ask the person for yes or no. Enter and the end of the input mean no.

    wrong: the text after any other answer, before asking again.
    """
    from bot.channels.chat.answering import says_no, says_yes

    while True:
        try:
            typed = err.input(Text(f"{question} [y/N]: ")).strip()
        except EOFError:
            return False
        if says_yes(typed) or says_no(typed) or not typed:
            return says_yes(typed)
        err.print(Text(wrong))


def print_json(data: object, *, indent: int | None = 2) -> None:
    """Print one JSON value on standard output."""
    sys.stdout.write(to_json(data, indent=indent) + "\n")
    sys.stdout.flush()


def print_data(data: bytes) -> None:
    """Write the bytes of a text file to standard output as they are; in a terminal control characters are escaped."""
    if sys.stdout.isatty():
        data = escaped(data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")).encode()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


# Where lines are broken: at word boundaries, Chinese between its characters -------------------------------------------

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
