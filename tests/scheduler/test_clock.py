"""Ticks: one run for each, none twice, none unsaid."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from scheduler.clock import Clock as ScheduleClock
from scheduler.clock import jitter_of
from storage import tables
from storage.engine import Database
from storage.events import Events
from storage.leases import Clocks
from storage.runs import RunRow, Runs
from storage.schedules import NewSchedule, ScheduleRow, Schedules
from tests.support.clock import Clock


@pytest.fixture
async def ticking(db: Database) -> AsyncIterator[ScheduleClock]:
    clock = ScheduleClock(db)
    yield clock
    await clock.stop()


async def add(db: Database, expression: str = "*/5 * * * *", **fields: object) -> ScheduleRow:
    new = NewSchedule(expression, "Asia/Shanghai", "QQ回复联系人11", **fields)  # type: ignore[arg-type]  # any field
    return await Schedules(db).add(new)


async def counters(db: Database, schedule: ScheduleRow) -> tuple[int, int, int, int]:
    found = await Schedules(db).get(schedule.id)
    assert found is not None
    return found.started, found.skipped_busy, found.skipped_missed, found.skipped_quiet


async def started(db: Database, schedule: ScheduleRow) -> list[RunRow]:
    return await Runs(db).find(schedule_id=schedule.id)


async def test_a_tick_starts_a_run(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, serial="p1", chat={"id": 1}, options={"contact": "11"}, kind="sweep")
    await ticking.look()
    assert await started(db, schedule) == []
    clock.move(minutes=5, seconds=1)
    await ticking.look()
    await ticking.look()
    (run,) = await started(db, schedule)
    assert (run.serial, run.chat, run.options) == ("p1", {"id": 1}, {"contact": "11", "kind": "sweep"})
    assert run.planned_at == clock() - timedelta(seconds=1)


async def test_two_processes_see_one_tick(db: Database, url: str, clock: Clock, ticking: ScheduleClock) -> None:
    other = Database(url, clock=clock)
    schedule = await add(db)
    second = ScheduleClock(other)
    for _ in range(5):
        clock.move(minutes=5)
        await asyncio.gather(*(one.look() for one in (ticking, second, ticking, second)))
        for run in await started(db, schedule):
            await Runs(db).request_stop(run.id)
    assert len(await started(db, schedule)) == 5
    assert await counters(db, schedule) == (5, 0, 0, 0)
    await other.close()


async def test_a_run_still_going_skips_the_tick(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db)
    for _ in range(3):
        clock.move(minutes=5)
        await ticking.look()
    assert await counters(db, schedule) == (1, 2, 0, 0)


async def test_a_restart_at_the_minute_of_a_schedule_skips_nothing(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    schedule = await add(db)
    clock.move(minutes=5, seconds=40)
    await ticking.start()
    assert await counters(db, schedule) == (1, 0, 0, 0)


async def test_what_is_changed_during_a_look_is_not_missed(db: Database, ticking: ScheduleClock) -> None:
    looking, go_on, looks = asyncio.Event(), asyncio.Event(), 0
    timed = ticking._timed

    async def slowly() -> list[ScheduleRow]:
        nonlocal looks
        found, looks = await timed(), looks + 1
        if looks == 3:  # the first look takes two
            looking.set()
            await go_on.wait()
        return found

    ticking._timed = slowly  # type: ignore[method-assign]  # the same, with a pause in it
    await ticking.start()
    await add(db)
    async with asyncio.timeout(20):
        await looking.wait()
        second = await add(db, "*/7 * * * *")
        go_on.set()
        while second.id not in ticking._alarms:
            await asyncio.sleep(0.01)


async def test_what_was_missed_while_the_server_was_down_is_skipped_and_said(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    schedule = await add(db)
    clock.move(minutes=17)
    await ticking.start()
    assert await counters(db, schedule) == (0, 0, 3, 0)
    told = [event.data for event in await Events(db).after(0)]
    assert told == [
        {
            "schedule_id": schedule.id,
            "what": "missed",
            "count": 3,
            "since": "2026-03-01T09:05:00+00:00",
            "caught_up": False,
            "planned_at": "2026-03-01T09:15:00+00:00",
        }
    ]
    clock.move(minutes=3)
    await ticking.look()
    assert await counters(db, schedule) == (1, 0, 3, 0)


async def test_what_was_missed_is_caught_up_once(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, missed="catch_up")
    clock.move(minutes=17)
    await ticking.start()
    assert await counters(db, schedule) == (1, 0, 2, 0)


async def test_a_stall_of_a_process_that_was_there_loses_no_tick(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    schedule = await add(db, "0 * * * *")
    clock.move(hours=1, minutes=4)
    await ticking.look()
    assert await counters(db, schedule) == (1, 0, 0, 0)
    await Runs(db).request_stop((await started(db, schedule))[0].id)
    clock.move(hours=1, minutes=2)  # slept too long: as if it had been down
    await ticking.look()
    assert await counters(db, schedule) == (1, 0, 1, 0)


async def test_quiet_hours(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    clock.time = datetime.fromisoformat("2026-03-01T21:50:00+08:00")
    schedule = await add(db, "0 * * * *", quiet="22:00-07:00")
    for _ in range(10):
        clock.move(hours=1)
        await ticking.look(grace=timedelta(hours=1))
    assert await counters(db, schedule) == (1, 0, 0, 9)
    assert [str(run.planned_at) for run in await started(db, schedule)] == ["2026-03-01 23:00:00+00:00"]


async def test_while_models_may_be_asked_no_more_no_tick_starts_a_run(db: Database, clock: Clock) -> None:
    full = [False]

    async def limited() -> bool:
        return full[0]

    ticking = ScheduleClock(db, limited=limited)
    schedule, waits = await add(db), await add(db, overlap="queue")
    for _ in range(2):
        clock.move(minutes=5)
        await ticking.look()
    full[0] = True
    for run in [*await started(db, schedule), *await started(db, waits)]:
        await Runs(db).request_stop(run.id)
    for _ in range(3):
        clock.move(minutes=5)
        await ticking.look()
    assert [len(await started(db, one)) for one in (schedule, waits)] == [1, 1]
    found = await Schedules(db).get(schedule.id)
    assert found is not None
    assert found.last_what == "limit"
    full[0] = False
    clock.move(minutes=5)
    await ticking.look()
    assert len(await started(db, schedule)) == 2
    await ticking.stop()


async def test_jitter_is_the_same_everywhere_and_keeps_the_planned_time(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    schedule = await add(db, jitter_seconds=60)
    planned = clock() + timedelta(minutes=5)
    jitter = jitter_of(schedule, planned)
    assert timedelta(0) < jitter <= timedelta(seconds=60)
    assert len({jitter_of(schedule, planned + timedelta(minutes=5 * n)) for n in range(20)}) > 5
    clock.time = planned + jitter - timedelta(seconds=1)
    await ticking.look()
    assert await started(db, schedule) == []
    clock.move(seconds=1)
    await ticking.look()
    assert [run.planned_at for run in await started(db, schedule)] == [planned]


async def test_paused_and_unreadable_schedules_leave_the_others_alone(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    broken = await add(db, "nonsense")
    paused = await add(db)
    await Schedules(db).pause(paused.id, paused=True)
    good = await add(db)
    clock.move(minutes=5)
    await ticking.look()
    assert [len(await started(db, one)) for one in (broken, paused, good)] == [0, 0, 1]
    await Schedules(db).pause(paused.id, paused=False)
    clock.move(minutes=5)
    await ticking.look()
    assert len(await started(db, paused)) == 1


async def test_a_one_off_starts_once(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, "at 2026-03-01 18:00")
    for _ in range(6):
        clock.move(minutes=30)
        await ticking.look()
    assert len(await started(db, schedule)) == 1


async def test_the_alarm_wakes_by_itself(db: Database, url: str) -> None:
    """In real time: a schedule whose next time is at hand starts its run without anybody asking."""
    offset = timedelta(0)
    real = Database(url, clock=lambda: datetime.now().astimezone() + offset)
    now = real.now()
    boundary = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    offset = boundary - now - timedelta(seconds=0.5)  # half a second before a full minute
    clock = ScheduleClock(real)
    await clock.start()
    schedule = await add(real, "* * * * *")
    async with asyncio.timeout(20):
        while not await started(real, schedule):
            await real.signal("runs").waiter().wait(0.5)
    await clock.stop()
    assert (await started(real, schedule))[0].planned_at == boundary
    await real.close()


async def told(db: Database) -> list[dict[str, object]]:
    return [dict(event.data) for event in await Events(db).after(0) if event.kind == "schedule"]


async def end_all(db: Database, schedule: ScheduleRow) -> None:
    for run in await started(db, schedule):
        await Runs(db).request_stop(run.id)


async def test_what_is_caught_up_is_said(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, "0 * * * *", missed="catch_up")
    clock.move(hours=10, minutes=30)  # a night
    await ticking.start()
    assert await counters(db, schedule) == (1, 0, 9, 0)
    assert await told(db) == [
        {
            "schedule_id": schedule.id,
            "what": "missed",
            "count": 9,
            "since": "2026-03-01T10:00:00+00:00",
            "caught_up": True,
            "planned_at": "2026-03-01T19:00:00+00:00",
        }
    ]


async def test_weeks_of_ticks_are_caught_up_once(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, "every 30s", missed="catch_up")
    clock.move(days=30, seconds=10)
    await ticking.start()
    await end_all(db, schedule)
    await ticking.look()
    assert (await counters(db, schedule))[0] == 1
    assert (await started(db, schedule))[0].planned_at == clock() - timedelta(seconds=10)


async def test_a_clock_that_jumps_forward_is_told_as_missed(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, "0 * * * *")
    await ticking.look()
    clock.move(hours=5, minutes=30)
    await ticking.look()
    assert await counters(db, schedule) == (0, 0, 5, 0)
    assert [data["what"] for data in await told(db)] == ["missed"]
    clock.move(minutes=30)
    await ticking.look()
    assert await counters(db, schedule) == (1, 0, 5, 0)


async def test_a_clock_that_was_far_ahead_and_goes_back(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    """Without a word the schedule would stand still for a year, and what has run must not run again."""
    schedule = await add(db, "0 * * * *")
    right = clock()
    clock.move(days=365, hours=1)
    await ticking.look(grace=timedelta(days=900))
    await end_all(db, schedule)
    clock.time = right
    await ticking.look()
    clock.move(hours=1)
    await ticking.look()
    runs = await started(db, schedule)
    assert [run.planned_at for run in runs] == [right + timedelta(hours=1), right + timedelta(days=365, hours=1)]


async def test_a_schedule_that_was_made_while_the_clock_was_far_ahead(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    right = clock()
    await ticking.look()
    clock.move(hours=20)
    schedule = await add(db)
    await ticking.look()
    clock.time = right
    await ticking.look()
    clock.move(minutes=5)
    await ticking.look()
    assert [run.planned_at for run in await started(db, schedule)] == [right + timedelta(minutes=5)]


async def test_resuming_what_is_not_paused_loses_no_tick(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    """Planned, and by chance to start later: the button of an old card lies between."""
    schedule = await add(db, jitter_seconds=200)
    clock.move(minutes=5, seconds=1)
    await Schedules(db).pause(schedule.id, paused=False)
    clock.move(seconds=200)
    await ticking.look()
    assert await counters(db, schedule) == (1, 0, 0, 0)


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_clock_that_goes_back_an_hour_doubles_no_tick(
    db: Database, clock: Clock, ticking: ScheduleClock, restarted: bool
) -> None:
    schedule = await add(db, "*/10 * * * *")
    for _ in range(6):
        clock.move(minutes=10)
        await ticking.look()
        await end_all(db, schedule)
    clock.move(hours=-1)
    if restarted:
        await ticking.stop()
        ticking = ScheduleClock(db)
    for _ in range(7):
        await ticking.look()
        await end_all(db, schedule)
        clock.move(minutes=10)
    planned = [run.planned_at for run in await started(db, schedule)]
    assert len(planned) == len(set(planned)) == 6
    await ticking.look()
    assert len(await started(db, schedule)) == 7


async def test_one_tick_waits_for_the_run_before_it(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db, overlap="queue")
    for _ in range(3):
        clock.move(minutes=5)
        await ticking.look()
    assert await counters(db, schedule) == (1, 1, 0, 0)
    first = clock() - timedelta(minutes=10)
    await end_all(db, schedule)
    await ticking.look()
    runs = await started(db, schedule)
    assert sorted(str(run.planned_at) for run in runs) == [str(first), str(first + timedelta(minutes=5))]
    await end_all(db, schedule)
    await ticking.look()
    assert len(await started(db, schedule)) == 2, "one waits, not all"


async def test_what_waits_does_not_start_in_quiet_hours_or_after_a_pause(
    db: Database, clock: Clock, ticking: ScheduleClock
) -> None:
    clock.time = datetime.fromisoformat("2026-03-01T21:40:00+08:00")
    quiet = await add(db, "*/5 * * * *", overlap="queue", quiet="22:00-07:00")
    paused = await add(db, "*/5 * * * *", overlap="queue")
    for _ in range(2):
        clock.move(minutes=5)
        await ticking.look()
    await Schedules(db).pause(paused.id, paused=True)
    clock.move(minutes=15)
    for one in (quiet, paused):
        await end_all(db, one)
    await ticking.look()
    await Schedules(db).pause(paused.id, paused=False)
    await ticking.look()
    assert [len(await started(db, one)) for one in (quiet, paused)] == [1, 1]
    assert (await counters(db, quiet))[3] == 2


async def test_two_processes_start_what_waits_once(
    db: Database, url: str, clock: Clock, ticking: ScheduleClock
) -> None:
    other = Database(url, clock=clock)
    second = ScheduleClock(other)
    schedule = await add(db, overlap="queue")
    for _ in range(2):
        clock.move(minutes=5)
        await ticking.look()
    await end_all(db, schedule)
    await asyncio.gather(*(one.look() for one in (ticking, second, ticking, second)))
    assert len(await started(db, schedule)) == 2
    await other.close()


async def test_what_became_of_the_newest_tick(db: Database, clock: Clock, ticking: ScheduleClock) -> None:
    schedule = await add(db)
    seen = []
    for _ in range(2):
        clock.move(minutes=5)
        await ticking.look()
        row = await Schedules(db).get(schedule.id)
        assert row is not None
        seen.append((row.last_what, row.last_at == clock(), row.last_run_id))
    (run,) = await started(db, schedule)
    assert seen == [("started", True, run.id), ("busy", True, run.id)]


async def test_others_know_whether_a_clock_runs(db: Database, clock: Clock) -> None:
    clocks = Clocks(db, seconds=30)
    ticking, other = ScheduleClock(db, seconds=30), ScheduleClock(db, seconds=30)
    assert not await clocks.any_alive()
    await ticking.start()
    await other.start()
    async with asyncio.timeout(10):
        while len(await tokens(db)) < 2:
            await asyncio.sleep(0)
    await other.stop()
    assert await clocks.any_alive(), "one of the two has stopped"
    await ticking.stop()
    assert not await clocks.any_alive()


async def test_a_clock_that_died_is_forgotten(db: Database, clock: Clock) -> None:
    clocks = Clocks(db, seconds=30)
    await clocks.beat("dead")
    clock.move(seconds=29)
    assert await clocks.any_alive()
    clock.move(seconds=2)
    assert not await clocks.any_alive()
    await clocks.beat("mine")
    assert await tokens(db) == ["mine"]


async def tokens(db: Database) -> list[str]:
    async with db.read() as connection:
        return list((await connection.execute(sa.select(tables.clocks.c.token))).scalars())
