"""Hold, Resume and Stop, at every moment of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from agent_core.session import Question, QuestionKind, Session
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.human import LEFT_ALONE, may_go_home
from scheduler.runs.lease import HeldLease
from scheduler.runs.stop import Reason, StopSignal
from storage.engine import Database
from storage.leases import Leases
from storage.questions import Questions
from storage.runs import NewRun, Runs
from tests.scheduler.runs.one_process import PHONE, SOON, Desk, desk


class Steps:
    """Work in steps: the model is asked, then the phone is touched, until ``enough``. Tells what it did."""

    def __init__(self, *, thinking: float = 0.0, enough: int = 1_000_000) -> None:
        self.did: list[str] = []
        self.thinking = thinking
        self.enough = enough
        self.begun = asyncio.Event()
        self.during_act: Callable[[HeldLease], Awaitable[None]] | None = None

    async def __call__(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        self.did.append(f"attempt {attempt}")
        try:
            while True:
                with lease.stop.may_park():
                    self.begun.set()
                    await asyncio.sleep(self.thinking)
                await lease.check()
                self.did.append("act")
                if self.during_act is not None:
                    await self.during_act(lease)
                await asyncio.sleep(0)
                self.did.append("acted")
                if self.did.count("acted") >= self.enough:
                    return AttemptOutcome("succeeded")
        finally:
            await lease.check()  # tidying up needs the phone
            self.did.append("tidied")


async def parked(one: Desk, run_id: str) -> None:
    run = await one.until(run_id, "waiting")
    await one.worker_idle()
    assert run.hold
    assert await Leases(one.db).held() == []


async def test_hold_while_the_model_thinks_takes_effect_at_once(db: Database) -> None:
    work = Steps(thinking=30)
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(work.begun.wait(), SOON)
        asked = time.monotonic()
        assert await one.service.hold(run_id)
        await parked(one, run_id)
        assert time.monotonic() - asked < 1
        assert work.did == ["attempt 1", "tidied"]
        work.thinking, work.enough = 0, 1
        other = await one.service.submit("other task", serial=PHONE)
        await one.until(other, "succeeded")  # the phone is free
        assert (await one.run(run_id)).status == "waiting"
        assert await one.service.resume(run_id)
        assert (await one.until(run_id, "succeeded")).attempt == 2


async def test_hold_never_cuts_an_act(db: Database) -> None:
    """Nor what is shielded: from Send until its outcome was seen."""
    work = Steps()
    acting, go_on = asyncio.Event(), asyncio.Event()

    async def send(lease: HeldLease) -> None:
        async with lease.stop.shielded():
            acting.set()
            await lease.check()
            await go_on.wait()
            await lease.check()
            work.did.append("seen")

    work.during_act = send
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(acting.wait(), SOON)
        assert await one.service.hold(run_id)
        await asyncio.sleep(0.15)  # longer than the worker's look at the row takes
        assert (await one.run(run_id)).status == "running"
        go_on.set()
        await parked(one, run_id)
    assert work.did == ["attempt 1", "act", "seen", "acted", "tidied"]


async def test_hold_just_before_send_lets_nothing_go_out(db: Database) -> None:
    """It comes between the last look and the lease's check before the act."""
    did: list[str] = []
    looked, go_on = asyncio.Event(), asyncio.Event()

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if attempt == 1:
            looked.set()
            await go_on.wait()
        await lease.check()
        async with lease.stop.shielded():
            await lease.check()
            did.append("sent")
        return AttemptOutcome("succeeded")

    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(looked.wait(), SOON)
        await one.service.hold(run_id)
        go_on.set()
        await parked(one, run_id)
        assert did == []
        await one.service.resume(run_id)
        await one.until(run_id, "succeeded")
    assert did == ["sent"]


@pytest.mark.parametrize("first", ["stop", "hold"])
async def test_stop_and_hold_at_once_is_stop(db: Database, first: str) -> None:
    work = Steps(thinking=30)
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(work.begun.wait(), SOON)
        both = {"stop": one.service.request_stop(run_id), "hold": one.service.hold(run_id)}
        await asyncio.gather(both.pop(first), *both.values())
        run = await one.until(run_id, "stopped")
        await one.worker_idle()
    assert not run.hold
    assert await Leases(db).held() == []
    assert work.did == ["attempt 1", "tidied"]


async def test_hold_twice_and_resume_twice(db: Database) -> None:
    work = Steps(thinking=30)
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(work.begun.wait(), SOON)
        assert sorted(await asyncio.gather(one.service.hold(run_id), one.service.hold(run_id))) == [False, True]
        await parked(one, run_id)
        work.thinking, work.enough = 0, 1
        assert sorted(await asyncio.gather(one.service.resume(run_id), one.service.resume(run_id))) == [False, True]
        assert (await one.until(run_id, "succeeded")).attempt == 2
        assert not await one.service.resume(run_id)
        assert not await one.service.hold(run_id)


