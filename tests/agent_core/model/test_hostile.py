"""What a hostile or broken model's server can do: it ends in an error, and costs little until then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import cast

import pytest
from PIL import Image

import agent_core.planner.library  # noqa: F401 - takes seconds, which are no part of what is measured
from agent_core.actions import parse_reply
from agent_core.model.client import ChatModel
from agent_core.planner import Executor, PlannerTask
from agent_core.planner.base import PlanFailed
from agent_core.planner.planner import Planner
from agent_core.ports import Record
from knowledge.choosing import ModelChooser
from simulator.model.hostile import ATTACKS, HostileModel
from tests.support.child import Child
from tests.support.planner import Nothing, quiet

TIMEOUT = 1.0  # seconds, as configured
MOST_SECONDS = TIMEOUT + 5
MOST_MEMORY = 200  # MiB
LONGEST_BLOCK = 1.0  # seconds
KEY = "sk-geheim-0123456789"
NEVER_DONE = ("now and then", "silence")  # in the names of attacks that only time can end
# What a reply ends in, if it was too long to be one, or is no call.
ENDS = {"ModelFormat", "ModelUnreachable", "ModelQuota", "ActionParseError", "Incomplete"}
NO_EVENTS = {"huge number"}  # for a planner that is as if nothing was said


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    with Child() as made:
        yield made


async def act(url: str) -> None:
    model = ChatModel(url, "m", KEY, timeout=TIMEOUT, alone=False)
    try:
        parse_reply((await model.complete([{"role": "user", "content": "go"}])).text, "auto")
    finally:
        await model.close()


async def transcribe(url: str) -> str:
    model = ChatModel(url, "m", KEY, timeout=TIMEOUT, alone=False)
    try:
        return await model.transcribe(Image.new("RGB", (8, 8)), "read")
    finally:
        await model.close()


async def check(url: str) -> bool:
    """Look, as ``phonedesk doctor`` does, whether the model can be used."""
    model = ChatModel(url, "m", KEY, timeout=TIMEOUT / 2)  # there are two requests
    try:
        return (await model.check()).name_known
    finally:
        await model.close()


async def choose(url: str) -> bool:
    chooser = ModelChooser(url, "m", KEY, timeout=TIMEOUT)
    try:
        return await chooser.choose("能退吗", "能退吗", [Record("1", "可以退。", "能退货吗", 0.9)]) is not None
    finally:
        await chooser.close()


async def plan(url: str) -> str:
    planner = Planner(url, "m", KEY, tools=(), timeout=TIMEOUT)
    try:
        done = await planner.plan(PlannerTask("do it"), cast("Executor", None), Nothing(), quiet)  # no tool is called
        return done.message if isinstance(done, PlanFailed) else ""
    finally:
        await planner.close()


@pytest.mark.rotating(parts=24)
@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_attack_costs_more_than_an_honest_answer(attack: str, child: Child) -> None:
    clients: tuple[Callable[[str], Awaitable[object]], ...] = (act, transcribe, check, choose, plan)
    for client in clients:
        async with HostileModel(attack) as server:
            cost = await child.measure_beside(client, server.url)
        told = f"{client.__name__}: {cost}"
        # A machine with other work gives an attack that makes work only a part of its time.
        assert (cost.seconds if attack.endswith(NEVER_DONE) else cost.cpu) < MOST_SECONDS, told
        assert cost.memory < MOST_MEMORY, told
        assert cost.longest_block < LONGEST_BLOCK, told
        assert server.requests, told
        assert not server.elsewhere, told
        assert KEY not in cost.message, told
        if client is act:
            assert cost.error in ({"ModelTimeout"} if attack.endswith(NEVER_DONE) else ENDS | {"ModelTimeout"}), told
        elif client is transcribe:
            assert cost.error in {"ModelFormat", "ModelUnreachable", "ModelQuota", "ModelTimeout"}, told
        elif client is not plan:
            assert (cost.error, cost.result) == ("", False), told
        elif attack not in NO_EVENTS:
            assert cost.error == "", told
            assert cost.result, told
