"""What may happen on a phone while an answer is on its way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_core.devices.base import LookedPicture, TextInput
from agent_core.errors import CommandFailed, DeviceUnauthorized
from agent_core.ports import LedgerRow, Record, ReplyState
from agent_core.session import Answer, QuestionKind, Session, Status
from simulator.phone.scenario import ContactPart, EventPart, MessagePart, Scenario
from simulator.phone.scenario_file import default_scenario
from simulator.phone.world import ContactKind, Side
from tests.support.lab import ANSWER, ASK, BACK, FINISH, Lab, Shelf, lab
from tests.support.model_server import ScriptedModel

pytestmark = pytest.mark.rotating(parts=3)

ASKED = MessagePart(text="你好，请问几天能发货？", ago=60, unread=True)


def scene(*events: EventPart, **changes: Any) -> Scenario:
    return default_scenario().model_copy(update={"events": list(events), **changes})


def when_typed(do: Any, **fields: Any) -> EventPart:
    return EventPart(after_typed="11", do=do, **fields)


async def reply(bench: Lab, *replies: str, **options: Any) -> Session:
    async with ScriptedModel(replies or [ASK, FINISH]) as model:
        return await bench.run(model, **options)


async def test_a_send_button_without_effect_is_followed_by_enter() -> None:
    ignored = when_typed("fault", fault="ignored_taps")
    async with lab(scene(ignored, enter_sends=True)) as bench:
        await bench.open_chat()
        session = await reply(bench)
        assert session.status is Status.SUCCEEDED, session.message
        assert (bench.sent, bench.drafts) == ({"11": [ANSWER]}, {})


async def test_what_cannot_be_sent_is_not_sent_and_leaves_nothing() -> None:
    async with lab(scene(when_typed("fault", fault="ignored_taps"))) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK)
        assert session.status is Status.FAILED
        assert "没有效果" in session.message
        assert (bench.sent, bench.drafts) == ({}, {})
        assert "sogou" in bench.phone.report()["input_method"]
        bench.phone.set_fault("ignored_taps", False)
        again = await reply(bench)
        assert again.status is Status.SUCCEEDED
        assert bench.sent == {"11": [ANSWER]}


async def test_a_spinner_is_waited_for(bench_lab: Lab) -> None:
    bench_lab.phone.set_fault("send_slow", 0.7)
    await bench_lab.open_chat()
    session = await reply(bench_lab)
    assert session.status is Status.SUCCEEDED
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_question_recalled_while_it_is_answered() -> None:
    async with lab(scene(when_typed("recall", contact="11"))) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK)
        assert session.status is Status.SUCCEEDED
        assert "没有新消息" in session.message
        assert (bench.sent, bench.drafts) == ({}, {})


async def test_one_of_two_messages_recalled_is_another_question() -> None:
    recalled = when_typed("recall", contact="11", text="你好，请问几天能发货？")
    async with lab(scene(recalled)) as bench:
        bench.phone.receive("11", "我要十件")
        bench.knowledge.answers = {"十件": ANSWER}
        await bench.open_chat()
        session = await reply(bench, ASK, ASK, FINISH)
        assert session.status is Status.SUCCEEDED
        assert session.replies[0].question == "我要十件"
        assert bench.sent == {"11": [ANSWER]}


async def test_two_quick_messages_are_answered_together(bench_lab: Lab) -> None:
    bench_lab.knowledge.answers = {"急用": ANSWER}
    bench_lab.phone.receive("11", "急用")
    await bench_lab.open_chat()
    session = await reply(bench_lab)
    assert session.replies[0].question == "你好，请问几天能发货？\n急用"
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_message_after_the_read_back_is_seen() -> None:
    late = when_typed("receive", contact="11", text="先别发，地址错了")
    async with lab(scene(late)) as bench:
        bench.knowledge.answers = {"先别发": ANSWER}
        await bench.open_chat()
        session = await reply(bench, ASK, ASK, FINISH)
        assert bench.sent == {"11": [ANSWER]}
        assert session.replies[0].question.endswith("先别发，地址错了")
        typed = bench.phone.report()["typed"]
        assert len(typed) == 2
        assert bench.knowledge.queries[1] == session.replies[0].question


async def test_the_same_words_asked_again_are_a_new_question(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    await reply(bench_lab)
    bench_lab.phone.receive("11", "你好，请问几天能发货？")
    session = await reply(bench_lab)
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.people.asked == []
    assert bench_lab.sent == {"11": [ANSWER, ANSWER]}


async def test_an_older_equal_answer_does_not_count() -> None:
    history = [
        MessagePart(text="几天发货？", ago=900),
        MessagePart(side=Side.ME, text=ANSWER, ago=800),
        ASKED,
    ]
    contacts = [ContactPart(name="11", history=history)]
    async with lab(Scenario(contacts=contacts)) as bench:
        await bench.open_chat()
        session = await reply(bench)
        assert session.status is Status.SUCCEEDED
        assert bench.sent == {"11": [ANSWER]}


async def test_the_chat_is_left_while_the_text_is_typed(bench_lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person opens another chat: what stands in its input is not touched."""
    await bench_lab.open_chat("110")
    field = next(node for node in await bench_lab.phone.tree() if node.class_name.endswith("EditText"))
    await bench_lab.device.tap(field.box.center)
    await bench_lab.phone.text("half a thought")
    await bench_lab.phone.key("BACK")
    await bench_lab.phone.key("BACK")
    await bench_lab.open_chat()
    device = bench_lab.another()
    keyboard = device.keyboard

    @asynccontextmanager
    async def taken() -> AsyncIterator[TextInput]:
        async with keyboard() as held:
            await bench_lab.open_chat_by_url("20110110")
            yield held

    monkeypatch.setattr(device, "keyboard", taken)  # a person's finger in the worst moment
    session = await reply(bench_lab, ASK, max_steps=1, device=device)
    assert session.status is Status.FAILED
    assert bench_lab.sent == {}
    assert bench_lab.drafts == {"110": "half a thought"}


