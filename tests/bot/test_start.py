"""What a command loads before it does anything: the start of the command line is held by this, not by a clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
print(*sorted(name for name in sys.modules if name.count(".") < 2), file=sys.stderr)
"""


def loaded_by(*arguments: str, folder: Path | None = None) -> set[str]:
    """Return the modules and packages, two names deep, that a process has loaded after these arguments."""
    probe = PROBE.format(arguments=list(arguments))
    place = {**os.environ, "PYTHONPATH": str(ROOT), "PHONEDESK_LANG": "en"}
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=place, cwd=folder
    )
    assert done.stdout.strip(), arguments
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_the_list_of_commands_loads_no_command(arguments: tuple[str, ...]) -> None:
    loaded = loaded_by(*arguments)
    assert "bot.terminal" in loaded
    assert (
        loaded & {*HEAVY, "pydantic", "asyncio", "structlog", "bot.commands", "knowledge", "scheduler", "storage"}
        == set()
    )


@pytest.mark.parametrize("command", ["devices", "doctor", "config", "serve", "worker", "demo"])
def test_help_of_a_command_loads_no_provider_and_no_database(command: str) -> None:
    loaded = loaded_by(command, "--help")
    assert "bot.commands" in loaded
    assert loaded.isdisjoint(set(HEAVY) - {"PIL"} | {"storage.engine"})


@pytest.mark.parametrize(
    "arguments", [("kb", "search", "x"), ("questions", "list"), ("schedule", "list"), ("people", "list")]
)
def test_what_only_looks_into_the_database_loads_no_model_and_no_channel(
    arguments: tuple[str, ...], tmp_path: Path
) -> None:
    loaded = loaded_by(*arguments, folder=tmp_path)
    assert "storage.engine" in loaded
    assert loaded.isdisjoint({"aiohttp", "dbos", "mcp", "openai", "telegram", "bot.app", "bot.models", "bot.serving"})
