from __future__ import annotations

from datetime import timedelta

from storage.engine import Database
from storage.events import Events
from storage.plans import Conversations, Plans
from storage.retention import Retention
from storage.runs import FAILED, PLAN, PLAN_PART, RUNNING, NewRun, Runs
from tests.storage.conftest import Clock

LEASE = timedelta(seconds=30)


async def new_plan(db: Database) -> str:
    run_id = await Runs(db).create(NewRun("打开微信,找到张三", options={"kind": PLAN}, begun=True))
    assert run_id is not None
    assert await Plans(db).begin(run_id, "api:key:1:s")
    assert not await Plans(db).begin(run_id, "api:key:1:s")
    return run_id


async def test_a_plan_whose_process_is_gone_is_over_and_its_parts_are_runs_like_any(db: Database, clock: Clock) -> None:
    runs, run_id = Runs(db), await new_plan(db)
    part = await runs.create(NewRun("打开微信", "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=True))
    assert part is not None
    assert [row.id for row in await runs.parts_of(run_id)] == [part]
    clock.move(seconds=20)
    assert await Plans(db).beat([run_id]) == {run_id}
    assert await runs.revive(older_than=LEASE, alive_here=[part]) == []
    # A part that ends ends no plan: the planner goes on.
    assert await runs.end_leg(part, 1, status="succeeded")
    plan = await runs.get(run_id)
    assert plan is not None
    assert plan.status == RUNNING
    other = await runs.create(NewRun("找张三", "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=True))
    clock.move(seconds=31)
    assert sorted(await runs.revive(older_than=LEASE)) == sorted([run_id, other or ""])
    plan, revived = await runs.get(run_id), await runs.get(other or "")
    assert plan is not None
    assert revived is not None
    assert (plan.status, plan.leg_due_at) == (FAILED, None)
    assert await Plans(db).beat([run_id]) == set()
    assert (revived.status, revived.leg_due_at is not None) == ("waiting", True)
    told = [event.data["status"] for event in await Events(db).after(0, run_id=run_id) if event.kind == "status"]
    assert told == [RUNNING, FAILED]


async def test_stopping_a_plan_stops_its_parts(db: Database) -> None:
    runs, run_id = Runs(db), await new_plan(db)
    part = await runs.create(NewRun("打开微信", "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=True))
    assert await runs.request_stop(run_id, by="Wang") == RUNNING
    assert await runs.asked([run_id, part or ""]) == {run_id: (True, False), part: (True, False)}


async def test_a_conversation_keeps_what_was_said_until_it_is_forgotten(db: Database, clock: Clock) -> None:
    kept = Conversations(db)
    assert (await kept.open("a")).gate is None
    await kept.add("a", [{"role": "user", "content": "一"}, {"role": "assistant", "content": "二"}])
    await kept.add("b", [{"role": "user", "content": "别人"}])
    await kept.add("a", [{"type": "function_call", "name": "chat", "arguments": "{}"}])
    assert [item.get("content") for item in await kept.items("a")] == ["一", "二", None]
    assert await kept.items("a", 1) == [{"type": "function_call", "name": "chat", "arguments": "{}"}]
    assert (await kept.pop("a") or {}).get("name") == "chat"
    await kept.set_gate("a", {"task": "QQ回复联系人11", "phones": {}})
    assert (await kept.open("a")).gate == {"task": "QQ回复联系人11", "phones": {}}
    await kept.set_gate("a", None)
    row = await kept.get("a")
    assert row is not None
    assert row.gate is None
    await kept.clear("a")
    assert (await kept.items("a"), await kept.pop("a")) == ([], None)
    assert await kept.forget("a")
    assert not await kept.forget("a")
    assert len(await kept.items("b")) == 1
    await kept.open("b")
    clock.move(days=31)
    assert await Retention(db).conversations(clock() - timedelta(days=30)) == 1
    assert await kept.items("b") == []
