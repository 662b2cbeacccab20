"""The terminal speaks one language at a time: help, errors, outputs and the lines of a run."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from rich.cells import cell_len
from typer.main import get_command
from typer.testing import CliRunner

from agent_core.texts import system_language
from bot.app.core import open_core
from bot.app.release import NAME
from bot.app.run_here import run_here
from bot.app.settings.layers import Settings
from bot.channels.chat.texts import LANGUAGES, Lang
from bot.channels.cli.main import COMMANDS, app
from bot.channels.cli.terminal.console import Console
from bot.channels.cli.terminal.language import spoken_language, texts
from bot.channels.cli.terminal.live import LiveRuns, outcome_line, timings_line
from bot.channels.cli.terminal.texts import catalogue
from bot.tools.demo.world import demo_world
from scheduler.runs.human import StoredHuman
from tests.support.environment import without_settings

TASK = "QQ回复联系人11"
CJK = re.compile(r"[\u3400-\u9fff]")
# What may stand in English output: what people and customers wrote, names, and the way to the other language.
DATA = re.compile(
    r"“[^”]*”|QQ回复联系人\d+|GB18030|中文帮助：.*|测试.*|小王|你好，请问几天能发货？|几天能发货？|现货订单.*"
)
# Lines of Chinese output that hold no Chinese: commands to copy, codes, frames.
CODES = re.compile(
    r"\s*(?:"
    r"phonedesk .*|PHONEDESK_\w+=.*|Help in English: .*|https?://\S+|/?[\w./-]+\.(?:xlsx|zip|toml|csv)"
    r"|[A-Z_]{6,}。?|\[?\d+–\d+\]|--?[\w-]+(?: [\w|]+)?|\[[\w.]+\]|pdk_\S+|[\d:+ -]+|#\d+.*|> ?"
    r"|│ #?[0-9a-f]+[ ：].*│|│ +\d+ *│|╭─ [#\w]+ ─+╮|[╭╮╰╯│─━┏┓┗┛┡┩└┘┃\s]*"
    r")\s*"
)


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    monkeypatch.setenv("PHONEDESK_TIMEZONE", "Asia/Shanghai")
    monkeypatch.setenv("COLUMNS", "100")


def every(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each command by the name of its texts."""
    yield path or NAME, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every(below, f"{path} {name}".strip())


def mixed(said: str, lang: Lang) -> list[str]:
    """The lines that are in the other language."""
    if lang == "en":
        return [line for line in said.splitlines() if CJK.search(DATA.sub("", line))]
    return [line for line in said.splitlines() if not CJK.search(line) and not CODES.fullmatch(line)]


# Help -----------------------------------------------------------------------------------------------------------------


