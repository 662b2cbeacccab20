"""Plans from end to end: HTTP, planner, executors, virtual phones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent_core.planner.words import texts
from agent_core.session import Session
from agent_core.settings import AgentSettings, new_session
from agent_core.texts import say
from bot.app.plans.state import PlanGate, reply_state
from bot.app.settings.sections import PlannerSettings
from bot.desk.history_views import HistoryAsked
from bot.desk.keys import actor_of_key
from scheduler.runs.dispatcher import Dispatcher
from storage.leases import Leases
from storage.model_calls import UsageTotals
from storage.plans import Conversations
from storage.questions import Questions
from storage.runs import RunRow, Runs
from storage.tables import plans
from storage.tables import runs as runs_table
from tests.support.model_server import Hang, Status, Text
from tests.support.plans import (
    MEETING,
    PLAN,
    ZHANG,
    PlanHouse,
    act,
    asks,
    calls,
    events_of,
    finish,
    plan_house,
    results,
    seen_on,
    tap,
)

LAUNCH = act('do(action="Launch", app="微信")')
SEND = [tap("发送"), finish("已发送")]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def rows(house: PlanHouse) -> tuple[RunRow, list[RunRow]]:
    """The newest plan, and its parts."""
    plan = next(row for row in await Runs(house.core.db).find() if row.options.get("kind") == "plan")
    return plan, await Runs(house.core.db).parts_of(plan.id)


async def test_three_parts_through_planner_and_executors(tmp_path: Path) -> None:
    steps = ["打开微信", f"在微信里打开和{ZHANG}的聊天", f"在当前聊天里输入并发送:{MEETING}"]
    typed = act(f'do(action="Type", text="{MEETING}")')
    device: list[str] = []

    def ask(message: str) -> Any:
        return lambda _: asks(device[0], message)

    planner = [calls(("list_devices", {}), says="先看看手机。"), *(ask(step) for step in steps), "已经发给张三了。"]
    model = [LAUNCH, finish("微信已打开"), tap(ZHANG), finish("聊天已打开"), focus_input, typed, *SEND]
    async with plan_house(tmp_path, [*planner, "刚才发给了张三。", "新的开始。"], model) as house:
        device += house.serials
        events = await house.plan(PLAN, session_id="s1")
        assert kinds(events) == ["message", *["tool_call", "tool_result"] * 4, "message", "done"]
        named = events[1].pop("id")
        assert events[1] == {"type": "tool_call", "tool_name": "list_devices", "tool_args": {}}
        assert (events[2]["type"], events[2]["id"]) == ("tool_result", named)
        assert results(events)[0] == [
            {"id": device[0], "model": "VP 1", "status": "free", "connection_type": "network"}
        ]
        assert results(events)[1:] == [
            {"result": "微信已打开", "steps": 2, "success": True},
            {"result": "聊天已打开", "steps": 2, "success": True},
            {"result": "已发送", "steps": 4, "success": True},
        ]
        assert events[-1] == {"type": "done", "content": "已经发给张三了。", "success": True}
        assert house.phones[0].report()["sent"] == {f"wechat:{ZHANG}": [MEETING]}
        assert (await UsageTotals(house.core.db).of_day(house.core.meter.today)).calls == 5 + 8
        # Each call is a run like any other, and belongs to the plan's.
        plan, parts = await rows(house)
        assert (plan.status, plan.message, plan.requested_by) == ("succeeded", "已经发给张三了。", "key:2")
        assert [(part.task, part.status, part.serial) for part in parts] == [
            (step, "succeeded", device[0]) for step in steps
        ]
        assert await Leases(house.core.db).held() == []
        actor = await actor_of_key(house.core.db, house.auth()["Authorization"])
        assert actor is not None
        past = await house.desk.history.runs(actor, HistoryAsked())
        assert [run.plan for run in past.runs] == [1, 1, 1, 0]
        card = await house.desk.runs.get(plan.id)
        assert card is not None
        assert card.plan is not None
        assert [(call.tool, call.state) for call in card.plan.calls] == [
            ("list_devices", "done"),
            *[("chat", "done")] * 3,
        ]
        # The conversation goes on with the same planner; it is built anew for other settings, and only then.
        built = house.planning._planner
        assert kinds(await house.plan("刚才发给了谁?", session_id="s1")) == ["message", "done"]
        assert house.planning._planner is built
        said = [message.get("content") for message in house.planner.requests[-1]["messages"]]
        assert PLAN in said
        assert "已经发给张三了。" in said
        async with house.post("reset", {"session_id": "s1"}) as reset:
            assert (reset.status, await reset.json()) == (200, {"success": True})
        changed = house.core.settings.planner.model_copy(update={"executor_steps": 7})
        house.core.settings = house.core.settings.model_copy(update={"planner": changed})
        assert kinds(await house.plan("你好", session_id="s1")) == ["message", "done"]
        assert house.planning._planner is not built
        assert PLAN not in [message.get("content") for message in house.planner.requests[-1]["messages"]]


def focus_input(body: dict[str, Any]) -> str:
    """Tap right of the voice icon: the input, which shows no words while it is empty."""
    _, y = seen_on(body)["切换到按住说话"]
    return act(f'do(action="Tap", element=[400,{y}])')


async def test_abort_frees_the_phone_at_once_and_so_does_leaving(tmp_path: Path) -> None:
    planner: list[Any] = []
    async with plan_house(tmp_path, planner, [Hang(), Hang()]) as house:
        planner_asks = asks(house.serials[0], "打开微信")
        house.planner.script += [planner_asks, planner_asks]
        leases = Leases(house.core.db)

        async def at_work(number: int) -> None:
            while len(house.model.requests) < number:
                await asyncio.sleep(0.01)
            assert [lease.serial for lease in await leases.held()] == house.serials

        async with house.post("chat", {"message": PLAN, "session_id": "s"}) as stream:
            await at_work(1)
            async with house.post("chat", {"message": PLAN, "session_id": "s"}) as second:
                assert second.status == 409
            begun = time.monotonic()
            async with house.post("abort", {"session_id": "s"}) as aborted:
                assert await aborted.json() == {"success": True, "aborted": True}
            assert await leases.held() == []
            assert time.monotonic() - begun < 1
            events = [event async for event in events_of(stream)]
        assert events[-1] == {"type": "done", "content": "已停止。", "success": False}
        plan, (part,) = await rows(house)
        assert (plan.status, plan.stopped_by, part.status) == ("stopped", "operator", "stopped")
        async with house.post("abort", {"session_id": "s"}) as again:
            assert await again.json() == {"success": True, "aborted": False}
        # Whoever closes the stream aborts the plan.
        async with house.post("chat", {"message": PLAN, "session_id": "t"}) as stream:
            await at_work(2)
            stream.close()
        begun = time.monotonic()
        while await leases.held():
            await asyncio.sleep(0.01)
        assert time.monotonic() - begun < 1


async def test_a_plan_that_another_host_took_for_dead_ends_here_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with plan_house(tmp_path, [Hang()], []) as house:
        runs = Runs(house.core.db)
        async with house.post("chat", {"message": PLAN, "session_id": "s"}) as stream:
            while not house.planner.requests:
                await asyncio.sleep(0.01)
            plan, _ = await rows(house)
            async with house.core.db.write() as connection:  # the database was away for longer than a heart may rest
                await connection.execute(sa.update(plans).values(heartbeat_at=house.core.db.now() - timedelta(hours=1)))
                await connection.execute(
                    sa.update(runs_table).values(started_at=house.core.db.now() - timedelta(hours=1))
                )
            await Dispatcher(house.core.db, None, worker=house.planning._worker).once()
            assert [row.status for row in await runs.find()] == ["running"]  # not by its own host
            monkeypatch.setattr("bot.app.plans.service.BEAT_SECONDS", 0.1)
            assert await runs.revive(older_than=timedelta(seconds=30)) == [plan.id]
            events = [event async for event in events_of(stream)]
        assert events == [{"type": "error", "message": texts("zh").interrupted}]
        plan, _ = await rows(house)
        assert plan.status == "failed"


async def test_the_gate_of_a_reply_lives_across_the_calls(tmp_path: Path) -> None:
    wait = act('do(action="Wait", duration="0 seconds")')
    model = [
        act('do(action="Launch", app="QQ")'), finish("QQ已打开"), wait,  # finish is blocked until the answer is sent
        tap("11"), act('do(action="GET_KNOWLEDGE_DATA", query="几天能发货")'),
        act('do(action="Home")'), finish("完成"),
    ]  # fmt: skip
    async with plan_house(tmp_path, [], model, planner={"executor_steps": 3}) as house:
        house.planner.script += [asks(house.serials[0], it) for it in ("打开QQ", "读出11的问题并回复", "看看")]
        house.planner.script.append("好了。")
        events = await house.plan("QQ回复联系人11", session_id="s")
        early, sent, after = results(events)
        assert (early["success"], early["steps"]) == (False, 3)
        seen = early["result"].partition("最后看到：")[2]  # what is on the screen, not what was thought before
        assert seen.startswith("QQ: ")
        assert " · 11 · " in seen
        kept = await Conversations(house.core.db).get("api:key:2:s")
        assert kept is not None
        assert reply_state("继续", {**(kept.gate or {}), "done": []}) is not None
        assert sent["result"].startswith("已发送给 11：")
        assert len(house.phones[0].report()["sent"]["11"]) == 1
        assert after["success"]
        _, parts = await rows(house)
        whole = [await Runs(house.core.db).get(part.id) for part in parts]
        sessions = [Session.model_validate_json((row.session if row else "") or "") for row in whole]
        assert [session.policy for session in sessions] == ["reply"] * 3
        assert [session.gate.knowledge_done for session in sessions] == [False, True, True]
        assert sessions[2].gate.delivered == house.phones[0].report()["sent"]["11"]


async def test_two_phones_at_once_and_one_that_is_busy(tmp_path: Path) -> None:
    slow = Text(finish("好"), size=5, delay=0.02)
    async with plan_house(tmp_path, [], [slow, slow], phones=2) as house:
        both = [("chat", {"device_id": serial, "message": "看看屏幕"}) for serial in house.serials]
        house.planner.script += [calls(*both), asks("nowhere", "看"), "好了。"]
        busy = asyncio.Event()

        async def watch() -> int:
            most = 0
            while not busy.is_set():
                most = max(most, len(await Leases(house.core.db).held()))
                await asyncio.sleep(0.005)
            return most

        watching = asyncio.create_task(watch())
        events: list[dict[str, Any]] = []
        async with house.post("chat", {"message": "看看两台手机"}) as stream:
            async for event in events_of(stream):
                events.append(event)
                if len(results(events)) == 2 and not busy.is_set():
                    busy.set()
        assert await watching == 2
        assert kinds(events)[:4] == ["tool_call", "tool_call", "tool_result", "tool_result"]
        assert [result["success"] for result in results(events)[:2]] == [True, True]
        assert (results(events)[2]["steps"], "nowhere" in results(events)[2]["result"]) == (0, True)
        assert await Leases(house.core.db).acquire(house.serials[1], "other", "r0") is not None
        house.planner.script += [asks(house.serials[1], "再看看"), "正忙。"]
        told = {"result": f"手机 {house.serials[1]} 正忙，有别的任务在用。", "steps": 0, "success": False}
        assert results(await house.plan("再看看第二台")) == [told]
        assert len((await rows(house))[1]) == 0
        # Two calls for one phone in one answer: one comes after the other.
        house.planner.script += [calls(both[0], both[0]), "好了。"]
        house.model.script += [slow, slow]
        one_phone = await house.plan("看两次")
        assert [result["success"] for result in results(one_phone)] == [True, True]
        asked, given = (
            [event["id"] for event in one_phone if event["type"] == kind] for kind in ("tool_call", "tool_result")
        )
        assert sorted(asked) == sorted(given)


async def test_a_question_of_a_part_waits_for_a_person_and_the_plan_with_it(tmp_path: Path) -> None:
    question = act('do(action="Interact", question="打开哪一个?", choices=["微信", "QQ"])')
    async with plan_house(tmp_path, [], [question, finish("按QQ做了")], phones=2, run={"hold_seconds": 0}) as house:
        house.planner.script += [asks(house.serials[0], "打开聊天软件"), "打开了QQ。"]
        async with house.post("chat", {"message": "打开聊天软件"}) as stream:
            following = asyncio.create_task(anext_list(events_of(stream)))
            while not (open_ones := await Questions(house.core.db).find(state="open")):
                await asyncio.sleep(0.01)
            while await Leases(house.core.db).held():  # the phone is given back meanwhile
                await asyncio.sleep(0.01)
            plan, (part,) = await rows(house)
            shown = await house.desk.runs.get(plan.id)
            assert shown is not None
            assert (plan.status, shown.status, part.status) == ("running", "waiting", "waiting")
            told = f"在等人回答：打开哪一个?（编号 {open_ones[0].id}"
            while not any(told in getattr(event, "content", "") for event in house.planning._known[plan.id].events):
                await asyncio.sleep(0.01)
            await house.desk.context.runs.answer(open_ones[0].id, {"choice": "QQ", "text": ""}, by="Wang")
            events = await following
        assert kinds(events) == ["tool_call", "message", "tool_result", "message", "done"]
        assert results(events) == [{"result": "按QQ做了", "steps": 2, "success": True}]
        assert (await rows(house))[0].status == "succeeded"
        # Where the server ends meanwhile the plan is over, and a part that is at work; what asks a person is not lost.
        both = [
            ("chat", {"device_id": house.serials[n], "message": task}) for n, task in enumerate(("打开聊天软件", "等"))
        ]
        house.planner.script.append(calls(*both))
        house.model.script[2:] = [lambda body: Hang() if "等" in seen_on_task(body) else question] * 2
        house.model.script.append(finish("按QQ做了"))
        following = asyncio.create_task(house.plan("再打开一次"))
        while not (open_ones := await Questions(house.core.db).find(state="open")):
            await asyncio.sleep(0.01)
        leases = Leases(house.core.db)
        while [lease.serial for lease in await leases.held()] != house.serials[1:] or len(house.model.requests) < 4:
            await asyncio.sleep(0.01)
        await house.planning.close()
        assert await leases.held() == []
        assert (await following)[-1]["type"] == "error"
        plan, parts = await rows(house)
        assert (plan.status, {part.status for part in parts}) == ("failed", {"waiting", "stopped"})
        (stopped,) = [part for part in parts if part.status == "stopped"]
        assert (stopped.task, stopped.message) == ("等", say("zh", "run.left_alone"))
        await house.desk.context.runs.answer(open_ones[0].id, {"choice": "QQ", "text": ""}, by="Wang")
        while {part.status for part in (await rows(house))[1]} != {"succeeded", "stopped"}:
            await asyncio.sleep(0.01)


def seen_on_task(body: dict[str, Any]) -> str:
    """What a phone model was asked to do."""
    return str(body["messages"][1]["content"]).partition("\\n")[0]


def test_the_persons_own_message_decides_about_the_gate() -> None:
    assert reply_state("打开微信,找到张三", None) is None
    begun = reply_state("QQ回复联系人11", None)
    assert begun is not None
    going_on = reply_state("好的,用第一台", begun.data())
    assert going_on is not None
    assert (going_on.task, going_on.over) == ("QQ回复联系人11", False)
    another = reply_state("微信回复联系人小王", begun.data())
    assert another is not None
    assert another.task == "微信回复联系人小王"


async def test_who_may_not_and_what_is_no_request(tmp_path: Path) -> None:
    wrong_calls = calls(("fly", {}), ("chat", {"device_id": ""}))
    async with plan_house(tmp_path, [Status(401), wrong_calls, "不行。"], []) as house:
        for name, body, status in (
            ("chat", {}, 400),
            ("chat", {"message": "  "}, 400),
            ("chat", {"message": "看看", "session_id": "a b"}, 400),
            ("chat", {"message": "看看", "device_id": "nowhere"}, 404),
            ("chat", [], 400),
            ("chat", {"message": "看看", "device": "S1"}, 400),
            ("abort", {"session_id": "unknown"}, 404),
            ("reset", {"session_id": "unknown"}, 404),
            ("reset", {}, 400),
        ):
            async with house.post(name, body) as refused:
                assert (refused.status, set(await refused.json())) == (status, {"error", "message"}), (name, body)
        async with house.post("chat", {"message": "看看"}, role="viewer") as refused:
            assert refused.status == 403
        async with house.http.post("/api/layered-agent/chat", json={"message": "看看"}) as refused:
            assert (refused.status, "Bearer" in refused.headers["WWW-Authenticate"]) == (401, True)
        # A model that fails, and one that calls what there is not.
        failed = await house.plan("看看", session_id="mine")
        assert kinds(failed) == ["error"]
        assert "PHONEDESK_PLANNER__API_KEY" in failed[0]["message"]
        async with house.post("reset", {"session_id": "mine"}, role="owner") as other:
            assert other.status == 404  # somebody else's
        wrong = await house.plan("看看", session_id="mine")
        assert kinds(wrong) == ["tool_call", "tool_result", "message", "done"]
        assert "device_id" in results(wrong)[0]
        # Without a planner in the settings.
        house.core.settings = house.core.settings.model_copy(update={"planner": PlannerSettings()})
        async with house.post("chat", {"message": "看看"}) as none:
            assert (none.status, "PHONEDESK_PLANNER__BASE_URL" in (await none.json())["message"]) == (503, True)


async def anext_list(events: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event async for event in events]


def test_a_conversation_goes_on_under_its_gate() -> None:
    begun = PlanGate("用QQ回复联系人11")
    assert reply_state("继续", begun.data()) is not None  # killed before anything was done
    session = new_session("QQ回复联系人11", "A", AgentSettings())
    session.gate.knowledge_done = True
    begun.leave("A", session, succeeded=True)
    begun.leave("B", session, succeeded=False)
    other = reply_state("把另一台也做完", begun.data())
    assert other is not None
    assert (other.over, other.phones["B"].knowledge_done) == (False, False)
    begun.leave("B", session, succeeded=True)
    assert begun.over
    assert reply_state("打开设置", begun.data()) is None
    further = reply_state("那联系人12也回复一下", begun.data())
    assert further is not None
    assert (further.task, further.phones) == ("QQ 那联系人12也回复一下", {})
