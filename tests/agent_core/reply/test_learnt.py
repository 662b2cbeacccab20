"""A phone that was learnt is answered on without a question, until it looks otherwise."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from agent_core.apps.learnt import AppLook, LearntApp
from agent_core.apps.profile import profile
from agent_core.devices.base import Frame
from agent_core.perception.app_look import look_of
from agent_core.perception.chat import read_chat
from agent_core.perception.ocr import OcrEngine
from agent_core.session import Answer, QuestionKind, Session, Status
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import ContactPart, MessagePart, PhonePart, Scenario
from tests.support.drawing import draw
from tests.support.lab import ANSWER, ASK, FINISH, Lab, lab
from tests.support.model_server import ScriptedModel
from tests.support.ocr import needs_ocr

VERSION = "99.1.0"
pytestmark = [needs_ocr, pytest.mark.rotating(parts=3)]


@asynccontextmanager
async def desk(
    look: str, learnt: AppLook | None, version: str = VERSION, *, question: str = "请问几天能发货？"
) -> AsyncIterator[Lab]:
    history = [MessagePart(text=question, ago=60, unread=True)]
    scenario = Scenario(
        contacts=[ContactPart(name="11", history=history)],
        look=look,
        phone=PhonePart(app_versions={"qq": VERSION}),
    )
    async with lab(scenario) as bench:
        if learnt is not None:
            await bench.ledger.learn(bench.device.serial, LearntApp("qq", version, looks=(learnt,)))
        await bench.open_chat()
        yield bench


async def look(key: str) -> AppLook:
    """What is seen of a look when it is learnt."""
    drawn = draw(key, "11", [MessagePart(text="请问几天能发货？", ago=60), MessagePart(side="me", text="好", ago=30)])
    chat = await read_chat(OcrEngine(), Frame(drawn.image, key, 0.0), profile("qq"))
    assert chat is not None
    return look_of(drawn.image, chat, profile("qq"))


async def reply(bench: Lab) -> Session:
    async with ScriptedModel([ASK, FINISH]) as model:
        return await bench.run(model)


async def test_learnt_phone_is_answered_on_without_a_question() -> None:
    async with desk("qq-plain", await look("qq-plain")) as bench:
        session = await reply(bench)
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.people.asked == []
        assert bench.sent == {"11": [ANSWER]}


async def test_what_was_learnt_of_another_version_is_of_no_use() -> None:
    async with desk("qq-plain", await look("qq-plain"), "99.0.0") as bench:
        bench.people.answers = [Answer(choice="skip", by="店长")]
        await reply(bench)
        assert [question.kind for question in bench.people.asked] == [QuestionKind.FIRST_DELIVERY]
        assert bench.sent == {}


async def test_another_theme_is_noticed_asked_about_once_and_learnt() -> None:
    light = await look("qq-plain")
    async with desk("qq-dark", light) as bench:
        bench.people.answers = [Answer(choice="send", by="店长")]
        session = await reply(bench)
        (question,) = bench.people.asked
        assert question.kind is QuestionKind.FIRST_DELIVERY
        assert "页面的颜色" in question.text
        assert session.status is Status.SUCCEEDED, session.message
        assert bench.sent == {"11": [ANSWER]}
        known = await bench.ledger.learnt(bench.device.serial, "qq", VERSION)
        assert known is not None
        assert [seen.ground for seen in known.looks] == [light.ground, LOOKS["qq-dark"].colors.page]
        bench.phone.receive("11", "几天能发货？急")
        await reply(bench)
        assert len(bench.people.asked) == 1
        assert len(bench.sent["11"]) == 2


async def test_another_layout_is_noticed_and_nothing_is_sent_if_a_person_says_so() -> None:
    seen = await look("qq-plain")
    async with desk("qq-plain", replace(seen, header=(seen.header or 0) + 0.1)) as bench:
        bench.people.answers = [Answer(choice="skip", by="店长")]
        await reply(bench)
        assert "标题栏的高度" in bench.people.asked[0].text
        assert bench.sent == {}


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("known", [True, False])
async def test_a_message_that_fills_the_screen_is_told_by_the_colour_that_the_phone_has_shown(known: bool) -> None:
    story = "".join(f"第{n}箱，之前买的那一批杯子少了好几只，说好要补的，" for n in range(1, 24)) + "几天能发货？"
    learnt = LOOKS["qq-dark"].learnt().looks[0] if known else AppLook()
    async with desk("qq-dark", learnt, question=story) as bench:
        bench.phone.set_tree("empty")
        bench.knowledge.answers = {"发货": ANSWER}
        bench.people.answers = [Answer(choice="skip", by="店长")]
        session = await reply(bench)
        assert (session.status is Status.SUCCEEDED) is known, session.message
        assert bench.sent == ({"11": [ANSWER]} if known else {})
