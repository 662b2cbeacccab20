"""Attempts, leases and stops, with the queue of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
import sqlalchemy as sa

from agent_core.errors import DeviceOffline, LeaseLost
from agent_core.session import Question, QuestionKind, Session
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.human import StoredHuman
from scheduler.runs.lease import HeldLease, lease_of
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker, attempt_id, parse_attempt_id
from storage.engine import Database
from storage.events import Events
from storage.leases import Leases
from storage.questions import Questions
from storage.runs import Runs
from storage.tables import runs as runs_table
from tests.scheduler.runs.one_process import PHONE, SOON, Desk, desk
from tests.support.clock import Clock
from tests.support.phones import far_phone
from tests.support.queue import LocalQueue


async def succeed(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
    await lease.check()
    return AttemptOutcome("succeeded", "done")


class Endless:
    """Work that goes on until it is stopped, and tells what it went through."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.told: list[str] = []
        self.cleanup: Callable[[], Awaitable[None]] | None = None

    async def __call__(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.told.append("cleanup")
            await asyncio.sleep(0)
            await lease.check()
            self.told.append("clean")
        return AttemptOutcome("succeeded")


def test_ids_of_attempts() -> None:
    assert parse_attempt_id(attempt_id("0abc", 12)) == ("0abc", 12)
    for wrong in ("", "run-x", "run-x-attempt-", "run-x-attempt-1a", "x-attempt-1"):
        with pytest.raises(ValueError, match="attempt"):
            parse_attempt_id(wrong)


async def test_the_end_of_the_process_waits_for_no_persons_answer(db: Database) -> None:
    async def ask(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        human = StoredHuman(db, hold_seconds=3600, stop=lease.stop, attempt=attempt)
        session = Session(run_id=run_id, task="QQ回复联系人11")
        answer = await human.ask(session, Question(id="q1", kind=QuestionKind.STUCK, text="?"))
        return AttemptOutcome("waiting" if answer is None else "succeeded")

    async with desk(db, ask) as one:
        run_id = await one.service.submit("QQ回复联系人11", serial=PHONE)
        async with asyncio.timeout(SOON):
            while not await Questions(db).find(state="open"):
                await asyncio.sleep(0.005)
            await one.worker.drain(3600)
        assert (await one.run(run_id)).status == "waiting"
    assert [row.id for row in await Questions(db).find(state="open")] == ["q1"]
    assert await Leases(db).held() == []


async def test_a_run_is_done(db: Database) -> None:
    async with desk(db, succeed) as one:
        run_id = await one.service.submit("QQ回复联系人11", serial=PHONE, options={"max_steps": 3})
        run = await one.until(run_id, "succeeded")
    assert (run.message, run.attempt, run.ended_at) == ("done", 1, db.now())
    assert await Leases(db).held() == []
    assert one.attempts == [(run_id, 1)]


async def test_a_run_that_is_put_off_gives_its_phone_to_others_and_comes_back(db: Database, clock: Clock) -> None:
    away = True

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        row = await Runs(db).get(run_id)
        if away and row is not None and "11" in row.task:
            return AttemptOutcome("put_off", "away", seconds=60, error_kind="knowledge.network")
        return AttemptOutcome("succeeded", "done")

    async with desk(db, work) as one:
        run_id = await one.service.submit("QQ回复联系人11", serial=PHONE)
        other = await one.service.submit("打开微信", serial=PHONE)
        await one.until(other, "succeeded")
        await one.worker_idle()
        assert (await one.run(run_id)).status == "queued"
        assert [run for run, _ in one.attempts].count(run_id) == 1, "no busy loop"
        away = False
        clock.move(seconds=61)
        run = await one.until(run_id, "succeeded")
    assert (run.attempt, run.message) == (2, "done")


async def test_a_phone_does_one_run_at_a_time_in_turn(db: Database) -> None:
    at_work: list[str] = []
    most = 0

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        nonlocal most
        at_work.append(run_id)
        most = max(most, len(at_work))
        await asyncio.sleep(0.01)
        await lease.check()
        at_work.remove(run_id)
        return AttemptOutcome("succeeded")

    async with desk(db, work) as one:
        ids = [await one.service.submit("task", serial=PHONE) for _ in range(6)]
        for run_id in ids:
            await one.until(run_id, "succeeded")
    assert most == 1
    assert [run_id for run_id, _ in one.attempts] == ids, "in the order in which they were asked for, each once"


async def test_two_processes_share_the_phones(url: str, db: Database, clock: Clock) -> None:
    other = Database(url, clock=clock)
    at_work: set[str] = set()

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        assert lease.serial not in at_work, "two at once on one phone"
        at_work.add(lease.serial)
        await asyncio.sleep(0.005)
        at_work.discard(lease.serial)
        return AttemptOutcome("succeeded")

    async with desk(db, work, owner="a") as one, desk(other, work, owner="b") as two:
        ids = [await one.service.submit("task", serial=f"phone-{n % 2}") for n in range(8)]
        for run_id in ids:
            assert (await one.until(run_id, "succeeded", "failed")).status == "succeeded"
        assert sorted(run_id for run_id, _ in one.attempts + two.attempts) == sorted(ids), "none twice"
    await other.close()


async def test_stop_is_quick_and_cleans_up_before_the_phone_is_free(db: Database) -> None:
    work = Endless()
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await work.began.wait()
        began = time.monotonic()
        assert await one.service.request_stop(run_id) == "running"
        await one.until(run_id, "stopped")
        assert time.monotonic() - began < 1
        assert work.told == ["cleanup", "clean"]
    told = [event.data["status"] for event in await Events(db).after(0, run_id=run_id)]
    assert told == ["queued", "running", "stopped"]


async def test_stop_asked_for_by_another_process(url: str, db: Database, clock: Clock) -> None:
    other = Database(url, clock=clock)
    work = Endless()
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await work.began.wait()
        began = time.monotonic()
        await RunService(other).request_stop(run_id)
        await one.until(run_id, "stopped")
        assert time.monotonic() - began < 1
    await other.close()


async def test_stop_never_cuts_between_send_and_the_look_at_its_outcome(db: Database) -> None:
    told: list[str] = []
    sent, seen = asyncio.Event(), asyncio.Event()

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        async with lease.stop.shielded():
            async with lease.stop.shielded():
                sent.set()
                await seen.wait()
            told.append("outcome seen")
        told.append("went on")
        return AttemptOutcome("succeeded")

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await sent.wait()
        await one.service.request_stop(run_id)
        await asyncio.sleep(0.1)
        assert (await one.run(run_id)).status == "running"
        seen.set()
        await one.until(run_id, "stopped")
    assert told == ["outcome seen"]


async def test_a_stop_that_came_too_late_does_not_hide_the_result(db: Database) -> None:
    sent, seen = asyncio.Event(), asyncio.Event()

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        try:
            async with lease.stop.shielded():
                sent.set()
                await seen.wait()
        except asyncio.CancelledError:
            return AttemptOutcome("succeeded", "sent before the stop")
        return AttemptOutcome("failed")

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await sent.wait()
        await one.service.request_stop(run_id)
        seen.set()
        assert (await one.until(run_id, "succeeded", "stopped", "failed")).message == "sent before the stop"


async def test_a_run_waits_for_a_person_without_the_phone(db: Database) -> None:
    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if await Questions(db).get("q") is None:
            await Questions(db).ask("q", run_id=run_id, kind="interact", payload={})
            return AttemptOutcome("waiting")
        if attempt == 1:
            return AttemptOutcome("succeeded", "had the phone meanwhile")
        question = await Questions(db).get("q")
        assert question is not None
        assert question.answer is not None
        return AttemptOutcome("succeeded", question.answer["text"])

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await one.until(run_id, "waiting")
        other = await one.service.submit("other task", serial=PHONE)
        assert (await one.until(other, "succeeded")).message == "had the phone meanwhile"
        assert (await one.service.answer("q", {"text": "是"}, by="1")).won
        run = await one.until(run_id, "succeeded")
        assert (run.message, run.attempt) == ("是", 2)


async def test_hold_parks_a_run_and_resume_brings_it_back(db: Database) -> None:
    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if attempt > 1:
            return AttemptOutcome("succeeded")
        await lease.stop.wait()
        assert lease.stop.hold_requested
        return AttemptOutcome("held")

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await one.until(run_id, "running")
        assert await one.service.hold(run_id)
        run = await one.until(run_id, "waiting")
        assert run.hold
        await one.worker_idle()
        assert await Leases(db).held() == []
        assert await one.service.resume(run_id)
        await one.until(run_id, "succeeded")


@pytest.mark.parametrize(
    ("error", "message"),
    [(DeviceOffline("The phone is away."), "The phone is away. Check the cable"), (ValueError("x"), "ValueError: x")],
)
async def test_errors_end_the_run_and_are_told(db: Database, error: Exception, message: str) -> None:
    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        raise error

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        assert (await one.until(run_id, "failed")).message.startswith(message)
    assert await Leases(db).held() == []


async def test_who_lost_the_phone_stops_acting_and_the_run_goes_on(db: Database, clock: Clock) -> None:
    began, acts = asyncio.Event(), asyncio.Event()
    lost: list[BaseException] = []

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if attempt > 1:
            return AttemptOutcome("succeeded", f"attempt {attempt}")
        began.set()
        await acts.wait()
        try:
            await lease.check()
        except LeaseLost as error:
            lost.append(error)
            raise
        return AttemptOutcome("failed", "acted on a phone that was another's")

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await began.wait()
        clock.move(seconds=60)  # the process hung: no heartbeat
        thief = await Leases(db).acquire(PHONE, "other host", "something else")
        assert thief is not None
        acts.set()
        await one.worker_idle()
        assert (await one.run(run_id)).status == "waiting", "back in the line"
        assert await Leases(db).check(thief), "the other one keeps it"
        await Leases(db).release(thief)
        assert (await one.until(run_id, "succeeded")).message == "attempt 2"
    assert len(lost) == 1


async def test_a_cancelled_attempt_leaks_nothing_and_is_due_again(db: Database) -> None:
    work = Endless()
    worker = Worker(db, work, owner="host")
    run_id = await RunService(db).submit("task", serial=PHONE)
    task = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 1)))
    await work.began.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    await task  # raises nothing
    assert work.told == ["cleanup", "clean"]
    run = await Runs(db).get(run_id)
    assert run is not None
    assert (run.status, run.attempt, run.attempt_due_at) == ("waiting", 2, db.now())
    assert await Leases(db).held() == []


