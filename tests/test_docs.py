"""The words around the product: what they name is there, and nothing that is there is left unnamed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from dotenv import dotenv_values
from pydantic import BaseModel, SecretStr
from typer.main import get_command

from agent_core.owner.faults import faults
from agent_core.perception.page_report import (
    InputReport,
    MessageKind,
    MessageReport,
    PageKind,
    PageReport,
    RowReport,
    SendReport,
    TitleReport,
)
from agent_core.perception.readings import SendState, Side
from agent_core.texts import language_of
from bot.app.settings.layers import Settings, aliases
from bot.app.settings.names import names
from bot.app.settings.texts import setting_words
from bot.channels.chat.commands import _CHINESE as CHINESE_WORDS
from bot.channels.chat.commands import COMMANDS as CHAT_COMMANDS
from bot.channels.cli.commands.common import Exit
from bot.channels.cli.main import app
from bot.tools.eval.scenario import EvalScenario
from simulator.phone import scenario_file
from tests.support.docs import CHINESE, PAGES, ROOT, blocks, prose, read, spans
from tests.support.environment import without_settings
from tests.support.own import write_own

README, README_ZH = ROOT / "README.md", ROOT / "README.zh-CN.md"
REFERENCE = ROOT / "docs" / "reference"
PAIRS = [page for page in PAGES if page.with_suffix(CHINESE).exists()]
ENGLISH_ONLY = {
    "scenario.md",  # a format, for those who write such files; schema and errors are English, too
    "package.md",  # what an index shows of the wheel: one page in both languages
}
BOT_COMMANDS = {"commands.md": "The bot's commands", "commands.zh-CN.md": "机器人的命令"}
DOCS = [page for page in ROOT.glob("docs/**/*.md") if not page.name.endswith(CHINESE) and page.name not in ENGLISH_ONLY]
FROM_THE_MACHINE = {"PHONEDESK_LANG", "PHONEDESK_TIMEZONE"}  # the default differs: written as empty
MOST_WORDS = {README: 700, README_ZH: 1400}  # of a first page; Chinese characters count as words
SECTIONS = {
    README: (
        "Status",
        "Why a real phone",
        "What it promises",
        "Try it",
        "Your phone in five steps",
        "Apps, channels and models",
        "Limits and risks",
        "Links",
    ),
    README_ZH: (
        "现状",
        "为什么用真手机",
        "它承诺什么",
        "先试用",
        "五步接上你的手机",
        "应用、渠道和模型",
        "限制和风险",
        "链接",
    ),
}

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_NAMED = re.compile(r"PHONEDESK_\w+|(?<![\w-])--[a-z][a-z-]*|/[a-z]+(?= |`)|\b[\w-]+\.(?:py|toml|sqlite3|gif|jsonl)\b")
_CALLED = re.compile(r"(?:^|[\s`/])phonedesk (?!-)([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


def both(name: str) -> list[Any]:
    """A page of the reference and its Chinese pair, as parameters of a test."""
    return [pytest.param(REFERENCE / f"{name}{ending}", id=f"{name}{ending}") for ending in (".md", CHINESE)]


def headings(page: Path) -> list[int]:
    """The levels of the headings, in order."""
    return [len(mark) for mark in re.findall(r"^(#+) ", prose(page), re.MULTILINE)]


def rows(page: Path) -> list[int]:
    """How many lines each of the tables and lists has, in order."""
    found = re.findall(r"(?:^(?:\||- |\d+\. ).*\n(?:^ +\S.*\n)*)+", prose(page), re.MULTILINE)
    return [len(re.findall(r"^(?:\||- |\d+\. )", lines, re.MULTILINE)) for lines in found]


def named(page: Path) -> set[str]:
    """The settings, options, commands and files that the text names."""
    return {name for code in spans(page) for name in _NAMED.findall(f"{code}`")}


def anchors(page: Path) -> set[str]:
    """What links to places inside the page may end in: the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}


# -- settings