async def test_a_popup_over_the_chat_lets_nothing_out() -> None:
    async with lab(scene(when_typed("fault", fault="popup"))) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK, BACK, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert (bench.sent, bench.drafts) == ({"11": [ANSWER]}, {})
        assert "dialog_accepted" not in [action["what"] for action in bench.phone.report()["actions"]]


async def test_a_slow_screen(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    bench_lab.phone.set_fault("slow", 2)
    session = await reply(bench_lab)
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_look_that_fails_after_send_does_not_hide_the_outcome(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench_lab.open_chat()
    observe, failed = bench_lab.device.observe, 0

    async def fails_after_send() -> LookedPicture:
        nonlocal failed
        if bench_lab.sent and failed < 2:
            failed += 1
            raise CommandFailed("The phone said nothing.")
        return await observe()

    monkeypatch.setattr(bench_lab.device, "observe", fails_after_send)
    session = await reply(bench_lab)
    assert failed == 2
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_black_screen_ends_the_run_with_the_cause() -> None:
    async def wait(seconds: float) -> None:
        return None

    async with lab(sleep=wait) as bench:
        await bench.open_chat()
        bench.phone.set_fault("black")
        session = await reply(bench)
        assert session.error_kind == "device.screenshot"
        assert bench.sent == {}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("fault", ["asleep", "locked"])
async def test_a_phone_that_sleeps_at_the_start(bench_lab: Lab, fault: str) -> None:
    await bench_lab.open_chat()
    bench_lab.phone.set_fault(fault, True)
    session = await reply(bench_lab)
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_group_of_the_same_name_gets_nothing() -> None:
    group = ContactPart(name="11", kind=ContactKind.GROUP, members=3, history=[ASKED])
    async with lab(Scenario(contacts=[group])) as bench:
        await bench.open_chat()
        session = await reply(bench, ASK, ASK, max_steps=2)
        assert session.status is Status.FAILED
        assert bench.sent == {}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("for_ever", [False, True])
async def test_a_tree_that_is_older_than_the_picture(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch, for_ever: bool
) -> None:
    """Looked at once more; then a person is asked."""
    bench_lab.knowledge.answers = {"急用": ANSWER}
    await bench_lab.open_chat()
    await bench_lab.device.tree()
    bench_lab.phone.receive("11", "急用")
    bench_lab.phone.set_tree("stale")
    trees = 0
    tree = bench_lab.device.tree

    async def older() -> Any:
        nonlocal trees
        trees += 1
        if trees == 3 and not for_ever:
            bench_lab.phone.set_tree("full")
        return await tree()

    monkeypatch.setattr(bench_lab.device, "tree", older)
    session = await reply(bench_lab, *([ASK] if for_ever else [ASK, FINISH]))
    if for_ever:
        assert session.question is not None
        assert session.question.kind is QuestionKind.RIGHT_CHAT
        assert bench_lab.sent == {}
    else:
        assert session.status is Status.SUCCEEDED, session.message
        assert bench_lab.people.asked == []
        assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_person_confirms_the_chat_and_it_goes_on(bench_lab: Lab) -> None:
    bench_lab.people.answers = [Answer(choice="yes", by="店长")]
    await bench_lab.open_chat()
    async with ScriptedModel([ASK, ASK, FINISH]) as model:
        session = await bench_lab.run(model, task="QQ回复")
    assert [q.kind for q in bench_lab.people.asked] == [QuestionKind.RIGHT_CHAT]
    assert bench_lab.people.asked[0].data["title"] == "11"
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {"11": [ANSWER]}


async def test_a_colleagues_greeting_is_no_leftover(bench_lab: Lab) -> None:
    """It is how our answer begins; that does not make it ours."""
    await bench_lab.open_chat()
    field = next(node for node in await bench_lab.phone.tree() if node.class_name.endswith("EditText"))
    await bench_lab.device.tap(field.box.center)
    async with bench_lab.device.keyboard() as keyboard:
        await keyboard.type("您好，")
    session = await reply(bench_lab, ASK)
    assert session.question is not None
    assert session.question.kind is QuestionKind.FOREIGN_DRAFT
    assert bench_lab.drafts == {"11": "您好，"}


async def go(bench: Lab, row: LedgerRow, *states: str) -> LedgerRow:
    """Move a row on as an attempt would that died after it."""
    for state in states:
        row = await bench.ledger.advance(row.id, ReplyState(state), expected=[row.state])
    return row


async def test_a_reply_of_unknown_fate_is_not_sent_again_by_a_new_run(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    bench_lab.knowledge.records = ()
    await reply(bench_lab, ASK)  # a person is asked; the row is there
    row = (await bench_lab.ledger.recent(bench_lab.device.serial, "qq", "11"))[0]
    await go(bench_lab, row, "typing", "sending", "unknown")
    bench_lab.knowledge.records = Shelf().records
    session = await reply(bench_lab, ASK)
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.DELIVERY_UNKNOWN
    assert bench_lab.sent == {}


async def test_a_question_whose_answer_failed_before_may_be_skipped(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    bench_lab.knowledge.records = ()
    await reply(bench_lab, ASK)
    row = (await bench_lab.ledger.recent(bench_lab.device.serial, "qq", "11"))[0]
    await go(bench_lab, row, "typing", "sending", "failed")
    bench_lab.people.answers = [Answer(choice="skip", by="店长")]
    session = await reply(bench_lab, ASK)
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {}


@pytest.mark.parametrize("choice", ["skip", "arrived", "not_arrived"])
async def test_an_answer_that_an_attempt_took_up_as_it_died_is_taken_up_again(bench_lab: Lab, choice: str) -> None:
    """The ledger has it already, the session does not."""
    await bench_lab.open_chat()
    bench_lab.knowledge.records = ()
    waiting = await reply(bench_lab, ASK)
    row = (await bench_lab.ledger.recent(bench_lab.device.serial, "qq", "11"))[0]
    if choice != "skip":
        bench_lab.knowledge.records = Shelf().records
        row = await go(bench_lab, row, "typing", "sending", "unknown")
        waiting = await reply(bench_lab, ASK)
    saved = Session.model_validate_json(bench_lab.story.saved)
    assert saved.question == waiting.question
    taken = {"skip": ["skipped"], "arrived": ["sent"], "not_arrived": ["typing", "planned"]}[choice]
    await go(bench_lab, row, *taken)
    saved.answered = Answer(choice=choice, by="店长")
    asked = [ASK] if choice == "not_arrived" else []
    session = await reply(bench_lab, *asked, FINISH, session=saved)
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == ({"11": [ANSWER]} if choice == "not_arrived" else {})


async def test_a_keyboard_over_a_long_question_is_put_away() -> None:
    """By its picture the page shows a part of what is asked only."""
    asked = "".join(f"第{n}箱，之前买的那一批杯子少了好几只，说好要补的，" for n in range(1, 12)) + "几天能发货？"
    contacts = [ContactPart(name="11", number="20110011", history=[MessagePart(text=asked, ago=60, unread=True)])]
    async with lab(Scenario(contacts=contacts)) as bench:
        bench.knowledge.answers = {"发货": ANSWER}
        await bench.open_chat_by_url()
        field = next(node for node in await bench.phone.tree() if node.class_name.endswith("EditText"))
        await bench.device.tap(field.box.center)
        bench.phone.set_tree("empty")
        session = await reply(bench)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.people.asked == []
        assert bench.sent == {"11": [ANSWER]}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("case", ["long", "recall"])
async def test_by_pictures_only(case: str) -> None:
    events = [when_typed("recall", contact="11")] if case == "recall" else []
    async with lab(scene(*events)) as bench:
        bench.phone.set_tree("empty")
        long = ""
        if case == "long":
            long = "".join(f"第{n}步，请先打开我的订单，选择要处理的商品，再点申请售后。" for n in range(1, 7))
            bench.knowledge.records = (Record(id="l", text=long, question=ASKED.text, score=1.0, sure=True),)
        await bench.open_chat_by_url()
        session = await reply(bench, ASK, FINISH)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == ({"11": [long]} if case == "long" else {})
        assert bench.drafts == {}


async def test_a_phone_that_is_lost_before_send_says_that_nothing_was_sent(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench_lab.open_chat()
    observe = bench_lab.device.observe

    async def lost() -> LookedPicture:
        if ANSWER in bench_lab.drafts.values():
            raise DeviceUnauthorized("The phone is gone.")
        return await observe()

    monkeypatch.setattr(bench_lab.device, "observe", lost)
    session = await reply(bench_lab)
    assert session.status is Status.FAILED
    assert session.message.endswith("\n没有发送任何内容。")
    assert bench_lab.sent == {}
