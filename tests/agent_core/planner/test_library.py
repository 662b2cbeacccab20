"""The planner's client, over real HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

import agent_core.planner
from agent_core.errors import ModelError
from agent_core.model.base import Usage
from agent_core.model.usage import Meter
from agent_core.planner import Executor, PlanDone, PlannerTask, phone_tools
from agent_core.planner.base import PlanEvent, PlanFailed
from agent_core.planner.planner import Planner
from tests.support.model_server import Break, Chunks, Raw, Script, ScriptedModel, Status, Text
from tests.support.planner import Nothing, quiet


class Counting(Meter):
    def __init__(self) -> None:
        super().__init__()
        self.counted: list[Usage] = []
        self.errors: list[tuple[str, str]] = []

    def failed(self, model: str, error: ModelError) -> None:
        self.errors.append((model, error.kind))

    async def count(self, model: str, usage: Usage) -> None:
        self.counted.append(usage)


async def test_an_endpoint_that_refuses_to_count_is_asked_without() -> None:
    meter = Counting()
    script: list[Script] = [
        Status(400, "Unknown parameter: stream_options"),
        Text("好了", usage=None),
        Text("又好了", usage=None),
    ]
    async with ScriptedModel(script) as server:
        planner = Planner(server.url, "p", "", tools=(), meter=meter)
        nobody = cast("Executor", None)  # no tool is called
        for said in ("好了", "又好了"):
            assert await planner.plan(PlannerTask("做"), nobody, Nothing(), quiet) == PlanDone(said, success=True)
        await planner.close()
        assert ["stream_options" in body for body in server.requests] == [True, False, False]
    assert [usage.guessed and usage.tokens_in > 0 for usage in meter.counted] == [True, True]


async def test_what_breaks_off_or_is_stopped_is_counted_by_a_guess_and_what_fails_by_its_name() -> None:
    meter = Counting()
    call = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}]}
    script: list[Script] = [Break(["先看", "手机"]), Chunks([call, 30.0]), Status(401)]
    async with ScriptedModel(script) as server:
        planner = Planner(server.url, "p", "", tools=(), meter=meter)
        nobody = cast("Executor", None)  # no tool is called
        assert isinstance(await planner.plan(PlannerTask("做"), nobody, Nothing(), quiet), PlanFailed)
        stopped = asyncio.create_task(planner.plan(PlannerTask("做"), nobody, Nothing(), quiet))
        while len(server.requests) < 2:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)  # it has come by then
        stopped.cancel()
        await asyncio.wait([stopped])
        assert isinstance(await planner.plan(PlannerTask("做"), nobody, Nothing(), quiet), PlanFailed)
        await planner.close()
    assert [(usage.guessed, usage.tokens_in > 0, usage.tokens_out > 0) for usage in meter.counted] == [(True,) * 3] * 2
    assert meter.errors == [("p", "model.unreachable"), ("p", "model.auth")]


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Status(404, "no such model"), "model.unknown", "HTTP 404 from the model p: no such model"),
        (Status(307, headers={"Location": "http://127.0.0.1:9/"}), "model.format", "redirects (HTTP 307)"),
        (Raw('data: {"error": {"message": "busy"}}\n\n', "text/event-stream"), "model.unreachable", "busy"),
        (Raw("x" * 9_000_000, "application/json"), "model.format", "longer than 8 MB"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_the_endpoint_refuses_is_told_as_by_other_models(reply: Script, kind: str, words: str) -> None:
    meter = Counting()
    async with ScriptedModel([reply], repeat_last=True) as server:
        planner = Planner(server.url, "p", "", tools=(), meter=meter)
        end = await planner.plan(PlannerTask("做", lang="en"), cast("Executor", None), Nothing(), quiet)
        await planner.close()
    assert isinstance(end, PlanFailed)
    assert words in end.message
    assert meter.errors == [("p", kind)]


async def test_nobody_listens_to_the_planner() -> None:
    meter = Counting()
    async with ScriptedModel([]) as server:
        url = server.url
    planner = Planner(url, "p", "", tools=(), meter=meter)
    end = await planner.plan(PlannerTask("做"), cast("Executor", None), Nothing(), quiet)
    await planner.close()
    assert isinstance(end, PlanFailed)
    assert meter.errors == [("p", "model.unreachable")]


async def test_a_fault_of_ours_is_not_blamed_on_the_endpoint() -> None:
    function = {"name": "list_devices", "arguments": "{}"}
    call = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}

    async def broken(event: PlanEvent) -> None:
        raise ZeroDivisionError("password hunter2")

    async with ScriptedModel([Chunks([call], finish="tool_calls")]) as server:
        planner = Planner(server.url, "p", "", tools=phone_tools()[:1])
        end = await planner.plan(PlannerTask("做", lang="en"), cast("Executor", None), Nothing(), broken)
        await planner.close()
    assert end == PlanFailed("The plan failed and is not done: ZeroDivisionError")


@pytest.mark.rotating(parts=2)
def test_a_proxy_of_the_environment_that_is_none_is_no_hindrance() -> None:
    """The library would make an HTTP client for its tracing, which goes by the environment."""
    given = {
        **os.environ,
        "all_proxy": "no proxy at all",
        "PYTHONPATH": str(Path(agent_core.planner.__file__).parents[2]),
    }
    made = "import agent_core.planner.library, threading; print(threading.active_count())"
    done = subprocess.run([sys.executable, "-c", made], env=given, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("1", "")
