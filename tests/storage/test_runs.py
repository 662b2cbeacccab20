from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from storage.engine import Database
from storage.events import Events, append_event
from storage.leases import Leases
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from storage.schedules import NewSchedule, Schedules, Tick
from storage.tables import questions as questions_table
from storage.tables import runs as runs_table
from tests.support.clock import Clock

PHONE = "phone-1"


async def make(db: Database, **fields: object) -> str:
    run_id = await Runs(db).create(NewRun(task="QQ回复联系人11", **fields))  # type: ignore[arg-type]  # any of its fields
    assert run_id is not None
    return run_id


async def row(db: Database, run_id: str) -> RunRow:
    found = await Runs(db).get(run_id)
    assert found is not None
    return found


async def waiting(db: Database, question_id: str = "q") -> str:
    """A run that is parked at an open question."""
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Questions(db).ask(question_id, run_id=run_id, kind="interact", payload={})
    assert await Runs(db).park_attempt(run_id, 1)
    return run_id


async def test_a_run_comes_back_as_it_was_stored(db: Database, clock: Clock) -> None:
    run_id = await make(db, serial=PHONE, options={"max_steps": 5}, requested_by="1", chat={"chat": -100, "thread": 2})
    run = await row(db, run_id)
    assert (run.task, run.serial, run.options, run.chat) == (
        "QQ回复联系人11",
        PHONE,
        {"max_steps": 5},
        {"chat": -100, "thread": 2},
    )
    assert (run.status, run.attempt, run.attempt_due_at, run.created_at) == ("queued", 1, clock(), clock())
    assert run.session is None
    assert not run.final
    await Runs(db).save_session(run_id, '{"版本":1}')
    assert (await row(db, run_id)).session == '{"版本":1}'
    with pytest.raises(KeyError):
        await Runs(db).save_session("nobody", "{}")


async def test_due_runs_stand_in_line_by_priority_and_age(db: Database, clock: Clock) -> None:
    first = await make(db)
    clock.move(seconds=1)
    second = await make(db)
    urgent = await make(db, priority=1)
    assert [run.id for run in await Runs(db).due()] == [urgent, first, second]
    assert await Runs(db).requeue_attempt(first, 1)
    assert [run.id for run in await Runs(db).due()] == [urgent, first, second], "who gave way keeps the place"
    assert (await row(db, first)).attempt == 2


async def test_an_attempt_begins_once_for_each_number(db: Database) -> None:
    runs = Runs(db)
    run_id = await make(db)
    assert await runs.take(await row(db, run_id), PHONE, "host", alive_after=db.now()) == 1
    assert await runs.begin_attempt(run_id, 2, serial=PHONE) is None
    begun = await runs.begin_attempt(run_id, 1, serial=PHONE)
    assert begun is not None
    assert (begun.status, begun.serial) == ("running", PHONE)
    assert begun.attempt_due_at is None
    assert await runs.begin_attempt(run_id, 1, serial=PHONE) is None, "handed out once more after a kill"
    assert await runs.end_attempt(run_id, 1, status="succeeded", message="done")
    assert not await runs.end_attempt(run_id, 1, status="failed")
    assert await runs.begin_attempt(run_id, 1, serial=PHONE) is None
    assert (await row(db, run_id)).message == "done"
    assert await runs.begin_attempt(await make(db, begun=True), 1, serial=PHONE) is None, "added as begun"


async def test_every_change_of_status_is_told_once(db: Database) -> None:
    run_id = await waiting(db)
    await Questions(db).answer("q", {"text": "好"}, by="1")
    await Runs(db).begin_attempt(run_id, 2, serial=PHONE)
    await Runs(db).end_attempt(run_id, 2, status="succeeded", message="完成")
    await Runs(db).end_attempt(run_id, 2, status="succeeded", message="完成")
    told = [event.data for event in await Events(db).after(0, run_id=run_id) if event.kind == "status"]
    assert [data["status"] for data in told] == ["queued", "running", "waiting", "running", "succeeded"]
    assert told[-1] == {"status": "succeeded", "message": "完成", "attempt": 2, "serial": PHONE, "hold": False}


async def test_an_answer_makes_the_next_attempt_due(db: Database) -> None:
    run_id = await waiting(db)
    assert await Runs(db).due() == []
    result = await Questions(db).answer("q", {"text": "可以退货"}, by="1")
    assert result.won
    assert [(run.id, run.attempt) for run in await Runs(db).due()] == [(run_id, 2)]


