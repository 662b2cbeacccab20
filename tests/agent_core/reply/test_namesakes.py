"""Two rows of one name: a person says which is the contact's, and the next run knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PIL import Image

from agent_core.devices.base import Key
from agent_core.errors import CommandFailed
from agent_core.geometry import Box, Point
from agent_core.perception.lists import ChatRow
from agent_core.reply.namesakes import _known, _mark
from agent_core.session import Answer, QuestionKind, RowMark, Status
from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from tests.support.lab import ANSWER, ASK, FINISH, LAUNCH, Lab, do, lab
from tests.support.model_server import ScriptedModel

pytestmark = pytest.mark.rotating(parts=3)

CONTACTS = [
    ContactPart(name="11 ", history=[MessagePart(text="可以退吗？", ago=30, unread=True)]),  # shown as 11
    ContactPart(name="11", history=[MessagePart(text="你好，请问几天能发货？", ago=60, unread=True)]),
]
UPPER, LOWER = do('do(action="Tap", element=[400,175])'), do('do(action="Tap", element=[400,245])')


async def run(bench: Lab, *calls: str, status: Status = Status.SUCCEEDED) -> str:
    async with ScriptedModel(list(calls)) as model:
        session = await bench.run(model)
    assert session.status is status, session.message
    return " ".join(step.result + " ".join(verdict.message for verdict in step.verdicts) for step in session.steps)


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["auto", "off"])
async def test_a_person_chooses_among_rows_of_one_name_once(tree: str) -> None:
    async with lab(Scenario(contacts=CONTACTS)) as bench:
        bench.tree = tree
        bench.people.answers = [Answer(choice="row:1", by="店长")]
        said = await run(bench, LAUNCH, UPPER, LOWER, ASK, FINISH)
        (asked,) = bench.people.asked
        assert asked.kind is QuestionKind.WHICH_ROW
        assert [choice.label for choice in asked.choices[:2]] != ["1", "2"]
        assert "可以退吗" in asked.choices[0].label
        assert "另一个也叫“11”的人" in said  # the upper row was not opened
        assert bench.sent == {"11": [ANSWER]}
        assert bench.phone.report()["unread"]["11 "] == 1

        bench.phone.receive("11", "你好，请问几天能发货？")  # their row comes first now
        await bench.device.key(Key.BACK)
        await bench.device.tap(Point(300, 390))  # the second row: the chat of the other one stands open
        said = await run(bench, UPPER, ASK, FINISH)
        assert "还有别人也叫“11”" in said
        assert len(bench.people.asked) == 1
        assert bench.sent == {"11": [ANSWER, ANSWER]}


FILLERS = [ContactPart(name=f"客户{n}", history=[MessagePart(text="好的", ago=9000 + n)]) for n in range(14)]


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("tree", ["auto", "off"])
async def test_a_row_of_that_name_that_is_alone_in_sight_is_not_opened_if_its_picture_is_another(tree: str) -> None:
    async with lab(Scenario(contacts=[*CONTACTS, *FILLERS])) as bench:
        bench.tree = tree
        bench.people.answers = [Answer(choice="row:1", by="店长")]
        await run(bench, LAUNCH, LOWER, ASK, FINISH)
        while not any(node.text == "客户1" for node in await bench.phone.tree()):  # the keyboard may be up
            await bench.device.key(Key.BACK)
        for contact in (*FILLERS, CONTACTS[0]):
            bench.phone.receive(contact.name, "在吗")
        async with ScriptedModel([UPPER]) as model:
            session = await bench.run(model, max_steps=1)
        assert "另一个也叫“11”的人" in session.steps[0].verdicts[0].message
        assert bench.phone.report()["chats_opened"] == ["11"]
        assert len(bench.people.asked) == 1

        bench.phone.receive("11", "你好，请问几天能发货？")  # alone in sight, and the contact's own
        for contact in FILLERS:
            bench.phone.receive(contact.name, "在吗")
        bench.phone.receive("11", "请问几天能发货？")
        async with ScriptedModel([UPPER]) as model:
            session = await bench.run(model, max_steps=1)
        assert session.gate.row_entered
        assert bench.phone.report()["chats_opened"] == ["11", "11"]


async def test_a_row_without_a_picture_to_compare_is_asked_about_once() -> None:
    async with lab(Scenario(contacts=[CONTACTS[1]])) as bench:
        await bench.ledger.choose_row(bench.device.serial, "qq", "11", RowMark(preview="以前的话", time="昨天"))
        bench.people.answers = [Answer(choice="row:0", by="店长")]
        await run(bench, LAUNCH, UPPER, ASK, FINISH)
        (asked,) = bench.people.asked
        assert asked.text.startswith("还有别人也叫“11”，这一行没有头像")
        assert bench.sent == {"11": [ANSWER]}


async def test_a_number_that_opened_nothing_says_nothing_of_the_chat_in_front(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses(*_: object) -> None:
        raise CommandFailed("no such page")

    async with lab(Scenario(contacts=[CONTACTS[1]])) as bench:
        monkeypatch.setattr(bench.device, "open_url", refuses)
        async with ScriptedModel([LAUNCH, do('do(action="Wait", duration="0 seconds")')]) as model:
            session = await bench.run(model, max_steps=2, number="20110011")
        assert (session.number_tried, session.gate.row_entered) == (True, False)


async def test_none_of_them_ends_the_run() -> None:
    async with lab(Scenario(contacts=CONTACTS)) as bench:
        bench.people.answers = [Answer(choice="none", by="店长")]
        await run(bench, LAUNCH, status=Status.FAILED)
        assert bench.sent == {}


def test_rows_with_one_avatar_are_told_by_what_they_say_or_not_at_all() -> None:
    page = Image.new("RGB", (1080, 800), "white")
    page.paste("teal", (40, 240, 160, 360))
    page.paste("teal", (40, 440, 160, 560))
    upper = ChatRow("11", Box(0, 200, 1080, 400), 1, "在吗", avatar=Box(40, 240, 160, 360), time="09:30")
    lower = ChatRow("11", Box(0, 400, 1080, 600), 1, "能退吗", avatar=Box(40, 440, 160, 560), time="09:20")
    mark = _mark(lower, page)
    assert _known([upper, lower], mark, page) is lower
    assert _known([upper, replace(lower, preview="多久")], mark, page) is None
    page.paste("orange", (40, 240, 160, 360))
    other = replace(lower, preview="多久")
    assert _known([upper, other], mark, page) is other
    assert _known([upper, upper], mark, page) is None