async def test_at_the_end_of_the_process_attempts_are_put_back(db: Database) -> None:
    work = Endless()
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await work.began.wait()
        await one.worker.drain(0)
        assert work.told == ["cleanup", "clean"]
        assert (await one.run(run_id)).status == "waiting"
    async with desk(db, succeed) as two:
        await two.until(run_id, "succeeded")


async def test_another_host_goes_on_with_the_run_of_a_dead_one(db: Database, clock: Clock) -> None:
    leases, runs = Leases(db), Runs(db)
    run_id = await RunService(db).submit("task", serial=PHONE)
    dead = await leases.acquire(PHONE, "dead host", run_id)
    await runs.begin_attempt(run_id, 1, serial=PHONE)
    assert dead is not None
    async with desk(db, succeed) as one:
        assert await one.dispatcher.once() == []
        assert (await one.run(run_id)).status == "running"
        clock.move(seconds=31)
        assert (await one.until(run_id, "succeeded")).attempt == 2
        assert not await leases.check(dead)


async def test_an_attempt_whose_phone_cannot_be_given_back_is_over_all_the_same(db: Database) -> None:
    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        async with db.write() as connection:
            await connection.execute(sa.text("ALTER TABLE leases RENAME TO gone"))
        return AttemptOutcome("succeeded")

    worker = Worker(db, work, owner="host")
    run_id = await RunService(db).submit("task", serial=PHONE)
    with pytest.raises(sa.exc.OperationalError, match="leases"):
        await worker.run_attempt(attempt_id(run_id, 1))
    assert worker.runs_at_work == []
    async with asyncio.timeout(SOON):
        await worker.drain(0)


