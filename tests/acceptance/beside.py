"""Open-AutoGLM and phonedesk side by side: the same six replies, virtual phone, adb and model, in turns.

``python -m tests.acceptance.beside CHECKOUT --python PYTHON``: CHECKOUT is a copy of Open-AutoGLM's repository, PYTHON
an interpreter that has what its requirements name. Nothing of it is changed, and its own pauses are left as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from agent_core.devices.adb.program import find_adb
from bot.tools.bench.scale import Measured, measured
from bot.tools.bench.served import BenchRun
from bot.tools.bench.steps import TASK, Steps, StepsModel, from_the_start
from simulator.model.server import MODEL_NAME

# It asks its model for a word when ``main.py`` starts, which is no step; so its agent is called directly.
_DRIVER = """
import sys
from phone_agent import PhoneAgent
from phone_agent.agent import AgentConfig
from phone_agent.model import ModelConfig
url, model, serial, task = sys.argv[1:]
agent = PhoneAgent(ModelConfig(base_url=url, model_name=model), AgentConfig(device_id=serial, verbose=False))
print(agent.run(task))
"""


async def open_autoglm(made: Measured, checkout: Path, python: Path) -> None:
    """Have Open-AutoGLM do the task. RuntimeError with what it printed if it fails."""
    adb = Path(find_adb())
    with tempfile.TemporaryDirectory() as programs:
        (Path(programs) / "adb").symlink_to(adb)
        environment = {
            "PATH": os.pathsep.join((programs, "/usr/bin", "/bin")),
            "HOME": str(made.data.parent),
            "ANDROID_ADB_SERVER_PORT": str(made.adb.port),
            "PYTHONPATH": str(checkout),
            "PYTHONUTF8": "1",
            "no_proxy": "127.0.0.1,localhost",
        }
        process = await asyncio.create_subprocess_exec(
            str(python),
            "-c",
            _DRIVER,
            made.model,
            MODEL_NAME,
            made.phones[0].address,
            TASK,
            env=environment,
            cwd=made.data.parent,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(said.decode("utf-8", "replace"))


async def beside(checkout: Path, python: Path, times: int) -> tuple[Steps, Steps]:
    """Do the task ``times`` times with each; return the median run of phonedesk and of Open-AutoGLM."""
    model = StepsModel()
    ours: list[Steps] = []
    theirs: list[Steps] = []
    async with measured(1, 1, model=model) as made:
        serial = made.phones[0].address
        for turn in range(times + 1):  # in the first one each learns the phone
            await from_the_start(made.adb, serial)
            seen = await made.order(BenchRun(tasks=[(serial, TASK)], patience=120))
            if seen.runs[0].status != "succeeded":
                raise RuntimeError(f"{TASK}: {seen.runs[0].message}")
            ours.append(model.taken("phonedesk", made.phones[0].calls))
            if turn:
                await from_the_start(made.adb, serial)
                await open_autoglm(made, checkout, python)
                theirs.append(model.taken("Open-AutoGLM", made.phones[0].calls))
    return middle(ours[1:]), middle(theirs)


def middle(found: list[Steps]) -> Steps:
    """Return the run with the median overhead; the slower one of two."""
    return sorted(found, key=lambda one: one.overhead)[len(found) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="A copy of Open-AutoGLM's repository.")
    parser.add_argument("--python", type=Path, required=True, help="An interpreter with its requirements.")
    parser.add_argument("--times", type=int, default=3)
    wanted = parser.parse_args()
    ours, theirs = asyncio.run(beside(wanted.checkout.resolve(), wanted.python.absolute(), wanted.times))
    told = {"phonedesk": asdict(ours), "open_autoglm": asdict(theirs), "times": theirs.overhead / ours.overhead}
    sys.stdout.write(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
