"""An attempt that another one has replaced: it says nothing any more, and is not mistaken for the new one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from agent_core.agent import PhoneAgent
from agent_core.errors import LeaseLost
from agent_core.ports import AnswerEvent, Event, MessageKey, ReplyState
from agent_core.session import Question, QuestionKind, Session
from agent_core.settings import new_session
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome, StoredRuns
from scheduler.runs.human import StoredHuman
from scheduler.runs.lease import HeldLease
from scheduler.runs.service import RunService
from scheduler.runs.stop import Reason
from scheduler.runs.worker import Worker, attempt_id
from storage.answers import Answers
from storage.engine import Database
from storage.events import Events
from storage.leases import Leases
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import NewRun, RunRow, Runs
from tests.agent_core.paper import Clock as PaperClock
from tests.agent_core.paper import Flaws, PaperPhone
from tests.agent_core.reply.paper_desk import Store
from tests.agent_core.stories import SETTINGS, PaperModel
from tests.support.clock import Clock
from tests.support.queue import LocalQueue

PHONE = "phone-1"
SOON = 10.0  # seconds after which a test that waits has failed


class Work:
    """Attempts that go on until they are ended, or released; how each ended."""

    def __init__(self) -> None:
        self.ended: list[tuple[int, str]] = []
        self.leases: dict[int, HeldLease] = {}
        self.release = asyncio.Event()

    async def __call__(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        self.leases[attempt] = lease
        try:
            await self.release.wait()
        finally:
            self.ended.append((attempt, str(lease.stop.reason or "done")))
        return AttemptOutcome("succeeded")

    async def has(self, attempt: int) -> None:
        async with asyncio.timeout(SOON):
            while attempt not in self.leases:
                await asyncio.sleep(0.001)


async def row(db: Database, run_id: str) -> RunRow:
    found = await Runs(db).get(run_id)
    assert found is not None
    return found


async def replaced(db: Database, clock: Clock, run_id: str) -> None:
    """Another process takes the attempt at work for dead."""
    clock.move(seconds=40)
    assert await Runs(db).revive(older_than=timedelta(seconds=30)) == [run_id]


async def test_a_second_attempt_of_a_run_waits_for_the_end_of_the_first(db: Database, clock: Clock) -> None:
    work = Work()
    worker = Worker(db, work, owner="host")
    run_id = await RunService(db).submit("task", serial=PHONE)
    first = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 1)))
    await work.has(1)
    await worker.run_attempt(attempt_id(run_id, 1))  # told twice: the one at work goes on
    assert work.ended == []
    await replaced(db, clock, run_id)
    await worker.run_attempt(attempt_id(run_id, 2))
    assert (await row(db, run_id)).attempt == 3, "not begun beside it, but put back"
    await asyncio.wait_for(first, SOON)
    assert work.ended == [(1, "lease_lost")]
    third = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 3)))
    await work.has(3)
    assert worker.runs_at_work == [run_id]
    assert worker.stop_now(run_id)
    await asyncio.wait_for(third, SOON)
    assert ((await row(db, run_id)).status, worker.runs_at_work) == ("stopped", [])


async def test_the_attempt_that_was_replaced_is_ended_before_the_next_is_handed_out(db: Database, clock: Clock) -> None:
    work, queue = Work(), LocalQueue()
    worker = Worker(db, work, owner="host")
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker)
    await queue.start(worker.run_attempt)
    run_id = await RunService(db).submit("task", serial=PHONE)
    assert await dispatcher.once() == [attempt_id(run_id, 1)]
    await work.has(1)
    await replaced(db, clock, run_id)
    assert await dispatcher.once() == []
    async with asyncio.timeout(SOON):
        while worker.runs_at_work:
            await asyncio.sleep(0.001)
    assert work.ended == [(1, "lease_lost")], "it had not looked at its lease yet"
    assert await dispatcher.once() == [attempt_id(run_id, 2)]
    await work.has(2)
    work.release.set()
    await worker.drain(SOON)
    assert (await row(db, run_id)).status == "succeeded"
    await queue.stop()


async def test_no_attempt_begins_once_the_worker_has_drained(db: Database) -> None:
    looking, gate, work = asyncio.Event(), asyncio.Event(), Work()

    async def may_begin(run: RunRow) -> bool:
        looking.set()
        await gate.wait()
        return True

    worker = Worker(db, work, owner="host", may_begin=may_begin)
    run_id = await RunService(db).submit("task", serial=PHONE)
    attempt = asyncio.create_task(worker.run_attempt(attempt_id(run_id, 1)))
    await asyncio.wait_for(looking.wait(), SOON)
    drain = asyncio.create_task(worker.drain(0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not drain.done(), "an attempt that looks whether it may begin is waited for"
    gate.set()
    await asyncio.wait_for(drain, SOON)
    await asyncio.wait_for(attempt, SOON)
    assert work.leases == {}
    assert ((await row(db, run_id)).status, (await row(db, run_id)).attempt) == ("queued", 2)


async def test_what_a_replaced_attempt_says_is_not_stored(db: Database, clock: Clock) -> None:
    run_id = await Runs(db).create(NewRun("task", PHONE, begun=True))
    assert run_id is not None
    session, store = Session(run_id=run_id, task="task"), StoredRuns(db, attempt=1)
    await store.save(session)
    await replaced(db, clock, run_id)
    question = Question(id="q", kind=QuestionKind.INTERACT, free_text=True)
    told = AnswerEvent(ledger_id=1, app="qq", contact="11", question="几天能发货", state=ReplyState.PLANNED)
    with pytest.raises(LeaseLost):
        await StoredHuman(db, hold_seconds=0, attempt=1).ask(session, question)
    for event in (Event("outcome", {"status": "succeeded"}), Event("answer", told.data())):
        with pytest.raises(LeaseLost):
            await store.event(run_id, event)
    session.message = "half"  # what has not changed is not stored again
    with pytest.raises(LeaseLost):
        await store.save(session)
    with pytest.raises(LeaseLost):
        await StoredLedger(db, run_id=run_id, attempt=1).open(
            MessageKey(PHONE, "qq", "11", "f"), run_id=run_id, question="q"
        )
    assert await Questions(db).find() == []
    sent = AnswerEvent(ledger_id=1, app="qq", contact="11", question="几天能发货", state=ReplyState.SENT)
    await store.event(run_id, Event("answer", sent.data()))  # it has reached the customer, whoever sent it
    assert [answer.state for answer in await Answers(db).find()] == ["sent"]
    assert [event.kind for event in await Events(db).after(0)] == ["status", "status", "answer"]


class HangsAtOnce(PaperPhone):
    """The first thing that an attempt does takes for ever."""

    def __init__(self) -> None:
        super().__init__([], (), Flaws(), PaperClock())
        self.reached = asyncio.Event()

    async def recover(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("lost", [True, False])
async def test_an_attempt_that_is_ended_because_its_phone_is_lost_saves_nothing(db: Database, *, lost: bool) -> None:
    """Whatever its store would take: the session is the next attempt's by now."""
    leases, phone, store = Leases(db), HangsAtOnce(), Store()
    held = await leases.acquire(PHONE, "host", "r1")
    assert held is not None
    lease = HeldLease(held, leases)
    agent = PhoneAgent(model=PaperModel(phone, ()), device=phone, store=store, lease=lease, settings=SETTINGS)
    attempt = asyncio.create_task(agent.go_on(new_session("task", PHONE, SETTINGS, run_id="r1")))
    lease.stop.attach(attempt)
    await asyncio.wait_for(phone.reached.wait(), SOON)
    if lost:
        await leases.take_back("host")
    lease.stop.request(Reason.LEASE_LOST if lost else Reason.STOP)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(attempt, SOON)
    assert (store.saved == "") is lost
