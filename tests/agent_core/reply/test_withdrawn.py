"""Questions on which nothing is due any more, and those of the same words that come after them."""

from __future__ import annotations

import pytest

from agent_core.errors import KnowledgeUnreachable
from agent_core.perception.readings import Source
from agent_core.ports import ReplyState
from agent_core.session import Answer, Status
from tests.agent_core.reply.dying import Killed
from tests.agent_core.reply.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask

PRICE, BY_MONTH, MONTHLY = "多少钱", "这个多少钱一个月", "一个月九十九元，随时可以停。"


@pytest.fixture(params=[Source.TREE, Source.OCR])
def desk(request: pytest.FixtureRequest) -> PaperDesk:
    made = PaperDesk(PRICE, source=request.param)
    made.shelf.answers = {"一个月": MONTHLY, "多少钱": "九十九元起。"}
    return made


def written_anew(desk: PaperDesk) -> None:
    desk.phone.recall()
    desk.phone.receive("11", BY_MONTH)


def test_what_was_taken_back_is_not_answered_later(desk: PaperDesk) -> None:
    desk.shelf.before = lambda: written_anew(desk)
    first = desk.run()
    assert first.status is Status.SUCCEEDED, first.message
    assert desk.sent() == [MONTHLY]
    assert desk.rows == [(PRICE, ReplyState.WITHDRAWN), (BY_MONTH, ReplyState.SENT)]
    assert desk.store.answers[-1] == ("11", BY_MONTH, "sent")
    assert ("11", PRICE, "skipped") in desk.store.answers
    again = desk.run()
    assert again.status is Status.SUCCEEDED
    assert "没有新消息" in again.message
    assert desk.sent() == [MONTHLY]


def test_what_nobody_saw_taken_back_is_not_answered_later(desk: PaperDesk) -> None:
    """The run that had read it was dead by then: its words are a part of those that came instead."""
    with pytest.raises(Killed):
        desk.run(dies_at=1)
    written_anew(desk)
    desk.run()
    again = desk.run()
    assert "没有新消息" in again.message
    assert desk.sent() == [MONTHLY]


def test_the_same_words_written_again_are_answered(desk: PaperDesk) -> None:
    desk.shelf.before = desk.phone.recall
    first = desk.run()
    assert "没有新消息" in first.message
    assert (desk.sent(), desk.rows) == ([], [(PRICE, ReplyState.WITHDRAWN)])
    desk.phone.receive("11", PRICE)
    again = desk.run()
    assert again.status is Status.SUCCEEDED, again.message
    assert (desk.sent(), desk.rows) == (["九十九元起。"], [(PRICE, ReplyState.SENT)])
    assert desk.people.asked == []


def test_what_was_written_again_is_open_again(desk: PaperDesk) -> None:
    """It is not lost where something else is answered first."""
    desk.shelf.before = desk.phone.recall
    desk.run()
    desk.phone.receive("11", PRICE)
    desk.shelf.answers = {"发票": BILLED}
    assert desk.run().status is Status.WAITING
    assert desk.rows == [(PRICE, ReplyState.PLANNED)]
    desk.phone.receive("11", BILL)
    desk.people.answers = [Answer(choice="record:0", by="店长")]  # the first one may change what this one means
    assert desk.run(ask("能开发票吗")).status is Status.WAITING  # the first one has no answer yet
    assert desk.sent() == [BILLED]
    desk.shelf.answers = {"多少钱": "九十九元起。"}
    last = desk.run()
    assert last.status is Status.SUCCEEDED, last.message
    assert desk.sent() == [BILLED, "九十九元起。"]


def test_what_was_withdrawn_by_an_attempt_that_died_before_it_told_is_told(desk: PaperDesk) -> None:
    desk.shelf.before = desk.phone.recall
    with pytest.raises(Killed):  # started, planned, step, then the ledger, and then this
        desk.run(dies_at=5, counted=frozenset({"advance", "event"}))
    assert desk.rows == [(PRICE, ReplyState.WITHDRAWN)]
    session = desk.run(session=desk.store.session)
    assert "没有新消息" in session.message
    assert desk.store.answers[-1] == ("11", PRICE, "skipped")


def test_what_a_colleague_answered_by_hand_is_not_taken_up_below_a_later_answer() -> None:
    desk = PaperDesk(SHIP)
    desk.shelf.error = KnowledgeUnreachable("scripted")
    assert desk.run().is_put_off
    assert desk.rows == [(SHIP, ReplyState.PLANNED)]
    desk.phone.colleague("明天就发，放心。")
    desk.shelf.error = None
    desk.phone.receive("11", SHIP)
    second = desk.run()
    assert second.status is Status.SUCCEEDED, second.message
    assert desk.sent() == [SHIPPED]
    third = desk.run()
    assert "没有新消息" in third.message
    assert desk.sent() == [SHIPPED]
