"""An attempt that lost its run finds its phone lost, and writes nothing over the next one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agent_core.errors import LeaseLost
from agent_core.ports import AnswerEvent, ReplyState
from storage.answers import AnswerFilter, Answers
from storage.engine import Database
from storage.events import Events
from storage.leases import LeaseRow, Leases, hold_turn
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from storage.runs.lost import MOST_TRIES
from tests.support.clock import Clock

PHONE = "phone-1"
TTL = timedelta(seconds=30)


async def at_work(db: Database, *, parent_id: str = "") -> tuple[str, LeaseRow]:
    """A run whose first attempt has a phone."""
    run_id = await Runs(db).create(NewRun("task", PHONE, parent_id=parent_id))
    assert run_id is not None
    lease = await Leases(db).acquire(PHONE, "host", run_id)
    assert lease is not None
    assert await Runs(db).begin_attempt(run_id, 1, serial=PHONE)
    return run_id, lease


async def row(db: Database, run_id: str) -> RunRow:
    found = await Runs(db).get(run_id)
    assert found is not None
    return found


async def statuses(db: Database, run_id: str) -> list[str]:
    return [event.data["status"] for event in await Events(db).after(0, run_id=run_id) if event.kind == "status"]


async def test_an_attempt_that_was_replaced_has_lost_its_phone(db: Database, clock: Clock) -> None:
    leases = Leases(db)
    run_id, lease = await at_work(db)
    clock.move(seconds=40)
    woken = db.signal("events").waiter()
    assert await Runs(db).revive(older_than=TTL) == [run_id]
    assert await woken.wait(0)
    assert not await leases.renew(lease), "though nobody has taken the phone yet"
    assert not await leases.check(lease)
    now = await leases.get(PHONE)
    assert now is not None
    assert (now.owner, now.fencing) == ("", lease.fencing + 1)
    assert await leases.acquire(PHONE, "host", run_id) is not None
    assert await statuses(db, run_id) == ["queued", "running", "waiting"]
    assert await Runs(db).revive(older_than=TTL) == []


async def test_an_attempt_writes_only_while_it_is_its_turn(db: Database, clock: Clock) -> None:
    runs, questions, events, answers = Runs(db), Questions(db), Events(db), Answers(db)
    told = AnswerEvent(ledger_id=1, app="qq", contact="11", question="几天能发货", state=ReplyState.PLANNED)
    run_id, _ = await at_work(db)
    await runs.save_session(run_id, '"first"', attempt=1)
    await events.append(run_id, "note", {}, attempt=1)
    clock.move(seconds=40)
    await runs.revive(older_than=TTL)
    for ends in ("in line", "at work", "over"):
        if ends == "at work":
            assert await runs.begin_attempt(run_id, 2, serial=PHONE)
            await runs.save_session(run_id, '"second"', attempt=2)
        elif ends == "over":
            assert await runs.end_attempt(run_id, 2, status="succeeded")
        before = len(await events.after(0))
        with pytest.raises(LeaseLost):
            await runs.save_session(run_id, '"first, later"', attempt=1)
        with pytest.raises(LeaseLost):
            await questions.ask("q", run_id=run_id, kind="stuck", payload={}, attempt=1)
        with pytest.raises(LeaseLost):
            await events.append(run_id, "outcome", {"status": "succeeded"}, attempt=1)
        with pytest.raises(LeaseLost):
            await answers.tell(run_id, told, attempt=1)
        assert len(await events.after(0)) == before
    assert await questions.find() == []
    assert await answers.find(AnswerFilter()) == []
    assert (await row(db, run_id)).session == '"second"'


@pytest.mark.parametrize("how", ["died", "interrupted"])
async def test_an_attempt_that_ends_early_after_stop_ends_its_run(db: Database, clock: Clock, how: str) -> None:
    """Nobody would look at the stop again: no host may ever reach the phone."""
    runs = Runs(db)
    sweep_id = await runs.create(NewRun("everybody", PHONE, begun=True))
    assert sweep_id is not None
    run_id, _ = await at_work(db, parent_id=sweep_id)
    await runs.park_attempt(sweep_id, 1)
    await Questions(db).ask("q", run_id=run_id, kind="stuck", payload={})
    assert await runs.request_stop(run_id, by="Operator A") == "running"
    if how == "died":
        clock.move(seconds=40)
        assert await runs.revive(older_than=TTL) == [run_id]
    else:
        assert await runs.interrupt_attempt(run_id, 1)
    run = await row(db, run_id)
    assert (run.status, run.ended_at, run.attempt_due_at, run.stopped_by) == ("stopped", clock(), None, "Operator A")
    assert await Questions(db).find(state="open") == []
    assert await statuses(db, run_id) == ["queued", "running", "stopped"]
    assert (await row(db, sweep_id)).final, "nothing else of the sweep is under way"


async def test_a_turn_is_not_lost_in_the_middle_of_a_write(db: Database, other_db: Database) -> None:
    run_id, _ = await at_work(db)
    async with db.write() as connection:
        await hold_turn(connection, run_id, 1)
        taking = asyncio.create_task(Runs(other_db).interrupt_attempt(run_id, 1))
        done, _ = await asyncio.wait([taking], timeout=0.2)
        assert not done
    assert await taking


@pytest.mark.parametrize("steps", [False, True])
async def test_a_run_that_only_ever_dies_is_given_up(db: Database, clock: Clock, *, steps: bool) -> None:
    runs, dies = Runs(db), 12 if steps else MOST_TRIES
    run_id = await runs.create(NewRun("task", PHONE))
    assert run_id is not None
    for number in range(1, dies + 1):
        lease = await Leases(db).acquire(PHONE, "host", run_id)
        assert lease is not None
        assert await runs.begin_attempt(run_id, number, serial=PHONE), number
        if steps and number % 4 == 0:
            await Events(db).append(run_id, "step", {})
        if number == 2:  # one that says what it ended by
            await runs.interrupt_attempt(run_id, number, error="FileNotFoundError: det.onnx")
        else:
            clock.move(seconds=40)
            assert await runs.revive(older_than=TTL) == [run_id]
        await Leases(db).take_back("host")
    run = await row(db, run_id)
    assert run.status == ("waiting" if steps else "failed")
    assert run.message == ("" if steps else f"Begun {MOST_TRIES} times without a step. FileNotFoundError: det.onnx")
    assert (run.attempt_due_at is not None) is steps


async def test_what_is_not_the_runs_doing_is_no_try(db: Database) -> None:
    run_id, _ = await at_work(db)
    for number in range(1, 2 * MOST_TRIES):
        await Runs(db).interrupt_attempt(run_id, number)  # the process was ended, the phone went away
        assert await Runs(db).begin_attempt(run_id, number + 1, serial=PHONE)


async def test_a_clients_run_that_died_at_its_question_waits_for_the_answer(db: Database, clock: Clock) -> None:
    runs, questions = Runs(db), Questions(db)
    run_id = await runs.create(NewRun("task", PHONE, options={"channel": "mcp"}, begun=True))
    assert run_id is not None
    await runs.save_session(run_id, "{}")
    await questions.ask("q", run_id=run_id, kind="interact", payload={})
    clock.move(seconds=40)
    assert await runs.revive(older_than=TTL) == [run_id]
    died = await row(db, run_id)
    assert (died.status, died.attempt, died.attempt_due_at) == ("waiting", 2, None)
    assert await questions.answer("q", {"choice": "", "text": "yes"}, by="Li")
    assert (await row(db, run_id)).attempt_due_at is not None
