"""Delivery in chats of today's QQ and WeChat: Send comes after typing, or never, or the input has to be fetched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from agent_core.apps.learnt import LearntApp
from agent_core.geometry import Point
from agent_core.loop.defaults import MemoryLedger
from agent_core.perception.readings import ChatScreen, SendState, Source
from agent_core.ports import ReplyState
from agent_core.reply.sender import send_button
from agent_core.session import Answer, QuestionKind, Session, Status
from simulator.phone.apps.looks import LOOKS
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.world import ContactKind
from tests.agent_core.reply.dying import Killed, Reaper, mortal, sensible
from tests.support.lab import ANSWER, FINISH, Lab, People, do, lab
from tests.support.model_server import Script, ScriptedModel

pytestmark = pytest.mark.rotating(parts=3)

QUESTION = "请问几天能发货？"
ASK = do('do(action="GET_KNOWLEDGE_DATA", query="几天能发货")')
TASKS = {"qq": "QQ回复联系人11", "wechat": "微信回复联系人11"}
ENTER = "wechat-enter"
VERSION = LOOKS[ENTER].version


class Colleagues(People):
    @property
    def kinds(self) -> list[QuestionKind]:
        return [question.kind for question in self.asked]


@asynccontextmanager
async def chat_of(
    look: str, *answers: Answer, tree: bool = False, status: str = "", others: Sequence[ContactPart] = ()
) -> AsyncIterator[Lab]:
    """A phone with the chat of 11 in front, who has asked something. ``tree`` False: there are pictures alone."""
    app = LOOKS[look].app
    contact = ContactPart(name="11", app=app, status=status, history=[MessagePart(text=QUESTION)])
    twins = [other.model_copy(update={"history": contact.history}) for other in others]
    async with lab(Scenario(look=look, contacts=[contact, *twins])) as bench:
        bench.tree = "auto" if tree else "off"
        bench.people = Colleagues(list(answers))
        bench.phone.show_chat(contact.key)
        yield bench


def by(choice: str) -> Answer:
    return Answer(choice=choice, by="店长")


async def reply(bench: Lab, look: str, calls: Sequence[Script] = (ASK, FINISH), **kwargs: object) -> Session:
    async with ScriptedModel(list(calls)) as model:
        return await bench.run(model, TASKS[LOOKS[look].app], **kwargs)  # type: ignore[arg-type]


def sent_once(bench: Lab) -> bool:
    return list(bench.sent.values()) == [[ANSWER]] and not any(bench.drafts.values())


async def states(bench: Lab) -> list[ReplyState]:
    """Of all rows of the ledger."""
    assert isinstance(bench.ledger, MemoryLedger)
    return [row.state for row in bench.ledger._rows.values()]


def kinds(bench: Lab) -> list[QuestionKind]:
    assert isinstance(bench.people, Colleagues)
    return bench.people.kinds


@pytest.mark.rotating(parts=6)
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize("look", ["qq-plain", "qq-classic", "wechat-light", "wechat-dark", "wechat-voice"])
async def test_the_customer_gets_the_answer_once(look: str, tree: bool) -> None:
    async with chat_of(look, tree=tree) as bench:
        session = await reply(bench, look)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench), bench.phone.report()
        assert kinds(bench) == []


@pytest.mark.parametrize(
    ("state", "is_button"),
    [(SendState.ON, True), (SendState.DIMMED, True), (SendState.KEYBOARD, False), (SendState.ABSENT, False)],
)
def test_a_key_of_the_keyboard_is_never_taken_for_send(state: SendState, is_button: bool) -> None:
    place = Point(980, 2300)
    page = ChatScreen("11", (), ANSWER, Source.OCR, send_point=place, send_state=state)
    assert send_button(page) == (place if is_button else None)


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


async def test_an_enter_that_only_makes_a_new_line_is_asked_about_and_not_remembered() -> None:
    async with chat_of(ENTER, by("enter")) as bench:
        field = bench.phone.chat_field()
        assert field is not None
        field.enter_acts = False
        session = await reply(bench, ENTER)
        assert session.status is Status.WAITING
        assert kinds(bench) == [QuestionKind.NO_SEND] * 2
        assert bench.sent == {}
        assert await bench.ledger.learnt(bench.device.serial, "wechat", VERSION) is None


@pytest.mark.parametrize("choice", ["enter", "sent", "skip"])
async def test_what_a_person_sent_by_hand_is_found_and_not_sent_again(choice: str) -> None:
    async with chat_of(ENTER) as bench:
        waiting = await reply(bench, ENTER)
        bench.phone.press("ENTER")  # the person, on the phone
        assert bench.sent == {"wechat:11": [ANSWER]}
        waiting.answered = by(choice)
        session = await reply(bench, ENTER, [FINISH], session=waiting)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)
        assert [one.text for one in session.replies] == [ANSWER]


async def test_who_says_that_it_was_sent_is_asked_again_if_it_stands_there_yet() -> None:
    async with chat_of(ENTER, by("sent"), by("enter")) as bench:
        session = await reply(bench, ENTER)
        assert session.status is Status.SUCCEEDED, session.message
        assert kinds(bench) == [QuestionKind.NO_SEND] * 2
        assert sent_once(bench)


async def test_what_a_person_gave_up_leaves_the_input() -> None:
    async with chat_of(ENTER, by("skip")) as bench:
        session = await reply(bench, ENTER)
        assert session.status is Status.SUCCEEDED
        assert "跳过" in session.message
        assert (bench.sent, bench.drafts) == ({}, {})
        assert await states(bench) == [ReplyState.SKIPPED]
        assert kinds(bench) == [QuestionKind.NO_SEND]


async def test_what_was_given_up_while_another_page_is_in_front_ends_the_run() -> None:
    async with chat_of(ENTER) as bench:
        waiting = await reply(bench, ENTER)
        await bench.phone.key("HOME")
        waiting.answered = by("skip")
        session = await reply(bench, ENTER, [], session=waiting)
        assert session.status is Status.SUCCEEDED
        assert bench.sent == {}
        # The next run of this contact clears what stands there, and asks again.
        bench.phone.show_chat("wechat:11")
        bench.people.answers = [by("skip")]
        await reply(bench, ENTER)
        assert (bench.sent, bench.drafts) == ({}, {})


# -- killed between typing and Enter, and after it

REPLY = ("kept_awake", "keyboard", "advance", "type", "advance", "key", "advance")  # to typing, to sending, to sent


@pytest.mark.rotating(parts=6)
@pytest.mark.parametrize("new_run", [False, True], ids=["next_attempt", "new_run"])
@pytest.mark.parametrize("at", range(3, len(REPLY) + 1), ids=lambda n: f"{n}_{REPLY[n - 1]}")
async def test_killed_before(at: int, new_run: bool) -> None:
    """In the end the customer has the answer once, and nobody is asked."""
    async with chat_of(ENTER) as bench:
        await bench.ledger.learn(bench.device.serial, LearntApp("wechat", VERSION, "enter"))
        reaper = Reaper(at=at)
        acts = frozenset(REPLY)
        with pytest.raises(Killed):
            await reply(
                bench,
                ENTER,
                device=mortal(bench.another(), reaper, acts),
                ledger=mortal(bench.ledger, reaper, acts),
                store=mortal(bench.story, reaper, acts),
            )
        assert reaper.calls == list(REPLY[:at])
        session = None if new_run else Session.model_validate_json(bench.story.saved)
        done = await reply(bench, ENTER, [sensible] * 4, session=session, device=bench.another())
        assert done.status is Status.SUCCEEDED, done.message
        assert sent_once(bench), bench.phone.report()
        assert kinds(bench) == []


async def test_stopped_while_it_waits_for_the_way_to_send_the_next_run_clears_and_answers() -> None:
    async with chat_of(ENTER) as bench:
        await reply(bench, ENTER)
        assert bench.drafts
        await bench.ledger.learn(bench.device.serial, LearntApp("wechat", VERSION, "enter"))
        session = await reply(bench, ENTER, [sensible] * 4)
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)


# -- the bar to hold and talk


async def test_a_voice_bar_that_stays_is_for_a_person() -> None:
    async with chat_of("wechat-voice") as bench:
        bench.phone.set_fault("ignored_taps", True)
        session = await reply(bench, "wechat-voice")
        assert session.status is Status.WAITING
        assert kinds(bench) == [QuestionKind.TAKE_OVER]
        assert "按住说话" in bench.people.asked[0].text
        assert (bench.sent, bench.drafts, bench.phone.report()["typed"]) == ({}, {}, [])
        bench.phone.set_fault("ignored_taps", False)
        session.answered = by("done")
        done = await reply(bench, "wechat-voice", [FINISH], session=session)
        assert done.status is Status.SUCCEEDED, done.message
        assert sent_once(bench)


# -- the header


@dataclass
class Happening:
    """A lease that is always ours. It is asked directly before the last look's picture; then ``happen`` happens."""

    happen: Callable[[], Awaitable[None]]

    async def check(self) -> None:
        await self.happen()


