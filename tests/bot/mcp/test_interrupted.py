"""Calls that are cut, or overtaken by another, between the phone and the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from agent_core.devices.adb.device import AdbDevice
from bot.desk.actors import Actor, BadRequest, Role
from bot.mcp.arguments import TaskCall
from bot.mcp.client import Client
from bot.mcp.house import ToolHouse
from bot.mcp.stopping import Stopper
from bot.mcp.tasks import Tasks
from storage.leases import Leases
from storage.people import Audit
from storage.questions import Questions
from storage.runs import Runs
from tests.bot.mcp.conftest import World
from tests.bot.mcp.test_sessions import ASK, DONE, HOME, OPEN, PAY, TASK

pytestmark = pytest.mark.asyncio(loop_scope="session")

EDITOR = Actor("key:1", "mcp", "key:1", "editor", "en", Role.OPERATOR)


async def unheard(progress: float, total: float, message: str) -> None:
    return None


async def nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class SlowHouse(ToolHouse):
    """``meanwhile`` happens before the phone is connected to, ``at_the_shot`` before the last screen is taken."""

    meanwhile: Callable[[], Awaitable[None]] = nothing
    at_the_shot: Callable[[], Awaitable[None]] = nothing

    @asynccontextmanager
    async def phone(self, serial: str) -> AsyncIterator[AdbDevice]:
        await self.meanwhile()
        async with super().phone(serial) as device:
            yield device

    async def shot(self, device: AdbDevice) -> bytes | None:
        await self.at_the_shot()
        return await super().shot(device)


def slow(
    world: World,
    meanwhile: Callable[[], Awaitable[None]] = nothing,
    at_the_shot: Callable[[], Awaitable[None]] = nothing,
) -> tuple[SlowHouse, Tasks]:
    one = world.house
    house = SlowHouse(one.core, one.rights, one.phones, one.own_helper, meanwhile=meanwhile, at_the_shot=at_the_shot)
    return house, Tasks(house)


async def asked(world: World, step: Any = ASK) -> str:
    """The session of a task that asks something at once."""
    world.says(step)
    _, tasks = slow(world)
    result = await tasks.begin(EDITOR, TaskCall(task=TASK), Client(unheard), Stopper())
    assert result.question is not None
    return result.session_id


def reply(session_id: str, words: str, **more: Any) -> TaskCall:
    return TaskCall(session_id=session_id, reply_from_client=words, **more)


async def test_a_session_that_went_on_meanwhile_is_not_taken_back(world: World) -> None:
    session_id = await asked(world)

    async def went_on() -> None:
        world.says(OPEN, HOME, ASK)
        _, tasks = slow(world)
        again = await tasks.go_on(EDITOR, reply(session_id, "first"), Client(unheard), Stopper())
        assert again.question is not None
        await Questions(world.core.db).answer(again.question.id, {"choice": "", "text": "Li's"}, by="Li")

    _, overtaken = slow(world, meanwhile=went_on)
    with pytest.raises(BadRequest, match="went on meanwhile"):
        await overtaken.go_on(EDITOR, reply(session_id, "second"), Client(unheard), Stopper())
    world.says(DONE)
    _, tasks = slow(world)
    done = await tasks.go_on(EDITOR, reply(session_id, "third"), Client(unheard), Stopper())
    assert (done.stop_reason, done.global_steps) == ("TASK_COMPLETED_SUCCESSFULLY", 5)
    noted = await Audit(world.core.db).done_by("key:1", ["mcp reply"])
    assert "third" not in str([row.detail for row in noted])


@pytest.mark.parametrize(
    ("begun", "step", "status"),
    [(False, DONE, "succeeded"), (False, ASK, "stopped"), (True, ASK, "stopped"), (True, DONE, "succeeded")],
)
async def test_a_call_that_is_taken_back_at_its_last_screen(world: World, begun: bool, step: Any, status: str) -> None:
    there = asyncio.Event()

    async def hang() -> None:
        there.set()
        await asyncio.Event().wait()

    house, tasks = slow(world, at_the_shot=hang)
    if begun:
        call, work = TaskCall(task=TASK, enable_final_screenshot=True), tasks.begin
    else:
        call, work = reply(await asked(world), "go on", enable_final_screenshot=True), tasks.go_on
    world.says(step)
    calling = asyncio.create_task(house.calls.apart(lambda stopper: work(EDITOR, call, Client(unheard), stopper)))
    async with asyncio.timeout(10):
        await there.wait()
    (lease,) = await Leases(world.core.db).held()
    calling.cancel()
    with suppress(asyncio.CancelledError):
        await calling
    row = await Runs(world.core.db).get(lease.run_id)
    assert row is not None
    assert (row.status, row.leg, row.leg_due_at) == (status, 1 if begun else 2, None)  # no leg was due meanwhile
    assert "Cancelled" not in row.message
    assert await Leases(world.core.db).held() == []


async def test_a_call_that_is_taken_back_before_its_phone_is_had(world: World) -> None:
    """Its answer makes nobody go on with it."""
    session_id = await asked(world)
    stopper = Stopper()
    stopper.stop()
    _, tasks = slow(world)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(tasks.go_on(EDITOR, reply(session_id, "x"), Client(unheard), stopper))
    row = await Runs(world.core.db).get(session_id)
    assert row is not None
    assert (row.status, row.leg_due_at) == ("stopped", None)


async def test_of_what_only_a_person_decides_people_are_reminded(world: World) -> None:
    times = []
    for step in (PAY, ASK):
        session_id = await asked(world, step)
        (question,) = await Questions(world.core.db).find(run_id=session_id)
        times.append((question.deadline is not None, question.remind_at is not None))
        await Runs(world.core.db).request_stop(session_id)
    assert times == [(True, True), (False, False)]
