from __future__ import annotations

from datetime import timedelta

import pytest

from storage.engine import Database
from storage.events import Events
from storage.plans import Conversations, Plans, PlanUnderWay
from storage.questions import Questions
from storage.retention import Retention
from storage.runs import FAILED, PLAN, PLAN_PART, RUNNING, NewRun, Runs
from tests.support.clock import Clock

LEASE = timedelta(seconds=30)


async def new_plan(db: Database) -> str:
    run_id = await Runs(db).create(NewRun("打开微信,找到张三", options={"kind": PLAN}, begun=True))
    assert run_id is not None
    assert await Plans(db).begin(run_id, "api:key:1:s")
    assert not await Plans(db).begin(run_id, "api:key:1:s")
    return run_id


async def test_a_plan_whose_process_is_gone_is_over_and_its_parts_with_it(db: Database, clock: Clock) -> None:
    runs, run_id = Runs(db), await new_plan(db)
    part = await runs.create(NewRun("打开微信", "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=True))
    assert part is not None
    assert [row.id for row in await runs.parts_of(run_id)] == [part]
    clock.move(seconds=20)
    assert await Plans(db).beat([run_id]) == {run_id}
    assert await runs.revive(older_than=LEASE, alive_here=[part]) == []
    # A part that ends ends no plan: the planner goes on.
    assert await runs.end_attempt(part, 1, status="succeeded")
    plan = await runs.get(run_id)
    assert plan is not None
    assert plan.status == RUNNING
    at_work, in_line, asking = [
        await runs.create(NewRun(task, "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=task != "in line"))
        or ""
        for task in ("at work", "in line", "asking")
    ]
    await Questions(db).ask("q", run_id=asking, kind="interact", payload={})
    clock.move(seconds=21)
    # Whether the plan lives is not known yet in other processes, and so its parts, though they are not heard, rest.
    assert await runs.revive(older_than=LEASE) == []
    clock.move(seconds=10)
    assert sorted(await runs.revive(older_than=LEASE)) == sorted([run_id, at_work, asking])
    rows = {run: await runs.get(run) for run in (run_id, at_work, in_line, asking)}
    assert [(row.status, row.attempt_due_at is not None) for row in rows.values() if row] == [
        (FAILED, False), ("stopped", False), ("stopped", False), ("waiting", True),
    ]  # fmt: skip
    assert all(row and "Look at the phone" in row.message for row in (rows[at_work], rows[in_line]))
    assert await Plans(db).beat([run_id]) == set()
    # A conversation that is forgotten tells the next plan of its name nothing.
    await Conversations(db).open("api:key:1:s")
    assert await Plans(db).newest("api:key:1:s") == run_id
    assert await Conversations(db).forget("api:key:1:s")
    assert await Plans(db).newest("api:key:1:s") is None
    told = [event.data["status"] for event in await Events(db).after(0, run_id=run_id) if event.kind == "status"]
    assert told == [RUNNING, FAILED]


async def test_one_plan_of_a_conversation_at_a_time_whoever_makes_it(db: Database, clock: Clock) -> None:
    runs, made, run_id = Runs(db), Plans(db), await new_plan(db)
    second = await runs.create(NewRun("继续", options={"kind": PLAN}, begun=True)) or ""
    with pytest.raises(PlanUnderWay):
        await made.begin(second, "api:key:1:s")
    assert (await made.under_way("api:key:1:s"), await made.newest("api:key:1:s")) == (run_id, run_id)
    assert await made.session_of(run_id) == "api:key:1:s"
    clock.move(seconds=31)  # dead
    note = {"role": "assistant", "content": "停了"}
    assert await made.begin(second, "api:key:1:s", host="here", former=run_id, note=note)
    assert not await made.begin(second, "api:key:1:s", host="here", former=run_id, note=note)
    assert await Conversations(db).items("api:key:1:s") == [note]
    # The next process of the same host ends it at once, however fresh its heartbeat.
    assert await runs.end_plans_of("there") == []
    assert await runs.end_plans_of("here") == [second]
    assert await made.under_way("api:key:1:s") is None


async def test_a_clock_that_was_put_back_keeps_no_dead_plan_alive(db: Database, clock: Clock) -> None:
    run_id = await new_plan(db)
    assert await Runs(db).revive(older_than=LEASE) == []
    clock.move(hours=-2)
    assert await Runs(db).revive(older_than=LEASE) == [run_id]


async def test_stopping_a_plan_stops_its_parts(db: Database) -> None:
    runs, run_id = Runs(db), await new_plan(db)
    part = await runs.create(NewRun("打开微信", "S1", options={"kind": PLAN_PART}, parent_id=run_id, begun=True))
    assert await runs.request_stop(run_id, by="Wang") == RUNNING
    assert await runs.asked([run_id, part or ""]) == {run_id: (True, False), part: (True, False)}


async def test_a_conversation_keeps_what_was_said_until_it_is_forgotten(db: Database, clock: Clock) -> None:
    kept = Conversations(db)
    assert (await kept.open("a")).gate is None
    await kept.add("a", [{"role": "user", "content": "一"}, {"role": "assistant", "content": "二"}])
    await kept.open("b")
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
    await kept.add("a", [{"role": "user", "content": "too late"}])  # nothing is written under a forgotten name
    assert await kept.items("a") == []
    assert len(await kept.items("b")) == 1
    await kept.open("b")
    clock.move(days=31)
    assert await Retention(db).conversations(clock() - timedelta(days=30)) == 1
    assert await kept.items("b") == []
