"""What models used is counted over all processes; what is kept of a run's requests."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta

import pytest

from agent_core.errors import LeaseLost
from storage.engine import Database
from storage.model_calls import Trajectories, UsageTotals, Used
from storage.outages import Outages
from storage.retention import Retention
from storage.runs import NewRun, Runs
from tests.support.clock import Clock

DAY = date(2026, 3, 1)
MINUTE = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


async def test_a_day_is_added_up_by_model(db: Database, other_db: Database) -> None:
    here, there = UsageTotals(db), UsageTotals(other_db)
    one = Used(1, 1000, 50, 400, 0.25)
    await asyncio.gather(*(spending.add(DAY, "m", one) for spending in (here, there, here, there)))
    await there.add(DAY, "n", Used(1, 10, 1))
    await there.add(DAY + timedelta(days=1), "m", one)
    assert await here.by_model(DAY) == {"m": Used(4, 4000, 200, 1600, 1.0), "n": Used(1, 10, 1)}
    assert await here.of_day(DAY) == Used(5, 4010, 201, 1600, 1.0)
    assert await here.of_day(DAY - timedelta(days=1)) == Used()


async def test_a_minute_has_so_many_calls_whoever_takes_them(db: Database, other_db: Database) -> None:
    takers = [UsageTotals(db), UsageTotals(other_db)] * 4
    taken = await asyncio.gather(*(taker.take(MINUTE, calls=3, cost=0) for taker in takers))
    assert sum(taken) == 3
    later = MINUTE + timedelta(minutes=1)
    assert await takers[0].take(later, calls=3, cost=0.5)
    await takers[1].add(DAY, "m", Used(1, cost=0.5), minute=later)
    assert not await takers[0].take(later, calls=3, cost=0.5)
    assert await takers[0].take(later, calls=3, cost=0)


async def test_who_tells_first_tells_alone(db: Database, other_db: Database) -> None:
    told = await asyncio.gather(*(Outages(each).once("limit", "2026-03-01", {}) for each in (db, other_db) * 2))
    assert sum(told) == 1


PICTURE = b"\xff\xd8 a screen"


async def a_run(db: Database) -> str:
    made = await Runs(db).create(NewRun("t", "S1", begun=True))
    assert made is not None
    return made


async def test_a_step_asked_again_is_the_newest_and_a_picture_is_kept_once(db: Database) -> None:
    run, kept = await a_run(db), Trajectories(db, attempt=1)
    text = '{"words": "你好"}' * 100
    await kept.asked(run, 1, "{}")
    await kept.asked(run, 1, text, digest="d", picture=PICTURE)
    await kept.asked(run, 2, "{}", digest="d", picture=b"equal digests are equal pictures")
    rows = await kept.of(run)
    assert [(row.step, row.data, row.picture) for row in rows] == [(1, text, "d"), (2, "{}", "d")]
    assert rows[0].stored < len(text) / 10
    assert await kept.picture(run, "d") == PICTURE
    assert await kept.picture(run, "e") is None
    assert await kept.of("another") == []


async def test_an_attempt_that_lost_its_run_writes_nothing(db: Database) -> None:
    run = await a_run(db)
    await Runs(db).interrupt_attempt(run, 1)
    with pytest.raises(LeaseLost):
        await Trajectories(db, attempt=1).asked(run, 1, "{}", digest="d", picture=PICTURE)
    assert await Trajectories(db).of(run) == []
    assert await Trajectories(db).picture(run, "d") is None


async def test_they_go_once_their_run_is_over_for_so_long(db: Database, clock: Clock) -> None:
    over, going, late = [await a_run(db) for _ in range(3)]
    for run in (over, going, late):
        for step in (1, 2, 3):
            await Trajectories(db).asked(run, step, "{}", digest=f"d{step}", picture=PICTURE)
    await Runs(db).end_attempt(over, 1, status="succeeded")
    clock.move(days=20)
    await Runs(db).end_attempt(late, 1, status="succeeded")  # its steps build on each other: they go together
    clock.move(days=20)
    before = clock() - timedelta(days=30)
    bites = Retention(db, bite=2)
    assert [await bites.trajectories(before) for _ in range(2)] == [3, 0]  # whole runs, however small the bite
    assert [await bites.trajectory_pictures(before) for _ in range(3)] == [2, 1, 0]
    kept = Trajectories(db)
    assert [len(await kept.of(run)) for run in (over, going, late)] == [0, 3, 3]
    assert (await kept.picture(over, "d1"), await kept.picture(going, "d1")) == (None, PICTURE)
