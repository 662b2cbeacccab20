"""A run that takes over what a run that is over has left is the one that asks about it: no third run asks, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from unittest import mock

import pytest
import sqlalchemy as sa

from agent_core.devices.waiting import wait_until_still
from agent_core.ports import Human
from agent_core.reply import sender
from agent_core.session import WAITS_ELSEWHERE, Answer, Question, QuestionKind, Session, Status
from agent_core.settings import new_session
from bot.channels.cli.commands.common import BY_STATUS, Exit, result_of
from scheduler.runs.executor import StoredRuns
from scheduler.runs.human import StoredHuman
from storage.engine import Database
from storage.ledger import StoredLedger
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.tables import questions
from tests.agent_core.reply.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask
from tests.agent_core.stories import SETTINGS

TASK = "QQ回复联系人11"
Attempt = Callable[..., Awaitable[Session]]


def attempts_on(desk: PaperDesk, db: Database) -> Attempt:
    """Attempts of runs that stand in the database as the scheduler writes them down."""

    async def attempt(*says: str, human: Human | None = None) -> Session:
        runs = Runs(db)
        run_id = await runs.create(NewRun(TASK, desk.phone.serial, begun=True))
        assert run_id is not None
        still, delivery = wait_until_still.__kwdefaults__, SimpleNamespace(monotonic=desk.clock)
        # Waiting for a bubble takes the phone's time, the rest takes ours.
        with mock.patch.dict(still, clock=desk.clock), mock.patch.object(sender, "time", delivery):
            session = await desk.attempt(
                *(says or (ask("几天能发货"),)),
                session=new_session(TASK, desk.phone.serial, SETTINGS, run_id=run_id),
                ledger=StoredLedger(db),
                store=StoredRuns(db),
                human=human or StoredHuman(db, hold_seconds=0),
            )
        if session.status is Status.WAITING:
            assert await runs.park_attempt(run_id, 1)
        else:
            assert await runs.end_attempt(run_id, 1, status=session.status.value)
        return session

    return attempt


async def asked(db: Database, session: Session) -> list[QuestionKind]:
    assert session.question is None or await Questions(db).get(session.question.id) is not None
    return [question.kind for question in session.questions]


async def owners(db: Database) -> list[str]:
    return [row.run_id for row in await StoredLedger(db).recent("paper", "qq", "11")]


async def test_a_question_that_a_run_which_is_over_left_open(db: Database) -> None:
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {}
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert await asked(db, first) == [QuestionKind.NO_SURE_ANSWER]
    assert await Runs(db).request_stop(first.run_id)  # nobody waits for that answer any more
    second = await attempt()
    assert await asked(db, second) == [QuestionKind.NO_SURE_ANSWER]
    assert await owners(db) == [second.run_id]
    third = await attempt()
    assert (third.status, third.questions) == (Status.FAILED, [])
    assert second.question is not None
    [row] = await Questions(db).find(state="open")
    assert third.started_at is not None
    since = row.created_at.astimezone(third.started_at.tzinfo)
    assert f"从 {since:%m-%d %H:%M} 起已经在等人工回答" in third.message
    assert "任务 #2" in third.message
    assert f"phonedesk questions answer {second.question.id}" in third.message
    # Whoever waits for it is told that a person is to answer, and what.
    told = result_of(third, 0)
    assert (told["status"], BY_STATUS[third.comes_to]) == ("waiting", Exit.WAITING)
    assert [(one["id"], one["run_id"]) for one in told["questions"]] == [(second.question.id, second.run_id)]
    assert await owners(db) == [second.run_id]


async def test_an_older_run_that_is_stuck_is_no_question_of_the_customers(db: Database) -> None:
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {}
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert first.question is not None
    stuck = first.question.model_copy(update={"kind": QuestionKind.STUCK})
    async with db.write() as connection:
        kept = {"kind": stuck.kind.value, "payload": stuck.model_dump(mode="json")}
        await connection.execute(sa.update(questions).values(**kept))
    second = await attempt()
    assert second.status is Status.FAILED
    assert "那个任务自己停住了" in second.message
    assert "已经在等人工回答" not in second.message
    assert stuck.id in second.message
    assert await Runs(db).request_hold(first.run_id)
    async with db.write() as connection:  # parked by a person
        await connection.execute(sa.delete(questions))
    assert "暂停着" in (await attempt()).message


async def test_an_older_run_that_goes_on_by_itself(db: Database) -> None:
    """Its question is answered; it waits for the very phone on which the second one looks."""
    desk = PaperDesk(SHIP)
    desk.shelf.answers = {}
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert first.question is not None
    await Questions(db).answer(first.question.id, {"text": "48小时内"}, by="Wang")
    second = await attempt()
    assert (second.status, second.comes_to, desk.sent()) == (Status.SUCCEEDED, Status.WAITING, [])
    assert "任务 #1" in second.message
    assert "自己继续" in second.message
    assert second.error_kind == WAITS_ELSEWHERE  # a sweep looks again, should the first one fail


async def test_what_is_answered_beside_a_question_of_another_run_is_no_failure(db: Database) -> None:
    desk = PaperDesk(SHIP, sends=["vanish"])
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert await asked(db, first) == [QuestionKind.DELIVERY_UNKNOWN]
    desk.phone.chats["11"].messages.pop(0)  # its question is known by another key now
    desk.phone.receive("11", BILL)
    second = await attempt(ask("能开发票吗"), ask("几天能发货"))
    assert desk.sent() == [BILLED]
    assert (second.status, second.comes_to) == (Status.SUCCEEDED, Status.WAITING)
    assert second.message.startswith("已发出 1 条回复")
    assert "没有发送任何内容" not in second.message


async def test_a_question_that_was_skipped_beside_one_of_another_run(db: Database) -> None:
    desk = PaperDesk(SHIP)
    attempt = attempts_on(desk, db)
    await attempt()
    desk.phone.chats["11"].messages.pop()  # our reply is gone from the chat, so its question looks open
    desk.shelf.answers = {}
    desk.phone.receive("11", BILL)

    class Wang(StoredHuman):
        async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
            if question.kind is QuestionKind.ANSWERED_BEFORE:
                return Answer(choice="skip", by="Wang")
            return await super().ask(session, question, picture=picture)

    both = (ask("几天能发货"), ask("能开发票吗"))
    second = await attempt(*both, human=Wang(db, hold_seconds=0))
    assert await asked(db, second) == [QuestionKind.ANSWERED_BEFORE, QuestionKind.NO_SURE_ANSWER]
    third = await attempt(*both)
    assert (third.status, third.comes_to, third.questions) == (Status.FAILED, Status.WAITING, [])
    assert "任务 #2" in third.message
    assert "此前已跳过" not in third.message


@pytest.mark.parametrize("stopped", [False, True], ids=["answered", "stopped"])
async def test_another_run_that_waits_no_longer_keeps_nobody_waiting(db: Database, stopped: bool) -> None:
    """What it has not answered, and will not, is this run's again."""
    desk = PaperDesk(BILL)
    desk.shelf.answers = {}
    attempt = attempts_on(desk, db)
    first = await attempt(ask("能开发票吗"))
    desk.phone.receive("11", SHIP)
    found = []

    class Wang:
        async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer:
            found.append(session.elsewhere)
            if stopped:
                await Runs(db).request_stop(first.run_id)
            elif first.question is not None:
                await Questions(db).answer(first.question.id, {"text": "可以"}, by="Wang")
            return Answer(text=BILLED if len(found) > 1 else SHIPPED, by="Wang")

    second = await attempt(human=Wang())
    assert [one and one.run_id for one in found] == [first.run_id, None][: len(found)]
    assert desk.sent() == ([SHIPPED, BILLED] if stopped else [SHIPPED])
    assert second.comes_to is Status.SUCCEEDED


