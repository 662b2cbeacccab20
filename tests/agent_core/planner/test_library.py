"""The planner's client, over real HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agent_core.model.base import Usage
from agent_core.model.meter import Meter
from agent_core.planner import Executor, Order, PlanDone
from agent_core.planner.base import PlanEvent
from agent_core.planner.planner import Planner
from tests.support.model_server import Script, ScriptedModel, Status, Text


class Counting(Meter):
    def __init__(self) -> None:
        super().__init__()
        self.counted: list[Usage] = []

    async def count(self, model: str, usage: Usage) -> None:
        self.counted.append(usage)


class Nothing:
    """A conversation that is not kept."""

    async def items(self, limit: int | None = None) -> list[dict[str, Any]]:
        return []

    async def add(self, items: Sequence[Mapping[str, Any]]) -> None: ...

    async def pop(self) -> dict[str, Any] | None:
        return None

    async def clear(self) -> None: ...


async def quiet(event: PlanEvent) -> None: ...


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
            assert await planner.plan(Order("做"), nobody, Nothing(), quiet) == PlanDone(said, success=True)
        await planner.close()
        assert ["stream_options" in body for body in server.requests] == [True, False, False]
    assert [usage.guessed and usage.tokens_in > 0 for usage in meter.counted] == [True, True]