async def test_the_same_attempt_handed_out_twice_is_done_once(db: Database) -> None:
    work = Endless()
    worker = Worker(db, work, owner="host")
    run_id = await RunService(db).submit("task", serial=PHONE)
    first = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 1)))
    await work.began.wait()
    await worker.run_attempt(attempt_id(run_id, 1))  # a queue that "recovers" what is alive
    run = await Runs(db).get(run_id)
    assert run is not None
    assert (run.status, run.attempt) == ("running", 1)
    worker.stop_now(run_id)
    await first
    await worker.run_attempt(attempt_id(run_id, 1))
    await worker.run_attempt(attempt_id("nobody", 1))
    assert work.told == ["cleanup", "clean"]


async def test_an_attempt_whose_turn_passes_as_it_takes_the_phone_makes_way(
    db: Database, url: str, clock: Clock
) -> None:
    """Between its look at the run and the lease the turn went on to attempt 2, which may have stood back for it."""
    other = Database(url, clock=clock)
    worker = Worker(db, succeed, owner="host")
    run_id = await RunService(db).submit("task", serial=PHONE)
    async with other.write() as connection:  # holds SQLite's lock, so that the lease waits
        await connection.execute(sa.update(runs_table).values(attempt=2))
        task = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 1)))
        done, _ = await asyncio.wait([task], timeout=0.1)
        assert not done
    await task
    run = await Runs(db).get(run_id)
    assert run is not None
    assert (run.status, run.attempt) == ("queued", 3), "a new number, which the queue takes again"
    assert await Leases(db).held() == []
    await other.close()


