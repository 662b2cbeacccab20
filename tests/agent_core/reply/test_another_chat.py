"""A run finds the chat in front in which a dead run for somebody else stopped."""

from __future__ import annotations

import pytest

from agent_core.loop.defaults import MemoryLedger
from agent_core.perception.readings import Bubble, ChatScreen, Doubt, DoubtKind, Source
from agent_core.perception.readings import Side as BubbleSide
from agent_core.ports import ReplyState
from agent_core.reply.outcome import DeliveryResult, check_chat
from agent_core.session import GateState, Status
from agent_core.sweep import IN_CHAT
from simulator.phone.scenario import ContactPart, EventPart, MessagePart, Scenario
from tests.agent_core.reply.dying import Killed
from tests.agent_core.reply.paper_desk import BILL, BILLED, SHIP, SHIPPED, PaperDesk, ask
from tests.support.lab import ANSWER, ASK, FINISH, LAUNCH, do, lab
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr


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


def customer(name: str, text: str, ago: int, *, unread: bool = True) -> ContactPart:
    return ContactPart(name=name, history=[MessagePart(text=text, ago=ago, unread=unread)])


CUSTOMERS = [
    customer("22", "可以退吗？", 30),
    customer("11", "你好，请问几天能发货？", 60),
    customer("33", "好的", 900),
]
FIRST, SECOND = do('do(action="Tap", element=[400,175])'), do('do(action="Tap", element=[400,245])')


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["auto", "off"])
async def test_another_row_is_not_opened_and_stays_unread(tree: str) -> None:
    async with lab(Scenario(contacts=CUSTOMERS)) as bench:
        bench.tree = tree
        async with ScriptedModel([LAUNCH, FIRST, SECOND, ASK, FINISH]) as model:
            session = await bench.run(model)
        assert session.status is Status.SUCCEEDED, session.message
        assert [verdict.policy for verdict in session.steps[1].verdicts] == ["right_chat"]
        assert "这一行是“22”" in session.steps[1].verdicts[0].message
        assert bench.phone.report()["unread"]["22"] == 1
        assert bench.sent == {"11": [ANSWER]}


async def test_a_chat_that_was_opened_by_mistake_is_left_and_its_customer_is_kept_waiting() -> None:
    jump = EventPart(after_typed="11", do="notification_open", contact="22")
    ledger = MemoryLedger()
    async with lab(Scenario(contacts=CUSTOMERS, events=[jump])) as bench:
        async with ScriptedModel([LAUNCH, SECOND, ASK, SECOND, FINISH]) as model:
            session = await bench.run(model, ledger=ledger)
        assert session.status is Status.SUCCEEDED, session.message
        assert any("“22”的聊天" in step.result for step in session.steps)
        ((place, state),) = ledger.waiting.items()
        assert place == (session.serial, "qq", "22")
        assert state.startswith(IN_CHAT)
        assert bench.sent == {"11": [ANSWER]}


def opened(title: str, *, sure: bool, title_sure: bool = True) -> ChatScreen:
    """The chat of somebody, whose one message was read as decorated, or not."""
    doubt = "" if sure else DoubtKind.DECORATED
    said = Bubble(BubbleSide.THEM, "可以退吗？", sure=sure, doubt=doubt)
    doubts = () if sure else (Doubt(DoubtKind.DECORATED, said.text),)
    return ChatScreen(title, (said,), "", Source.OCR, sure=sure, doubts=doubts, title_sure=title_sure)


def test_a_message_in_doubt_makes_another_chat_no_less_another_one() -> None:
    gate = GateState(contact="11")

    def told(chat: ChatScreen) -> DeliveryResult | None:
        outcome = check_chat(chat, gate)
        return outcome.result if outcome else None

    assert told(opened("22", sure=True)) is DeliveryResult.WRONG_CHAT
    assert told(opened("22", sure=False)) is DeliveryResult.WRONG_CHAT
    assert told(opened("22", sure=False, title_sure=False)) is DeliveryResult.UNSURE_CHAT
    assert told(opened("", sure=False)) is DeliveryResult.UNSURE_CHAT
    assert told(opened("11", sure=False)) is DeliveryResult.UNSURE_CHAT
    assert told(opened("11", sure=True)) is None
    gate.chat_confirmed = "22"
    assert told(opened("22", sure=True)) is None


@needs_ocr
async def test_a_chat_with_messages_in_doubt_is_left_at_once_and_its_customer_is_kept_waiting() -> None:
    """By its picture every message on a wallpaper is in doubt; the name in the header is not."""
    ledger = MemoryLedger()
    wait = do('do(action="Wait", duration="0 seconds")')
    async with lab(Scenario(look="qq-skin", contacts=CUSTOMERS)) as bench:
        bench.tree = "off"
        bench.phone.show_chat("22")
        async with ScriptedModel([wait]) as model:
            session = await bench.run(model, ledger=ledger, max_steps=2)
        assert any("“22”的聊天" in step.result for step in session.steps)
        assert [place[2] for place in ledger.waiting] == ["22"]
        assert bench.people.asked == []
