"""The package as a library of its own: its names, what they load, and the example of the documentation."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

import agent_core
from simulator.model.server import start_demo_model
from simulator.phone.scenario_file import default_scenario
from simulator.phone.server import serve
from tests.support.adb import adb_server
from tests.support.lab import on_a_small_phone

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "use-the-agent-alone.md"
PLACE = {**os.environ, "PYTHONPATH": str(ROOT)}


def test_every_name_is_there_and_is_its_modules_own() -> None:
    for name in agent_core.__all__:
        assert getattr(agent_core, name).__module__.startswith("agent_core."), name
    assert set(agent_core.__all__) <= set(dir(agent_core))
    with pytest.raises(AttributeError, match="has no attribute 'PhoneAgents'"):
        agent_core.PhoneAgents  # type: ignore[attr-defined]  # noqa: B018 - a name that is mistyped


def test_the_package_loads_none_of_its_modules() -> None:
    probe = "import sys, agent_core; print(*(name for name in sys.modules if name.startswith('agent_core')))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, env=PLACE)
    assert done.stdout.split() == ["agent_core"]


def test_the_page_names_every_argument() -> None:
    told = re.findall(r"^\| `(\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(set(signature(agent_core.PhoneAgent).parameters))


async def test_the_example_of_the_documentation_answers_a_customer(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    program = tmp_path / "alone.py"
    program.write_text(example, encoding="utf-8")
    model = await start_demo_model()
    try:
        async with adb_server() as adb, serve(on_a_small_phone(default_scenario())) as running:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                program,
                running.address,
                model.url,
                "QQ回复联系人11",
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**PLACE, "ANDROID_ADB_SERVER_PORT": str(adb.port), "PYTHONIOENCODING": "utf-8"},
            )
            said, _ = await process.communicate(b"send\n")
            assert process.returncode == 0, said.decode()
            assert running.phone.report()["sent"]["11"] == ["您好，下单后48小时内发货。"]
    finally:
        await model.close()
    assert said.decode().rstrip().endswith("succeeded ['您好，下单后48小时内发货。']"), said.decode()
