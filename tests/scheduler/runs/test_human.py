"""The agent's ports over a real database."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from agent_core.apps.learnt import LearntApp
from agent_core.loop.defaults import MemoryLedger
from agent_core.ports import (
    AnswerEvent,
    Event,
    Ledger,
    LedgerConflict,
    MessageKey,
    Provenance,
    Record,
    ReplyState,
)
from agent_core.session import Answer, Choice, Question, QuestionKind, ReplyRecord, RowMark, Session
from agent_core.sweep import IN_CHAT
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from scheduler.runs.stop import StopSignal
from scheduler.sweeps.plan import owed
from storage.answers import AnswerFilter, Answers
from storage.engine import Database
from storage.events import Events
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.sweeps import Sweeps, SweptApp
from tests.support.clock import Clock

KEY = MessageKey("a", "qq", "11", "f1")
QUESTION = Question(id="q1", kind=QuestionKind.INTERACT, choices=[Choice(value="x")], free_text=True)


async def session_in(db: Database) -> Session:
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "a", begun=True))
    assert run_id is not None
    return Session(run_id=run_id, task="QQ回复联系人11")


@pytest.fixture(params=["stored", "memory"])
def ledger(request: pytest.FixtureRequest, db: Database) -> Ledger:
    """One suite over both: what an agent sees does not depend on where its ledger stands."""
    return StoredLedger(db) if request.param == "stored" else MemoryLedger()


async def test_what_was_learnt_of_an_app_is_of_the_phone_and_the_version(ledger: Ledger) -> None:
    learnt = LearntApp("wechat", "8.0.58", "enter")
    await ledger.learn("a", learnt)
    assert await ledger.learnt("a", "wechat", "8.0.58") == learnt
    assert await ledger.learnt("b", "wechat", "8.0.58") is None
    assert await ledger.learnt("a", "wechat", "8.0.59") is None
    await ledger.learn("a", replace(learnt, sends_by="button"))
    assert await ledger.learnt("a", "wechat", "8.0.58") == replace(learnt, sends_by="button")


async def test_which_row_was_chosen_is_of_the_phone_the_app_and_the_contact(ledger: Ledger) -> None:
    row = RowMark(avatar="00ff", preview="在吗", time="09:30")
    await ledger.choose_row("a", "qq", "11", row)
    assert await ledger.chosen_row("a", "qq", "11") == row
    assert [await ledger.chosen_row(*key) for key in (("b", "qq", "11"), ("a", "wechat", "11"), ("a", "qq", "12"))] == [
        None
    ] * 3
    await ledger.choose_row("a", "qq", "11", RowMark())
    assert await ledger.chosen_row("a", "qq", "11") == RowMark()


async def test_who_is_kept_waiting_is_owed_an_answer_by_the_next_sweep(db: Database) -> None:
    await StoredLedger(db).keep_waiting("a", "qq", "22", f"{IN_CHAT}1")
    marks = await Sweeps(db).marks(SweptApp("a", "qq"))
    assert [one.contact for one in owed(marks, db.now())] == ["22"]


async def test_a_row_from_open_to_sent(ledger: Ledger) -> None:
    assert await ledger.find(KEY) is None
    row = await ledger.open(KEY, run_id="r1", question="几天能发货")
    assert (row.key, row.run_id, row.question, row.state, row.provenance) == (
        KEY,
        "r1",
        "几天能发货",
        ReplyState.PLANNED,
        None,
    )
    assert (await ledger.open(KEY, run_id="r2", question="几天能发货")).id == row.id
    planned = await ledger.plan(
        row.id,
        run_id="r2",
        text="48小时内",
        provenance=Provenance.KNOWLEDGE,
        record_id="k1",
        record_source="shelf",
        score=0.5,
    )
    assert (planned.run_id, planned.text, planned.provenance) == ("r2", "48小时内", Provenance.KNOWLEDGE)
    assert (planned.record_id, planned.record_source, planned.score, planned.person) == ("k1", "shelf", 0.5, "")
    for state, before in [
        (ReplyState.TYPING, ReplyState.PLANNED),
        (ReplyState.SENDING, ReplyState.TYPING),
    ]:
        assert (await ledger.advance(row.id, state, expected=[before])).state is state
        assert [item.id for item in await ledger.unfinished("a")] == [row.id]
    assert await ledger.unfinished("b") == []
    sent = await ledger.advance(row.id, ReplyState.SENT, expected=[ReplyState.SENDING])
    assert await ledger.find(KEY) == sent
    assert await ledger.unfinished("a") == []


async def test_a_step_that_may_not_be_taken(ledger: Ledger) -> None:
    row = await ledger.open(KEY, run_id="r1", question="q")
    await ledger.advance(row.id, ReplyState.SENT, expected=[ReplyState.PLANNED])
    with pytest.raises(LedgerConflict):
        await ledger.advance(row.id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
    with pytest.raises(LedgerConflict):
        await ledger.plan(row.id, run_id="r1", text="t", provenance=Provenance.PERSON)
    found = await ledger.find(KEY)
    assert found is not None
    assert (found.state, found.text) == (ReplyState.SENT, "")


async def test_the_newest_of_a_contact_first(ledger: Ledger) -> None:
    for number in range(3):
        await ledger.open(MessageKey("a", "qq", "11", f"f{number}"), run_id="r", question=f"q{number}")
    await ledger.open(MessageKey("a", "qq", "12", "f"), run_id="r", question="other")
    assert [row.question for row in await ledger.recent("a", "qq", "11")] == ["q2", "q1", "q0"]
    assert await ledger.recent("b", "qq", "11") == []


async def test_sessions_and_events_are_stored(db: Database) -> None:
    session, store = await session_in(db), StoredRuns(db)
    session.message = "half"
    await store.save(session)
    row = await Runs(db).get(session.run_id)
    assert row is not None
    assert row.session is not None
    assert Session.model_validate_json(row.session) == session
    await store.event(session.run_id, Event("step", {"index": 1}), picture=b"jpeg")
    event = (await Events(db).after(0, run_id=session.run_id))[-1]
    assert (event.kind, event.data) == ("step", {"index": 1})
    assert event.picture_id is not None
    assert await Events(db).picture(event.picture_id) == b"jpeg"
    with pytest.raises(KeyError):
        await store.save(Session(run_id="nothing", task="t"))


ANSWER = AnswerEvent(
    ledger_id=3, app="qq", contact="11", question="几天能发货", state=ReplyState.SENT, sent="48小时内",
    provenance="person", person="Desk A",
)  # fmt: skip


async def test_an_answer_stands_in_the_answer_log_once(db: Database) -> None:
    session, store = await session_in(db), StoredRuns(db)
    record = Record("k1", "48小时内发货", "发货", 0.25, sure=True, source="shelf")
    read = AnswerEvent(3, "qq", "11", "几天能发货", ReplyState.PLANNED, query="发货", records=[record])
    for told, picture in ((read, b"before"), (ANSWER, b"after"), (ANSWER, b"later")):
        await store.event(session.run_id, Event("answer", told.data()), picture=picture)
    [row] = await Answers(db).find(AnswerFilter(run_id=session.run_id))
    assert (row.serial, row.app, row.contact, row.question, row.query) == ("a", "qq", "11", "几天能发货", "发货")
    assert (row.state, row.sent, row.provenance, row.person) == ("sent", "48小时内", "person", "Desk A")
    assert row.records == [
        {
            "id": "k1",
            "text": "48小时内发货",
            "question": "发货",
            "score": 0.25,
            "sure": True,
            "source": "shelf",
            "aliases": [],
            "unclean": False,
        }
    ]
    assert row.before_picture_id is not None
    assert row.after_picture_id is not None
    assert await Events(db).picture(row.before_picture_id) == b"before"
    assert await Events(db).picture(row.after_picture_id) == b"after"
    events = [event for event in await Events(db).after(0) if event.kind == "answer"]
    assert [event.data for event in events] == json.loads(json.dumps([read.data(), ANSWER.data(), ANSWER.data()]))


async def test_a_reply_is_told_but_not_logged(db: Database) -> None:
    session, store = await session_in(db), StoredRuns(db)
    reply = ReplyRecord(contact="11", question="q", text="t", provenance="knowledge", delivered=True)
    await store.event(session.run_id, Event("reply", reply.model_dump()))
    assert await Answers(db).find() == []
    assert (await Events(db).after(0))[-1].data["text"] == "t"


@pytest.mark.parametrize(
    ("told", "learnt"),
    [
        (ANSWER, True),
        (replace(ANSWER, provenance="knowledge", record_id="k1"), True),  # a person chose the record
        (replace(ANSWER, provenance="knowledge", record_id="k1", person=""), False),
        (replace(ANSWER, provenance="knowledge"), False),
        (replace(ANSWER, state=ReplyState.UNKNOWN), False),
        (replace(ANSWER, state=ReplyState.SKIPPED), False),
    ],
)
async def test_what_a_person_had_a_hand_in_is_learnt_once_it_is_sent(
    db: Database, told: AnswerEvent, learnt: bool
) -> None:
    seen: list[tuple[AnswerEvent, int]] = []

    async def learn(answer: AnswerEvent) -> str:
        seen.append((answer, len(await Answers(db).find())))
        return ""

    await StoredRuns(db, learn=learn).event((await session_in(db)).run_id, Event("answer", told.data()))
    assert seen == ([(told, 1)] if learnt else [])  # the row is there by then
    assert [event.kind for event in await Events(db).after(0)].count("learnt") == 0  # nothing was new


async def test_what_was_learnt_is_told_of_the_question_that_was_answered(db: Database) -> None:
    session = await session_in(db)
    for number, ledger_id in ((1, ANSWER.ledger_id), (2, ANSWER.ledger_id + 1)):
        question = QUESTION.model_copy(update={"id": f"q{number}", "data": {"ledger_id": ledger_id}})
        await StoredHuman(db, hold_seconds=0).ask(session, question)
        await Questions(db).answer(question.id, {"choice": "a"}, by="Anna")

    async def learn(answer: AnswerEvent) -> str:
        return "e1"

    await StoredRuns(db, learn=learn).event(session.run_id, Event("answer", ANSWER.data()))
    told = [event.data for event in await Events(db).after(0) if event.kind == "learnt"]
    assert told == [{"question": "q1", "entry": "e1"}]
    assert await Events(db).entry_of(session.run_id, "q1") == "e1"
    assert await Events(db).entry_of(session.run_id, "q2") == ""


async def test_what_cannot_be_learnt_ends_no_run(db: Database) -> None:
    async def learn(answer: AnswerEvent) -> str:
        raise RuntimeError(f"no place for {answer.ledger_id}")

    await StoredRuns(db, learn=learn).event((await session_in(db)).run_id, Event("answer", ANSWER.data()))
    assert [row.state for row in await Answers(db).find()] == ["sent"]


async def test_without_holding_nobody_is_waited_for(db: Database) -> None:
    session = await session_in(db)
    assert await StoredHuman(db, hold_seconds=0).ask(session, QUESTION, picture=b"jpeg") is None
    row = await Questions(db).get("q1")
    assert row is not None
    assert (row.state, row.kind, Question.model_validate(dict(row.payload))) == ("open", "interact", QUESTION)
    event = (await Events(db).after(0, run_id=session.run_id))[-1]
    assert (event.kind, event.data["id"], event.picture_id is not None) == ("question", "q1", True)


async def test_an_answer_is_taken_up_at_once_while_the_phone_is_held(db: Database) -> None:
    session = await session_in(db)
    asking = asyncio.create_task(StoredHuman(db, hold_seconds=60).ask(session, QUESTION))
    async with asyncio.timeout(5):
        while await Questions(db).get("q1") is None:
            await asyncio.sleep(0)
        await Questions(db).answer("q1", {"choice": "", "text": "好"}, by="Desk A")
        assert await asking == Answer(text="好", by="Desk A")
    # asked once more by another attempt: the answer is there
    assert await StoredHuman(db, hold_seconds=60).ask(session, QUESTION) == Answer(text="好", by="Desk A")


async def test_an_answer_of_another_process_is_seen(db: Database, url: str, clock: Clock) -> None:
    session = await session_in(db)
    other = Database(url, clock=clock)
    try:
        asking = asyncio.create_task(StoredHuman(db, hold_seconds=60).ask(session, QUESTION))
        async with asyncio.timeout(10):
            while await Questions(other).get("q1") is None:
                await asyncio.sleep(0)
            await Questions(other).answer("q1", {"choice": "x"}, by="Desk B")
            assert await asking == Answer(choice="x", by="Desk B")
    finally:
        await other.close()


async def test_holding_ends(db: Database) -> None:
    assert await StoredHuman(db, hold_seconds=0.05).ask(await session_in(db), QUESTION) is None


async def test_hold_ends_the_wait_at_once(db: Database) -> None:
    stop = StopSignal()
    asking = asyncio.create_task(StoredHuman(db, hold_seconds=60, stop=stop).ask(await session_in(db), QUESTION))
    async with asyncio.timeout(5):
        while await Questions(db).get("q1") is None:
            await asyncio.sleep(0)
        stop.request_hold()
        assert await asking is None
