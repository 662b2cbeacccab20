"""Questions over time: deadlines, reminders, a second person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from agent_core.actions.types import Tap
from agent_core.devices.base import Window
from agent_core.loop import questions
from agent_core.policies import Situation
from agent_core.ports import Record
from agent_core.session import NOBODY, AskedQuestion, GateState, Planned, Question, QuestionKind, RowMark, Session
from scheduler.jobs.deadlines import AT_DEADLINE, QuestionTimes, QuestionWatch
from scheduler.runs.human import StoredHuman, given_answer, store_question
from storage.engine import Database
from storage.events import EventRow, Events
from storage.questions import OPEN, QuestionRow, Questions
from storage.runs import NewRun, Runs
from tests.support.clock import Clock

NOWHERE = Situation(None, Window(None), (1080, 2400), GateState())
TIMES = QuestionTimes(deadline=240, remind=30, escalate=60)


@pytest.fixture
async def other_db(url: str, clock: Clock) -> AsyncIterator[Database]:
    """Another process on the same file."""
    database = Database(url, clock=clock)
    yield database
    await database.close()


def planned() -> Planned:
    return Planned(
        ledger_id=1, fingerprint="f", cluster=["几天能发货"], query="几天能发货", text="两天", parts=["两", "天"]
    )


def session() -> Session:
    return Session(run_id="r", task="QQ回复联系人11", gate=GateState(enabled=True, contact="11"))


def spendthrift(session: Session) -> Question:
    session.max_cost, session.spent.cost = 1.0, 1.5
    question = questions.budget(session)
    assert question is not None
    return question


ASKED: dict[QuestionKind, Callable[[Session], Question]] = {
    QuestionKind.INTERACT: lambda s: questions.interact(s, "红还是蓝", ["红", "蓝"]),
    QuestionKind.TAKE_OVER: lambda s: questions.take_over(s, "请登录"),
    QuestionKind.SENSITIVE_TAP: lambda s: questions.sensitive_tap(s, Tap(element=(500, 500), message="付款"), NOWHERE),
    QuestionKind.NO_SURE_ANSWER: lambda s: questions.no_sure_answer(s, planned(), [Record(id="k", text="两天")]),
    QuestionKind.RIGHT_CHAT: lambda s: questions.right_chat(s, "11", "?"),
    QuestionKind.DELIVERY_UNKNOWN: lambda s: questions.delivery_unknown(s, planned()),
    QuestionKind.ANSWERED_BEFORE: lambda s: questions.answered_before(s, "几天", "两天", "f"),
    QuestionKind.FOREIGN_DRAFT: lambda s: questions.foreign_draft(s, "亲"),
    QuestionKind.CHAT_CHANGED: questions.chat_changed,
    QuestionKind.STUCK: lambda s: questions.stuck(s, "?"),
    QuestionKind.UNREADABLE: lambda s: questions.unreadable(s, AskedQuestion(ledger_id=1, fingerprint="f", words="图")),
    QuestionKind.PERSON_ON_PHONE: questions.person_on_phone,
    QuestionKind.FIRST_DELIVERY: lambda s: questions.first_delivery(s, planned(), "QQ", "9.1"),
    QuestionKind.REST_UNSENT: lambda s: questions.rest_unsent(s, planned()),
    QuestionKind.STILL_SEND: lambda s: questions.still_send(s, planned()),
    QuestionKind.NO_SEND: lambda s: questions.no_send(s, planned()),
    QuestionKind.WHICH_ROW: lambda s: questions.which_row(s, [RowMark(preview="在吗"), RowMark(time="昨天")]),
    QuestionKind.BUDGET: spendthrift,
}
NEVER_BY_A_CLOCK = {
    QuestionKind.DELIVERY_UNKNOWN,
    QuestionKind.ANSWERED_BEFORE,
    QuestionKind.REST_UNSENT,
    QuestionKind.FIRST_DELIVERY,
}


async def waiting(db: Database, kind: QuestionKind = QuestionKind.NO_SURE_ANSWER, times: QuestionTimes = TIMES) -> str:
    """A run that asked and waits; the question's id."""
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "phone-1", begun=True))
    assert run_id is not None
    asked = session().model_copy(update={"run_id": run_id})
    question = ASKED[kind](asked)
    await store_question(Questions(db), Events(db), asked, question, None, times=times)
    await Runs(db).park_attempt(run_id, 1)
    return question.id


