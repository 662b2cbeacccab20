"""``/ask``, Hold and Resume, as a conversation."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from agent_core.errors import DeviceOffline
from agent_core.session import QuestionKind
from bot.channels.chat import commands
from bot.channels.chat.commands import Command
from bot.channels.chat.questions import ask_card, reminder_card
from bot.channels.chat.run_cards import run_card
from bot.channels.chat.texts import texts
from bot.desk.views import RunStatus
from tests.support.stage import NOW, Stage
from tests.support.talker import Talker, talker

CHOICES = (("done", "完成"), ("stop", "停止"))
EN, ZH = texts("en"), texts("zh")


async def started(stage: Stage, who: Talker) -> str:
    await who.say("/run QQ回复联系人11")
    run_id = await stage.newest()
    await stage.begin(run_id)
    return run_id


@pytest.mark.parametrize(
    ("written", "name"),
    [("提问", "ask"), ("待答", "ask"), ("/ask", "ask"), ("暂停任务", "hold"), ("/hold r7", "hold"), ("继续", "resume")],
)
def test_their_names(written: str, name: str) -> None:
    command = commands.parse(written)
    assert isinstance(command, Command)
    assert command.name == name


async def test_the_open_questions_the_oldest_first(stage: Stage, wang: Talker) -> None:
    assert await wang.say("/ask") == "没有等待回答的问题。"
    run_id = await started(stage, wang)
    first = await stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, ("skip", "跳过"))
    second = await stage.ask(run_id, QuestionKind.TAKE_OVER, *CHOICES, text="请登录", free_text=False)
    said = await wang.say("待答")
    assert said.index("怎么退货") < said.index("请登录")
    assert "[看第 1 个]" in said
    card = ask_card([await stage.question(first), await stage.question(second)], EN, now=NOW + timedelta(minutes=135))
    assert "open for 2 h 15 min" in card.lines[0].text
    assert [row[0].action for row in card.buttons] == [f"ask:{first}", f"ask:{second}"]
    assert (
        "open for 59 min"
        in ask_card([await stage.question(first)], EN, now=NOW + timedelta(minutes=59.5)).lines[0].text
    )


async def test_a_lost_card_is_had_again_and_answered_from_there(stage: Stage, wang: Talker, li: Talker) -> None:
    run_id = await started(stage, wang)
    question_id = await stage.ask(
        run_id, QuestionKind.NO_SURE_ANSWER, ("record:0", "退货"), ("skip", "跳过"), picture=b"then"
    )
    said = await li.tap(f"ask:{question_id}")
    assert "怎么退货" in said
    assert said.endswith("<picture>")
    assert [chat.chat_id for _, chat in await stage.desk.questions.copies(question_id)] == ["12"]
    assert await li.tap(f"q:{question_id}:0") == "(Thank you, your answer counts.)"
    assert await wang.tap(f"ask:{question_id}") == "(这个问题已经有人回答了。)"
    assert "There is no such question" in await li.tap("ask:nothing")


async def test_a_fresh_picture_for_who_acts_on_the_phone(stage: Stage, wang: Talker) -> None:
    run_id = await started(stage, wang)
    question_id = await stage.ask(
        run_id, QuestionKind.TAKE_OVER, *CHOICES, text="请登录", free_text=False, picture=b"then"
    )
    said = await wang.tap(f"look:{question_id}")
    assert said.startswith("(这是手机现在的画面。)")
    assert "[完成]" in said
    assert "[刷新画面]" in said
    assert said.endswith("<picture>")
    stage.broken = DeviceOffline("The phone is away.")
    assert "<picture>" not in await wang.tap(f"look:{question_id}")
    stage.broken = None
    await wang.tap(f"q:{question_id}:0")
    assert await wang.tap(f"look:{question_id}") == "(这个问题已经有人回答了。)"


async def test_hold_and_resume(stage: Stage, wang: Talker) -> None:
    see = "\n用 /status 看现在有什么任务。"
    assert await wang.say("/hold") == "没有可以暂停的任务。" + see
    assert await wang.say("继续") == "没有暂停中的任务。" + see
    run_id = await started(stage, wang)
    assert await wang.say("暂停任务") == "正在暂停，马上让出手机。\nQQ回复联系人11 · Pixel"
    assert (await stage.run(run_id)).held
    assert "[继续 · QQ回复联系人11]\n[停止 · QQ回复联系人11]" in await wang.say("/status")
    await stage.park(run_id)
    assert await wang.tap(f"resume:{run_id}") == "(任务继续。)"
    assert "⏳ 排队中 · QQ回复联系人11" in await wang.say("/status")
    assert await wang.tap(f"resume:{run_id}") == "(没有暂停中的任务。)"
    assert await wang.tap(f"hold:{run_id}") == "(正在暂停，马上让出手机。)"
    assert "⏸ 已暂停" in await wang.say("/status")


async def test_a_viewer_sees_but_holds_nothing(stage: Stage, wang: Talker) -> None:
    viewer = talker(stage.desk, "13", "Viewer", "en")
    await viewer.say("/start 1234")
    run_id = await started(stage, wang)
    question_id = await stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, ("skip", "Skip"))
    assert "怎么退货" in await viewer.tap(f"ask:{question_id}")
    for refused in (await viewer.tap(f"hold:{run_id}"), await viewer.say(f"/resume {run_id}")):
        assert "may not" in refused or "permission" in refused.lower() or "role" in refused.lower()
    assert not (await stage.run(run_id)).held


async def test_the_card_of_a_held_run(stage: Stage, wang: Talker) -> None:
    run = await stage.run(await started(stage, wang))
    for status, title in ((RunStatus.RUNNING, "⏸ Going on hold"), (RunStatus.WAITING, "⏸ On hold")):
        card = run_card(replace(run, status=status, held=True), EN, now=NOW)
        assert card.title == title
        assert [button.action for button in card.buttons[0]] == [f"resume:{run.id}", f"stop:{run.id}", "screen:S1"]
    assert run_card(replace(run, status=RunStatus.STOPPED, held=True), EN, now=NOW).title == "⏹ Stopped"


async def test_a_reminder_is_short_and_says_what_happens(stage: Stage, wang: Talker) -> None:
    run_id = await started(stage, wang)
    view = await stage.question(await stage.ask(run_id, QuestionKind.SENSITIVE_TAP, ("allow", "允许"), free_text=False))
    card = reminder_card(replace(view, then="deny"), ZH, now=NOW + timedelta(minutes=30))
    assert card.title == "⏰ 还在等回答（已等 30 分钟）"
    assert [line.text for line in card.lines] == ["⚠️ 这一步要你同意", "截止 11-20 09:40 · 到时没有回答，就不点。"]
    assert [button.label for row in card.buttons for button in row] == ["看问题"]
