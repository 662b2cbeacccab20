"""What the customer writes in the very moment of Send stands above our answer: it is answered all the same."""

from __future__ import annotations

import pytest

from agent_core.perception.readings import Source
from agent_core.ports import ReplyState
from agent_core.session import Status
from tests.agent_core.reply.dying import Killed
from tests.agent_core.reply.paper_desk import SHIP, SHIPPED, WARRANTED, WARRANTY, PaperDesk, ask

SENT_WRITE = 3  # typing, sending, then this


@pytest.fixture(params=[Source.TREE, Source.OCR])
def desk(request: pytest.FixtureRequest) -> PaperDesk:
    return PaperDesk(SHIP, sends=["crossed"], source=request.param)


def assert_both(desk: PaperDesk) -> None:
    assert desk.sent() == [SHIPPED, WARRANTED]
    assert desk.rows == [(SHIP, ReplyState.SENT), (WARRANTY, ReplyState.SENT)]
    assert (desk.people.asked, desk.drafts) == ([], {})
    assert "没有新消息" in desk.run().message
    assert desk.sent() == [SHIPPED, WARRANTED]


def test_by_the_same_run(desk: PaperDesk) -> None:
    session = desk.run(ask("几天能发货"), 'finish(message="已回复")')
    assert session.status is Status.SUCCEEDED, session.message
    assert_both(desk)


def died(desk: PaperDesk, *, ledger_knows: bool) -> None:
    """In the middle of the first answer, its bubble on the screen."""
    # started, planned, typing, sending, sent, and then the answer log; or just before sent
    at, counted = (6, {"advance", "event"}) if ledger_knows else (SENT_WRITE, {"advance"})
    with pytest.raises(Killed):
        desk.run(ask("几天能发货"), dies_at=at, counted=frozenset(counted))
    assert desk.sent() == [SHIPPED]
    assert desk.rows == [(SHIP, ReplyState.SENT if ledger_knows else ReplyState.SENDING)]


@pytest.mark.parametrize("ledger_knows", [False, True], ids=["bubble_stands", "ledger_knows"])
@pytest.mark.parametrize("new_run", [False, True], ids=["next_attempt", "new_run"])
def test_after_a_crash(desk: PaperDesk, ledger_knows: bool, new_run: bool) -> None:
    died(desk, ledger_knows=ledger_knows)
    session = desk.run(session=None if new_run else desk.store.session)
    assert session.status is Status.SUCCEEDED, session.message
    assert_both(desk)


def test_by_the_next_run_of_the_contact_where_another_one_finds_the_bubble() -> None:
    """The run for 12 died; one for 11 finds 12's chat in front."""
    desk = PaperDesk(SHIP, sends=["crossed"])
    desk.phone.receive("12", SHIP)
    desk.phone.enter("12")
    with pytest.raises(Killed):
        desk.run(ask("几天能发货"), contact="12", dies_at=SENT_WRITE)
    assert desk.run().status is Status.SUCCEEDED
    assert (desk.sent("12"), desk.sent("11")) == ([SHIPPED], [SHIPPED])
    desk.phone.enter("12")
    session = desk.run(ask("保修多久"), 'finish(message="已回复")', contact="12")
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent("12") == [SHIPPED, WARRANTED]