async def test_resume_before_the_run_has_parked(db: Database) -> None:
    work = Steps(enough=2)
    acting, go_on = asyncio.Event(), asyncio.Event()

    async def act(lease: HeldLease) -> None:
        acting.set()
        await go_on.wait()

    work.during_act = act
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(acting.wait(), SOON)
        assert await one.service.hold(run_id)
        assert await one.service.resume(run_id)
        go_on.set()
        run = await one.until(run_id, "succeeded")
    assert not run.hold


async def test_a_held_run_is_stopped(db: Database) -> None:
    work = Steps(thinking=30)
    async with desk(db, work) as one:
        run_id = await one.service.submit("task", serial=PHONE)
        await asyncio.wait_for(work.begun.wait(), SOON)
        await one.service.hold(run_id)
        await parked(one, run_id)
        assert await one.service.request_stop(run_id) == "stopped"
        run = await one.run(run_id)
        assert not run.hold
        assert not await one.service.resume(run_id)
        assert await Runs(db).due() == []


async def test_a_run_in_the_line_leaves_it(db: Database) -> None:
    work = Steps(thinking=30)
    async with desk(db, work) as one:
        first = await one.service.submit("first", serial=PHONE)
        await asyncio.wait_for(work.begun.wait(), SOON)
        queued = await one.service.submit("second", serial=PHONE)
        assert await one.service.hold(queued)
        work.thinking, work.enough = 0, 1
        await one.service.request_stop(first)
        third = await one.service.submit("third", serial=PHONE)
        await one.until(third, "succeeded")
        assert (await one.run(queued)).hold
        assert await one.service.resume(queued)
        await one.until(queued, "succeeded")


async def test_a_run_that_waits_for_an_answer_goes_on_at_resume(db: Database) -> None:
    runs, questions = Runs(db), Questions(db)
    run_id = await runs.create(NewRun("task", PHONE, begun=True))
    assert run_id is not None
    await questions.ask("q", run_id=run_id, kind="stuck", payload={})
    await runs.park_attempt(run_id, 1)
    assert await runs.request_hold(run_id)
    assert await runs.resume(run_id)
    assert await runs.due() == [], "nothing to do before the answer"
    assert await runs.request_hold(run_id)
    assert (await questions.answer("q", {"choice": "go_on"}, by="1")).won
    assert await runs.due() == []
    assert await runs.resume(run_id)
    assert [run.id for run in await runs.due()] == [run_id]


async def test_hold_survives_the_end_of_the_process_and_its_death(db: Database, clock: object) -> None:
    """Asked for in the moment in which the process ends, or dies, it is not forgotten."""
    runs = Runs(db)
    for ends in ("interrupted", "died"):
        run_id = await runs.create(NewRun("task", PHONE, begun=True))
        assert run_id is not None
        await runs.request_hold(run_id)
        if ends == "interrupted":
            assert await runs.interrupt_attempt(run_id, 1)
        else:
            clock.move(minutes=5)  # type: ignore[attr-defined]  # the Clock of the fixture
            assert await runs.revive(older_than=timedelta(seconds=30)) == [run_id]
        run = await runs.get(run_id)
        assert run is not None
        assert (run.status, run.hold, run.attempt_due_at) == ("waiting", True, None)
        assert await runs.due() == []
        assert await runs.resume(run_id)
        assert [due.id for due in await runs.due()] == [run_id]
        await runs.request_stop(run_id)


async def test_where_hold_takes_effect() -> None:
    async def work(stop: StopSignal, reached: asyncio.Event) -> None:
        reached.set()
        async with stop.shielded():
            stop.park_here()
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        stop.park_here()
        await asyncio.sleep(30)

    stop, reached = StopSignal(), asyncio.Event()
    stop.park_here()  # nothing was asked for
    assert stop.reason is None
    task = asyncio.create_task(work(stop, reached))
    stop.attach(task)
    await reached.wait()
    stop.request_hold()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, SOON)
    assert stop.reason is Reason.HOLD


@pytest.mark.parametrize("kind", [None, *QuestionKind])
def test_where_the_phone_is_brought_home(kind: QuestionKind | None) -> None:
    session = Session(run_id="r", task="t")
    session.question = Question(id="q", kind=kind) if kind else None
    assert may_go_home(session) is (kind not in LEFT_ALONE)
    with_a_person = {QuestionKind.TAKE_OVER, QuestionKind.PERSON_ON_PHONE}
    assert {*with_a_person, QuestionKind.FOREIGN_DRAFT, QuestionKind.NO_SEND} == LEFT_ALONE
