"""What a command loads before it does anything: the start of the command line is held by this, not by a clock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from bot.channels.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent.parent
# Each of them costs more than the whole list of commands.
HEAVY = ("PIL", "aiohttp", "alembic", "dbos", "httpx", "httpx2", "numpy", "openai", "sqlalchemy", "telegram")
PROBE = """
import sys
sys.argv = ["phonedesk", *{arguments!r}]
from bot.start import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sorted(name for name in sys.modules if name.count(".") < 4), file=sys.stderr)
"""


def loaded_by(*arguments: str, folder: Path | None = None) -> set[str]:
    """Return the modules and packages, four names deep, that a process has loaded after these arguments."""
    probe = PROBE.format(arguments=list(arguments))
    done = run_here(probe, folder=folder)
    assert done.stdout.strip(), arguments
    return set(done.stderr.split())


def run_here(
    probe: str, folder: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    place = {**os.environ, "PYTHONPATH": str(ROOT), "PHONEDESK_LANG": "en", **settings}
    return subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=place, cwd=folder
    )


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_the_list_of_commands_loads_no_command(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "bot.channels.cli.terminal" in loaded
    assert (
        loaded
        & {*HEAVY, "pydantic", "asyncio", "structlog", "bot.channels.cli.commands", "knowledge", "scheduler", "storage"}
        == set()
    )


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("phonedesk ", [name for names in COMMANDS.values() for name in names]),
        ("phonedesk de", ["devices", "demo", "demo-model"]),
        ("phonedesk --v", ["--version"]),
        ("phonedesk nothing-like-it", []),
    ],
)
def test_completing_a_command_loads_no_command(line: str, offered: list[str]) -> None:
    bash = {
        "_PHONEDESK_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = run_here(PROBE.format(arguments=[]), settings=bash)
    assert sorted(done.stdout.split()) == sorted(offered)
    loaded = set(done.stderr.split())
    assert "bot.channels.cli.main" in loaded
    assert loaded & {*HEAVY, "bot.channels.cli.commands", "knowledge", "scheduler", "storage"} == set()


def test_completion_says_what_each_command_does() -> None:
    zsh = {"_PHONEDESK_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "phonedesk pai"}
    said = run_here(PROBE.format(arguments=[]), settings=zsh).stdout
    assert '"pair":"Invite one more person, by a code or a console link."' in said


def test_completing_a_word_behind_a_command_asks_that_command() -> None:
    bash = {"_PHONEDESK_COMPLETE": "complete_bash", "COMP_WORDS": "phonedesk kb se", "COMP_CWORD": "2"}
    assert run_here(PROBE.format(arguments=[]), settings=bash).stdout.split() == ["search"]


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("command", ["devices", "doctor", "config", "serve", "worker", "demo"])
def test_help_of_a_command_loads_no_provider_and_no_database(command: str) -> None:
    loaded = loaded_by(command, "--help")
    assert "bot.channels.cli.commands" in loaded
    assert loaded.isdisjoint(set(HEAVY) - {"PIL"} | {"storage.engine"})
    assert command != "devices" or loaded.isdisjoint({"bot.channels.chat.cards", "agent_core.policies"})


def test_views_load_no_provider_and_no_database() -> None:
    views = sorted(f"bot.desk.{path.stem}" for path in (ROOT / "bot" / "desk").glob("*views.py"))
    assert "bot.desk.views" in views
    probe = f"import sys, {', '.join(views)}; print(*sys.modules)"
    place = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=place)
    assert set(done.stdout.split()).isdisjoint(set(HEAVY) - {"PIL"} | {"storage.engine"})


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    "arguments", [("kb", "search", "x"), ("questions", "list"), ("schedule", "list"), ("people", "list")]
)
def test_what_only_looks_into_the_database_loads_no_model_and_no_channel(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    loaded = loaded_by(*arguments, folder=tmp_path)
    assert "storage.engine" in loaded
    assert loaded.isdisjoint(
        {"aiohttp", "dbos", "mcp", "openai", "telegram", "bot.app.core", "bot.app.models", "bot.app.server"}
        | {"knowledge.factory", "scheduler.runs.worker"}
    )


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize(
    ("parts", "later"),
    [
        ("bot.app.run_here, bot.channels.cli.terminal.live", set(HEAVY) - {"PIL", "httpx2", "sqlalchemy"}),
        ("bot.app.server", {"agents", "mcp", "openai", "telegram"}),
    ],
    ids=["run and sweep", "serve"],
)
def test_the_client_of_the_models_is_loaded_after_the_first_line(parts: str, later: set[str], tmp_path: Path) -> None:
    probe = f"""
import asyncio, sys, {parts}
from bot.app.core import open_core
from bot.app.settings.loading import load

async def opened():
    async with open_core(load()) as core:
        assert core.model.name

asyncio.run(opened())
print(*sys.modules)
"""
    loaded = set(run_here(probe, folder=tmp_path).stdout.split())
    assert {"bot.app.core", "agent_core.model.client"} <= loaded
    assert loaded.isdisjoint(later)
