"""What is old goes, what is new or waits stays, and the room goes back to the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from agent_core.ports import MessageKey
from scheduler.jobs.housekeeping import Housekeeping
from scheduler.runs.service import RunService
from storage.engine import Database
from storage.events import Events
from storage.ledger import StoredLedger
from storage.messages import InboxTable, OutboxTable
from storage.model_calls import Trajectories
from storage.people import Audit
from storage.questions import Questions
from storage.retention import KEPT, PRUNED
from storage.runs import NewRun, Runs
from storage.tables import audit, events, metadata, outbox, pictures, requests, runs
from tests.support.clock import Clock

KEEP = timedelta(days=30)


async def ended_run(db: Database, *, key: str = "") -> str:
    run_id = await Runs(db).create(NewRun("task", "S1", begun=True), key=key)
    assert run_id is not None
    await Runs(db).save_session(run_id, "{}")
    await Runs(db).end_attempt(run_id, 1, status="succeeded")
    return run_id


async def count(db: Database, table: sa.Table) -> int:
    async with db.read() as connection:
        return (await connection.execute(sa.select(sa.func.count()).select_from(table))).scalar_one()


async def fill(db: Database, table: sa.Table, rows: Sequence[dict[str, Any]]) -> None:
    async with db.write() as connection:
        await connection.execute(sa.insert(table), list(rows))


async def test_old_and_over_goes(db: Database, clock: Clock) -> None:
    log, inbox, sent_box = Events(db), InboxTable(db), OutboxTable(db)
    run_id = await ended_run(db)
    await log.append(run_id, "step", {}, picture=b"jpeg")
    (*_, step) = await log.after(0)
    assert step.picture_id is not None
    for update_id in (1, 2):
        await inbox.store(update_id, "{}")
    await inbox.done(1)
    sent, waiting = [await sent_box.put("7", {"text": name}) for name in ("sent", "waiting")]
    await sent_box.sent(sent)
    keeping = Housekeeping(db, keep=KEEP)
    assert await keeping.once() == {}
    clock.move(days=31)
    newest = await log.append(run_id, "step", {})
    assert await keeping.once() == {"events": 3, "inbox": 1, "outbox": 1}
    assert [event.id for event in await log.after(0)] == [newest]
    assert await log.picture(step.picture_id) is None
    assert [row.update_id for row in await inbox.waiting()] == [2]
    assert await sent_box.get(waiting) is not None
    assert await Runs(db).get(run_id) is not None


async def test_what_models_were_shown_goes_before_what_they_were_asked(db: Database, clock: Clock) -> None:
    run_id, kept = await ended_run(db), Trajectories(db)
    await kept.asked(run_id, 1, "{}", digest="d", picture=b"jpeg")
    keeping = Housekeeping(db, keep=KEEP, keep_shown=timedelta(days=3))
    clock.move(days=2)
    assert await keeping.once() == {}
    clock.move(days=2)
    assert await keeping.once() == {"trajectory_pictures": 1}
    clock.move(days=27)
    assert (await keeping.once())["trajectories"] == 1


async def test_what_is_still_needed_stays(db: Database, clock: Clock) -> None:
    """A run that waits for a person for a year; the ledger; the key of an update that was not handled to its end."""
    waiting = await RunService(db).submit("task", serial="S1")
    await Runs(db).begin_attempt(waiting, 1, serial="S1")
    asked = {"id": "q1", "text": "?"}
    await Questions(db).ask("q1", run_id=waiting, kind="info", payload=asked)
    await Questions(db).copy("q1", "chief", {"chat_id": "7"})
    await Events(db).append(waiting, "question", asked, picture=b"jpeg")
    await Runs(db).park_attempt(waiting, 1)
    row = await StoredLedger(db).open(MessageKey("S1", "qq", "11", "mark"), run_id=waiting, question="?")
    await InboxTable(db).store(1, "{}")
    over = await ended_run(db, key="update:1")
    await Audit(db).write("telegram:1", "telegram", "run")
    clock.move(days=400)
    gone = await Housekeeping(db, keep=KEEP).once()
    assert gone.keys() == {"events", "sessions"}  # those of the run that is over
    assert await Events(db).picture_of(waiting, "question", "q1") is not None
    assert [question.id for question in await Questions(db).find(state="open")] == ["q1"]
    assert len(await Questions(db).copies("q1")) == 1
    assert await StoredLedger(db).find(MessageKey("S1", "qq", "11", "mark")) == row
    assert await Runs(db).create(NewRun("task"), key="update:1") == over
    assert len(await Audit(db).seen(["telegram:1"])) == 1


@pytest.mark.rotating(parts=3)
@pytest.mark.slow
async def test_a_year_of_rows_shrinks(tmp_path: Path, clock: Clock) -> None:
    """Everything that grows, a year of it: rows and file."""
    file = tmp_path / "desk.sqlite3"
    db = Database(f"sqlite:///{file}", clock=clock)
    await db.migrate()
    begun = clock()
    days = [begun + timedelta(days=day) for day in range(365)]
    picture = b"\xff\xd8" + bytes(20_000)
    await fill(
        db,
        runs,
        [
            {"id": f"r{n:03}", "task": "t", "status": "succeeded", "options": {}, "created_at": at, "ended_at": at}
            | {"session": "s" * 2000}
            for n, at in enumerate(days)
        ],
    )
    await fill(db, pictures, [{"id": n + 1, "jpeg": picture, "created_at": at} for n, at in enumerate(days)])
    await fill(
        db,
        events,
        [
            {"run_id": f"r{n:03}", "kind": "step", "data": {}, "picture_id": n + 1, "created_at": at}
            for n, at in enumerate(days)
        ],
    )
    spent = {"chat_key": "7", "payload": {"text": "x" * 500}, "state": "sent"}
    await fill(db, outbox, [spent | {"next_at": at, "created_at": at, "updated_at": at} for at in days])
    await fill(db, requests, [{"key": f"k{n}", "subject_id": "r", "created_at": at} for n, at in enumerate(days)])
    said = {"actor": "1", "channel": "telegram", "command": "status", "detail": {}, "allowed": True}
    await fill(db, audit, [said | {"at": at - timedelta(days=100)} for at in days])
    before = file.stat().st_size
    clock.time = days[-1]
    keeping = Housekeeping(db, keep=KEEP)
    assert (await keeping.once())["events"] == 365 - 31
    for table in (events, pictures, outbox, requests):
        assert await count(db, table) == 31, table.name
    assert await count(db, runs) == 365
    assert await count(db, audit) == 265 + 1
    await keeping.shrink()
    assert file.stat().st_size < before / 3
    assert not Path(f"{file}-wal").exists() or Path(f"{file}-wal").stat().st_size == 0
    await db.close()


async def test_nothing_is_shrunk_beside_a_run(db: Database) -> None:
    await RunService(db).submit("task")
    assert await Housekeeping(db, keep=KEEP).shrink() == 0


def test_every_table_goes_or_has_a_reason_to_stay() -> None:
    assert PRUNED.keys() | KEPT.keys() == metadata.tables.keys()
    assert not PRUNED.keys() & KEPT.keys()


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(hours=-1)])
async def test_a_clock_that_jumps_is_told_of_and_deletes_nothing_at_once(
    db: Database, clock: Clock, jump: timedelta
) -> None:
    seconds = 0.0
    keeping = Housekeeping(db, keep=KEEP, elapsed=lambda: seconds)
    await keeping.look()
    await Events(db).append("r1", "step", {})
    clock.time += jump
    with capture_logs() as logs:
        seconds += 3605
        clock.move(seconds=3605)
        await keeping.look()
    assert [(entry["event"], entry["seconds"]) for entry in logs] == [("clock_jumped", jump.total_seconds())]
    assert await Events(db).after(0)
    seconds += 3605
    clock.move(seconds=3605)
    with capture_logs() as logs:
        await keeping.look()
    assert bool(await Events(db).after(0)) is (jump < KEEP)  # it stands for an hour: so be it
    assert "clock_jumped" not in [entry["event"] for entry in logs]


async def test_it_is_done_again_and_again_until_it_is_stopped(db: Database, clock: Clock) -> None:
    seconds = 0.0
    keeping = Housekeeping(db, keep=KEEP, every_seconds=0.01, elapsed=lambda: seconds)
    await keeping.start()
    await Events(db).append("r1", "step", {})
    clock.move(days=31)
    seconds += timedelta(days=31).total_seconds()
    async with asyncio.timeout(10):
        while await Events(db).after(0):
            await asyncio.sleep(0.005)
    await keeping.stop()
