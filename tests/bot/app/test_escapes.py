"""What comes from outside never steers the stream that it is written to."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import given

from bot.app import logs
from bot.app.logs import escaped, escaped_line, to_json
from tests.bot.hostile_texts import DANGEROUS, hostile, hostile_or_broken


@given(hostile_or_broken)
def test_nothing_but_newlines_is_left_and_a_line_stays_one(text: str) -> None:
    assert not DANGEROUS.search(escaped(text))
    assert len(escaped_line(text).splitlines()) <= 1
    assert escaped(escaped(text)) == escaped(text)
    assert escaped("几天能发货？\n👨‍👩‍👧 café") == "几天能发货？\n👨‍👩‍👧 café"


@given(hostile)
def test_json_is_lossless(text: str) -> None:
    for indent in (None, 2):
        written = to_json({"a": [text], text: 1}, indent=indent)
        assert not DANGEROUS.search(written)
        assert json.loads(written) == {"a": [text], text: 1}
    assert json.loads(to_json("\ud800x")) == "\ud800x"


@given(text=hostile_or_broken)
@pytest.mark.parametrize("as_json", [False, True])
def test_an_event_is_one_line_whatever_it_holds(
    as_json: bool, text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seen, file = _Stream(), tmp_path_factory.mktemp("logs") / "desk.log"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", seen)
        logs.configure("info", json=as_json, file=logs.LogFile(file))
        structlog.get_logger().info(text or "x", value=text, deep={text: [text]}, error=ValueError(text))
        logging.getLogger("a.library").warning("%s", text)
        logs.close_file()
    written = "".join(seen.parts)
    assert not DANGEROUS.search(written)
    assert written.count("\n") == 2
    lines = file.read_text(encoding="utf-8")
    assert not DANGEROUS.search(lines)
    if not any("\ud800" <= char <= "\udfff" for char in text):  # JSON cannot tell two halves from a pair
        assert json.loads(lines.splitlines()[0])["value"] == logs.mask(text)


@pytest.mark.parametrize("library", [False, True])
def test_a_traceback_looks_like_no_other_event(library: bool, capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure("info")
    log = logging.getLogger("a.library") if library else structlog.get_logger()
    try:
        raise RuntimeError("wrong\n2026-01-01T00:00:00Z [error    ] forged\x1b[2J")
    except RuntimeError:
        log.exception("went_wrong")
    err = capfd.readouterr().err
    assert "\\x1b[2J" in err
    assert not DANGEROUS.search(err)
    assert [line for line in err.splitlines() if line and not line.startswith("    ")] == err.splitlines()[:1]


class _Stream:
    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    "code",
    [
        "from rich.console import Console\nConsole().print('x')\n",
        "from rich.text import Text\nText('x')\n",
        "from rich.panel import Panel\nPanel('x')\n",
        "from rich.status import Status\nStatus('x')\n",
        "import rich\nrich.print('x')\n",
        "import typer\ntyper.echo('x')\n",
        "import typer\ntyper.confirm('x')\n",
        "import sys\nsys.stdout.write('x')\n",
        "import sys\nsys.stderr.write('x')\n",
        "print('x')\n",
    ],
)
def test_ruff_lets_no_module_print_past_the_border(code: str) -> None:
    """``make check`` fails where a command prints by itself."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--output-format", "concise"]
    for place, found in (
        ("bot/channels/cli/commands/new.py", True),
        ("bot/channels/cli/terminal/new.py", code.startswith("print")),
    ):
        done = subprocess.run([*command, "--stdin-filename", place, "-"], input=code, text=True, cwd=root,
                              capture_output=True, check=False)  # fmt: skip
        assert (" TID251 " in done.stdout or " T201 " in done.stdout) is found, done.stdout + done.stderr
