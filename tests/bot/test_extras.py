"""Without its extras phonedesk starts, and whoever needs one is told which, in their language."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from PIL import Image

from agent_core import extras
from agent_core.extras import PACKAGES, Extra, install_command
from bot.channels.chat.texts import LANGUAGES, texts

# Hides packages as if they were not installed, then calls commands, each in both languages.
CHILD = """
import json, os, sys
from importlib.machinery import PathFinder

hidden, calls = json.loads(sys.argv[1])

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
assert not {name.partition(".")[0] for name in sys.modules} & set(hidden)

from bot.channels.chat.texts import texts
from bot.channels.cli.main import app
from bot.channels.cli.commands.common import speak

def plan():
    from agent_core.errors import PhonedeskError
    from bot.app.plans.service import check_planner
    from bot.app.settings.sections import PlannerSettings
    try:
        check_planner(PlannerSettings(base_url="http://127.0.0.1:9/v1", name="m"))
    except PhonedeskError as error:
        print(texts(os.environ["PHONEDESK_LANG"]).error(error), file=sys.stderr)
        raise SystemExit(2)

for environment, arguments in calls:
    os.environ.update(environment)
    speak(None)
    try:
        code = app(arguments) if arguments else plan()
    except SystemExit as end:
        code = end.code
    print("\\n--", code, "--", file=sys.stderr, flush=True)
"""
POSTGRES = "postgresql://desk@127.0.0.1:9/desk"
NEEDS: list[tuple[Extra, list[str]]] = [
    ("mcp", ["mcp"]),
    ("mcp", ["mcp", "--http", "--port", "0"]),
    ("demo", ["demo"]),
    ("ocr", ["demo", "--headless", "--tree", "off"]),
    ("ocr", ["read", "shot.png", "--app", "qq"]),
    ("lab", ["demo", "--headless", "--scenario", "wrong.toml"]),
    ("postgres", ["schedule", "list"]),
    ("notify", ["alerts", "test"]),
    ("planner", []),
]


def without(folder: Path, hidden: list[str], calls: list[tuple[dict[str, str], list[str]]]) -> list[tuple[str, str]]:
    """The exit code and the errors of each call in a process that has no ``hidden`` packages, in a terminal."""
    terminal, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps([hidden, calls])],
        cwd=folder,
        env={**os.environ, "COLUMNS": "400", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=inner,
        stdout=inner,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as child:
        os.close(inner)
        _, errors = child.communicate(timeout=100)
    os.close(terminal)
    parts = errors.split("\n-- ")
    assert len(parts) == len(calls) + 1, errors
    codes = [part.partition(" --\n")[0] for part in parts[1:]]
    told = [parts[0], *(part.partition(" --\n")[2] for part in parts[1:-1])]
    return list(zip(codes, told, strict=True))


def test_without_the_extras_it_is_said_which_one_is_needed(tmp_path: Path) -> None:
    Image.new("RGB", (720, 1280), "white").save(tmp_path / "shot.png")
    (tmp_path / "wrong.toml").write_text('[[contacts]]\nnick = "11"\n')
    calls = [
        (
            {
                "PHONEDESK_LANG": lang,
                "PHONEDESK_DATABASE_URL": POSTGRES if extra == "postgres" else "",
                "PHONEDESK_NOTIFY__URLS": "json://127.0.0.1:9/" if extra == "notify" else "",
            },
            arguments,
        )
        for extra, arguments in NEEDS
        for lang in LANGUAGES
    ]
    results = without(tmp_path, [name for names in PACKAGES.values() for name in names], calls)
    wanted = [(extra, lang) for extra, _ in NEEDS for lang in LANGUAGES]
    for (extra, lang), (code, told) in zip(wanted, results, strict=True):
        assert code == "2", (extra, told)
        assert install_command(extra) in told
        assert "Traceback" not in told
        values = {"extra": extra, "command": install_command(extra), "faults": ""}
        key = "scenario_lines" if extra == "lab" else "extra_missing"
        expected = texts(lang).get(f"errors.{key}", **values).splitlines()
        assert expected[0] in told
        assert expected[-1] in told
        if extra == "lab":
            assert "contacts[0]" in told


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("uv-receipt.toml", "uv tool install --force 'phonedesk-{release}-py3-none-any.whl[mcp,ocr]'"),
        ("pyvenv.cfg", "{python} -m pip install 'phonedesk-{release}-py3-none-any.whl[mcp]'"),
    ],
)
def test_the_command_fits_how_phonedesk_was_installed(
    file: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).touch()
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "lib" / "agent_core" / "extras.py"))  # no clone around it
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for name in {name for extra, names in PACKAGES.items() if extra != "ocr" for name in names}:
        monkeypatch.setitem(sys.modules, name, None)  # what an import finds that is not installed
    release = version("phonedesk")
    assert install_command("mcp") == command.format(python=sys.executable, release=release)
