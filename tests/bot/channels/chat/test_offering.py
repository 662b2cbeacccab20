"""Words in private while questions are open: an answer, or a task."""

from __future__ import annotations

import pytest

from agent_core.session import QuestionKind
from bot.channels.chat.turn import Incoming
from bot.desk.actors import Role
from storage.people import Audit
from tests.support.stage import Stage
from tests.support.talker import Talker, talker

RECORDS = (("record:0", "退货"), ("skip", "跳过"))
CHAT = (("yes", "是，就是这个聊天"), ("no", "不是"))


async def a_run(stage: Stage, wang: Talker) -> str:
    await wang.say("/run QQ回复联系人11")
    return await stage.newest()


async def test_words_are_offered_as_the_answer_to_the_open_question(stage: Stage, wang: Talker) -> None:
    question = await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert await wang.say("今天就给您退") == (
        "这是对这个问题的回答吗？\n今天就给您退\n❓ 知识库没有确定的答案 · 11\n怎么退货\n"
        "[原样发给客户]\n[这是一个任务]\n[不用]"
    )
    assert (await stage.question(question)).open
    said = await wang.tap(f"mine:{question}", subject="今天就给您退")
    assert said == "(收到，已采用你的回答。)\n收到，已采用你的回答。\n今天就给您退"
    assert (await stage.question(question)).answer == "今天就给您退"
    assert len(await stage.runs()) == 1
    assert "作为任务执行吗" in await wang.say("打开微信")  # nothing is open any more


async def test_it_may_be_a_task_all_the_same(stage: Stage, wang: Talker) -> None:
    question = await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert "[这是一个任务]" in await wang.say("打开微信")
    assert "已安排" in await wang.tap("go", subject="打开微信")
    assert [run.task for run in await stage.runs()] == ["QQ回复联系人11", "打开微信"]
    assert (await stage.question(question)).open


async def test_a_command_stays_a_command(stage: Stage, wang: Talker) -> None:
    question = await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    for command in ("状态", "/status"):
        assert (await wang.say(command)).startswith("现状")
    assert (await stage.question(question)).open


async def test_a_task_that_names_nobody_says_whom_it_means(stage: Stage, wang: Talker) -> None:
    assert "会看 QQ 里所有有未读消息的人" in await wang.say("QQ回复联系人")
    assert "会看" not in await wang.say("QQ回复所有未读")
    assert "会看" not in await wang.say("QQ回复联系人11")


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
    stage: Stage, wang: Talker, kind: QuestionKind, choices: tuple[tuple[str, str], ...], free: bool, said: str,
    button: str,
) -> None:  # fmt: skip
    await stage.ask(await a_run(stage, wang), kind, *choices, free_text=free)
    shown = await wang.say(said)
    assert button in shown
    assert ("作为任务执行吗" in shown) == (button == "[看问题]")


async def test_of_several_the_newest_stand_first_and_five_at_most(stage: Stage, wang: Talker) -> None:
    run = await a_run(stage, wang)
    asked = [await stage.ask(run, QuestionKind.NO_SURE_ANSWER, *RECORDS, text=f"第{n}问") for n in range(7)]
    said = (await wang.say("可以")).split("\n")
    assert said[0] == "这是对哪个问题的回答？"
    assert [line for line in said if line.startswith("第")] == [f"第{n}问" for n in (6, 5, 4, 3, 2)]
    assert said[-7:-2] == [f"[{n}. 原样发给客户]" for n in range(1, 6)]
    await wang.tap(f"mine:{asked[5]}", subject="可以")
    assert [name for name in asked if not (await stage.question(name)).open] == [asked[5]]


async def test_only_questions_that_were_put_there(stage: Stage, wang: Talker) -> None:
    """Neither somebody else's, nor to who may not answer."""
    await stage.join(12, "Operator B", Role.OPERATOR, "zh")
    await stage.join(13, "Viewer", Role.VIEWER, "zh")
    question = await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    other = talker(stage.desk, "12", "Operator B")
    assert "作为任务执行吗" in await other.say("可以")
    await other.tap(f"ask:{question}")  # now its card is there, too
    assert "[原样发给客户]" in await other.say("可以")
    assert "你的身份是只读" in await talker(stage.desk, "13", "Viewer").say("可以")


async def test_words_that_are_gone_and_buttons_that_were_made_up(stage: Stage, wang: Talker) -> None:
    question = await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
    assert "找不到原来的话" in await wang.tap(f"mine:{question}")
    made_up = Incoming(
        "button", wang.person, wang.chat, "k", action=f"mine:{question}", subject="赔你一万元", buttons=("no",)
    )
    said = await wang.conversation.handle(made_up)
    assert "问题还在等回答：找不到原来的话" in said.toast
    assert (await Audit(stage.db).refused(1))[0].command == "forged"
    assert (await stage.question(question)).open
    await wang.tap(f"mine:{question}", subject="今天就给您退")
    assert "你已经回答过了：今天就给您退" in (await wang.conversation.handle(made_up)).toast


class TestTimes:
    async def test_what_begins_with_a_time_is_offered_as_a_schedule(self, stage: Stage, wang: Talker) -> None:
        said = "每5分钟看一下有没有新消息"
        assert await wang.say(said) == (
            f"要定时吗？\n{said}\n时间: 每5分钟\n任务: 看一下有没有新消息\n[定时]\n[现在执行]\n[不用]"
        )
        assert "已添加定时任务" in await wang.tap("timed", subject=said)
        assert [(view.expression, view.task) for view in await stage.desk.schedules.all(await stage.actor(11))] == [
            ("每5分钟", "看一下有没有新消息")
        ]
        assert not await stage.runs()
        await wang.tap("go:now", subject=said)
        assert [run.task for run in await stage.runs()] == ["看一下有没有新消息"]

    async def test_a_time_that_is_not_understood_is_told(self, stage: Stage, wang: Talker) -> None:
        shown = await wang.say("周五9点 QQ回复联系人11")
        assert shown.startswith("作为任务执行吗？")
        assert "是每周，还是只有一次" in shown
        assert shown.endswith("[现在执行]\n[不用]")
        assert "是每周，还是只有一次" in await wang.tap("timed", subject="周五9点 QQ回复联系人11")
        assert "找不到原来的消息" in await wang.tap("timed")
        assert not await stage.desk.schedules.all(await stage.actor(11))

    async def test_only_an_owner_has_schedules(self, stage: Stage, wang: Talker) -> None:
        await stage.join(12, "Operator B", Role.OPERATOR, "zh")
        shown = await talker(stage.desk, "12", "Operator B").say("明早8点 QQ回复联系人11")
        assert "定时任务由管理员添加" in shown
        assert shown.endswith("[现在执行]\n[不用]")

    async def test_beside_an_answer(self, stage: Stage, wang: Talker) -> None:
        await stage.ask(await a_run(stage, wang), QuestionKind.NO_SURE_ANSWER, *RECORDS)
        shown = await wang.say("明早8点 QQ回复联系人11")
        assert shown.endswith("[原样发给客户]\n[定时]\n[现在执行]\n[不用]")
        await wang.tap("go:now", subject="明早8点 QQ回复联系人11")
        assert [run.task for run in await stage.runs()] == ["QQ回复联系人11"] * 2