async def test_two_answers_at_once(db: Database, other_db: Database) -> None:
    run_id = await waiting(db)
    results = await asyncio.gather(
        *(
            Questions(one).answer("q", {"text": f"answer {index}"}, by=str(index))
            for index, one in enumerate([db, other_db, db, other_db])
        )
    )
    assert sorted(result.won for result in results) == [False, False, False, True]
    assert len({result.question.answered_by for result in results}) == 1, "all learn who was first"
    given = await Questions(db).given("q")
    assert sorted(answer.late for answer in given) == [False, True, True, True]
    assert (await row(db, run_id)).attempt == 2


async def test_an_answer_in_the_moment_the_attempt_ends_is_not_lost(db: Database, other_db: Database) -> None:
    """The attempt's last transaction has seen no answer and is not committed yet: the answer waits for it."""
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Questions(db).ask("q", run_id=run_id, kind="interact", payload={})
    async with other_db.write() as attempt:
        await attempt.execute(sa.update(runs_table).where(runs_table.c.id == run_id).values(status="waiting"))
        answer = asyncio.create_task(Questions(db).answer("q", {}, by="1"))
        done, _ = await asyncio.wait([answer], timeout=0.2)
        assert not done
    assert (await answer).won
    run = await row(db, run_id)
    assert (run.status, run.attempt) == ("waiting", 2)
    assert run.attempt_due_at is not None


async def test_an_answer_just_before_the_attempt_ends_is_not_lost(db: Database) -> None:
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Questions(db).ask("q", run_id=run_id, kind="interact", payload={})
    assert (await Questions(db).answer("q", {}, by="1")).won
    assert await Runs(db).park_attempt(run_id, 1)
    assert [(run.id, run.attempt) for run in await Runs(db).due()] == [(run_id, 2)]


async def test_an_answer_to_an_attempt_that_still_waits_on_the_phone_starts_no_other(db: Database) -> None:
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Questions(db).ask("q", run_id=run_id, kind="interact", payload={})
    await Questions(db).answer("q", {}, by="1")
    assert await Runs(db).due() == []
    assert (await row(db, run_id)).status == "running"


async def test_asking_again_keeps_the_question(db: Database) -> None:
    await waiting(db)
    again = await Questions(db).ask("q", run_id="other", kind="stuck", payload={"x": 1})
    assert again.kind == "interact"
    assert len(await Questions(db).find(state="open")) == 1
    with pytest.raises(KeyError):
        await Questions(db).answer("unknown", {}, by="1")


async def test_a_deadline_closes_the_question_and_the_run_goes_on(db: Database, clock: Clock) -> None:
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    deadline = clock() + timedelta(minutes=5)
    await Questions(db).ask("q", run_id=run_id, kind="interact", payload={}, deadline=deadline)
    await Runs(db).park_attempt(run_id, 1)
    assert await Questions(db).expire() == []
    clock.move(minutes=5)
    late = await Questions(db).answer("q", {"text": "late"}, by="1")
    assert not late.won, "the time is over even before the question was closed"
    assert [question.id for question in await Questions(db).expire()] == ["q"]
    assert [(run.id, run.attempt) for run in await Runs(db).due()] == [(run_id, 2)]
    given = await Questions(db).given("q")
    assert [(answer.answer, answer.late) for answer in given] == [({"text": "late"}, True)]


async def test_hold_waits_for_resume_even_when_answered(db: Database) -> None:
    run_id = await waiting(db)
    assert await Runs(db).request_hold(run_id)
    await Questions(db).answer("q", {}, by="1")
    assert await Runs(db).due() == []
    assert await Runs(db).resume(run_id)
    assert not await Runs(db).resume(run_id)
    run = (await Runs(db).due())[0]
    assert (run.attempt, run.hold) == (2, False)


async def test_stop_ends_a_run_that_no_attempt_works_on(db: Database) -> None:
    run_id = await waiting(db)
    assert await Runs(db).request_stop(run_id) == "stopped"
    question = await Questions(db).get("q")
    assert question is not None
    assert question.state == "expired"
    assert not (await Questions(db).answer("q", {}, by="1")).won
    assert await Runs(db).due() == []
    assert await Runs(db).request_stop("nobody") is None


async def test_stop_of_a_run_at_work_is_left_to_its_attempt(db: Database) -> None:
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    assert await Runs(db).request_stop(run_id, by="Operator A") == "running"
    assert await Runs(db).request_stop(run_id, by="Operator B") == "running"
    assert (await row(db, run_id)).stopped_by == "Operator A"
    assert await Runs(db).asked([run_id, "other"]) == {run_id: (True, False)}


