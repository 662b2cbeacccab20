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
from rich.cells import cell_len
from rich.console import RenderableType
from rich.panel import Panel
from rich.segment import Segment
from rich.table import Table

from bot.app.setup.texts import SetupTexts
from bot.channels.chat.cards import Button, Card, Line
from bot.channels.chat.texts import LANGUAGES, Lang
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


# Lines that are longer than the terminal is wide ----------------------------------------------------------------------


def printed(text: str, width: int, *, terminal: bool = True, soft: bool = True) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=terminal, color_system=None).print(Text(text), soft_wrap=soft)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [24, 40, 60, 79, 80])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_words_and_commands_are_never_cut_and_no_line_begins_with_a_mark(lang: Lang, width: int) -> None:
    words = SetupTexts(lang)
    for key in ("output.begin", "telegram.token", "telegram.proxy", "knowledge.embedded", "next.serve", "next.run"):
        text = words.get(key, folder="/home/somebody/phonedesk", how=words.get("telegram.no_bot"))
        lines = printed(text, width)
        assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text), key
        for line in lines:
            assert cell_len(line) <= width or " " not in re.sub(r"phonedesk .*", "", line).strip(), (key, line)
            assert line[:1] not in tuple("，。；：！？、）”,;:!?)"), (key, line)
        for word in re.findall(r"phonedesk (?:kb import \w+|run [^：:]+|\w+)|[A-Za-z0-9_:/.@-]+", text):
            assert any(word in line for line in lines), (key, word)


@pytest.mark.parametrize(
    "command",
    [
        'phonedesk run "QQ回复联系人11" --device 127.0.0.1:16001',
        ".venv/bin/phonedesk kb import FILE",
        "phonedesk apps learn --app qq --chat NAME",
        "phonedesk questions answer 3f2a9c1d0b7e NUMBER-OR-WORDS",
        "phonedesk kb import 文件",
        "/opt/desk/bin/python3.11 -m pip install --editable /srv/phonedesk[ocr]",
        "adb shell ime enable com.android.adbkeyboard/.AdbIME",
        "/run QQ回复联系人11",
        "`a b c d`",
    ],
)
def test_a_command_stays_on_one_line_wherever_it_stands(command: str) -> None:
    for before in range(40):
        for mark in (" ", "：", "字", "（", ": "):
            lines = printed(f"{'字' * before}{mark}{command}。接着做别的", 40)
            assert [line for line in lines if command in line], lines


def test_what_a_program_reads_is_not_broken_and_a_box_holds_its_text() -> None:
    long = "phonedesk " + "word " * 40
    assert printed(long, 40, terminal=False) == [long.rstrip() + " "]
    assert max(map(len, printed("word " * 40, 40, terminal=False, soft=False))) <= 40
    file = io.StringIO()
    Console(file=file, width=30, color_system=None).print(Panel(Text("/a/path/" + "longer/" * 9)))
    inside = "".join(line.strip("│ ") for line in file.getvalue().splitlines()[1:-1])
    assert inside == "/a/path/" + "longer/" * 9


def test_an_entry_of_a_list_goes_on_in_the_column_of_its_text() -> None:
    long = "word " * 12
    for mark, column in (("  4  ", 5), ("  → ", 4), ("  [1] ", 6), ("     ", 5), ("✓ ", 2), ("", 0), ("4 ", 0)):
        first, *more = printed(mark + long, 30)
        assert (first.startswith(mark + "word"), max(map(len, (first, *more))) <= 30) == (True, True), mark
        assert {len(line) - len(line.lstrip()) for line in more} == {column}, mark
    assert printed("  1  " + "字" * 20, 30)[1].startswith("     字")
    assert printed(" " * 20 + long, 30)[1].startswith("word"), "there is no room"


def test_styles_and_control_characters_are_as_before() -> None:
    file = io.StringIO()
    console = Console(file=file, width=10, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(Text("aaa bbb ccc\x1bddd", "red"))
    assert file.getvalue() == "\x1b[31maaa bbb\x1b[0m\n\x1b[31mccc\\x1bddd\x1b[0m\n"
