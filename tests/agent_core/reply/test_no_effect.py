"""Acts that take no effect: what was not sent stands nowhere, is told, and is answered by the next run."""

from __future__ import annotations

import pytest

from agent_core.errors import CommandFailed, TextInputFailed
from agent_core.perception.readings import Source
from agent_core.ports import Provenance, ReplyState
from agent_core.session import Answer, QuestionKind, Status
from tests.agent_core.reply.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask

WRITTEN = "今天下班以前就给您寄出。"
SOURCES = pytest.mark.parametrize("source", [Source.TREE, Source.OCR])


@SOURCES
def test_what_may_stand_in_the_input_yet_stays_sending(source: Source) -> None:
    desk = PaperDesk(SHIP, sends=["ignored"], source=source)

    def no_more() -> None:
        desk.phone.clears = False

    desk.phone.on_type = [no_more]
    first = desk.run()
    assert first.status is Status.FAILED
    assert "没有效果" in first.message
    assert desk.store.answers[-1] == ("11", SHIP, "failed")
    assert desk.rows == [(SHIP, ReplyState.SENDING)]
    assert desk.drafts["11"].startswith(SHIPPED)
    desk.phone.clears = True
    second = desk.run()
    assert second.status is Status.SUCCEEDED, second.message
    assert (desk.sent(), desk.drafts) == ([SHIPPED], {})
    assert desk.people.asked == []
    assert desk.rows == [(SHIP, ReplyState.SENT)]


@SOURCES
def test_the_second_answer_that_was_not_sent_is_taken_up_below_the_first(source: Source) -> None:
    desk = PaperDesk(SHIP, BILL, sends=["ok", "ignored"], source=source)
    first = desk.run(ask("几天能发货"), ask("能开发票吗"))
    assert first.status is Status.FAILED
    assert (desk.sent(), desk.drafts) == ([SHIPPED], {})
    assert desk.rows == [(SHIP, ReplyState.SENT), (BILL, ReplyState.PLANNED)]
    second = desk.run()
    assert second.status is Status.SUCCEEDED, second.message
    assert desk.sent() == [SHIPPED, BILLED]
    assert desk.people.asked == []


@SOURCES
def test_below_a_red_mark_nothing_is_taken_up(source: Source) -> None:
    desk = PaperDesk(SHIP, BILL, sends=["ok", "red"], source=source)
    assert desk.run(ask("几天能发货"), ask("能开发票吗")).status is Status.FAILED
    assert desk.rows == [(SHIP, ReplyState.SENT), (BILL, ReplyState.FAILED)]
    for _ in range(2):
        assert desk.run().status is Status.FAILED
        assert desk.sent() == [SHIPPED, BILLED]  # as it stands there, with its mark


ERRORS = pytest.mark.parametrize("error", [CommandFailed, TextInputFailed])


def waiting_for_words(source: Source = Source.TREE) -> PaperDesk:
    """Nothing is known; a person writes the answer."""
    desk = PaperDesk(SHIP, source=source)
    desk.shelf.answers = {}
    desk.people.answers = [Answer(text=WRITTEN, by="店长")]
    return desk


@ERRORS
def test_a_hiccup_while_a_persons_words_are_delivered_is_a_failed_try(error: type[Exception]) -> None:
    desk = waiting_for_words()
    (desk.phone.type_errors if error is TextInputFailed else desk.phone.tap_errors).extend([error("scripted")] * 2)
    session = desk.run()
    assert session.status is Status.SUCCEEDED, session.message
    assert (desk.sent(), desk.drafts) == ([WRITTEN], {})
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER]


@ERRORS
@SOURCES
def test_the_words_of_a_run_that_could_not_type_are_offered_by_the_next(source: Source, error: type[Exception]) -> None:
    desk = waiting_for_words(source)
    (desk.phone.type_errors if error is TextInputFailed else desk.phone.tap_errors).extend([error("scripted")] * 3)
    first = desk.run()
    assert first.status is Status.FAILED
    [row] = desk.ledger._rows.values()
    assert (row.state, row.provenance, row.text, row.person) == (
        ReplyState.PLANNED,
        Provenance.PERSON,
        WRITTEN,
        "店长",
    )
    assert (desk.sent(), desk.drafts) == ([], {})
    desk.people.answers = [Answer(choice="send", by="店长")]
    second = desk.run()
    assert second.status is Status.SUCCEEDED, second.message
    assert desk.sent() == [WRITTEN]
    assert desk.people.kinds == [QuestionKind.NO_SURE_ANSWER, QuestionKind.STILL_SEND]
    assert [(reply.provenance, reply.person) for reply in second.replies] == [("person", "店长")]


def test_the_words_are_not_sent_to_what_has_become_another_question() -> None:
    desk = waiting_for_words()
    desk.phone.type_errors.extend([TextInputFailed("scripted")] * 3)
    desk.run()
    desk.phone.receive("11", "不用了，我自己来拿")
    second = desk.run()
    assert second.status is Status.WAITING
    assert desk.sent() == []


def test_tries_that_fail_now_and_then_do_not_add_up() -> None:
    desk = PaperDesk(SHIP, BILL)
    desk.shelf.answers = {}
    desk.people.answers = [Answer(text=WRITTEN, by="店长"), Answer(text=BILLED, by="店长")]
    desk.phone.type_errors.extend([TextInputFailed("scripted")] * 2)
    desk.phone.on_type = [lambda: desk.phone.type_errors.extend([TextInputFailed("scripted")] * 2)]
    session = desk.run(ask("几天能发货"), ask("能开发票吗"))
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent() == [WRITTEN, BILLED]
