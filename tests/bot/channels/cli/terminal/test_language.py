"""Lines that are longer than the terminal is wide, and commands as they are typed."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
import typer
from rich.cells import cell_len
from rich.panel import Panel

from agent_core.errors import ConfigMissing, LearningFailed
from bot.app.doctor.texts import DoctorTexts
from bot.app.doctor.texts import catalogue as doctor_catalogue
from bot.app.setup.texts import SetupTexts
from bot.channels.chat.texts import LANGUAGES, Lang
from bot.channels.chat.texts import Texts as ChatTexts
from bot.channels.cli.commands.common import fail
from bot.channels.cli.terminal.console import Console, Text
from bot.channels.cli.terminal.language import texts
from bot.channels.cli.terminal.texts import catalogue, typed


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


@pytest.fixture
def in_a_venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / ".venv/bin").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / ".venv/bin/phonedesk")])
    return ".venv/bin/phonedesk"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_command_that_is_advised_can_be_typed(lang: Lang, in_a_venv: str) -> None:
    terminal = texts(lang)
    shown = {f"help {key}": text for key, text in catalogue(lang).items()}
    shown |= {key: terminal.find(key, "") for key in ChatTexts(lang)._texts}
    shown |= {f"doctor {key}": typed(text) for key, text in doctor_catalogue(lang).items()}
    shown |= {f"setup {key}": typed(text) for key, text in SetupTexts(lang)._texts.items()}
    commands = {key.partition(".")[0].partition(" ")[0] for key in catalogue(lang) if key.endswith(".summary")}
    bare = {
        key: found[0]
        for key, text in shown.items()
        if (found := re.search(rf"(?<![\w./-])phonedesk ({'|'.join(commands)})\b", text))
    }
    assert bare == {}
    assert sum(in_a_venv in text for text in shown.values()) > 100
    assert f"{in_a_venv} doctor" in DoctorTexts(lang).get("output.mend_first", {"titles": "x"})
    assert SetupTexts(lang).get("next.serve").startswith(in_a_venv)
    assert terminal.get("question.left_open", id="phonedesk run").count(in_a_venv) == 2, "what is filled in stays"
    assert in_a_venv not in ChatTexts(lang).get("question.left_open", id="1"), "a chat has no such path"


@pytest.mark.parametrize("error", [ConfigMissing("x"), LearningFailed("x")])
def test_an_errors_own_advice_can_be_typed_too(
    error: ConfigMissing | LearningFailed,
    in_a_venv: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    with pytest.raises(typer.Exit):
        fail(error)
    said = capsys.readouterr().err
    assert f"{in_a_venv} " in said
    assert " phonedesk " not in said
