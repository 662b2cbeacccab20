"""How much of the product one ``/run`` goes through, from Telegram's update to the closed card.

    python -m tests.acceptance.trace            the figures
    python -m tests.acceptance.trace --files    and the files, in the order in which they are reached

Counted are the functions that are called in the server meanwhile, in files of ours, what it does every second included.
Threads that ran before are not looked into. ``agent`` is what has been reached when ``PhoneAgent.go_on`` is called.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any, cast

from tests.acceptance.stage import PHONEDESK, TASK, Server, Stage, stage, until
from tests.support.forked import ForkedProcess

ROOT = Path(__file__).parents[2]
AT_REST = 3.0  # seconds after the start of the server, so that its start is not counted

# Python runs this at the start of the server: SIGUSR1 begins to count, SIGUSR2 writes what was reached.
HOOK = """
import json, os, signal, sys, threading
root, target = os.environ["TRACE_ROOT"], os.environ["TRACE_TO"]
files, functions, agent = {}, {}, []

def called(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(root) or code.co_name == "<module>":
        return
    file = code.co_filename[len(root):]
    if file.startswith((".", "tests", "simulator")):
        return
    files.setdefault(file)
    functions.setdefault((file, code.co_qualname))
    if not agent and code.co_qualname == "PhoneAgent.go_on":
        agent.append(len(files))

def begin(*_):
    threading.setprofile(called)
    sys.setprofile(called)

def end(*_):
    sys.setprofile(None)
    threading.setprofile(None)
    with open(target + ".part", "w") as file:
        json.dump({"agent": agent[0] if agent else None, "files": list(files), "functions": len(functions)}, file)
    os.replace(target + ".part", target)

signal.signal(signal.SIGUSR1, begin)
signal.signal(signal.SIGUSR2, end)
"""


async def _served(on: Stage, **settings: str) -> Server:
    """Start the server from nothing: a fork would not run the hook."""
    log = on.folder / "traced.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(PHONEDESK, "serve"),
            env={**on.environment, **settings},
            cwd=on.folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    server = Server(cast("ForkedProcess", process), log, on.started)
    await server.up()
    return server


async def traced() -> dict[str, Any]:
    """Return ``agent`` (files), ``files`` (in order) and ``functions`` (how many) of one answered question."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        target = folder / "trace.json"
        (folder / "hook").mkdir()
        (folder / "hook" / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
        path = os.pathsep.join((str(folder / "hook"), str(ROOT)))
        async with stage(folder) as on:
            server = await _served(on, PYTHONPATH=path, TRACE_ROOT=f"{ROOT}/", TRACE_TO=str(target))
            owner = await on.owner(server)
            await asyncio.sleep(AT_REST)
            server.signal(signal.SIGUSR1)
            card = await on.run(owner, TASK)
            await on.shows(owner, card, "已完成")
            server.signal(signal.SIGUSR2)
            await until(target.exists, what="the trace")
            found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description="How much of the product one /run goes through.")
    parser.add_argument("--files", action="store_true", help="list the files")
    wanted = parser.parse_args()
    found = asyncio.run(traced())
    print(f"agent: {found['agent']} files, whole run: {len(found['files'])} files, {found['functions']} functions")  # noqa: T201
    if wanted.files:
        print(*found["files"], sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()
