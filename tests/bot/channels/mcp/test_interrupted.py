"""Calls that are cut, or overtaken by another, between the phone and the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from agent_core.devices.adb.device import AdbDevice
from agent_core.devices.base import Device
from agent_core.ports import Event
from agent_core.session import GateState, Session
from bot.channels.mcp.arguments import TaskCall
from bot.channels.mcp.client import Client
from bot.channels.mcp.context import ToolContext
from bot.channels.mcp.stopping import Stopper
from bot.channels.mcp.tasks import CHANNEL, Tasks
from bot.desk.actors import Actor, BadRequest, Role
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import StoredRuns
from storage.leases import Leases
from storage.people import Audit
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from storage.tables import runs as runs_table
from tests.bot.channels.mcp.conftest import World
from tests.bot.channels.mcp.replies import ASK, DONE, HOME, OPEN, PAY, TASK
from tests.support.model_server import Hang

pytestmark = pytest.mark.asyncio(loop_scope="session")

EDITOR = Actor("key:1", "mcp", "key:1", "editor", "en", Role.OPERATOR)


async def say_nothing(progress: float, total: float, message: str) -> None:
    return None


async def nothing() -> None:
    return None


@dataclass(frozen=True, kw_only=True)
class SlowHouse(ToolContext):
    """``meanwhile`` happens before the phone is connected to, ``at_the_shot`` before the last screen is taken."""

    meanwhile: Callable[[], Awaitable[None]] = nothing
    at_the_shot: Callable[[], Awaitable[None]] = nothing

    @asynccontextmanager
    async def phone(self, serial: str) -> AsyncIterator[Device]:
        await self.meanwhile()
        async with super().phone(serial) as device:
            yield device

    async def shot(self, device: Device) -> bytes | None:
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
    result = await tasks.begin(EDITOR, TaskCall(task=TASK), Client(say_nothing), Stopper())
    assert result.question is not None
    return result.session_id


def reply(session_id: str, words: str, **more: Any) -> TaskCall:
    return TaskCall(session_id=session_id, reply_from_client=words, **more)


async def test_a_session_that_went_on_meanwhile_is_not_taken_back(world: World) -> None:
    session_id = await asked(world)

    async def went_on() -> None:
        world.says(OPEN, HOME, ASK)
        _, tasks = slow(world)
        again = await tasks.go_on(EDITOR, reply(session_id, "first"), Client(say_nothing), Stopper())
        assert again.question is not None
        await Questions(world.core.db).answer(again.question.id, {"choice": "", "text": "Li's"}, by="Li")

    _, overtaken = slow(world, meanwhile=went_on)
    with pytest.raises(BadRequest, match="went on meanwhile"):
        await overtaken.go_on(EDITOR, reply(session_id, "second"), Client(say_nothing), Stopper())
    world.says(DONE)
    _, tasks = slow(world)
    done = await tasks.go_on(EDITOR, reply(session_id, "third"), Client(say_nothing), Stopper())
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
    calling = asyncio.create_task(house.calls.apart(lambda stopper: work(EDITOR, call, Client(say_nothing), stopper)))
    async with asyncio.timeout(10):
        await there.wait()
    (lease,) = await Leases(world.core.db).held()
    calling.cancel()
    with suppress(asyncio.CancelledError):
        await calling
    row = await Runs(world.core.db).get(lease.run_id)
    assert row is not None
    assert (row.status, row.attempt, row.attempt_due_at) == (
        status,
        1 if begun else 2,
        None,
    )  # no attempt was due meanwhile
    assert "Cancelled" not in row.message
    assert await Leases(world.core.db).held() == []


async def test_a_call_that_is_taken_back_before_its_phone_is_had(world: World) -> None:
    """Its answer makes nobody go on with it."""
    session_id = await asked(world)
    stopper = Stopper()
    stopper.stop()
    _, tasks = slow(world)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(tasks.go_on(EDITOR, reply(session_id, "x"), Client(say_nothing), stopper))
    row = await Runs(world.core.db).get(session_id)
    assert row is not None
    assert (row.status, row.attempt_due_at) == ("stopped", None)


async def test_of_what_only_a_person_decides_people_are_reminded(world: World) -> None:
    times = []
    for step in (PAY, ASK):
        session_id = await asked(world, step)
        (question,) = await Questions(world.core.db).find(run_id=session_id)
        times.append((question.deadline is not None, question.remind_at is not None))
        await Runs(world.core.db).request_stop(session_id)
    assert times == [(True, True), (False, False)]


async def row_of(world: World, run_id: str) -> RunRow:
    row = await Runs(world.core.db).get(run_id)
    assert row is not None
    return row


async def test_what_a_killed_server_had_under_way_is_not_done_without_its_client(world: World) -> None:
    """But for a reply: nothing of it can be sent twice. What it had asked is still to be answered."""
    db, killed = world.core.db, []
    for gate in (GateState(), GateState(enabled=True, contact="11")):
        new = NewRun(TASK, world.serial, options={"channel": CHANNEL, "lang": "zh"}, begun=True)
        run_id = await Runs(db).create(new)
        assert run_id is not None
        await Runs(db).save_session(run_id, Session(run_id=run_id, task=TASK, gate=gate).model_dump_json())
        killed.append(run_id)
    asking = await asked(world)
    killed.append(asking)
    async with db.write() as connection:
        died = {"started_at": db.now() - timedelta(hours=1), "status": "running"}
        await connection.execute(sa.update(runs_table).where(runs_table.c.id.in_(killed)).values(died))
    await Dispatcher(db, None, lang="en").once()
    lost, answer, waits = [await row_of(world, run_id) for run_id in killed]
    assert (lost.status, lost.attempt_due_at) == ("failed", None)
    assert "先看看手机" in lost.message
    assert (answer.status, answer.attempt_due_at is None) == ("waiting", False)
    await Runs(db).request_stop(answer.id)
    assert (waits.status, waits.attempt_due_at) == ("waiting", None)
    world.says(DONE)
    _, tasks = slow(world)
    done = await tasks.go_on(EDITOR, reply(asking, "go on"), Client(say_nothing), Stopper())
    assert done.stop_reason == "TASK_COMPLETED_SUCCESSFULLY"


async def test_the_phone_is_asked_nothing_between_the_row_and_the_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A phone that answers slowly would have the run taken for dead."""
    db, unheld, asked_of_phone = world.core.db, [], AdbDevice.info

    async def info(device: AdbDevice) -> Any:
        if not await Leases(db).held():
            unheld.extend(await Runs(db).find(statuses=["running"], requested_by=EDITOR.id))
        return await asked_of_phone(device)

    monkeypatch.setattr(AdbDevice, "info", info)
    world.says(DONE)
    _, tasks = slow(world)
    done = await tasks.begin(EDITOR, TaskCall(task=TASK), Client(say_nothing), Stopper())
    assert (done.stop_reason, unheld) == ("TASK_COMPLETED_SUCCESSFULLY", [])


