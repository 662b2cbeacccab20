"""The words around the product: what they name is there, and nothing that is there is left unnamed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from dotenv import dotenv_values
from pydantic import BaseModel, SecretStr
from typer.main import get_command

from agent_core.devices.virtual import scenario_file
from bot.chat.commands import COMMANDS as CHAT_COMMANDS
from bot.cli import app
from bot.eval.scenario import EvalScenario
from bot.settings import Settings, aliases

ROOT = Path(__file__).parent.parent
README, README_ZH = ROOT / "README.md", ROOT / "README.zh-CN.md"
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PAIRS = [page for page in PAGES if page.with_suffix(".zh-CN.md").exists()]
FROM_THE_MACHINE = {"PHONEDESK_TIMEZONE"}  # their default is not the same everywhere: written as empty

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CALLED = re.compile(r"(?:^|[\s`/])phonedesk (?!-)([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str = "") -> list[str]:
    """The code blocks of a page, or those of one language."""
    return [body for name, body in _FENCE.findall(read(page)) if language in ("", name)]


def headings(page: Path) -> list[int]:
    """The levels of the headings, in order."""
    return [len(mark) for mark in re.findall(r"^(#+) ", _FENCE.sub("", read(page)), re.MULTILINE)]


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


@pytest.mark.parametrize("name", SETTINGS)
def test_setting_stands_in_the_reference_with_its_default(name: str) -> None:
    rows = re.findall(rf"^\| `{name}` \| (.*?) \|", read(REFERENCE / "settings.md"), re.MULTILINE)
    assert len(rows) == 1
    written = rows[0].strip("`")
    if name not in FROM_THE_MACHINE:
        assert means("" if written == "—" else written, SETTINGS[name])


def test_example_names_nothing_else() -> None:
    ours = set(SETTINGS)
    theirs = {name for name in example() if name.startswith("PHONE_AGENT_KNOWLEDGE_")}
    assert set(example()) == ours | theirs
    given = aliases(dict.fromkeys(theirs, "1"))
    assert set(given) == {"base_url", "dataset_id", "token", "timeout_seconds", "provider"}
    assert len(theirs) == 5  # the token has two names
    for name in theirs:
        assert aliases({name: "1"}), f"{name} is no alias"


def test_example_switched_on_is_read_as_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PHONEDESK_", "PHONE_AGENT_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
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
    inline = re.findall(r"`([^`\n]+)`", _FENCE.sub("", read(page)))
    for text in [*blocks(page), *inline]:
        for command, below in _CALLED.findall(text):
            assert command in COMMANDS, f"phonedesk {command}"
            if command in groups and below:
                assert f"{command} {below}" in COMMANDS, f"phonedesk {command} {below}"


@pytest.mark.parametrize("name", COMMANDS)
def test_command_stands_in_the_reference_with_its_options(name: str) -> None:
    text = section(REFERENCE / "commands.md", f"phonedesk {name.split(maxsplit=1)[0]}")
    assert f"phonedesk {name}" in text
    for param in COMMANDS[name].params:
        for option in param.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in text, f"{name}: {option}"


def test_every_command_of_the_bot_stands_in_the_reference() -> None:
    text = section(REFERENCE / "commands.md", "The bot's commands")
    for name in CHAT_COMMANDS:
        assert f"`/{name}" in text


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
    for link in _LINK.findall(_FENCE.sub("", read(page))):
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link.split("#")[0]).exists() if link[0] != "#" else True, link


@pytest.mark.parametrize("page", PAIRS, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_say_the_same(page: Path) -> None:
    chinese = page.with_suffix(".zh-CN.md")
    assert headings(page) == headings(chinese)
    assert blocks(page) == blocks(chinese)


def test_both_readmes_are_there() -> None:
    assert README in PAIRS
    assert blocks(README, "sh")
    assert README_ZH.name in read(README)
    assert README.name in read(README_ZH)
