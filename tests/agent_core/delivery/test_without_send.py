"""Delivery in chats of today's QQ and WeChat: Send comes after typing, or never, or the input has to be fetched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from agent_core.apps.learnt import LearntApp
from agent_core.devices.virtual.apps.looks import LOOKS
from agent_core.devices.virtual.scenario import ContactPart, EventPart, Scenario
from agent_core.session import Answer, Question, QuestionKind, Session, Status
from tests.support.lab import ANSWER, FINISH, Lab, People, do, lab
from tests.support.model_server import ScriptedModel

QUESTION = "请问几天能发货？"
ASK = do('do(action="GET_KNOWLEDGE_DATA", query="几天能发货")')
TASKS = {"qq": "QQ回复联系人11", "wechat": "微信回复联系人11"}
ENTER = "wechat-enter"
VERSION = LOOKS[ENTER].version


@dataclass
class Colleagues(People):
    """Says yes to the first answer in a version; ``answers`` are for what else is asked."""

    async def ask(self, session: Session, question: Question, *, picture: bytes | None = None) -> Answer | None:
        if question.kind is QuestionKind.FIRST_DELIVERY:
            return Answer(choice="send", by="店长")
        return await super().ask(session, question, picture=picture)

    @property
    def kinds(self) -> list[QuestionKind]:
        return [question.kind for question in self.asked]


@asynccontextmanager
async def chat_of(look: str, *answers: Answer, tree: bool = False) -> AsyncIterator[Lab]:
    """A phone with the chat of 11 in front, who has asked something. ``tree`` False: there are pictures alone."""
    app = LOOKS[look].app
    contact = ContactPart(name="11", app=app)
    key = "11" if app == "qq" else f"{app}:11"
    events = [EventPart(at=0, contact=key, text=QUESTION)]
    async with lab(Scenario(look=look, contacts=[contact], events=events)) as bench:
        bench.tree = "auto" if tree else "off"
        bench.people = Colleagues(list(answers))
        bench.phone.show_chat(key)
        yield bench


def by(choice: str) -> Answer:
    return Answer(choice=choice, by="店长")


async def reply(bench: Lab, look: str, calls: Sequence[str] = (ASK, FINISH), **kwargs: object) -> Session:
    async with ScriptedModel(list(calls)) as model:
        return await bench.run(model, TASKS[LOOKS[look].app], **kwargs)  # type: ignore[arg-type]


def sent_once(bench: Lab) -> bool:
    return list(bench.sent.values()) == [[ANSWER]] and not any(bench.drafts.values())


def kinds(bench: Lab) -> list[QuestionKind]:
    assert isinstance(bench.people, Colleagues)
    return bench.people.kinds


@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("look", ["qq-plain", "qq-classic", "wechat-light", "wechat-dark", "wechat-voice"])
async def test_the_customer_gets_the_answer_once(look: str, tree: bool) -> None:
    async with chat_of(look, tree=tree) as bench:
        session = await reply(bench, look)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench), bench.phone.report()
        assert kinds(bench) == []


# -- Enter sends: never a Send


async def test_a_phone_that_was_learnt_to_send_by_enter_asks_nobody() -> None:
    async with chat_of(ENTER) as bench:
        await bench.ledger.learn(bench.device.serial, LearntApp("wechat", VERSION, "enter"))
        session = await reply(bench, ENTER)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)
        assert kinds(bench) == []


async def test_a_phone_that_was_learnt_to_send_by_the_keyboards_key_asks_nobody() -> None:
    async with chat_of(ENTER) as bench:
        await bench.ledger.learn(bench.device.serial, LearntApp("wechat", VERSION, "keyboard_key"))
        session = await reply(bench, ENTER)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)
        assert kinds(bench) == []


@pytest.mark.parametrize(
    "other",
    [LearntApp("wechat", "7.0.0", "enter"), LearntApp("qq", VERSION, "enter"), LearntApp("wechat", VERSION, "button")],
)
async def test_nothing_is_sent_by_guessing(other: LearntApp) -> None:
    async with chat_of(ENTER) as bench:
        await bench.ledger.learn(bench.device.serial, other)
        session = await reply(bench, ENTER)
        assert session.status is Status.WAITING
        assert kinds(bench) == [QuestionKind.NO_SEND]
        assert bench.sent == {}
        assert bench.drafts == {"wechat:11": ANSWER}  # it stands typed


async def test_after_a_person_chose_enter_it_is_sent_once_and_remembered() -> None:
    async with chat_of(ENTER, by("enter")) as bench:
        session = await reply(bench, ENTER)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)
        assert kinds(bench) == [QuestionKind.NO_SEND]
        learnt = await bench.ledger.learnt(bench.device.serial, "wechat", VERSION)
        assert learnt == LearntApp("wechat", VERSION, "enter")
        bench.phone.receive("wechat:11", "那能开发票吗？")
        bench.knowledge.answers = {"发票": "可以开票。"}
        again = await reply(bench, ENTER, [do('do(action="GET_KNOWLEDGE_DATA", query="能开发票吗")'), FINISH])
        assert again.status is Status.SUCCEEDED, again.message
        assert bench.sent == {"wechat:11": [ANSWER, "可以开票。"]}
        assert kinds(bench) == [QuestionKind.NO_SEND]  # not asked again


async def test_the_answer_may_come_later_and_elsewhere() -> None:
    async with chat_of(ENTER) as bench:
        waiting = await reply(bench, ENTER)
        assert waiting.status is Status.WAITING
        later = Session.model_validate_json(bench.story.saved)
        later.answered = by("enter")
        session = await reply(bench, ENTER, [FINISH], session=later, device=bench.another())
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)


async def test_enter_that_makes_a_new_line_sends_nothing_and_is_not_remembered() -> None:
    async with chat_of("wechat-light", by("enter")) as bench:
        bench.phone._chat_apps["wechat"].look = replace(bench.phone._chat_apps["wechat"].look, enter_sends=True)
        bench.phone.faults.ignored_taps = False
        session = await reply(bench, "wechat-light")
        assert session.status is Status.WAITING
        assert bench.sent == {}


async def test_what_a_person_sent_by_hand_is_found_and_not_sent_again() -> None:
    async with chat_of(ENTER) as bench:
        waiting = await reply(bench, ENTER)
        bench.phone.press("ENTER")  # the person, on the phone
        assert bench.sent == {"wechat:11": [ANSWER]}
        for choice in ("sent",):
            later = Session.model_validate_json(waiting.model_dump_json())
            later.answered = by(choice)
            session = await reply(bench, ENTER, [FINISH], session=later)
            assert session.status is Status.SUCCEEDED, session.message
            assert sent_once(bench)
            assert [one.text for one in session.replies] == [ANSWER]
