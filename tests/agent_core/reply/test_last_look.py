"""Between the ledger's ``sending`` and the tap on Send: what happens then is seen, and nothing is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from agent_core.devices.base import Frame
from agent_core.errors import LeaseLost
from agent_core.perception.readings import Source
from agent_core.ports import ReplyState
from agent_core.reply.sender import FRESH_SECONDS
from agent_core.session import Answer, QuestionKind, Status
from tests.agent_core.reply.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask


@pytest.fixture(params=[Source.TREE, Source.OCR])
def desk(request: pytest.FixtureRequest) -> PaperDesk:
    return PaperDesk(SHIP, source=request.param)


def taps_on_send(desk: PaperDesk) -> int:
    return sum(name == "send" for _, _, name in desk.phone.facts.touched)


def told_states(desk: PaperDesk) -> list[str]:
    return [state for _, _, state in desk.store.answers]


def test_a_message_comes(desk: PaperDesk) -> None:
    taps: list[tuple[int, list[tuple[str, ReplyState]], dict[str, str]]] = []
    desk.ledger.on_sending = lambda: desk.phone.receive("11", BILL)
    desk.shelf.before = lambda: setattr(
        desk.shelf, "before", lambda: taps.append((taps_on_send(desk), desk.rows, desk.drafts))
    )
    session = desk.run(ask("几天能发货"), ask("几天能发货"), ask("能开发票吗"))
    assert taps == [(0, [(SHIP, ReplyState.PLANNED), (BILL, ReplyState.PLANNED)], {})]
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent() == [SHIPPED, BILLED]


def test_the_question_is_recalled(desk: PaperDesk) -> None:
    desk.ledger.on_sending = desk.phone.recall
    session = desk.run()
    assert "没有新消息" in session.message
    assert (taps_on_send(desk), desk.sent(), desk.drafts) == (0, [], {})
    assert desk.rows == [(SHIP, ReplyState.WITHDRAWN)]


def test_a_colleague_answers(desk: PaperDesk) -> None:
    desk.ledger.on_sending = lambda: desk.phone.colleague("明天就发。")
    session = desk.run()
    assert "没有新消息" in session.message
    assert (taps_on_send(desk), desk.sent(), desk.drafts) == (0, [], {})


@pytest.mark.parametrize("answer", ["go_on", "stop"])
def test_a_person_touches(desk: PaperDesk, answer: str) -> None:
    seen: list[tuple[int, list[tuple[str, ReplyState]], dict[str, str]]] = []

    def asked() -> Answer:
        seen.append((taps_on_send(desk), desk.rows, desk.drafts))
        return Answer(choice=answer, by="店长")

    desk.ledger.on_sending = desk.phone.touch
    desk.people.answers = [asked]
    desk.run()
    assert desk.people.kinds == [QuestionKind.PERSON_ON_PHONE]
    assert seen == [(0, [(SHIP, ReplyState.PLANNED)], {})]
    assert desk.sent() == ([SHIPPED] if answer == "go_on" else [])


def test_another_chat_comes_to_the_front(desk: PaperDesk) -> None:
    """The text stays in the first one's input until that is seen again; the other one gets nothing."""
    desk.ledger.on_sending = lambda: desk.phone.enter("110")
    session = desk.run()
    assert session.status is Status.SUCCEEDED, session.message
    assert desk.sent("110") == []
    assert [where for where, _ in desk.phone.facts.typed] == ["11", "11"]
    assert (desk.sent(), desk.drafts) == ([SHIPPED], {})
    assert desk.rows == [(SHIP, ReplyState.SENT)]


def test_the_run_dies_there(desk: PaperDesk) -> None:
    """Nothing was sent: the next run clears the text and answers."""

    def die() -> None:
        raise KeyboardInterrupt

    desk.ledger.on_sending = die
    desk.phone.clears = False
    with pytest.raises(KeyboardInterrupt):
        desk.run()
    desk.phone.clears = True
    assert desk.rows == [(SHIP, ReplyState.SENDING)]
    session = desk.run()
    assert session.status is Status.SUCCEEDED, session.message
    assert (desk.sent(), desk.drafts, desk.people.asked) == ([SHIPPED], {}, [])


class Noted:
    """What is asked of the lease and done to the input, in order."""

    def __init__(self, desk: PaperDesk) -> None:
        self.done: list[str] = []
        for name in ("clear", "type"):
            setattr(desk.phone, name, self._noting(name, getattr(desk.phone, name)))

    def _noting(self, name: str, act: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def noted(*args: str) -> None:
            self.done.append(name)
            await act(*args)

        return noted

    async def check(self) -> None:
        self.done.append("check")


def test_the_lease_is_asked_directly_before_the_input_is_touched(desk: PaperDesk) -> None:
    lease = Noted(desk)
    desk.run(lease=lease)
    before = [lease.done[at - 1] for at, name in enumerate(lease.done) if name in ("clear", "type")]
    assert before == ["check", "check"]


class Losable:
    is_lost = False

    async def check(self) -> None:
        if self.is_lost:
            raise LeaseLost("scripted")


def test_a_process_that_stands_still_before_send_looks_again(desk: PaperDesk) -> None:
    """The picture and the answer that the phone is ours are of before: somebody else has it by now."""
    lease, takes_picture = Losable(), desk.phone.screenshot

    async def stands_still() -> Frame:
        frame = await takes_picture()
        desk.clock.now += FRESH_SECONDS + 1
        lease.is_lost = True
        return frame

    desk.ledger.on_sending = lambda: setattr(desk.phone, "screenshot", stands_still)
    with pytest.raises(LeaseLost):
        desk.run(lease=lease)
    assert taps_on_send(desk) == 0
    assert desk.rows == [(SHIP, ReplyState.SENDING)], "whoever has the phone now clears what stands in the input"
