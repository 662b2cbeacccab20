"""The one way to a person's terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from rich.console import RenderableType
from rich.segment import Segment
from rich.table import Table

from bot.channels.chat.cards import Button, Card, Line
from bot.channels.cli.terminal.console import Console, Text, print_data
from bot.channels.cli.terminal.render import panel
from tests.bot.hostile_texts import DANGEROUS, hostile_or_broken

STYLING = re.compile(r"\x1b\[[0-9;]*m")


class _Segments:
    """Something of Rich's that makes its segments without a Text, as some do."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, *_: object) -> list[Segment]:
        return [Segment(self._text)]


def _table(text: str) -> Table:
    table = Table(text, "b", title=text)
    table.add_row(text, Text("x", "red").append(text, "dim"))
    return table


FORMS: dict[str, Callable[[str], RenderableType]] = {
    "string": lambda text: text,
    "text": Text,
    "table": _table,
    "card": lambda text: panel(Card(text, (Line(text, text),), None, ((Button("d", text),),))),
    "segments": _Segments,
}


@given(text=hostile_or_broken)
@pytest.mark.parametrize("form", FORMS)
def test_only_our_own_styling_reaches_a_terminal(form: str, text: str) -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, color_system="standard")
    console.print(FORMS[form](text), style="bold")
    console.out(text)
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert not DANGEROUS.search(STYLING.sub("", written))
    codes = {code for found in STYLING.findall(written) for code in found[2:-1].split(";")}
    assert codes <= {"0", "1", "2", "3", "31", "33", "36"}  # of the forms above and Rich's titles


def test_markup_and_codes_of_pictures_are_words() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard")
    console.print("[red]a[/red] [link=http://x]b[/link] :smile: 42", Text("[b]"))
    with console.status("[red]c") as status:
        status.update("[red]d")
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[red]a[/red] [link=http://x]b[/link] :smile: 42 [b]" in written
    assert "[red]d" in written


def test_nothing_is_cut_off_because_its_escapes_are_longer() -> None:
    console = Console(file=io.StringIO(), width=60)
    table = Table(show_header=False)
    table.add_row(Text("\x1b" * 10), Text("几天能发货"))
    console.print(table)
    assert "\\x1b" * 10 in console.file.getvalue()  # type: ignore[attr-defined]


def test_data_is_whole_in_a_pipe_and_harmless_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = "\ufeff答案,b\r\n\x1b[2J,\x9b\r\n".encode()
    print_data(data)
    assert capfdbinary.readouterr().out == data
    master, slave = pty.openpty()
    with os.fdopen(master, "rb", buffering=0) as shown, os.fdopen(slave, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        print_data(data)
        assert shown.read(100).decode() == "答案,b\r\n\\x1b[2J,\\x9b\r\n"  # the terminal's own line ends
