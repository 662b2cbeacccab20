from __future__ import annotations

from datetime import date

import sqlalchemy as sa

from agent_core.ports import ReplyState
from storage.engine import Database
from storage.gauges import GaugeReader
from storage.hosts import Hosts
from storage.leases import Leases
from storage.messages import OutboxTable
from storage.model_calls import UsageTotals, Used
from storage.runs import NewRun, Runs
from storage.tables import answers, inbox, schedules
from tests.support.clock import Clock


async def test_an_empty_database_is_all_zeros(db: Database) -> None:
    gauges = await GaugeReader(db).take()
    assert gauges.runs == dict.fromkeys(("queued", "running", "waiting", "succeeded", "failed", "stopped"), 0)
    assert (gauges.in_line, gauges.leases, gauges.outbox, gauges.oldest_out, gauges.inbox) == (0, 0, 0, 0.0, 0)
    assert (gauges.questions, gauges.hosts, gauges.models, gauges.phones) == ({}, {}, {}, {"device": 0})
    assert await GaugeReader(db).answers() == {}


async def test_everything_is_counted_by_its_state(db: Database, clock: Clock) -> None:
    runs, hosts = Runs(db), Hosts(db, seconds=30)
    for _ in range(2):
        await runs.create(NewRun("a task"))
    done = await runs.create(NewRun("a task", begun=True))
    await runs.end_attempt(done or "", 1, status="succeeded")
    await hosts.register("gone", "t1")
    await hosts.sees("gone", "t1", {"S9": "device"})
    clock.move(minutes=5)
    for name in ("a", "b"):
        await hosts.register(name, name)
    await hosts.sees("a", "a", {"S1": "device", "S2": "offline"})
    await hosts.sees("b", "b", {"S1": "unauthorized", "S3": "device"})
    assert await Leases(db).acquire("S1", "a", "r") is not None
    await OutboxTable(db).put("telegram:1", {"text": "x"})
    clock.move(seconds=20)
    await OutboxTable(db).put("telegram:1", {"text": "y"})
    for day in (1, 2):
        await UsageTotals(db).add(date(2026, 3, day), "m", Used(2, 100, 10, 5, 0.5))
    now = {"created_at": db.now(), "updated_at": db.now()}
    row = {"run_id": "r", "serial": "S1", "app": "qq", "contact": "11", "question": "?", "records": [], **now}
    tick = {"expression": "@daily", "timezone": "UTC", "task": "t", "options": {}, "created_at": db.now()}
    async with db.write() as connection:
        for _ in range(3):
            sent = {"provenance": "knowledge", "state": ReplyState.SENT.value}
            await connection.execute(sa.insert(answers).values(**row, **sent))
        await connection.execute(sa.insert(answers).values(**row, state=ReplyState.SKIPPED.value))
        await connection.execute(sa.insert(schedules).values(**tick, started=4, skipped_busy=2))
        await connection.execute(sa.insert(inbox).values(update_id=1, raw="{}", state="new", received_at=db.now()))
    gauges = await GaugeReader(db, seconds=30).take()
    assert {status: count for status, count in gauges.runs.items() if count} == {"queued": 2, "succeeded": 1}
    assert gauges.in_line == 2
    assert gauges.phones == {"device": 2, "offline": 1}  # S1 once, and what a lost host saw not at all
    assert gauges.hosts == {"up": 2, "lost": 1}
    assert (gauges.leases, gauges.outbox, gauges.oldest_out, gauges.inbox) == (1, 2, 20.0, 1)
    assert gauges.ticks == {"started": 4, "busy": 2, "missed": 0, "quiet": 0}
    assert gauges.models == {"m": Used(4, 200, 20, 10, 1.0)}
    assert await GaugeReader(db).answers() == {("knowledge", "sent"): 3, ("", "skipped"): 1}
