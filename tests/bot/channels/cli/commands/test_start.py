"""How the program starts: quietly ended by Ctrl-C, with what the demo needs, and completed by a shell."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from bot.channels.cli.commands.common import Exit

START = "from bot.start import main; main()"
WITHOUT_EXTRA = """
import importlib.util

there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *place: None if name == "aiogram" else there(name, *place)
"""
# Says when a module is about to be loaded, and stays there.
TELLING = """
import importlib.abc, sys, time

class Tell(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("there", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Tell())
"""


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PHONEDESK_LANG", "en")


async def started(
    program: str, *arguments: str, terminal: int | None = None, **more: str
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL if terminal is None else terminal,
        stdout=asyncio.subprocess.PIPE if terminal is None else terminal,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
    )


@pytest.mark.parametrize("module", ["bot.channels.cli.main", "bot.desk.desk"], ids=["loading", "in the command"])
async def test_ctrl_c_ends_it_quietly(module: str) -> None:
    child = await started(TELLING.format(module=module) + START, "schedule", "list")
    assert child.stdout is not None
    assert await child.stdout.readline() == b"there\n"
    child.send_signal(signal.SIGINT)
    out, err = await child.communicate()
    assert (child.returncode, out, err) == (Exit.STOPPED, b"", b"")


async def test_the_demo_says_at_once_that_it_starts_and_then_what_it_needs() -> None:
    ours, theirs = pty.openpty()
    try:
        child = await started(WITHOUT_EXTRA + START, "demo", terminal=theirs)
        _, err = await child.communicate()
        shown = os.read(ours, 4096).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown.startswith("The demo starts")
    assert (child.returncode, b"Traceback" in err) == (Exit.USAGE, False)
    assert "[demo]" in err.decode()


async def test_a_shell_completes_commands() -> None:
    named = "import sys; sys.argv[0] = 'phonedesk'\n"
    asked = await started(
        named + START, COMP_WORDS="phonedesk kb im", COMP_CWORD="2", _PHONEDESK_COMPLETE="complete_bash"
    )
    out, _ = await asked.communicate()
    assert out.decode().split() == ["import"]
