"""Everything loads and starts without what only Unix has. Windows itself is not tried."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from bot.channels.cli.commands.common import Exit

# A child whose modules, signals and functions are those of Windows, as far as Python's own parts allow it.
WITHOUT_UNIX = """
import asyncio, importlib.abc, os, signal, sys

ABSENT = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "curses", "crypt", "spwd"}

def asked_by_mcp():
    # The SDK asks sys.platform, and takes another way on Windows.
    frame = sys._getframe()
    while frame and not frame.f_globals.get("__name__", "").startswith("mcp."):
        frame = frame.f_back if frame.f_code.co_filename.startswith(("<frozen", "<string")) else None
    return frame is not None

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT and not asked_by_mcp():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def refused(*args):
    raise NotImplementedError

for name in ABSENT:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
asyncio.SelectorEventLoop.add_signal_handler = refused
asyncio.SelectorEventLoop.remove_signal_handler = refused
for name in ("SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
    delattr(signal, name)
for name in ("fork", "chown", "getuid", "geteuid", "sysconf", "getloadavg"):
    delattr(os, name)
"""
EVERY_MODULE = """
import importlib, pkgutil

def broken(name):
    raise

for root in ("bot", "scheduler", "knowledge", "agent_core", "storage", "simulator"):
    package = importlib.import_module(root)
    for found in pkgutil.walk_packages(package.__path__, f"{root}.", broken):
        if not found.name.startswith("storage.migrations.") and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print("loaded")
"""
START = """
from bot.start import main
main()
"""


async def started(program: str, *arguments: str, **settings: str) -> asyncio.subprocess.Process:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PHONEDESK_")}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WITHOUT_UNIX + program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment, "PYTHONPATH": os.pathsep.join(sys.path), "PHONEDESK_LANG": "en", **settings},
    )


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.rotating(parts=4)
async def test_every_module_loads_without_unix() -> None:
    child = await started(EVERY_MODULE)
    out, err = await child.communicate()
    assert (child.returncode, out.decode().split()) == (0, ["loaded"]), err.decode()


@pytest.mark.rotating(parts=2)
async def test_the_demo_runs_without_unix() -> None:
    child = await started(START, "demo", "--headless", "--json", PHONEDESK_OBSERVE__OCR="off")
    out, err = await child.communicate()
    assert child.returncode == Exit.OK, err.decode()
    assert json.loads(out)["replies"][0]["delivered"] is True


@pytest.mark.rotating(parts=2)
async def test_a_server_starts_and_ends_in_order_without_unix(tmp_path: Path) -> None:
    child = await started(
        START, "serve", "--no-phones", PHONEDESK_WEB__PORT="0", PHONEDESK_LOG_FILE=str(tmp_path / "desk.log")
    )
    assert child.stdout is not None
    assert b"http://127.0.0.1:" in await child.stdout.readline()
    child.send_signal(signal.SIGINT)
    _, err = await child.communicate()
    assert child.returncode == Exit.OK, err.decode()
    assert b"Traceback" not in err
    assert (tmp_path / "desk.log").is_file()
