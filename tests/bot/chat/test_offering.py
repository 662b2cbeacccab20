"""Words in private while questions are open: an answer, or a task."""

from __future__ import annotations

import pytest

from agent_core.session import QuestionKind
from bot.chat.conversation import Incoming
from bot.desk.actors import Actor, Role
from tests.bot.chat.memory_desk import MemoryDesk
from tests.bot.chat.test_conversation import Talker, desk, talker, wang

__all__ = ["desk", "wang"]

RECORDS = (("record:0", "退货"), ("skip", "跳过"))
CHAT = (("yes", "是，就是这个聊天"), ("no", "不是"))


async def a_run(desk: MemoryDesk, wang: Talker) -> str:
    await wang.say("/run QQ回复联系人11")
    return list(desk.runs)[-1]


async def test_words_are_offered_as_the_answer_to_the_open_question(desk: MemoryDesk, wang: Talker) -> None:
    question = desk.ask(await a_run(desk, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert await wang.say("今天就给您退") == (
        "这是对这个问题的回答吗？\n今天就给您退\n❓ 知识库没有确定的答案 · 11\n怎么退货\n"
        "[原样发给客户]\n[这是一个任务]\n[不用]"
    )
    assert desk.questions[question].open
    said = await wang.tap(f"mine:{question}", subject="今天就给您退")
    assert said == "(收到，已采用你的回答。)\n收到，已采用你的回答。\n今天就给您退"
    assert desk.questions[question].answer == "今天就给您退"
    assert len(desk.runs) == 1
    assert "作为任务执行吗" in await wang.say("打开微信")  # nothing is open any more


async def test_it_may_be_a_task_all_the_same(desk: MemoryDesk, wang: Talker) -> None:
    question = desk.ask(await a_run(desk, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert "[这是一个任务]" in await wang.say("打开微信")
    assert "已安排" in await wang.tap("go", subject="打开微信")
    assert [run.task for run in desk.runs.values()] == ["QQ回复联系人11", "打开微信"]
    assert desk.questions[question].open


async def test_a_command_stays_a_command(desk: MemoryDesk, wang: Talker) -> None:
    question = desk.ask(await a_run(desk, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    for command in ("状态", "/status"):
        assert (await wang.say(command)).startswith("现状")
    assert desk.questions[question].open


@pytest.mark.parametrize(
    ("kind", "choices", "free", "said", "button"),
    [
        (QuestionKind.INTERACT, (), True, "第二个", "[告诉智能体]"),
        (QuestionKind.UNREADABLE, (("skip", "跳过"),), True, "收到", "[原样发给客户]"),
        (QuestionKind.NO_SURE_ANSWER, RECORDS, True, "退货", "[选：退货]"),
        (QuestionKind.NO_SURE_ANSWER, RECORDS, True, "2", "[选：跳过]"),
        (QuestionKind.RIGHT_CHAT, CHAT, False, "是", "[选：是，就是这个聊天]"),
        (QuestionKind.RIGHT_CHAT, CHAT, False, "No.", "[选：不是]"),
        (QuestionKind.RIGHT_CHAT, CHAT, False, "是不是该换个聊天", "[看问题]"),
    ],
)
async def test_what_the_words_mean_depends_on_the_question(
    desk: MemoryDesk, wang: Talker, kind: QuestionKind, choices: tuple[tuple[str, str], ...], free: bool, said: str,
    button: str,
) -> None:  # fmt: skip
    desk.ask(await a_run(desk, wang), kind, *choices, free_text=free)
    shown = await wang.say(said)
    assert button in shown
    assert ("作为任务执行吗" in shown) == (button == "[看问题]")


async def test_of_several_the_newest_stand_first_and_five_at_most(desk: MemoryDesk, wang: Talker) -> None:
    run = await a_run(desk, wang)
    asked = [desk.ask(run, QuestionKind.NO_SURE_ANSWER, *RECORDS, text=f"第{n}问") for n in range(7)]
    said = (await wang.say("可以")).split("\n")
    assert said[0] == "这是对哪个问题的回答？"
    assert [line for line in said if line.startswith("第")] == [f"第{n}问" for n in (6, 5, 4, 3, 2)]
    assert said[-7:-2] == [f"[{n}. 原样发给客户]" for n in range(1, 6)]
    await wang.tap(f"mine:{asked[5]}", subject="可以")
    assert [name for name in asked if not desk.questions[name].open] == [asked[5]]


async def test_only_questions_that_were_put_there(desk: MemoryDesk, wang: Talker) -> None:
    """Neither somebody else's, nor to who may not answer."""
    desk.people["telegram", "12"] = Actor("p2", "telegram", "12", "Operator B", "zh", Role.OPERATOR)
    desk.people["telegram", "13"] = Actor("p3", "telegram", "13", "Viewer", "zh", Role.VIEWER)
    question = desk.ask(await a_run(desk, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    other = talker(desk, "12", "Operator B")
    assert "作为任务执行吗" in await other.say("可以")
    await other.tap(f"ask:{question}")  # now its card is there, too
    assert "[原样发给客户]" in await other.say("可以")
    assert "你的身份是只读" in await talker(desk, "13", "Viewer").say("可以")


async def test_words_that_are_gone_and_buttons_that_were_made_up(desk: MemoryDesk, wang: Talker) -> None:
    question = desk.ask(await a_run(desk, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert "找不到原来的话" in await wang.tap(f"mine:{question}")
    made_up = Incoming(
        "button", wang.person, wang.chat, "k", action=f"mine:{question}", subject="赔你一万元", buttons=("no",)
    )
    await wang.conversation.handle(made_up)
    assert desk.refused[-1] == ("11", "forged")
    assert desk.questions[question].open