async def test_a_status_line_that_changes_all_the_time_keeps_nothing_from_being_sent() -> None:
    async with chat_of("qq-plain", status="在线") as bench:
        _, chat = bench.phone._find("11")

        async def types_on() -> None:
            chat.status = "对方正在输入..." if chat.status == "在线" else "在线"
            bench.phone._changed()

        session = await reply(bench, "qq-plain", lease=Happening(types_on))
        assert session.status is Status.SUCCEEDED, session.message
        assert sent_once(bench)


async def test_another_chat_that_differs_in_its_name_alone_gets_nothing() -> None:
    """The same question, the same text in the input, and a name that begins alike."""
    like = ContactPart(name="110", draft=ANSWER)
    async with chat_of("qq-plain", others=[like]) as bench:
        went = False

        async def goes_there() -> None:
            nonlocal went
            if not went and await states(bench) == [ReplyState.SENDING]:
                went = True
                bench.phone.show_chat("110")
                bench.phone.focus_on(bench.phone.chat_field())
                bench.phone._changed()

        await reply(bench, "qq-plain", [ASK], lease=Happening(goes_there))
        assert went
        assert bench.sent == {}


async def test_a_group_of_the_contacts_name_gets_nothing() -> None:
    group = ContactPart(name="11", app="qq", kind=ContactKind.GROUP, members=3, history=[MessagePart(text=QUESTION)])
    async with lab(Scenario(look="qq-plain", contacts=[group])) as bench:
        bench.people = Colleagues()
        bench.phone.show_chat("11")
        session = await reply(bench, "qq-plain", [ASK] * 4, max_steps=4)
        assert session.status is not Status.SUCCEEDED
        assert (bench.sent, bench.phone.report()["typed"]) == ({}, [])