@pytest.mark.parametrize("begun", [True, False])
async def test_what_fails_once_it_has_begun_is_never_not_started(
    world: World, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    session_id = "" if begun else await asked(world)
    told, seen = StoredRuns.event, 0

    async def event(
        store: StoredRuns, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        nonlocal seen
        seen += event.kind == "step"
        if seen == 2:
            raise OperationalError("SELECT secret", {}, Exception("away"))
        await told(store, run_id, event, picture=picture, session=session)

    monkeypatch.setattr(StoredRuns, "event", event)
    world.says(OPEN, HOME, DONE)
    house, tasks = slow(world)
    with capture_logs() as logs:
        if begun:
            done = await tasks.begin(EDITOR, TaskCall(task=TASK), Client(say_nothing), Stopper())
        else:
            done = await tasks.go_on(EDITOR, reply(session_id, "x"), Client(say_nothing), Stopper())
    assert "mcp_attempt_failed" in [line["event"] for line in logs]
    assert (done.stop_reason, done.local_steps) == ("ERROR", 2)
    row = await row_of(world, done.session_id)
    assert (row.status, row.attempt_due_at, house.at_work) == ("failed", None, set())
    assert "OperationalError" in row.message
    assert "SELECT" not in row.message + done.message


async def test_a_session_that_asks_nothing_hears_what_its_client_says(world: World) -> None:
    """It was held by a person, and brought back where no worker takes it up."""
    held: list[asyncio.Task[Any]] = []

    def hold(_: dict[str, Any]) -> Any:
        held.append(asyncio.ensure_future(hold_it()))
        return Hang()

    async def hold_it() -> None:
        (lease,) = await Leases(world.core.db).held()
        await Runs(world.core.db).request_hold(lease.run_id)

    world.says(OPEN, hold)
    _, tasks = slow(world)
    stopped = await tasks.begin(EDITOR, TaskCall(task=TASK), Client(say_nothing), Stopper())
    assert stopped.stop_reason == "STOPPED_BY_OPERATOR"
    assert await Runs(world.core.db).resume(stopped.session_id)
    world.says(DONE)
    done = await tasks.go_on(EDITOR, reply(stopped.session_id, "看电池"), Client(say_nothing), Stopper())
    assert done.stop_reason == "TASK_COMPLETED_SUCCESSFULLY"
    assert "The program that gave the task says: 看电池" in str(world.model.requests[0]["messages"])
