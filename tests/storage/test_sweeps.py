"""Sweeps in the database: their runs are started once, and they end with the last of them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from storage.engine import Database
from storage.events import Events
from storage.history import History, HistoryFilter
from storage.leases import Leases
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.schedules import NewSchedule, Schedules, Tick
from storage.statistics import Statistics, SweptFigures, TimeRange
from storage.sweeps import NewSweep, NewSwept, Sweeps, SweptApp
from tests.support.clock import Clock

PLACE = SweptApp("P1", "qq")
LOOKED = NewSweep(PLACE, "read", contacts=3, calls=2, memory={"picture": "x"}, waiting=("a", "b"), seen=("c",))


async def begun(db: Database, **values: object) -> str:
    """A sweep whose attempt is at work."""
    sweep = await Runs(db).create(NewRun("巡检", "P1", **values))  # type: ignore[arg-type]
    assert sweep is not None
    await Runs(db).begin_attempt(sweep, 1, serial="P1")
    return sweep


def of(sweep: str, *contacts: str) -> list[NewSwept]:
    return [
        NewSwept(one, "s1", 1, NewRun(f"QQ回复联系人{one}", "P1", options={"contact": one}, parent_id=sweep))
        for one in contacts
    ]


async def end(db: Database, run_id: str, status: str) -> None:
    await Runs(db).begin_attempt(run_id, 1, serial="P1")
    if status == "elsewhere":  # another run waits for a person about the contact
        status = "failed"
        await Events(db).append(run_id, "outcome", {"error_kind": "waiting.elsewhere"})
    await Runs(db).end_attempt(run_id, 1, status=status)


async def status(db: Database, run_id: str) -> str:
    row = await Runs(db).get(run_id)
    assert row is not None
    return row.status


async def test_a_look_that_is_repeated_starts_nobody_twice(db: Database) -> None:
    sweeps, sweep = Sweeps(db), await begun(db)
    started = await sweeps.looked(sweep, 1, LOOKED, of(sweep, "a", "b"))
    assert started is not None
    assert await sweeps.looked(sweep, 1, LOOKED, of(sweep, "a", "b", "c")) == started  # killed before it was told
    assert [one.contact for one in await sweeps.runs(sweep)] == ["a", "b"]
    assert (await sweeps.memory(PLACE), (await sweeps.marks(PLACE))["a"].run_id) == ({"picture": "x"}, started[0])
    assert await sweeps.looked(sweep, 2, LOOKED, []) is None  # not this attempt's turn


async def test_a_sweep_that_was_stopped_while_it_looked_starts_nobody(db: Database) -> None:
    sweeps, sweep = Sweeps(db), await begun(db)
    await Runs(db).request_stop(sweep)
    assert await sweeps.looked(sweep, 1, LOOKED, of(sweep, "a")) is None
    assert await sweeps.runs(sweep) == []


@pytest.mark.parametrize(
    ("first", "second", "whole"),
    [
        ("succeeded", "succeeded", "succeeded"),
        ("failed", "succeeded", "succeeded"),
        ("failed", "stopped", "failed"),
        ("elsewhere", "stopped", "succeeded"),
        ("elsewhere", "failed", "failed"),
    ],
)
async def test_it_ends_with_the_last_of_its_runs(db: Database, first: str, second: str, whole: str) -> None:
    sweep = await begun(db)
    started = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a", "b")) or []
    await Runs(db).park_attempt(sweep, 1)
    row = await Runs(db).get(sweep)
    assert row is not None
    assert (row.status, row.attempt_due_at) == ("waiting", None)  # nothing of its own is to be started
    await end(db, started[0], first)
    assert await status(db, sweep) == "waiting"
    await end(db, started[1], second)
    assert await status(db, sweep) == whole


@pytest.mark.parametrize("what", ["stop", "hold"])
async def test_a_sweep_is_stopped_or_held_while_one_of_its_runs_ends(
    db: Database, other_db: Database, what: str
) -> None:
    """In two processes at once, which must not wait for each other."""
    for number in range(12):
        sweep = await begun(db)
        started = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a", "b", "c", "d")) or []
        await Runs(db).park_attempt(sweep, 1)
        await Runs(db).begin_attempt(started[0], 1, serial="P1")
        asked = Runs(db).request_stop(sweep) if what == "stop" else Runs(db).request_hold(sweep)
        ending = Runs(other_db).end_attempt(started[0], 1, status="succeeded")
        _, ended = await asyncio.gather(_later(asked, number % 4), _later(ending, number % 3))
        assert ended
        assert await status(db, sweep) == ("stopped" if what == "stop" else "waiting")


async def _later(what: Coroutine[Any, Any, object], turns: int) -> object:
    for _ in range(turns):
        await asyncio.sleep(0.001)
    return await what


async def test_a_sweep_in_a_terminal_is_not_revived_while_one_of_its_runs_has_the_phone(
    db: Database, clock: Clock
) -> None:
    sweeps, runs, leases = Sweeps(db), Runs(db), Leases(db)
    sweep = await runs.create(NewRun("巡检", "P1", begun=True))
    assert sweep is not None
    clock.move(seconds=20)
    await sweeps.looked(sweep, 1, LOOKED, ())
    assert await runs.revive(older_than=leases.ttl) == []  # its first contact is about to begin
    clock.move(seconds=4)
    one = await sweeps.start(PLACE, replace(of(sweep, "a")[0], run=NewRun("x", "P1", begun=True, parent_id=sweep)))
    clock.move(seconds=4)
    assert await runs.revive(older_than=leases.ttl) == []
    lease = await leases.acquire("P1", "terminal", one)
    assert lease is not None
    clock.move(seconds=20)
    assert await runs.revive(older_than=leases.ttl) == []
    await runs.end_attempt(one, 1, status="succeeded")
    await leases.release(lease)
    assert await runs.revive(older_than=leases.ttl) == []  # the next contact is about to begin
    assert await status(db, sweep) == "running"
    clock.move(seconds=6)
    assert await runs.revive(older_than=leases.ttl) == [sweep]  # the terminal is gone


async def test_what_is_known_of_a_run_that_failed_or_is_held(db: Database, clock: Clock) -> None:
    sweep = await begun(db)
    a, b, c = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a", "b", "c")) or []
    await Events(db).append(a, "outcome", {"status": "failed", "error_kind": "model.unreachable"})
    await end(db, a, "failed")
    await Runs(db).request_hold(b)
    await end(db, c, "succeeded")
    marks = await Sweeps(db).marks(PLACE)
    assert (marks["a"].run_error, marks["a"].run_held) == ("model.unreachable", False)
    assert (marks["b"].run_error, marks["b"].run_held) == ("", True)
    assert await Sweeps(db).people(PLACE) == ["c"]
    clock.move(days=3)
    assert (await Sweeps(db).marks(PLACE))["a"].run_error == ""  # long ago


async def test_who_waits_is_kept_but_for_whom_a_run_sees_to(db: Database) -> None:
    sweeps, sweep = Sweeps(db), await begun(db)
    a, _ = await sweeps.looked(sweep, 1, LOOKED, of(sweep, "a", "b")) or []
    await end(db, a, "succeeded")
    for name in ("a", "b", "new"):
        await sweeps.keep(PLACE, name, "chat:x")
    marks = await sweeps.marks(PLACE)
    assert {name: (mark.state, bool(mark.run_id)) for name, mark in marks.items()} == {
        "a": ("chat:x", False),
        "b": ("s1", True),
        "new": ("chat:x", False),
    }


async def test_whose_runs_ended_before_it_waited_ends_as_well(db: Database) -> None:
    sweep = await begun(db)
    (one,) = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a")) or []
    await Runs(db).request_stop(one)  # by hand, in the line
    await Runs(db).park_attempt(sweep, 1)
    assert await status(db, sweep) == "succeeded"


async def test_stop_takes_all_its_runs_and_it_ends_with_the_one_at_work(db: Database) -> None:
    sweep = await begun(db)
    started = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a", "b", "c")) or []
    await Runs(db).park_attempt(sweep, 1)
    await Runs(db).begin_attempt(started[0], 1, serial="P1")
    assert await Runs(db).request_stop(sweep, by="owner") == "waiting"
    assert [await status(db, one) for one in started] == ["running", "stopped", "stopped"]
    assert await Runs(db).asked(started) == dict.fromkeys(started, (True, False))
    await Runs(db).end_attempt(started[0], 1, status="stopped")
    assert await status(db, sweep) == "stopped"


async def test_since_when_they_wait_is_kept_until_they_do_not(db: Database, clock: Clock) -> None:
    sweeps = Sweeps(db)
    first = await begun(db)
    await sweeps.looked(first, 1, LOOKED, of(first, "a"))
    since = {name: mark.waiting_since for name, mark in (await sweeps.marks(PLACE)).items()}
    a, b = since["a"], since["b"]
    assert a is not None
    assert b is not None
    assert a < b  # as they were told: who has waited longest is the first
    clock.move(minutes=5)
    second = await begun(db)
    await sweeps.looked(second, 1, replace(LOOKED, waiting=("c", "b"), seen=("a",), memory=None), [])
    marks = await sweeps.marks(PLACE)
    assert marks["b"].waiting_since == b
    assert marks["c"].waiting_since == clock.time
    assert (marks["a"].waiting_since, marks["a"].state) == (None, "")
    assert await sweeps.memory(PLACE) is None


async def test_a_tick_is_skipped_while_its_contacts_are_at_work_not_while_they_wait_for_people(
    db: Database, clock: Clock
) -> None:
    schedules = Schedules(db)
    row = await schedules.add(NewSchedule("every 5m", "Asia/Shanghai", "巡检", kind="sweep", serial="P1"))

    async def tick() -> Tick:
        clock.move(minutes=5)
        return (await schedules.tick(row.id, clock.time)).tick

    assert await tick() is Tick.STARTED
    (sweep,) = [run.id for run in await Runs(db).find(schedule_id=row.id)]
    await Runs(db).begin_attempt(sweep, 1, serial="P1")
    started = await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, "a")) or []
    await Runs(db).park_attempt(sweep, 1)
    assert await tick() is Tick.BUSY
    await Runs(db).begin_attempt(started[0], 1, serial="P1")
    assert await tick() is Tick.BUSY
    # A question without an attempt of its own: the run waits for a person.
    await Questions(db).ask("q1", run_id=started[0], kind="no_sure_answer", payload={})
    await Runs(db).park_attempt(started[0], 1)
    assert await status(db, started[0]) == "waiting"
    assert await tick() is Tick.STARTED


async def test_the_figures_tell_of_looks(db: Database, clock: Clock) -> None:
    for runs in (("a",), (), ()):
        sweep = await begun(db)
        await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, *runs))
    span = TimeRange(clock.time, clock.time + timedelta(seconds=1))
    assert await Statistics(db).swept(span) == SweptFigures(sweeps=3, contacts=9, idle=2)
    assert await Statistics(db).swept(replace(span, serials=["P2"])) == SweptFigures()


async def test_a_tick_that_found_nobody_or_is_told_by_its_runs_is_not_in_the_history(
    db: Database, clock: Clock
) -> None:
    for runs, planned, ended in (
        ((), True, "succeeded"),
        (("a",), True, "succeeded"),
        ((), False, "succeeded"),
        (("b",), True, "failed"),
        (("c",), False, "succeeded"),
    ):
        clock.move(minutes=5)
        when = {"schedule_id": 1, "planned_at": clock.time} if planned else {}
        sweep = await begun(db, **when)
        await Sweeps(db).looked(sweep, 1, LOOKED, of(sweep, *runs))
        await Runs(db).end_attempt(sweep, 1, status=ended)
    found = await History(db).find(HistoryFilter())
    assert [run.number for run in found] == [8, 7, 6, 5, 4, 3]  # 3 is the run of 2, 6 of 5, and 8 of 7
    assert await History(db).count(HistoryFilter()) == 6
    of_a_schedule = await History(db).schedules_of([run.row.id for run in found])
    assert [of_a_schedule.get(run.row.id) for run in found] == [None, None, 1, 1, None, 1]