def leaves(model: type[BaseModel], prefix: str = "PHONEDESK_") -> Iterator[tuple[str, Any]]:
    """The environment name and the default of each setting."""
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, BaseModel):
            yield from leaves(type(default), f"{prefix}{name.upper()}__")
        else:
            yield f"{prefix}{name.upper()}", default


SETTINGS = dict(leaves(Settings))


def means(written: str, default: object) -> bool:
    """Whether what is written in an environment file is this default."""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if default is None or default == "":
        return not written
    if isinstance(default, str | Path):
        return written == str(default)
    if not isinstance(default, Mapping | bool | float | int):
        default = list(default)  # type: ignore[call-overload]  # a tuple
    return bool(json.loads(written) == default)


def example() -> dict[str, str]:
    """The lines of .env.example that hold a name, switched on."""
    lines = re.findall(r"^#?([A-Z][A-Z0-9_]+=.*)$", read(ROOT / ".env.example"), re.MULTILINE)
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_stands_in_the_example_with_its_default(name: str) -> None:
    default = None if name in FROM_THE_MACHINE else SETTINGS[name]
    assert name in example()
    assert means(example()[name], default), f"{name}={example()[name]} is not {default!r}"


@pytest.mark.parametrize("page", both("settings"))
@pytest.mark.parametrize("name", SETTINGS)
def test_setting_stands_in_the_reference_with_its_default(name: str, page: Path) -> None:
    found = re.findall(rf"^\| `{name}` \| (.*?) \|", read(page), re.MULTILINE)
    assert len(found) == 1
    written = found[0].strip("`")
    if name not in FROM_THE_MACHINE:
        assert means("" if written == "—" else written, SETTINGS[name])


@pytest.mark.parametrize("page", both("settings"))
def test_the_reference_begins_with_the_words_of_the_console(page: Path) -> None:
    said, lang = read(page), language_of("zh" if page.name.endswith(CHINESE) else "en")
    found = {name: re.search(rf"^\| `{name.environment}` \| .*? \| (.*) \|$", said, re.MULTILINE) for name in names()}
    begun = {name.key: (setting_words(name, lang), cell[1] if cell else "") for name, cell in found.items()}
    other = {key for key, (words, cell) in begun.items() if re.split("[;；] ?", cell)[0] != words}
    assert other == set()


def test_example_names_nothing_else() -> None:
    ours = set(SETTINGS)
    theirs = {name for name in example() if name.startswith("PHONE_AGENT_KNOWLEDGE_")}
    assert set(example()) == ours | theirs
    given = aliases(dict.fromkeys(theirs, "1"))
    assert set(given["knowledge"]) == {"base_url", "dataset_id", "token", "timeout_seconds", "provider"}
    assert len(theirs) == 5  # the token has two names
    for name in theirs:
        assert aliases({name: "1"}), f"{name} is no alias"


def test_example_switched_on_is_read_as_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_settings(monkeypatch, tmp_path)
    plain = Settings()
    (tmp_path / ".env").write_text("\n".join(f"{name}={value}" for name, value in example().items()), encoding="utf-8")
    assert dotenv_values(tmp_path / ".env").keys() >= SETTINGS.keys()
    assert Settings() == plain


# -- commands


def commands() -> Iterator[tuple[str, Any]]:
    """``demo``, ``schedule add`` … and what Typer knows of each."""
    root = get_command(app)
    for name, command in root.commands.items():  # type: ignore[attr-defined]  # a group: it has several commands
        yield name, command
        for below, inner in getattr(command, "commands", {}).items():
            yield f"{name} {below}", inner


COMMANDS = dict(commands())


def section(page: Path, title: str) -> str:
    """The text under the heading, up to the next one of its level or above."""
    found = re.search(rf"^(##+) {re.escape(title)}\n(.*?)(?=^##? |\Z)", read(page), re.DOTALL | re.MULTILINE)
    assert found, f"{page.name} has no heading {title!r}"
    return found[2]


