"""How the program starts: quietly ended by Ctrl-C, with what the demo needs, and completed by a shell."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.channels.cli.commands.common import Exit

START = "from bot.start import main; main()"
WITHOUT_EXTRA = """
import importlib.util

there = importlib.util.find_spec
importlib.util.find_spec = lambda name, *place: None if name == "aiogram" else there(name, *place)
"""
# Says when a module is about to be loaded, and stays there; a signal just before a long sleep would wait for its end.
TELLING = """
import importlib.abc, sys, time

class Tell(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("there", flush=True)
            while True:
                time.sleep(0.05)

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
        stderr=asyncio.subprocess.PIPE if terminal is None else terminal,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **more},
    )


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("bot.channels.cli.main", ("run", "x")),  # one that greets a person at a terminal
        ("bot.desk.desk", ("schedule", "list")),
    ],
    ids=["loading", "in the command"],
)
async def test_ctrl_c_ends_it_quietly(module: str, arguments: tuple[str, ...]) -> None:
    child = await started(TELLING.format(module=module) + START, *arguments)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"there\n"
    child.send_signal(signal.SIGINT)
    out, err = await child.communicate()
    assert (child.returncode, out, err) == (Exit.STOPPED, b"", b"")


@contextmanager
def a_terminal() -> Iterator[tuple[int, int]]:
    """A person's end of a pseudo-terminal, and the program's."""
    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)
        os.close(theirs)


async def read_to(terminal: int, end: str) -> str:
    """Return what is shown before ``end``."""
    shown = b""
    while not shown.endswith(end.encode()):
        shown += await asyncio.to_thread(os.read, terminal, 65536)
    return shown.decode().removesuffix(end)


async def test_the_demo_says_at_once_that_it_starts_and_then_what_it_needs() -> None:
    with a_terminal() as (ours, theirs):
        child = await started(WITHOUT_EXTRA + START, "demo", terminal=theirs)
        await child.wait()
        os.write(theirs, b"$")
        shown = await read_to(ours, "$")
    begun, blanks, needs = shown.split("\r", 2)
    assert begun.startswith("The demo starts")
    assert not blanks.strip()
    assert len(blanks) >= len(begun)
    assert "[demo]" in needs
    assert (child.returncode, "Traceback" in needs) == (Exit.USAGE, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "x"), "正在准备手机……"),
        (("run", "x", "--lang=en"), "Getting the phone ready …"),
        (("sweep",), "正在准备手机……"),
        (("serve",), "服务正在启动，要几秒钟……"),
        (("run", "x", "--json"), ""),
        (("devices",), ""),
    ],
)
async def test_a_slow_command_says_at_once_what_it_begins_with(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the language of the settings; Ctrl-C takes the line away."""
    monkeypatch.delenv("PHONEDESK_LANG")
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    monkeypatch.setenv("PYTHONUTF8", "1")
    Path(".env").write_text("PHONEDESK_LANG=zh\n")
    with a_terminal() as (ours, theirs):
        child = await started(TELLING.format(module="bot.channels.cli.main") + START, *arguments, terminal=theirs)
        begun = await read_to(ours, "there\r\n")
        child.send_signal(signal.SIGINT)
        assert await child.wait() == Exit.STOPPED
        os.write(theirs, b"$")
        rest = await read_to(ours, "$")
    assert begun == said
    assert re.fullmatch(r"\r +\r" if said else "", rest)


async def test_a_shell_completes_commands() -> None:
    named = "import sys; sys.argv[0] = 'phonedesk'\n"
    asked = await started(
        named + START, COMP_WORDS="phonedesk kb im", COMP_CWORD="2", _PHONEDESK_COMPLETE="complete_bash"
    )
    out, _ = await asked.communicate()
    assert out.decode().split() == ["import"]
