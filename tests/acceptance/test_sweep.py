"""Sweeps over Telegram, on a real phone server: one message, each contact once, silence where nothing happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from simulator.phone.scenario import ContactPart, MessagePart, Scenario
from simulator.phone.world import Side
from simulator.telegram import FakeUser, Message
from storage.people import Audit
from storage.questions import OPEN, Questions
from storage.runs import Runs
from storage.schedules import Schedules, Tick
from tests.acceptance.stage import ANSWER, OPEN_QUESTION, PATIENCE, QUESTION, Stage, stage, until

pytestmark = pytest.mark.rotating(parts=3)

SHIPPING, RETURNS = QUESTION, "支持七天无理由退货吗？"


def waiting(**questions: str) -> Scenario:
    """Contacts who wait, who has waited longest first."""
    return Scenario(
        contacts=[
            ContactPart(
                name=name,
                number=f"2011000{place}",
                history=[
                    MessagePart(side=Side.ME, text="您好", ago=5000),
                    MessagePart(text=text, ago=600.0 - 60 * place, unread=True),
                ],
            )
            for place, (name, text) in enumerate(questions.items())
        ]
    )


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, waiting(小王=SHIPPING, 小李=OPEN_QUESTION, 小张=RETURNS)) as made:
        yield made


async def sweep(user: FakeUser, text: str = "巡检") -> Message:
    """Write it; the card that comes after it."""
    asked = await user.send(text)
    cards = await user.sees(lambda where: [m for m in where.saying("任务：巡检") if m.id > asked.id], timeout=PATIENCE)
    assert cards[0].reply_to is asked
    return cards[0]


async def test_each_is_answered_once_in_their_order_and_shown_in_one_message(shop: Stage) -> None:
    server = await shop.serve()
    owner = await shop.owner(server)
    before = len(owner.chat.from_bot)
    card = await sweep(owner)
    await shop.shows(owner, card, "等人回答（2 / 3）")
    assert list(shop.report["chats_opened"]) == ["小王", "小李", "小张"]  # who has waited longest is the first
    assert {name: len(texts) for name, texts in shop.sent.items()} == {"小王": 1, "小张": 1}
    assert shop.sent["小王"] == [ANSWER]
    assert card.words.count("已回复") == 2
    assert "小李：等人回答" in card.words
    assert len(owner.chat.from_bot) == before + 2  # the card, and the question

    # Who waits for a person is left to them: a second sweep starts nobody, and asks no model.
    calls = len(shop.brain.calls)
    again = await sweep(owner, "/sweep")
    assert "看了 3 个联系人" in await shop.shows(owner, again, "没有要回复的新消息")
    assert len(shop.brain.calls) == calls

    question = await shop.sees(owner, OPEN_QUESTION)
    await owner.send("可以带。", reply_to=question)
    await shop.shows(owner, card, "巡检完成")
    assert shop.sent["小李"] == ["可以带。"]
    runs = await shop.runs()
    first = min((run for run in runs if run.task.startswith("巡检")), key=lambda run: run.id)
    assert [run.status for run in runs if run.parent_id == first.id] == ["succeeded"] * 3
    assert first.status == "succeeded"


async def test_stop_on_the_card_stops_all_of_them(shop: Stage) -> None:
    shop.brain.delay = 0.3  # the first takes its time
    server = await shop.serve()
    owner = await shop.owner(server)
    card = await sweep(owner)
    await shop.shows(owner, card, "小王：正在回复")
    await owner.tap(card, "停止")
    words = await shop.shows(owner, card, "巡检已停止")
    assert words.count("已停止") >= 3
    await until(lambda: shop.report["chats_opened"] in ([], ["小王"]))
    assert {run.status for run in await shop.runs()} == {"stopped"}
    assert shop.sent == {}
    shop.at_rest()


async def test_what_a_person_asks_for_goes_between_two_contacts(shop: Stage) -> None:
    server = await shop.serve()
    owner = await shop.owner(server)
    shop.brain.delay = 0.1  # the first contact is at work as they write
    card = await sweep(owner)
    await shop.shows(owner, card, "小王：正在回复")
    await shop.run(owner, "QQ回复联系人小张")
    shop.brain.delay = 0.0
    await shop.shows(owner, card, "2 / 3")
    runs = {(run.task, bool(run.parent_id)): run for run in await shop.runs()}
    between, after = runs["QQ回复联系人小张", False], runs["QQ回复联系人小李", True]
    assert between.ended_at is not None
    assert after.started_at is not None
    assert between.ended_at <= after.started_at
    assert "小张：看过了，不用回复" in card.words
    assert len(shop.sent["小张"]) == 1


async def test_by_schedule_nothing_is_said_where_nothing_happened(tmp_path: Path) -> None:
    async with stage(tmp_path, waiting(小王=SHIPPING)) as shop:
        server = await shop.serve()
        owner = await shop.owner(server)
        await owner.send("/schedule add 每天3点 巡检")
        await shop.sees(owner, "已添加定时任务 #1")
        said = len(owner.chat.from_bot)
        await tick(shop)
        [card] = await owner.sees(
            lambda where: [m for m in where.saying("任务：巡检") if m.reply_to is None and "小王" in m.words],
            timeout=PATIENCE,
        )
        await shop.shows(owner, card, "巡检完成")
        calls = len(shop.brain.calls)
        await tick(shop)
        assert len(owner.chat.from_bot) == said + 1
        assert len(shop.brain.calls) == calls
        assert shop.sent == {"小王": [ANSWER]}


async def tick(shop: Stage) -> None:
    """The time of schedule 1 has come; its run is over when this returns."""
    async with shop.database() as db:
        result = await Schedules(db).tick(1, datetime.now(UTC))
        assert result.tick is Tick.STARTED
        async with asyncio.timeout(PATIENCE):
            while (row := await Runs(db).get(result.run_id)) is None or not row.final:
                await asyncio.sleep(0.05)
    assert row.status == "succeeded"


async def test_the_command_answers_and_then_finds_nothing_without_a_model(tmp_path: Path) -> None:
    async with stage(tmp_path, waiting(小王=SHIPPING, 小李=OPEN_QUESTION)) as shop:
        done = await shop.command("sweep", "--unread", "--json")
        assert done.code == 3, done.err  # somebody waits for a person
        assert {one["contact"]: (one["status"], len(one["replies"])) for one in done.json["contacts"]} == {
            "小王": ("succeeded", 1),
            "小李": ("waiting", 0),
        }
        assert shop.sent == {"小王": [ANSWER]}
        calls = len(shop.brain.calls)
        # The first brings the app to its list, and a question waits there still; the second finds it there.
        for words, code in (((), 3), (("小王",), 0)):
            done = await shop.command("sweep", *words, "--json")
            assert (done.code, done.json["contacts"]) == (code, []), done.err
        assert (done.json["quiet"], done.json["round_trips"]) == (["小王"], 2)
        assert len(shop.brain.calls) == calls
        async with shop.database() as db:
            (question,) = await Questions(db).find(state=OPEN)
        asked = await shop.command("sweep", "小李", "小王", "--json")
        assert asked.code == 3
        assert (asked.json["left"], asked.json["quiet"]) == ([{"contact": "小李", "why": "asked"}], ["小王"])
        assert asked.json["questions"] == [{"contact": "小李", "id": question.id}]
        told = await shop.command("sweep", "小李")
        assert "没有要回复的新消息" not in told.out
        assert "之前的提问还在等人回答：小李" in told.out
        assert f"phonedesk questions answer {question.id}" in told.out
        nobody = await shop.command("sweep", "无此人", "--json")
        assert (nobody.code, "没有找到：无此人" in nobody.err) == (2, True)
        assert (nobody.json["unknown"], nobody.json["contacts"]) == (["无此人"], [])


async def test_in_a_terminal_it_says_that_it_looks_and_answers_each(shop: Stage) -> None:
    done = await shop.command("sweep", "--unread")
    lines = done.out.splitlines()
    assert lines[0] == "▶ 巡检 QQ"
    assert [line for line in lines if line.startswith("▶ ")][1:] == [
        f"▶ QQ回复联系人{name}" for name in ("小王", "小李", "小张")
    ]
    assert done.code == 3, done.err  # one waits for a person
    ends = [line[:1] for line in lines if line[:1] in "▶✅✋"]
    assert ends == ["▶", "▶", "✅", "▶", "✋", "▶", "✅"], "each outcome stands below its own run"
    async with shop.database() as db:
        assert [(row.actor, row.command) for row in await Audit(db).last()] == [("terminal", "sweep")]