def test_the_command_line_is_found() -> None:
    assert isinstance(app, typer.Typer)
    assert {"run", "demo", "devices", "virtual-phone", "demo-model"} <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_a_page_calls_exists(page: Path) -> None:
    groups = {name.split()[0] for name in COMMANDS if " " in name}
    for text in [*blocks(page), *spans(page)]:
        for command, below in _CALLED.findall(text):
            assert command in COMMANDS, f"phonedesk {command}"
            if command in groups and below:
                assert f"{command} {below}" in COMMANDS, f"phonedesk {command} {below}"


@pytest.mark.parametrize("page", both("commands"))
@pytest.mark.parametrize("name", COMMANDS)
def test_command_stands_in_the_reference_with_its_options(name: str, page: Path) -> None:
    text = section(page, f"phonedesk {name.split(maxsplit=1)[0]}")
    assert f"phonedesk {name}" in text
    for param in COMMANDS[name].params:
        for option in param.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in text, f"{name}: {option}"


@pytest.mark.parametrize("page", both("commands"))
def test_every_command_stands_in_the_list_at_the_top(page: Path) -> None:
    top = read(page).split("\n## ", 1)[0]
    for name in {name.split()[0] for name in COMMANDS}:
        assert f"[`phonedesk {name}`](#phonedesk-{name})" in top


@pytest.mark.parametrize("page", both("commands"))
def test_every_command_of_the_bot_stands_in_the_reference(page: Path) -> None:
    text = section(page, BOT_COMMANDS[page.name])
    for name in CHAT_COMMANDS:
        assert f"`/{name}" in text


@pytest.mark.parametrize("page", both("commands"))
def test_every_word_that_is_a_command_stands_in_the_reference(page: Path) -> None:
    text = section(page, BOT_COMMANDS[page.name])
    for word in CHINESE_WORDS:
        assert word in text


