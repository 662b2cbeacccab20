"""What else happens while a plan is made: others at its phones, stops at every moment, faults, other processes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent_core.devices.base import Battery
from agent_core.owner import folder as own
from agent_core.planner import PlanDone
from agent_core.planner.words import texts
from agent_core.ports import Record
from agent_core.texts import say
from bot.app.plans.executor import PlanExecutor
from bot.app.plans.service import PlanService
from bot.app.plans.state import SessionBusy
from bot.desk.keys import actor_of_key
from bot.desk.views import NewPlan
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from storage.leases import Leases
from storage.plans import Conversations
from storage.questions import Questions
from storage.runs import Runs
from tests.support.model_server import Hang
from tests.support.own import TOOL, write_own
from tests.support.plans import PLAN, PlanHouse, act, asks, calls, events_of, finish, plan_house, results

KEY = "api:key:2:s"  # the operator's conversation s


def executor_of(house: PlanHouse) -> PlanExecutor:
    worker = house.planning._worker
    new = NewPlan("-", session="-")
    return PlanExecutor(house.core, worker, RunService(house.core.db, worker=worker), "p", new)


async def test_nothing_is_done_on_a_phone_that_another_task_used_meanwhile(tmp_path: Path) -> None:
    question = act('do(action="Interact", question="打开哪一个?", choices=["微信", "QQ"])')
    model = [finish("聊天已打开"), question, finish("问过了"), finish("又看了"), finish("已发送")]
    settings = {"busy_wait_seconds": 5.0}
    async with plan_house(tmp_path, [], model, planner=settings, run={"hold_seconds": 0}) as house:
        leases, runs, serial, executor = (
            Leases(house.core.db),
            Runs(house.core.db),
            house.serials[0],
            executor_of(house),
        )
        # Somebody has it: that is waited for, as long as the settings say; and before the first call anybody may.
        other = await leases.acquire(serial, "other", "r0")
        assert other is not None
        waiting = asyncio.create_task(executor.chat(serial, "打开张三的聊天"))
        assert not (await asyncio.wait([waiting], timeout=0.2))[0]
        await leases.release(other)
        assert (await waiting).success
        # One that asks gives the phone back and takes it again: the plan's own hand all along.
        asking = asyncio.create_task(executor.chat(serial, "问一下"))
        while not (asked := await Questions(house.core.db).find(state="open")) or await leases.held():
            await asyncio.sleep(0.01)
        await house.desk.context.runs.answer(asked[0].id, {"choice": "QQ", "text": ""}, by="Wang")
        assert (await asking).success
        assert (await executor.chat(serial, "再看看")).success
        # Another task opens another chat.
        other = await leases.acquire(serial, "other", "r1")
        assert other is not None
        await leases.release(other)
        thoughts = len(house.model.requests)
        refused = await executor.chat(serial, "在当前聊天里输入并发送")
        assert (refused.steps, refused.success) == (0, False)
        assert refused.result == texts("zh").meanwhile.replace("$phone", serial)
        assert len(house.model.requests) == thoughts
        newest = (await runs.find())[0]
        assert (newest.status, newest.message) == ("failed", refused.result)
        assert (await executor.chat(serial, "在当前聊天里输入并发送")).success
        assert house.planning._worker.takers == {}


async def test_the_planner_sees_whether_a_phone_is_charging(tmp_path: Path) -> None:
    async with plan_house(tmp_path, [], []) as house:
        executor = executor_of(house)
        assert await executor.battery(house.serials[0]) == Battery(87, charging=True, celsius=28.5)
        assert await executor.battery("no-such-phone") == Battery()


async def test_the_planner_calls_a_tool_of_the_owners(tmp_path: Path) -> None:
    folder = write_own(tmp_path / own.FOLDER, {"tools/shop.py": TOOL, "planner/zh.txt": "先看库存。"})
    own.use(folder)
    settings: dict[str, Any] = {"own_dir": str(folder), "planner": {"tools": ("stock_of",)}}
    try:
        ask = calls(("stock_of", {"article": "12"}), ("stock_of", {"shop": "1"}))
        async with plan_house(tmp_path, [ask, "还有七件。"], [], **settings) as house:
            events = await house.plan("还有货吗")
            assert results(events) == [
                {"article": "12", "shop": 1, "pieces": 7},
                "参数不对：需要 article, shop (integer)，文字都不为空。",
            ]
            request = house.planner.requests[0]
            names = [tool["function"]["name"] for tool in request["tools"]]
            assert names == ["list_devices", "chat", "stock_of"]
            assert "先看库存。" in request["messages"][0]["content"]
    finally:
        own.use(None)


class Broken:
    name = "broken"

    async def retrieve(self, query: str) -> Sequence[Record]:
        raise ZeroDivisionError("password hunter2")

    async def close(self) -> None: ...


async def test_what_cannot_be_stored_or_breaks_ends_no_plan_and_the_end_of_its_turns_does(tmp_path: Path) -> None:
    look = calls(("list_devices", {}))
    script: list[Any] = [calls(("search_knowledge", {"query": "发货"})), "好了。", look, look, "明白。"]
    async with plan_house(tmp_path, script, [], planner={"layered_max_turns": 2}) as house:
        async with house.core.db.write() as connection:
            await connection.execute(
                sa.text(
                    "CREATE TRIGGER away BEFORE INSERT ON events WHEN NEW.kind LIKE 'tool%' "
                    "BEGIN SELECT RAISE(ABORT, 'away'); END"
                )
            )
        house.core.knowledge = Broken()
        events = await house.plan("查一下", session_id="s")
        assert results(events) == ["没有做成：ZeroDivisionError"]
        assert events[-1] == {"type": "done", "content": "好了。", "success": True}
        events = await house.plan("看看手机", session_id="s")
        assert events[-1] == {"type": "done", "content": texts("zh").max_turns, "success": False}
        # The conversation knows of it.
        await house.plan("继续", session_id="s")
        said = [message.get("content") or "" for message in house.planner.requests[-1]["messages"]]
        assert [texts("zh").cut_off_nothing in one for one in said[-2:]] == [True, False]


async def test_a_plan_that_is_stopped_while_it_begins_is_not_made(tmp_path: Path) -> None:
    async with plan_house(tmp_path, ["好"], []) as house:
        actor = await actor_of_key(house.core.db, house.auth()["Authorization"])
        assert actor is not None
        for end in (house.planning.stop, house.planning.forget):
            starting = asyncio.create_task(house.desk.plans.start(actor, "看看", session="s", serial=house.serials[0]))
            await asyncio.sleep(0)
            assert await house.planning.known(KEY)
            assert await end(KEY)
            run = await starting
            assert [event async for event in house.planning.follow(run.id)] == [PlanDone("已停止。", success=False)]
            row = await Runs(house.core.db).get(run.id)
            assert row is not None
            assert row.status == "stopped"
        assert house.planner.requests == []
        assert not await house.planning.known(KEY)


async def test_what_was_cut_off_is_known_to_the_conversation_and_to_every_process(tmp_path: Path) -> None:
    async with plan_house(tmp_path, [], [finish("微信已打开"), Hang(), Hang()]) as house:
        db, serial = house.core.db, house.serials[0]
        house.planner.script += [asks(serial, "打开微信"), asks(serial, "发送"), "好的。"]
        worker = Worker(db, house.planning._worker._work, owner="there")
        elsewhere = PlanService(house.core, worker, RunService(db))
        async with house.post("chat", {"message": PLAN, "session_id": "s"}) as stream:
            while len(house.model.requests) < 2:
                await asyncio.sleep(0.01)
            with pytest.raises(SessionBusy), elsewhere.beginning(KEY):
                await elsewhere.start(NewPlan("继续", KEY))
            assert await elsewhere.stop(KEY, by="Wang")
            assert await Leases(db).held() == []
            assert [event async for event in events_of(stream)][-1]["success"] is False
        assert not await elsewhere.stop(KEY)
        await house.plan("继续", session_id="s")
        said = house.planner.requests[-1]["messages"][-2]
        assert said["role"] == "assistant"
        assert "- 打开微信 -> 做成了：微信已打开\n- 发送 -> 停了：第一步还没有做完就停止了。" in said["content"]
        # Where the process is killed, the next one of its host ends the plan and its part at once.
        house.planner.script += [asks(serial, "再发"), "好的。"]
        async with house.post("chat", {"message": "再发", "session_id": "s"}) as stream:
            while len(house.model.requests) < 3:
                await asyncio.sleep(0.01)
            plan = next(row.id for row in await Runs(db).find() if row.options["kind"] == "plan")
            assert await Runs(db).end_plans_of("here") == [plan]
            while not (part := (await Runs(db).parts_of(plan))[0]).final:
                await asyncio.sleep(0.01)
            assert (part.status, part.message) == ("stopped", say("zh", "run.left_alone"))
            assert [event async for event in events_of(stream)][-1]["type"] in {"error", "done"}
        assert await elsewhere.forget(KEY)
        assert await Conversations(db).items(KEY) == []