async def test_a_run_on_any_phone_gets_a_free_one(db: Database) -> None:
    work = Endless()
    async with desk(db, work, phones=["p1", "p2"]) as one:
        ids = [await one.service.submit("task") for _ in range(3)]
        rows = [await one.until(run_id, "running") for run_id in ids[:2]]
        assert sorted(run.serial for run in rows) == ["p1", "p2"]
        await one.dispatcher.once()
        assert (await one.run(ids[2])).status == "queued"
        await one.service.request_stop(ids[0])
        assert (await one.until(ids[2], "running")).serial == rows[0].serial


async def test_a_run_whose_phone_is_away_is_told_so_after_a_while(db: Database, clock: Clock) -> None:
    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        raise DeviceOffline(f"{lease.serial} is not attached.")

    async with desk(db, work, phones=[]) as one:
        named = await one.service.submit("task", serial=PHONE)
        any_phone = await one.service.submit("task")
        assert await one.dispatcher.once() == []
        clock.move(seconds=15)
        assert (await one.until(named, "failed")).message.startswith("phone-1 is not attached")
        assert (await one.until(any_phone, "failed")).message == "没有连接手机。"


async def test_after_a_failing_look_the_next_one_goes_on(db: Database) -> None:
    class Shaky(LocalQueue):
        failures = 2

        async def enqueue(self, attempt_id: str) -> None:
            self.failures -= 1
            if self.failures >= 0:
                raise ConnectionError("away")
            await super().enqueue(attempt_id)

    queue = Shaky()
    worker = Worker(db, succeed, owner="host")
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker, every_seconds=0.01)
    await queue.start(worker.run_attempt)
    await dispatcher.start()
    service = RunService(db)
    run_id = await service.submit("task", serial=PHONE)
    one = Desk(db, worker, queue, dispatcher, service)
    await one.until(run_id, "succeeded")
    await dispatcher.stop()
    await queue.stop()