def test_both_languages_say_the_same() -> None:
    here, there = (catalogue(lang) for lang in LANGUAGES)
    assert here.keys() == there.keys()

    def holes(text: str) -> set[str | None]:
        return {name for _, name, _, _ in Formatter().parse(text)} - {None}

    assert [key for key in here if not key.startswith("wrong.") and holes(here[key]) != holes(there[key])] == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_command_and_option_is_told(lang: Lang) -> None:
    told = catalogue(lang)
    used = set()
    for key, command in every(get_command(app)):
        summary = told.get(f"{key}.summary", "")
        assert 0 < cell_len(summary) <= 60, f"{key}: {summary}"
        used |= {f"{key}.summary", f"{key}.more", f"{key}.example"}
        for param in command.params:
            name = f"{key}.{param.name}" if f"{key}.{param.name}" in told else f"common.{param.name}"
            assert name in told, f"{key} {param.name}"
            assert not param.help or param.name.endswith("_completion"), f"{key} {param.name}: write it in the texts"
            used.add(name)
    others = ("usage.", "values.", "wrong.", "groups.")
    assert [key for key in told if key not in used and not key.startswith(others)] == ["common.help"]
    assert {f"groups.{group}" for group in COMMANDS} == {key for key in told if key.startswith("groups.")}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_help_is_in_one_language(lang: Lang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    for key, _ in every(get_command(app)):
        done = CliRunner().invoke(app, [*key.removeprefix(NAME).split(), "--help"])
        assert done.exit_code == 0, key
        assert mixed(done.stdout, lang) == [], key
        assert not re.search(r"[<>{}]|\[\[|range|list\[|x(?:<=|>=)", done.stdout), key
        assert all(cell_len(line) <= 100 for line in done.stdout.splitlines() if "phonedesk " not in line), key


@pytest.mark.parametrize(
    ("lang", "shown"),
    [
        ("zh", ["用法：phonedesk kb import [选项] 文件...", "缺少 '文件'"]),
        ("en", ["Usage: phonedesk kb import [OPTIONS] FILE...", "'FILE' is missing"]),
    ],
)
def test_a_value_is_named_in_the_persons_language(lang: str, shown: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    said = CliRunner().invoke(app, ["kb", "import"]).stderr
    assert [words for words in shown if words not in said] == []
    words = catalogue(lang)  # type: ignore[arg-type]
    for key, command in every(get_command(app)):
        names = {
            str(param.metavar or param.name).lower() for param in command.params if param.param_type_name == "argument"
        }
        assert [name for name in names if f"values.{name}" not in words] == [], key


def test_the_list_stands_in_groups_in_order_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", "en")
    shown = CliRunner().invoke(app, ["--help"]).stdout
    names = [name for commands in COMMANDS.values() for name in commands]
    assert re.findall(rf"^  ({'|'.join(names)}) ", shown, re.MULTILINE) == names
    assert shown.index("Start here:") < shown.index("  demo ") < shown.index("Work:") < shown.index("  run ")


# What is wrong, and outputs -------------------------------------------------------------------------------------------

BAD_USE = [
    "run", f"run {TASK} --max-steps 0", f"run {TASK} --max-steps x", f"run {TASK} more", f"run --devic x {TASK}",
    f"run {TASK} --device", f"run {TASK} --dry-run=1", f"run {TASK} --policy x", "demo --lang fr", "what", "schedul",
    "virtual-phone --port 70000", "virtual-phone --look none", "virtual-phone --kit a --look b", "kb import no.csv",
    "kb import .", "kb edit x", "kb", "pair --role king", "pair --hours x", "answers rate 1", "schedule pause x",
    "sweep --app line", "people role 3 king", "read", "apps learn", "config set model.nam x", "replay 7", "-x",
    "eval --model-url x", "restore no.zip", "bench scale --phones x", "questions answer q1 x", "keys remove x",
    "contacts remove x", "worker --host _", "config unset nothing",
]  # fmt: skip
OUTPUTS = [
    "schedule list", f"schedule add *~*~*~*~* {TASK}", "schedule list", "schedule pause 1", "schedule resume 1",
    "schedule edit 1 --quiet 22:00-07:00", "schedule run 1", "schedule remove 1", "schedule undo 1",
    "schedule next 30~9~*~*~*", "schedule watch 11", "questions list", "kb stats", "kb search x", "kb add 1 2",
    "kb search 1", "kb pending", "kb stats", "kb export faq.xlsx", "kb import faq.xlsx", "contacts list",
    "contacts add 11 --number 123456", "contacts list", "contacts edit 11 --note x", "contacts remove 11",
    "people list", "keys list", "keys add editor", "keys list", "keys remove editor", "answers",
    "answers --rated bad", "replay", "config show", "config show --changed", "config check",
    "config set keep_days 9", "config unset keep_days", "pair", "backup .", "--version",
]  # fmt: skip


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.slow
def test_what_commands_say_is_in_one_language(lang: Lang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHONEDESK_LANG", lang)
    found = []
    for line in [*BAD_USE, *OUTPUTS]:
        done = CliRunner().invoke(app, [word.replace("~", " ") for word in line.split()])
        assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.exception)
        assert done.exit_code == (2 if line in BAD_USE else 0) or line in BAD_USE, (line, done.output)
        found += [f"{line}: {wrong}" for wrong in mixed(done.stdout + done.stderr, lang)]
    assert found == []


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("dry_run", [False, True], ids=["run", "dry run"])
@pytest.mark.device
async def test_a_run_is_told_in_one_language(lang: Lang, dry_run: bool) -> None:
    console, words = Console(file=io.StringIO(), width=160, color_system=None), texts(lang)
    async with demo_world(lang=lang, observe={"ocr": "off"}) as world, open_core(world.settings) as core:
        session = await run_here(
            core,
            TASK,
            human=StoredHuman(core.db, hold_seconds=0, attempt=1),
            store=LiveRuns(core.runs(attempt=1), console, words, core.attached.name, core.db),
            dry_run=dry_run,
        )
        console.print(outcome_line(session, words))
        console.print(timings_line(session, words))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert mixed(shown, lang) == []
    assert "VP 1 · " in shown, "the phone by its name"
    assert len(shown.splitlines()) > 3
    assert all("step" in step.timings for step in session.steps), "also of what was done without the model"
    whole, model, _, observe, act, rest = (float(one) for one in re.findall(r"\d+\.\d+", shown.splitlines()[-1]))
    assert whole == pytest.approx(model + observe + act + rest)


# The language ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "lang"),
    [
        ({}, "zh"),
        ({"LANG": "C.UTF-8"}, "zh"),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, "en"),
        ({"LANG": "de_DE@euro"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),
        ({"LC_MESSAGES": "en_GB.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "zh"),
    ],
)
def test_the_locale_decides(environment: dict[str, str], lang: Lang, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (system_language(), spoken_language(), Settings().lang) == (lang, lang, lang)
    monkeypatch.setenv("PHONEDESK_LANG", "zh" if lang == "en" else "en")
    assert spoken_language() != lang


@pytest.mark.parametrize("broken", ["web = 1\n", "keep_days = 9999\n", "not TOML at all\n", "[web]\nport = 'x'\n"])
def test_what_is_wrong_is_told_in_the_language_of_the_file(broken: str, tmp_path: Path) -> None:
    (tmp_path / "phonedesk.toml").write_text(f'lang = "en"\n{broken}', encoding="utf-8")
    for command in (["config", "check"], ["schedule", "list"], ["config", "set", "model.name", "x"]):
        done = CliRunner().invoke(app, command)
        assert mixed(done.stdout + done.stderr, "en") == [], command