@pytest.mark.parametrize("page", both("commands"))
def test_every_field_and_word_of_a_page_report_stands_in_the_reference(page: Path) -> None:
    text = section(page, "phonedesk read")
    parts = (PageReport, TitleReport, MessageReport, InputReport, SendReport, RowReport)
    names = {name for part in parts for name in part.model_fields}
    words = {word.value for kinds in (PageKind, MessageKind, Side, SendState) for word in kinds}
    assert {name for name in names | words if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("page", both("exit-codes"))
def test_every_exit_code_stands_in_the_reference(page: Path) -> None:
    found = re.findall(r"^\| (\d+) \|", read(page), re.MULTILINE)
    assert sorted(map(int, found)) == sorted(Exit)


def test_examples_of_own_files_can_be_used(tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "your-own-prompts-and-apps.md"
    (app_file, names), (tool,) = blocks(page, "toml"), blocks(page, "python")
    files = {"apps/dd.toml": app_file, "apps/map.toml": names, "tools/shop.py": tool}
    assert faults(write_own(tmp_path, files)) == []


# -- the virtual phone


PARTS: list[type[BaseModel]] = [EvalScenario, *scenario_file.parts_of(EvalScenario).values()]
SCENARIO_PARTS = {part.__name__: part for part in PARTS}


@pytest.mark.parametrize("part", SCENARIO_PARTS.values(), ids=SCENARIO_PARTS)
def test_every_field_of_a_scenario_stands_in_the_reference(part: type[BaseModel]) -> None:
    for field in part.model_fields:
        assert f"`{field}`" in read(REFERENCE / "scenario.md"), f"{part.__name__}.{field}"


@pytest.mark.parametrize("page", [page for page in PAGES if "[[contacts]]" in read(page)], ids=lambda page: page.name)
def test_scenarios_in_the_pages_are_read(page: Path) -> None:
    for text in blocks(page, "toml"):
        if "[[contacts]]" in text:
            assert scenario_file.parse_scenario(text, EvalScenario).contacts


# -- the pages


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if not re.match(r"[a-z]+:", link):
            path, _, place = link.partition("#")
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not place or place in anchors(target), link


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_of_the_documentation_is_there_in_chinese(page: Path) -> None:
    assert page.with_suffix(CHINESE).exists()


def in_chinese(block: str) -> str:
    """Return a block with its tasks as the Chinese pages write them: each page shows its readers their own language."""
    return block.replace("reply to contact 11 on QQ", "QQ回复联系人11")


@pytest.mark.parametrize("page", PAIRS, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_say_the_same(page: Path) -> None:
    """As far as it can be counted: who adds a row, a block or a setting to one page has to look at the other."""
    chinese = page.with_suffix(CHINESE)
    assert headings(page) == headings(chinese)
    assert [in_chinese(block) for block in blocks(page)] == blocks(chinese)
    assert rows(page) == rows(chinese)
    assert named(page) == named(chinese)


@pytest.mark.parametrize("page", PAIRS, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_lead_to_each_other(page: Path) -> None:
    chinese = page.with_suffix(CHINESE)
    assert f"[中文]({chinese.name})" in read(page)
    assert f"[English]({page.name})" in read(chinese)


@pytest.mark.parametrize("page", PAIRS, ids=lambda page: str(page.relative_to(ROOT)))
def test_chinese_page_leads_to_chinese_pages(page: Path) -> None:
    chinese = page.with_suffix(CHINESE)
    for link in _LINK.findall(prose(chinese)):
        path = link.partition("#")[0]
        if path.endswith(".md") and path != page.name:
            assert not (chinese.parent / path).with_suffix(CHINESE).exists(), link


def test_both_readmes_are_there() -> None:
    assert README in PAIRS
    assert blocks(README, "sh")
    assert README_ZH.name in read(README)
    assert README.name in read(README_ZH)


@pytest.mark.parametrize("page", MOST_WORDS, ids=lambda page: page.name)
def test_first_page_is_short(page: Path) -> None:
    """What a reader sees of it outside the code blocks."""
    seen = re.sub(r"<img [^>]*>", "", re.sub(r"\]\([^)]*\)", "]", prose(page)))
    words = re.findall(r"[\u3400-\u9fff]|[^\s\u3400-\u9fff]*[^\W_\u3400-\u9fff][^\s\u3400-\u9fff]*", seen)
    assert MOST_WORDS[page] / 2 < len(words) <= MOST_WORDS[page]


@pytest.mark.parametrize("page", SECTIONS, ids=lambda page: page.name)
def test_first_page_begins_with_a_sentence_and_keeps_its_order(page: Path) -> None:
    assert re.findall(r"^## (.+)$", prose(page), re.MULTILINE) == list(SECTIONS[page])
    first = prose(page).split("\n## ", 1)[0].strip().split("\n\n")[2]
    assert len(re.findall(r"[.。](?=\s|$)", first)) == 1, first


@pytest.mark.parametrize("page", [README, README_ZH, *sorted(ROOT.glob("docs/tutorial/first-run*.md"))], ids=str)
def test_who_has_no_phone_finds_the_virtual_one(page: Path) -> None:
    chinese = page.name.endswith(CHINESE)
    assert f"how-to/run-without-a-phone{CHINESE if chinese else '.md'})" in read(page)


@pytest.mark.parametrize(
    "index", [ROOT / "docs" / "README.md", ROOT / "docs" / "README.zh-CN.md"], ids=lambda page: page.name
)
def test_every_page_stands_in_the_index(index: Path) -> None:
    in_chinese = index.name.endswith(CHINESE)
    pages = {page for page in ROOT.glob("docs/*/*.md") if page.name.endswith(CHINESE) == in_chinese}
    if in_chinese:
        pages |= {page for page in ROOT.glob("docs/*/*.md") if page.name in ENGLISH_ONLY}
    listed = {(index.parent / link).resolve() for link in _LINK.findall(read(index))}
    assert pages - listed == set()


def test_calls_of_this_machine_go_through_no_proxy() -> None:
    """Who needs a proxy for the model has it in the environment, and curl asks it for 127.0.0.1, too."""
    calls = [line for page in PAGES for line in re.findall(r"\bcurl .*", read(page)) if "://127.0.0.1" in line]
    assert len(calls) > 5
    assert [line for line in calls if not line.startswith("curl --noproxy '*' ")] == []