async def test_start_delay_is_small(db: Database) -> None:
    """A run that is submitted in this process does not wait for the next look at everything."""
    began = asyncio.Event()

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        began.set()
        return AttemptOutcome("succeeded")

    worker, queue = Worker(db, work, owner="host"), LocalQueue()
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker, every_seconds=60)
    await queue.start(worker.run_attempt)
    await dispatcher.start()
    async with asyncio.timeout(SOON):
        await RunService(db).submit("task", serial=PHONE)
        await began.wait()
    await dispatcher.stop()
    await worker.drain(SOON)
    await queue.stop()


async def test_the_phone_for_something_that_is_no_run(db: Database, clock: Clock) -> None:
    async with lease_of(db, far_phone(PHONE), owner="host", why="mcp") as lease:
        await lease.check()
        with pytest.raises(LeaseLost):
            async with lease_of(db, far_phone(PHONE), owner="host", why="planner"):
                pass
    async with lease_of(db, far_phone(PHONE), owner="host", why="planner") as again:
        assert again.fencing > lease.fencing
    assert await Leases(db).held() == []


async def test_losing_the_phone_ends_what_is_no_run(db: Database, clock: Clock) -> None:
    async def hold() -> None:
        async with lease_of(db, far_phone(PHONE), owner="host", why="mcp", seconds=0.03):
            clock.move(seconds=60)
            assert await Leases(db).acquire(PHONE, "thief") is not None
            await asyncio.Event().wait()

    async with asyncio.timeout(SOON):
        with pytest.raises(LeaseLost):
            await hold()


@pytest.mark.parametrize("lang", ["zh", "en"])
async def test_a_run_that_gets_nowhere_is_given_up_and_said_to_be(db: Database, lang: str) -> None:
    async def loses(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        raise LeaseLost("The phone S1 was taken by another owner.")

    async with desk(db, loses) as one:
        run_id = await one.service.submit("task", serial=PHONE, options={"lang": lang})
        run = await one.until(run_id, "failed")
    assert [attempt for _, attempt in one.attempts] == [1, 2, 3, 4, 5]
    assert run.message.startswith({"zh": "连续 5 次开始", "en": "Begun 5 times in a row"}[lang])
    assert "taken by another owner" in run.message


async def test_what_other_files_lack_is_no_database_that_is_away(db: Database) -> None:
    async def lacks(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        raise FileNotFoundError(2, "No such file", "det.onnx")

    async with desk(db, lacks) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        run = await one.until(run_id, "failed")
    assert len(one.attempts) == 1
    assert "det.onnx" in run.message


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(), "RuntimeError"),
        (RuntimeError("\nSELECT"), "RuntimeError"),
        (RuntimeError("no disk\nSELECT"), "RuntimeError: no disk"),
    ],
)
async def test_an_error_without_words_is_told_by_its_name_alone(db: Database, error: Exception, told: str) -> None:
    async def breaks(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        raise error

    async with desk(db, breaks) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        run = await one.until(run_id, "failed")
    assert run.message == told


async def test_a_heartbeat_that_is_late_for_once_is_made_up_for(db: Database, clock: Clock) -> None:
    leases = Leases(db, seconds=30)
    row = await leases.acquire(PHONE, "host", "r1")
    assert row is not None
    lease = HeldLease(row, leases)
    clock.move(seconds=29)
    await lease.check()
    clock.move(seconds=2)
    assert await leases.acquire(PHONE, "another", "r2") is None, "it was heard"
    clock.move(seconds=30)
    with pytest.raises(LeaseLost):
        await lease.check()