async def test_a_stop_in_the_moment_the_attempt_ends_at_a_question_is_not_lost(db: Database) -> None:
    run_id = await make(db)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Questions(db).ask("q", run_id=run_id, kind="interact", payload={})
    assert await Runs(db).request_stop(run_id) == "running"
    assert await Runs(db).park_attempt(run_id, 1)
    assert (await row(db, run_id)).status == "stopped"
    assert (await row(db, run_id)).ended_at is not None
    assert await Questions(db).find(state="open") == []
    told = [event.data["status"] for event in await Events(db).after(0, run_id=run_id)]
    assert told == ["queued", "running", "stopped"]


async def test_only_runs_whose_attempt_died_are_revived(db: Database, clock: Clock) -> None:
    runs, leases = Runs(db), Leases(db, seconds=30)
    alive, dead, parked = await make(db), await make(db), await waiting(db)
    for run_id, serial in ((alive, "a"), (dead, "b")):
        await leases.acquire(serial, "host", run_id)
        await runs.begin_attempt(run_id, 1, serial=serial)
    assert await runs.revive(older_than=leases.ttl) == []
    clock.move(seconds=20)
    held = await leases.get("a")
    assert held is not None
    await leases.renew(held)
    clock.move(seconds=20)
    assert await runs.revive(older_than=leases.ttl, alive_here=[dead]) == []
    assert await runs.revive(older_than=leases.ttl) == [dead]
    assert [(run.id, run.attempt, run.status) for run in await runs.due()] == [(dead, 2, "waiting")]
    assert (await row(db, parked)).attempt == 1


async def test_a_run_that_begins_this_moment_is_not_taken_for_dead(db: Database, clock: Clock) -> None:
    """A command line adds its run as begun, and takes the phone a moment later."""
    run_id = await make(db, begun=True)
    assert await Runs(db).revive(older_than=timedelta(seconds=30)) == []
    clock.move(seconds=5)
    assert await Runs(db).revive(older_than=timedelta(seconds=30)) == [run_id]


async def test_one_tick_starts_one_run(db: Database, other_db: Database, clock: Clock) -> None:
    schedule = await Schedules(db).add(NewSchedule("* * * * *", "UTC", "QQ回复联系人11", serial=PHONE))
    planned = clock() + timedelta(minutes=1)
    results = await asyncio.gather(
        *(Schedules(one).tick(schedule.id, planned) for one in (db, other_db, db, other_db)),
    )
    assert sorted(str(result.tick) for result in results) == ["started", "taken", "taken", "taken"]
    runs = await Runs(db).find(schedule_id=schedule.id)
    assert [(run.planned_at, run.serial) for run in runs] == [(planned, PHONE)]


async def test_a_tick_over_a_run_that_still_goes_is_skipped_and_counted(db: Database, clock: Clock) -> None:
    schedules = Schedules(db)
    schedule = await schedules.add(NewSchedule("* * * * *", "UTC", "task"))
    times = [clock() + timedelta(minutes=minute) for minute in range(4)]
    first = await schedules.tick(schedule.id, times[0])
    assert (await schedules.tick(schedule.id, times[1])).tick is Tick.BUSY
    await Runs(db).request_stop(first.run_id)
    assert (await schedules.tick(schedule.id, times[2], quiet=True)).tick is Tick.QUIET
    assert (await schedules.tick(schedule.id, times[3], missed=2)).tick is Tick.STARTED
    assert (await schedules.tick(schedule.id, times[2])).tick is Tick.TAKEN
    found = await schedules.get(schedule.id)
    assert found is not None
    assert (found.started, found.skipped_busy, found.skipped_quiet, found.skipped_missed) == (2, 1, 1, 2)
    told = [event.data["what"] for event in await Events(db).after(0) if event.kind == "schedule"]
    assert told == ["busy", "quiet", "missed"]


async def test_a_paused_schedule_starts_nothing(db: Database, clock: Clock) -> None:
    schedules = Schedules(db)
    schedule = await schedules.add(NewSchedule("* * * * *", "UTC", "task"))
    await schedules.pause(schedule.id, paused=True)
    assert (await schedules.tick(schedule.id, clock())).tick is Tick.TAKEN
    clock.move(hours=1)
    await schedules.pause(schedule.id, paused=False)
    found = await schedules.get(schedule.id)
    assert found is not None
    assert found.last_planned_at == clock(), "what was planned while it was paused is not missed"
    started = await schedules.tick(schedule.id, clock() + timedelta(minutes=1))
    assert started.tick is Tick.STARTED
    assert await schedules.remove(schedule.id)
    assert (await row(db, started.run_id)).schedule_id == schedule.id
    assert (await schedules.add(NewSchedule("@daily", "UTC", "task"))).id != schedule.id


