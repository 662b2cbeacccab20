"""Sweeps as a conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bot.channels.chat.sweeps import sweep_card
from bot.channels.chat.texts import LANGUAGES, texts
from bot.desk.views import ContactView, RunStatus, RunView, SweepView, SweptView
from tests.support.stage import NOW, Stage
from tests.support.talker import Talker, talker


async def test_a_sweep_in_words_and_by_command(stage: Stage, wang: Talker) -> None:
    assert await wang.say("巡检 11 小王") == (
        "巡检：排队中\n任务: 巡检 11 小王\n手机: Pixel\n发起人: Operator A\n队列中第 1 位\n[停止]"
    )
    await stage.desk.contacts.add(await stage.actor(11), ContactView("qq", "老王", tags=("老客户",)))
    for written in ("/sweep", "扫一遍", "/巡检 #老客户"):
        assert "巡检：排队中" in await wang.say(written)
    viewer = talker(stage.desk, "13", "Viewer")
    await viewer.say("/start 1234")
    assert "巡检：排队中" not in await viewer.say("/sweep")
    stopped = await wang.tap(f"stop:{await stage.newest()}")
    assert stopped.startswith("(")


async def test_a_schedule_for_one_contact_is_a_reply_to_that_contact(stage: Stage, wang: Talker) -> None:
    await wang.say("/schedule 添加 每5分钟 QQ回复联系人11")
    shown = await wang.say("/schedule")
    number = shown.split("#")[1][0]
    assert "定时回复 11：排队中" in await wang.say(f"/schedule 运行 {number}")


def test_the_card_tells_how_far_it_is_and_what_became_of_each() -> None:
    contacts = (
        SweptView("11", "answered", ("48小时内发出。", "支持退货。")),
        SweptView("小王", "asked"),
        SweptView("小李", "failed", message="The phone is offline."),
    )
    sweep = SweepView(3, contacts, {"quiet": ["小张"], "left": [["小赵", "asked"]], "aside": [["VIP群", "group"]]})
    run = RunView("r1", "巡检", RunStatus.WAITING, serial="S1", phone="Pixel", sweep=sweep, started_at=NOW)
    card = sweep_card(run, sweep, texts("zh"), now=NOW + timedelta(seconds=75))
    assert card.title == "巡检：等人回答（2 / 3）"
    assert [(line.label, line.text) for line in card.lines[2:]] == [
        ("11", "已回复"),
        ("", "48小时内发出。"),
        ("", "支持退货。"),
        ("小王", "等人回答"),
        ("小李", "没有回成 · The phone is offline."),
        ("", "没有新消息：小张"),
        ("", "之前的提问还在等人回答：小赵（看问题、回答：/ask）"),
        ("", "看起来是群，没有回复：VIP群"),
        ("用时", "1 分 15 秒"),
    ]
    over = replace(run, status=RunStatus.SUCCEEDED)
    assert (
        sweep_card(over, sweep, texts("zh"), now=NOW).title,
        sweep_card(over, sweep, texts("zh"), now=NOW).buttons,
    ) == (
        "巡检完成：有提问还在等人回答",
        (),
    )
    done = replace(sweep, contacts=(SweptView("小李", "answered"),), details={})
    assert sweep_card(over, done, texts("zh"), now=NOW).title == "巡检完成"
    for why in ("stopped", "given_up"):
        left = sweep_card(over, SweepView(1, (), {"left": [["小赵", why]]}), texts("zh"), now=NOW)
        assert left.title == "巡检完成：有问题还没有回答", "and not that there is nothing to answer"
        assert any("小赵" in line.text for line in left.lines)
    asked = sweep_card(over, SweepView(1, (), {"left": [["小赵", "asked"]]}), texts("zh"), now=NOW)
    assert asked.title == "巡检完成：有提问还在等人回答"
    none = sweep_card(over, SweepView(9), texts("zh"), now=NOW)
    assert none.title == "巡检完成：没有要回复的新消息"
    assert "看了 9 个联系人。" in [line.text for line in none.lines]


def test_a_schedule_for_one_contact_is_not_headed_as_a_sweep() -> None:
    begun = SweepView(1, (SweptView("11", "answering"),), reply_to="11")
    run = RunView("r1", "QQ回复联系人11", RunStatus.RUNNING, sweep=begun)
    assert sweep_card(run, begun, texts("zh"), now=NOW).title == "定时回复 11：正在回复"
    asked = replace(begun, contacts=(SweptView("11", "asked"),))
    assert sweep_card(run, asked, texts("en"), now=NOW).title == "Scheduled reply to 11: waiting for a person"
    over = replace(run, status=RunStatus.SUCCEEDED)
    assert sweep_card(over, begun, texts("zh"), now=NOW).title == "定时回复 11：已完成"
    none = SweepView(9, reply_to="11")
    assert sweep_card(over, none, texts("en"), now=NOW).title == "Scheduled reply to 11: nothing new to answer"
    for status in RunStatus:
        for lang in LANGUAGES:
            assert "11" in sweep_card(replace(run, status=status), SweepView(reply_to="11"), texts(lang), now=NOW).title


def test_a_long_sweep_is_cut() -> None:
    many = tuple(SweptView(f"客户{number}", "waiting") for number in range(25))
    run = RunView("r1", "巡检", RunStatus.RUNNING, sweep=SweepView(25, many))
    card = sweep_card(run, SweepView(25, many), texts("en"), now=NOW)
    assert card.title == "Sweep: 0 / 25"
    assert "… and 5 more" in [line.text for line in card.lines]