@pytest.mark.parametrize("answered_by_hand", [False, True], ids=["newest", "above_a_colleagues"])
async def test_a_reply_of_unknown_fate(db: Database, answered_by_hand: bool) -> None:
    desk = PaperDesk(SHIP, sends=["vanish"])
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert await asked(db, first) == [QuestionKind.DELIVERY_UNKNOWN]
    assert await Runs(db).request_stop(first.run_id)
    if answered_by_hand:
        desk.phone.colleague("明天就发。")
    second = await attempt()
    assert await asked(db, second) == [QuestionKind.DELIVERY_UNKNOWN]
    assert await owners(db) == [second.run_id]
    third = await attempt()
    assert (third.status, third.questions) == (Status.FAILED, [])
    assert await owners(db) == [second.run_id]
    assert desk.sent() == []


async def test_a_reply_of_unknown_fate_whose_question_is_seen_a_little_differently(db: Database) -> None:
    """Each time less of the chat stands above it: it has another key, and another row."""
    desk = PaperDesk(SHIP, sends=["vanish"])
    attempt = attempts_on(desk, db)
    first = await attempt()
    assert await Runs(db).request_stop(first.run_id)
    desk.phone.chats["11"].messages.pop(0)
    second = await attempt()
    assert await asked(db, second) == [QuestionKind.DELIVERY_UNKNOWN]
    desk.phone.chats["11"].messages.pop(0)
    third = await attempt()
    assert (third.status, third.questions) == (Status.FAILED, [])
    assert "已经在等人工回答" in third.message
    assert desk.sent() == []
