"""A person's "yes, this is their chat" holds for what they were shown, and for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from agent_core.devices.base import Node
from agent_core.geometry import Box, Point
from agent_core.loop import questions
from agent_core.perception.lists import ChatRow
from agent_core.perception.readings import Bubble, ChatScreen, Doubt, DoubtKind, Side, Source
from agent_core.policies.right_chat import is_contacts, names_alike
from agent_core.reply.outcome import DeliveryResult, check_chat
from agent_core.session import Answer, GateState, QuestionKind, Session, Status
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from tests.support.lab import ANSWER, ASK, FINISH, Lab, lab
from tests.support.model_server import ScriptedModel

TITLE_DOUBT = Doubt(DoubtKind.TITLE, "11", confidence=0.61)
SHOWN = ChatScreen(
    "11", (Bubble(Side.THEM, "在吗"),), "", Source.OCR, sure=False, doubts=(TITLE_DOUBT,), title_print="a picture of it"
)
GATE = GateState(
    enabled=True,
    contact="11",
    chat_confirmed="11",
    print_confirmed="a picture of it",
    doubts_confirmed=[TITLE_DOUBT.key],
)


def test_what_was_shown_is_allowed_however_sure_the_reading_is_the_next_time() -> None:
    assert check_chat(SHOWN, GATE) is None
    assert check_chat(replace(SHOWN, doubts=(replace(TITLE_DOUBT, confidence=0.58),)), GATE) is None
    assert check_chat(replace(SHOWN, sure=True, doubts=()), GATE) is None


@pytest.mark.parametrize(
    "other",
    [
        replace(SHOWN, title_print="11 beside a flower"),
        replace(SHOWN, doubts=(TITLE_DOUBT, Doubt(DoubtKind.MESSAGE, "退款"))),
        replace(SHOWN, doubts=(Doubt(DoubtKind.TITLE_MORE, "11"),)),
        replace(SHOWN, title="1l"),
        replace(SHOWN, torn=True),
    ],
)
def test_another_title_or_another_doubt_is_asked_about_anew(other: ChatScreen) -> None:
    outcome = check_chat(other, GATE)
    assert outcome is not None
    assert outcome.result is DeliveryResult.UNSURE_CHAT
    assert outcome.chat == other  # what the next yes holds for


def test_a_title_that_is_only_confirmed_is_not_the_one_that_looks_different() -> None:
    named = GATE.model_copy(update={"contact": "小店"})
    assert is_contacts(SHOWN, named)
    assert not is_contacts(replace(SHOWN, title_print="11 beside a flower"), named)


async def test_a_yes_does_not_make_a_tree_that_is_older_than_the_picture_the_chat(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    await bench_lab.device.tree()
    bench_lab.phone.receive("11", "不用了，谢谢")
    bench_lab.phone.set_tree("stale")
    bench_lab.people.answers = [Answer(choice="yes", by="店长"), Answer(choice="yes", by="店长")]
    async with ScriptedModel([ASK, ASK, ASK]) as model:
        session = await bench_lab.run(model)
    assert {question.kind for question in bench_lab.people.asked} == {QuestionKind.RIGHT_CHAT}
    assert "界面元素里最新的消息下面，画面里还有一条" in bench_lab.people.asked[0].text
    assert session.status is Status.WAITING
    assert bench_lab.phone.report()["typed"] == []
    assert bench_lab.sent == {}


@pytest.mark.parametrize("title", ["1\u200b1", "１１", "l1", "1١"])
@pytest.mark.parametrize("source", [Source.TREE, Source.OCR])
def test_a_name_that_only_looks_like_the_contacts_is_put_to_a_person(title: str, source: Source) -> None:
    gate = GateState(enabled=True, contact="11")
    chat = ChatScreen(title, (Bubble(Side.THEM, "在吗"),), "", source)
    outcome = check_chat(chat, gate)
    assert outcome is not None
    assert outcome.result is DeliveryResult.UNSURE_CHAT
    assert not is_contacts(chat, gate)
    session = Session(run_id="r", task="QQ回复联系人11", gate=gate, lang="en")
    question = questions.right_chat(session, outcome.title, outcome.detail, outcome.chat)
    assert "spelled with other letters" in question.text
    assert "U+" in question.text
    yes = gate.model_copy(update={"chat_confirmed": title})
    assert check_chat(chat, yes) is None
    assert check_chat(replace(chat, group=True), gate).result is DeliveryResult.WRONG_CHAT  # type: ignore[union-attr]


HIDDEN = "1\u200b1"


@pytest.mark.parametrize("contact", ["11", HIDDEN], ids=["plain", "saved_so"])
async def test_letters_in_the_tree_that_nobody_sees_leave_a_chat_unsure(contact: str) -> None:
    """Even if the contact was saved by that very name: the picture does not bear it out."""
    asks = [MessagePart(text="可以退吗？", ago=60, unread=True)]
    async with lab(Scenario(contacts=[ContactPart(name=HIDDEN, history=asks)])) as bench:
        await bench.open_chat(HIDDEN)
        async with ScriptedModel([ASK]) as model:
            session = await bench.run(model, task=f"QQ回复联系人“{contact}”")
        assert [question.kind for question in bench.people.asked] == [QuestionKind.RIGHT_CHAT]
        assert session.status is Status.WAITING
        assert bench.sent == {}


async def test_a_tree_that_begins_to_lag_shows_after_the_touch_and_nothing_is_typed(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench_lab.open_chat()
    tap = bench_lab.device.tap

    async def lagging(point: Point) -> None:
        await bench_lab.device.tree()
        bench_lab.phone.set_tree("stale")
        await tap(point)

    monkeypatch.setattr(bench_lab.device, "tap", lagging)
    async with ScriptedModel([ASK]) as model:
        session = await bench_lab.run(model)
    assert [question.kind for question in bench_lab.people.asked] == [QuestionKind.RIGHT_CHAT]
    assert session.status is Status.WAITING
    assert bench_lab.phone.report()["typed"] == []
    assert bench_lab.sent == {}
    assert [row.state for row in await bench_lab.ledger.unfinished(bench_lab.device.serial)] == []


@pytest.mark.rotating(parts=3)
@pytest.mark.parametrize("at", range(1, 7))
async def test_what_is_written_while_the_tree_is_dumped_is_read_and_is_no_doubt_of_the_chat(
    bench_lab: Lab, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """The picture is older than the tree then: both are taken anew, and nobody is asked whose chat it is."""
    bench_lab.knowledge.answers = {"急用": ANSWER}
    await bench_lab.open_chat()
    tree, trees = bench_lab.device.tree, 0

    async def slow() -> Sequence[Node]:
        nonlocal trees
        trees += 1
        if trees == at:
            bench_lab.phone.receive("11", "急用")
        return await tree()

    monkeypatch.setattr(bench_lab.device, "tree", slow)
    async with ScriptedModel([ASK, ASK, FINISH]) as model:
        session = await bench_lab.run(model)
    assert bench_lab.people.asked == []
    assert session.status is Status.SUCCEEDED, session.message
    assert bench_lab.sent == {"11": [ANSWER]}


@pytest.mark.parametrize(
    ("contact", "told"),
    [
        ("112", ["11", "110"]),
        ("11", ["110"]),  # a group may have exactly the contact's name
        ("王晓明", ["王小明"]),
        ("李雷", []),
        ("", []),
    ],
)
def test_names_in_the_app_that_may_have_been_meant(contact: str, told: list[str]) -> None:
    rows = [ChatRow(name, Box(0, 0, 1080, 190)) for name in ("11", "110", "王小明")]
    assert names_alike(rows, contact) == told