async def test_times_come_back_aware_and_in_utc(db: Database) -> None:
    planned = datetime.fromisoformat("2026-06-01T09:00:00.123456+08:00")
    run_id = await make(db, schedule_id=7, planned_at=planned)
    found = (await row(db, run_id)).planned_at
    assert found == planned
    assert found is not None
    assert found.utcoffset() == timedelta(0)
    assert (await row(db, run_id)).created_at.tzinfo is UTC


async def test_a_sweep_that_is_stopped_does_not_block_who_reminds_of_its_questions(
    db: Database, other_db: Database
) -> None:
    if db.is_sqlite:
        return  # one writes at a time
    sweep_id, parts = await make(db), []
    await Runs(db).begin_attempt(sweep_id, 1, serial=PHONE)
    for name in ("q1", "q2"):
        parts.append(await make(db, parent_id=sweep_id))
        await Runs(db).begin_attempt(parts[-1], 1, serial=PHONE)
        await Questions(db).ask(name, run_id=parts[-1], kind="interact", payload={})
        await Runs(db).park_attempt(parts[-1], 1)
    await Runs(db).park_attempt(sweep_id, 1)
    waits = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    async with asyncio.timeout(10), other_db.write() as reminding:
        await reminding.execute(sa.update(questions_table).where(questions_table.c.id == "q2").values(reminders=1))
        stop = asyncio.create_task(Runs(db).request_stop(sweep_id))
        while not (await reminding.execute(waits)).scalar_one():
            await asyncio.sleep(0.01)
        async with asyncio.timeout(0.5):  # less than the second after which PostgreSQL looks for deadlocks
            await append_event(reminding, other_db, parts[1], "reminder", {"question": "q2"})
    assert await stop == "stopped"
    assert [(await row(db, run_id)).status for run_id in parts] == ["stopped", "stopped"]


async def test_a_run_that_was_put_off_is_due_after_a_while_and_holds_no_question(db: Database, clock: Clock) -> None:
    run_id = await make(db, serial=PHONE)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    assert not await Runs(db).put_off_attempt(run_id, 2, seconds=60)
    assert await Runs(db).put_off_attempt(run_id, 1, seconds=60, message="away", error_kind="knowledge.network")
    run = await row(db, run_id)
    assert (run.status, run.attempt, run.message, run.again_at) == (
        "queued",
        2,
        "away",
        clock() + timedelta(seconds=60),
    )
    told = (await Events(db).after(0, run_id=run_id))[-1]
    assert (told.kind, told.data["error_kind"]) == ("status", "knowledge.network")
    assert await Runs(db).due() == []
    clock.move(seconds=59)
    assert await Runs(db).due() == []
    clock.move(seconds=1)
    assert [one.id for one in await Runs(db).due()] == [run_id]
    assert await Runs(db).begin_attempt(run_id, 2, serial=PHONE) is not None
    assert (await row(db, run_id)).again_at is None


async def test_a_clock_that_was_put_back_does_not_keep_a_run_put_off(db: Database, clock: Clock) -> None:
    run_id = await make(db, serial=PHONE)
    await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    await Runs(db).put_off_attempt(run_id, 1, seconds=60)
    clock.move(hours=-1)
    assert [one.id for one in await Runs(db).due()] == [run_id]


@pytest.mark.parametrize("hold", [False, True])
async def test_stop_and_hold_reach_a_run_that_is_put_off(db: Database, clock: Clock, hold: bool) -> None:
    for before in (True, False):  # while the attempt ends, or afterwards
        run_id = await make(db, serial=PHONE)
        await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
        ask = Runs(db).request_hold if hold else Runs(db).request_stop
        if before:
            await ask(run_id)
        assert await Runs(db).put_off_attempt(run_id, 1, seconds=60)
        if not before:
            await ask(run_id)
        run = await row(db, run_id)
        assert (run.status, run.attempt_due_at, run.hold) == ("waiting" if hold else "stopped", None, hold)
        assert (run.ended_at is None) is hold
        if hold:
            assert await Runs(db).resume(run_id)
            assert [one.id for one in await Runs(db).due()] == [run_id]
            await Runs(db).request_stop(run_id)