async def row(db: Database, question_id: str) -> QuestionRow:
    found = await Questions(db).get(question_id)
    assert found is not None
    return found


async def told(db: Database, *kinds: str) -> list[EventRow]:
    return [event for event in await Events(db).after(0) if event.kind in kinds]


@pytest.mark.parametrize("kind", QuestionKind)
async def test_what_counts_at_the_deadline_is_an_answer_that_the_kind_accepts(
    db: Database, clock: Clock, kind: QuestionKind
) -> None:
    question_id = await waiting(db, kind)
    clock.move(minutes=100_000)
    await QuestionWatch(db).once()
    now = await row(db, question_id)
    assert now.deadline == (None if kind in NEVER_BY_A_CLOCK else now.created_at + timedelta(hours=4))
    answer = given_answer(now)
    due = [run.id for run in await Runs(db).due()]
    if kind in NEVER_BY_A_CLOCK:
        assert (now.state, answer, due) == (OPEN, None, [])
        return
    assert answer is not None
    assert Question.model_validate(dict(now.payload)).accepts(answer)
    assert answer.by == NOBODY
    assert due == [now.run_id]
    assert [event.data["state"] for event in await told(db, "closed")] == ["expired"]
    # Consent, and words for a customer, never come from a clock.
    assert answer.choice not in {"yes", "allow", "send", "again", "go_on", "done", "clear", "retry", "arrived"}
    assert not answer.text or kind is QuestionKind.INTERACT


def test_every_kind_has_its_rule_and_its_reason() -> None:
    assert set(AT_DEADLINE) == set(QuestionKind)
    assert {kind for kind, rule in AT_DEADLINE.items() if rule.then == "wait"} == NEVER_BY_A_CLOCK
    assert all(rule.why for rule in AT_DEADLINE.values())
    # Skipping these ends the whole run as failed: nobody is told that only one question is skipped.
    ends_the_run = {QuestionKind.CHAT_CHANGED, QuestionKind.FOREIGN_DRAFT}
    assert {kind for kind, rule in AT_DEADLINE.items() if rule.then == "leave"} == ends_the_run


async def test_without_times_a_question_waits_for_ever(db: Database, clock: Clock) -> None:
    question_id = await waiting(db, times=QuestionTimes())
    clock.move(minutes=100_000)
    await QuestionWatch(db).once()
    assert (await row(db, question_id)).state == OPEN
    assert await told(db, "closed", "reminder", "escalated") == []


async def test_a_held_phone_goes_on_with_the_answer_of_the_deadline(db: Database, clock: Clock) -> None:
    run_id = await Runs(db).create(NewRun("task", "phone-1", begun=True))
    asked = session().model_copy(update={"run_id": run_id})
    human = StoredHuman(db, hold_seconds=60, times=TIMES)
    asking = asyncio.create_task(human.ask(asked, questions.stuck(asked, "?")))
    async with asyncio.timeout(10):
        while not await Questions(db).find(state=OPEN):
            await asyncio.sleep(0)
        clock.move(minutes=240)
        await QuestionWatch(db).once()
        answer = await asking
    assert answer is not None
    assert answer.choice == "stop"


@pytest.mark.parametrize("seconds", [-1, 0])
async def test_an_answer_in_the_second_of_the_deadline(
    db: Database, other_db: Database, clock: Clock, seconds: int
) -> None:
    """Before it the answer counts, though the deadline comes in the same moment; at it, it is late."""
    question_id = await waiting(db)
    clock.move(minutes=240, seconds=seconds)
    answer = await Questions(db).answer(question_id, {"choice": "record:0"}, by="Desk A")
    clock.move(seconds=1)
    await asyncio.gather(QuestionWatch(db).once(), QuestionWatch(other_db).once())
    now = await row(db, question_id)
    assert answer.won is (seconds < 0)
    assert (now.state, now.answered_by) == (("answered", "Desk A") if answer.won else ("expired", ""))
    run = await Runs(db).get(now.run_id)
    assert run is not None
    assert run.attempt == 2, "one more attempt, whoever won"
    assert [event.data["state"] for event in await told(db, "closed")] == [now.state]


