"""Where the chat cannot be read, nothing is typed and nothing near its input is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image

from agent_core.actions.types import (
    Action,
    Back,
    DoubleTap,
    GetKnowledgeData,
    Home,
    LongPress,
    Swipe,
    Tap,
    Type,
    TypeName,
    Wait,
)
from agent_core.agent import PhoneAgent
from agent_core.apps.profile import profile
from agent_core.devices.base import Frame, Window
from agent_core.geometry import Box
from agent_core.loop.guard import RepeatWatch
from agent_core.model.client import ChatModel
from agent_core.perception.observer import Observation
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Reading, Source
from agent_core.policies import REPLY_POLICIES, Decision, Judgement, Situation, Verdict, review
from agent_core.policies.customer_reply import UnreadPage
from agent_core.session import Answer, GateState, QuestionKind, Session, Status
from agent_core.settings import AgentSettings, new_session
from tests.support.lab import TASK, Lab, do, lab
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr

IN_QQ = Window("com.tencent.mobileqq", ".activity.SplashActivity")


def done(action: Action, *, below: int | None) -> Action | None:
    gate = GateState(enabled=True, contact="11", pending_question="几天能发货？")
    where = Situation(profile("qq"), IN_QQ, (1000, 2000), gate, unread_below=below)
    return review(action, where, REPLY_POLICIES).action


LOW, HIGH = (930, 950), (500, 200)


@pytest.mark.parametrize(
    ("action", "blocked"),
    [
        (Tap(element=LOW), True),
        (Swipe(start=LOW, end=LOW, duration=0.1), True),
        (Swipe(start=LOW, end=HIGH), True),
        (Type(text="11"), True),
        (TypeName(text="11"), True),
        (Tap(element=HIGH), True),
        (LongPress(element=HIGH), True),
        (DoubleTap(element=HIGH), True),
        (Swipe(start=HIGH, end=HIGH, duration=0.1), True),
        (Swipe(start=HIGH, end=(900, 200)), True),  # along a row it may be a click
        (Swipe(start=HIGH, end=LOW), False),
        (Swipe(start=(500, 700), end=HIGH), False),
        (Home(), False),
        (Back(), False),
        (GetKnowledgeData(query="几天能发货？"), False),
    ],
)
def test_what_is_refused_on_a_page_that_may_be_a_chat(action: Action, blocked: bool) -> None:
    assert (done(action, below=1800) is None) is blocked
    if not isinstance(action, LongPress | DoubleTap):
        assert done(action, below=None) == action  # a page that was read


@pytest.mark.parametrize(("point", "blocked"), [((300, 530), False), ((950, 55), True), ((40, 300), True)])
def test_a_dialog_that_was_read_is_closed_though_the_page_below_it_was_not(
    point: tuple[int, int], blocked: bool
) -> None:
    picture = Image.new("RGB", (1000, 2000), "#777777")
    picture.paste("white", (120, 800, 880, 1120))
    words = (
        Reading("连接已断开", Box(400, 860, 600, 900), Source.OCR),
        Reading("知道了", Box(250, 1040, 350, 1080), Source.OCR),
    )
    gate = GateState(enabled=True, contact="11", pending_question="几天能发货？")
    frame = Frame(picture, "d", 0.0)
    where = Situation(profile("qq"), IN_QQ, (1000, 2000), gate, words, frame=frame, unread_below=1800)
    tap = Tap(element=point)
    assert (review(tap, where, REPLY_POLICIES).action is None) is blocked
    assert review(tap, replace(where, readings=()), REPLY_POLICIES).action is None


def test_waiting_is_allowed() -> None:
    assert done(Wait(duration=1), below=1800) is not None


TAP_BAR = do('do(action="Tap", element=[300, 945])')
TYPE_NAME = do('do(action="Type", text="11")')
TAP_SEND = do('do(action="Tap", element=[900, 945])')
LEAVES = do('do(action="Swipe", start=[900, 945], end=[900, 945], duration="0.1 seconds")')


async def _blind_run(bench: Lab, *replies: str, max_steps: int = 20) -> Session:
    """A run of a phone that neither a tree nor OCR nor a model can read."""
    settings = AgentSettings(max_steps=max_steps)
    async with ScriptedModel(list(replies)) as model:
        client = ChatModel(model.url, "scripted", "key", timeout=5)
        agent = PhoneAgent(
            model=client,
            device=bench.device,
            knowledge=bench.knowledge,
            human=bench.people,
            ledger=bench.ledger,
            store=bench.story,
            reader=ScreenReader(ocr=None, model=None),
            settings=settings,
        )
        try:
            return await agent.go_on(new_session(TASK, bench.device.serial, settings))
        finally:
            await client.close()


async def test_a_name_is_not_typed_into_a_chat_that_cannot_be_read_and_then_a_person_is_asked(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    bench_lab.phone.set_tree("empty")
    session = await _blind_run(bench_lab, TAP_BAR, TYPE_NAME, LEAVES)
    assert session.status is Status.WAITING
    assert session.question is not None
    assert session.question.kind is QuestionKind.STUCK
    assert session.unread_refusals == 0
    assert (bench_lab.sent, bench_lab.drafts) == ({}, {})
    assert bench_lab.phone.report()["typed"] == []
    assert bench_lab.phone.report()["taps"][1:] == []  # the first opened the chat


async def test_a_draft_that_stands_there_is_not_sent(bench_lab: Lab) -> None:
    await bench_lab.open_chat()
    field = next(node for node in await bench_lab.phone.tree() if node.class_name.endswith("EditText"))
    await bench_lab.device.tap(field.box.center)
    await bench_lab.phone.text("5 yuan")
    bench_lab.phone.set_tree("empty")
    bench_lab.people.answers = [Answer(choice="stop", by="店长")]
    session = await _blind_run(bench_lab, TAP_SEND, LEAVES, TAP_SEND)
    assert [question.kind for question in bench_lab.people.asked] == [QuestionKind.STUCK]
    assert session.status is not Status.SUCCEEDED
    assert bench_lab.sent == {}


def test_what_is_refused_is_forgotten_once_a_page_is_read() -> None:
    session = new_session(TASK, "", AgentSettings())
    watch = RepeatWatch(session)
    refused = Judgement(None, (Verdict(Decision.BLOCK, policy=UnreadPage.name),))
    picture = Frame(Image.new("RGB", (10, 20)), "d", 0.0)
    read = Observation(picture, IN_QQ, None, (), None, 0.0)
    unread = replace(read, unread_below=10)
    for seen, judgement, count in (
        (unread, refused, 1),
        (unread, Judgement(Back()), 1),
        (unread, refused, 2),
        (read, Judgement(Back()), 0),
        (unread, refused, 1),
    ):
        watch.count_unread(seen, judgement)
        assert session.unread_refusals == count
    assert watch.count(Wait(), unread) is None
    session.unread_refusals = 3
    assert watch.count(Wait(), unread) is not None


@pytest.mark.rotating(parts=3)
@needs_ocr
async def test_a_contact_is_searched_by_its_name_in_pictures() -> None:
    async with lab() as bench:
        bench.phone.set_tree("empty")
        await bench.phone.launch("com.tencent.mobileqq")
        search = do('do(action="Tap", element=[300, 118])')
        async with ScriptedModel([search, TYPE_NAME, do('do(action="Tap", element=[400, 163])')]) as model:
            await bench.run(model, max_steps=3)
        report = bench.phone.report()
        assert report["typed"] == [{"field": "search", "text": "11"}]
        assert report["chats_opened"] == ["11"]
