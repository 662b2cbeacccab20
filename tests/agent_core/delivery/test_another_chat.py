"""A run finds the chat in front in which a dead run for somebody else stopped."""

from __future__ import annotations

import pytest

from agent_core.ports import ReplyState
from agent_core.screen.readings import Source
from agent_core.session import Status
from tests.agent_core.delivery.dying import Killed
from tests.agent_core.delivery.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask


@pytest.mark.parametrize("source", [Source.TREE, Source.OCR])
@pytest.mark.parametrize(
    ("send", "state"), [("ok", ReplyState.SENT), ("red", ReplyState.FAILED)], ids=["arrived", "red_mark"]
)
def test_what_became_of_it_is_told_as_the_other_contacts(send: str, state: ReplyState, source: Source) -> None:
    desk = PaperDesk(SHIP, sends=[send], source=source)
    desk.phone.receive("12", BILL)
    desk.phone.enter("12")
    with pytest.raises(Killed):
        desk.run(ask("能开发票吗"), contact="12", dies_at=3)
    assert desk.rows == [(BILL, ReplyState.SENDING)]
    session = desk.run()
    assert session.status is Status.SUCCEEDED, session.message
    assert (BILL, state) in desk.rows
    assert [told for told in desk.store.answers if told[1] == BILL][-1] == ("12", BILL, state.value)
    assert [contact for contact, question, _ in desk.store.answers if question == SHIP] == ["11", "11"]
    assert (desk.sent("12"), desk.sent()) == ([BILLED], [SHIPPED])
    assert session.gate.contact == "11"
    assert [reply.contact for reply in session.replies] == ["11"]


def test_a_text_that_was_not_sent_is_cleared_and_left_to_the_next_run_of_that_contact() -> None:
    desk = PaperDesk(SHIP, sends=["ignored"])
    desk.phone.receive("12", BILL)
    desk.phone.enter("12")
    with pytest.raises(Killed):
        desk.run(ask("能开发票吗"), contact="12", dies_at=1, counted=frozenset({"key"}))  # after Send, before Enter
    assert (desk.rows, desk.drafts) == ([(BILL, ReplyState.SENDING)], {"12": BILLED})
    assert desk.run().status is Status.SUCCEEDED
    assert (desk.sent("12"), desk.sent(), desk.drafts) == ([], [SHIPPED], {})
    assert (BILL, ReplyState.PLANNED) in desk.rows
    desk.phone.enter("12")
    again = desk.run(ask("能开发票吗"), 'finish(message="已回复")', contact="12")
    assert again.status is Status.SUCCEEDED, again.message
    assert desk.sent("12") == [BILLED]