async def test_answer_and_deadline_at_once_end_it_once(db: Database, other_db: Database, clock: Clock) -> None:
    question_id = await waiting(db)
    clock.move(minutes=240, seconds=-1)
    answering = asyncio.create_task(Questions(db).answer(question_id, {"choice": "skip"}, by="Desk A"))
    await asyncio.sleep(0)  # its time is taken
    clock.move(seconds=1)
    _, result = await asyncio.gather(QuestionWatch(other_db).once(), answering)
    now = await row(db, question_id)
    assert (now.state == "answered") is result.won
    assert len(await told(db, "closed")) == 1


@pytest.mark.slow
async def test_three_reminders_each_after_twice_the_time(db: Database, clock: Clock) -> None:
    question_id = await waiting(db, times=QuestionTimes(deadline=0, remind=30))
    numbers: dict[int, int] = {}
    for minute in range(1, 400):
        clock.move(minutes=1)
        await QuestionWatch(db).once()
        numbers.setdefault(len(await told(db, "reminder")), minute)
    assert numbers == {0: 1, 1: 30, 2: 60, 3: 120}
    assert [event.data["number"] for event in await told(db, "reminder")] == [1, 2, 3]
    assert (await row(db, question_id)).state == OPEN


async def test_the_first_reminder_is_at_half_of_a_short_deadline(db: Database, clock: Clock) -> None:
    await waiting(db, times=QuestionTimes(deadline=20, remind=30))
    clock.move(minutes=9)
    await QuestionWatch(db).once()
    assert await told(db, "reminder") == []
    clock.move(minutes=1)
    await QuestionWatch(db).once()
    assert len(await told(db, "reminder")) == 1
    clock.move(minutes=10)  # the second would be at the deadline
    await QuestionWatch(db).once()
    assert [event.kind for event in await told(db, "reminder", "closed")] == ["reminder", "closed"]


async def test_reminders_go_on_after_a_restart_and_what_was_missed_is_said_once(
    db: Database, other_db: Database, clock: Clock
) -> None:
    await waiting(db, times=QuestionTimes(deadline=0, remind=30))
    clock.move(minutes=30)
    await QuestionWatch(db).once()
    clock.move(minutes=1)
    await QuestionWatch(other_db).once()
    assert len(await told(db, "reminder")) == 1
    clock.move(minutes=200)  # the times of the second and the third have passed while nothing ran
    await asyncio.gather(QuestionWatch(db).once(), QuestionWatch(other_db).once())
    await QuestionWatch(db).once()
    assert [event.data["number"] for event in await told(db, "reminder")] == [1, 3]


async def test_nobody_is_reminded_of_what_is_answered(db: Database, clock: Clock) -> None:
    question_id = await waiting(db)
    await Questions(db).answer(question_id, {"choice": "skip"}, by="Desk A")
    clock.move(minutes=239)
    await QuestionWatch(db).once()
    assert await told(db, "reminder", "escalated") == []
    assert await Questions(db).next_time() is None


async def test_a_second_person_sees_it_once(db: Database, other_db: Database, clock: Clock) -> None:
    question_id = await waiting(db, QuestionKind.DELIVERY_UNKNOWN)
    for minutes in (59, 1, 1, 500):
        clock.move(minutes=minutes)
        await asyncio.gather(QuestionWatch(db).once(), QuestionWatch(other_db).once())
    assert [event.data for event in await told(db, "escalated")] == [{"question": question_id}]


async def test_asked_again_by_a_later_attempt_its_times_stay(db: Database, clock: Clock) -> None:
    question_id = await waiting(db)
    before = await row(db, question_id)
    clock.move(minutes=50)
    asked = session().model_copy(update={"run_id": before.run_id})
    question = Question.model_validate(dict(before.payload))
    await store_question(Questions(db), Events(db), asked, question, None, times=TIMES)
    assert await row(db, question_id) == before


async def test_the_watch_keeps_at_it(db: Database, clock: Clock) -> None:
    watch = QuestionWatch(db, look_seconds=0.01)
    await watch.start()
    try:
        question_id = await waiting(db)
        clock.move(minutes=240)
        async with asyncio.timeout(10):
            while (await row(db, question_id)).state == OPEN:
                await asyncio.sleep(0.005)
    finally:
        await watch.stop()
