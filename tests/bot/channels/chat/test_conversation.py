"""Conversations: a person writes a line or taps a button, the bot says something."""

from __future__ import annotations

import re

import pytest

from agent_core.errors import DeviceOffline
from agent_core.session import QuestionKind
from bot.channels.chat.questions import question_card
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Incoming
from bot.desk.actors import MessageRef, Role
from bot.desk.views import RunStatus
from tests.support.stage import Stage
from tests.support.talker import Talker, talker


class TestAccess:
    async def test_the_first_person_becomes_the_owner(self, stage: Stage) -> None:
        wang = talker(stage.desk, "11", "Operator A")
        assert "只服务于已配对的成员" in await wang.say("/run 打开微信")
        assert "配对码不对" in await wang.say("/start 0000")
        assert "配对成功，Operator A。你的身份：管理员。" in await wang.say("/start 4711")
        assert (await stage.actor(11)).role is Role.OWNER
        assert await stage.runs() == []

    @pytest.mark.parametrize(
        ("code", "lang", "first", "last"),
        [
            ("4711", "zh", "发 /run QQ回复联系人11 试试，把 11 换成聊天列表里的名字。", "其他用法：/help"),
            (
                "0815",
                "en",
                "Try /run reply to 11 on QQ, with a name from your chat list in place of 11.",
                "Everything else: /help",
            ),
            ("1234", "en", "Send /status to see what is going on.", "Everything else: /help"),
        ],
    )
    async def test_the_welcome_names_one_thing_to_try(
        self, stage: Stage, code: str, lang: str, first: str, last: str
    ) -> None:
        anna = talker(stage.desk, "12", "Anna", lang)
        assert (await anna.say(f"/start {code}")).split("\n")[1:] == [first, last]
        greeted = (await anna.say("/start")).split("\n")
        assert greeted[0] in {"你好，Anna。", "Hello, Anna."}
        assert greeted[1:] == [first, last]
        again = (await anna.say("/start 0815")).split("\n")
        assert again[1] == texts((await stage.actor(12)).lang).get("access.already")
        assert again[2:] == [first, last]

    async def test_help_leaves_out_what_is_not_set_up(self, stage: Stage, wang: Talker) -> None:
        assert "/plan" not in await wang.say("/help")

    async def test_a_stranger_is_told_once_and_by_a_name_that_lasts(self, stage: Stage) -> None:
        stranger = talker(stage.desk, "99", "Who", "de")
        said = await stranger.conversation.handle(Incoming("text", stranger.person, stranger.chat, "1", "hello"))
        assert said.messages[0].once == "stranger:telegram:99"
        assert "paired members only" in said.messages[0].card.title
        assert "paired members only" in await stranger.tap("stop:run1")

    async def test_no_pairing_in_a_group(self, stage: Stage) -> None:
        in_group = talker(stage.desk, "11", "Operator A", group=True)
        assert "请私聊我来配对" in await in_group.say("/start@desk_bot 4711")
        assert await stage.desk.people.members("telegram") == []
        assert await in_group.say("/start@other_bot 4711") == ""

    async def test_a_viewer_looks_but_does_not_touch(self, stage: Stage, wang: Talker) -> None:
        viewer = talker(stage.desk, "13", "Zhao")
        await viewer.say("/start 1234")
        assert "你没有权限做这件事。" in await viewer.say("/run 打开微信")
        assert "现状" in await viewer.say("状态")
        assert "(你没有权限做这件事。" in await viewer.tap("stop:run1")
        assert await stage.runs() == []

    async def test_whoami(self, li: Talker) -> None:
        assert await li.say("/whoami") == "Operator B\nRole: operator\nAccount: 12\nLanguage: English"


class TestRuns:
    async def test_run_and_stop(self, stage: Stage, wang: Talker) -> None:
        said = await wang.say("/run “QQ回复联系人11”")
        shown = ["⏳ 排队中", "任务: QQ回复联系人11", "手机: Pixel", "发起人: Operator A", "队列中第 1 位"]
        assert said.split("\n") == [*shown, "[停止]", "[看屏幕]", "[暂停]"]
        (run,) = await stage.runs()
        assert (run.task, run.chat, run.by) == ("QQ回复联系人11", wang.chat, "Operator A")
        assert "⏳ 排队中 · QQ回复联系人11 · 第 0 步" in await wang.say("状态")
        assert await wang.say("停止") == "正在停止。\nQQ回复联系人11 · Pixel"
        assert await wang.say("停止") == "没有可以停止的任务。\n用 /status 看现在有什么任务。"
        assert await wang.tap(f"stop:{run.id}") == "(没有可以停止的任务。)"

    async def test_the_stop_button(self, stage: Stage, wang: Talker) -> None:
        await wang.say("运行 打开微信")
        run_id = await stage.newest()
        assert await wang.tap(f"stop:{run_id}") == "(正在停止。)"
        assert (await stage.run(run_id)).status is RunStatus.STOPPED

    async def test_with_several_runs_it_is_said_which_was_stopped_and_the_others_are_offered(
        self, stage: Stage, wang: Talker
    ) -> None:
        await wang.say("/run 打开微信")
        await wang.say("/run 打开设置")
        said = await wang.say("/stop")
        assert said == "正在停止。\n打开设置 · Pixel\n还有这些任务：\n[停止 · 打开微信 · Pixel]"
        first, second = [run.id for run in await stage.runs()]
        assert await wang.say(f"/stop {second}") == "要停止哪一个任务？\n[停止 · 打开微信 · Pixel]"
        assert await wang.tap(f"stop:{first}") == "(正在停止。)"

    async def test_nobody_is_offered_what_is_refused_for_their_role(self, stage: Stage, wang: Talker) -> None:
        viewer = talker(stage.desk, "13", "Zhao", "en")
        await viewer.say("/start 1234")
        await wang.say("/run 打开微信")
        question_id = await stage.ask(await stage.newest(), QuestionKind.NO_SURE_ANSWER, *CHOICES)
        for words in ("/status", "/ask", "open WeChat", "/help", "/devices"):
            said = await viewer.say(words)
            assert said
            assert not re.search(r"\[(Stop|Hold|Resume|Run it|Write my own)", said)
        assert "ask an owner for another role" in await viewer.say("open WeChat")
        shown = await viewer.tap(f"ask:{question_id}")
        assert "怎么退货" in shown
        assert "[1. 退货]" not in shown

    async def test_a_message_handed_on_twice_starts_one_run(self, stage: Stage, wang: Talker) -> None:
        await wang.say("/run 打开微信", key="update-5")
        await wang.say("/run 打开微信", key="update-5")
        await wang.say("/run 打开微信", key="update-6")
        assert len(await stage.runs()) == 2

    async def test_run_wants_a_task_and_a_phone_that_is_there(self, stage: Stage, wang: Talker) -> None:
        assert "例如：/run QQ回复联系人11" in await wang.say("/run")
        assert "没有连接手机 S9。" in await wang.say("/run -d S9 打开微信")
        await wang.say("/run -d S1 打开微信")
        assert [run.serial for run in await stage.runs()] == ["S1"]

    async def test_free_text_is_offered_as_a_task(self, stage: Stage, wang: Talker) -> None:
        assert await wang.say("帮我打开微信") == "作为任务执行吗？\n帮我打开微信\n[执行]\n[不用]"
        assert await stage.runs() == []
        assert (await wang.tap("go", subject="帮我打开微信")).startswith("(已安排。)\n⏳ 排队中\n任务: 帮我打开微信")
        await wang.tap("go", subject="帮我打开微信")  # a second tap before the buttons are gone
        assert [run.task for run in await stage.runs()] == ["帮我打开微信"]
        assert "(好的，不执行。)" in await wang.tap("no", subject="x", message="78")
        assert "找不到原来的消息了" in await wang.tap("go", subject="", message="79")
        assert len(await stage.runs()) == 1

    async def test_free_text_in_a_group_is_none_of_our_business(self, stage: Stage, wang: Talker) -> None:
        assert await talker(stage.desk, "11", "Operator A", group=True).say("下班了") == ""

    async def test_a_mistyped_command_gets_the_nearest_one(self, wang: Talker, li: Talker) -> None:
        assert await wang.say("/sreen") == "没有命令 /sreen，是不是 /screen？"
        assert await li.say("/qqqqq") == "There is no command /qqqqq.\nHow to use this bot: /help"

    async def test_screen(self, stage: Stage, wang: Talker) -> None:
        assert await wang.say("截图") == "手机屏幕\n[看屏幕]\n[原图]\n<picture>"
        assert await wang.tap("screen:S1") == "手机屏幕\nPixel\n[看屏幕]\n[原图]\n<picture>"

    async def test_what_fails_is_said_with_what_to_do(self, stage: Stage, li: Talker) -> None:
        stage.broken = DeviceOffline("S1 is gone.")
        said = await li.say("/screen")
        assert said.startswith("The phone is not attached, or offline.\nS1 is gone. Check the cable")

    async def test_what_is_not_ours_to_say_is_raised(self, stage: Stage, li: Talker) -> None:
        stage.broken = RuntimeError("bug")
        with pytest.raises(RuntimeError):
            await li.say("/status")

    async def test_help_names_every_command(self, wang: Talker) -> None:
        said = await wang.say("帮助")
        assert all(f"/{name}: " in said for name in ("run", "stop", "status", "screen", "schedule", "whoami", "help"))


CANDIDATES = [
    {"id": "r1", "text": "七天内可退货", "question": "退货", "score": 0.61, "source": "returns.csv"},
    {"id": "r2", "text": "请联系快递", "question": "", "score": None, "source": ""},
]
CHOICES = (("record:0", "退货"), ("record:1", "请联系快递"), ("skip", "跳过"))


class TestQuestions:
    async def ask(self, stage: Stage, wang: Talker) -> tuple[str, MessageRef]:
        await wang.say("/run QQ回复联系人11")
        run_id = await stage.newest()
        question_id = await stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, candidates=CANDIDATES)
        ref = MessageRef(wang.chat, "55")
        await stage.desk.questions.set_card(question_id, ref)
        return question_id, ref

    async def test_answered_with_a_button(self, stage: Stage, wang: Talker) -> None:
        question_id, _ = await self.ask(stage, wang)
        card = question_card(await stage.question(question_id), texts("zh"))
        assert [button.label for row in card.buttons for button in row] == [
            "1. 退货",
            "2. 请联系快递",
            "跳过",
            "自己写",
        ]
        assert "(收到，已采用你的回答。)" in await wang.tap(card.buttons[0][0].action)
        assert (await stage.question(question_id)).answer == "record:0"

    async def test_answered_in_ones_own_words(self, stage: Stage, wang: Talker) -> None:
        question_id, ref = await self.ask(stage, wang)
        assert "写下要发给客户的话" in await wang.tap(f"own:{question_id}")
        assert await wang.say("今天就给您退", reply_to=ref) == "收到，已采用你的回答。"
        assert ((await stage.question(question_id)).answer, (await stage.question(question_id)).by) == (
            "今天就给您退",
            "Operator A",
        )

    @pytest.mark.parametrize("words", ["1", "退货", "record:0", " 1. "])
    async def test_answered_by_number_or_words_of_a_choice(self, stage: Stage, wang: Talker, words: str) -> None:
        question_id, ref = await self.ask(stage, wang)
        await wang.say(words, reply_to=ref)
        assert (await stage.question(question_id)).answer == "record:0"

    async def test_what_is_written_where_words_were_asked_for_is_no_number(self, stage: Stage, wang: Talker) -> None:
        question_id, _ = await self.ask(stage, wang)
        said = await wang.conversation.handle(
            Incoming("button", wang.person, wang.chat, "k", action=f"own:{question_id}")
        )
        prompt = MessageRef(wang.chat, "56")
        await stage.desk.questions.set_card(said.messages[0].shows.partition(":")[2], prompt)
        await wang.say("1", reply_to=prompt)
        assert (await stage.question(question_id)).answer == "1"

    @pytest.mark.parametrize("words", ["停止", "状态", "stop", "Status.", "运行 打开QQ", "暂停"])
    async def test_what_looks_like_a_command_goes_to_the_customer_by_a_button_alone(
        self, stage: Stage, wang: Talker, words: str
    ) -> None:
        question_id, ref = await self.ask(stage, wang)
        shown = await wang.say(words, reply_to=ref)
        assert shown == f"这句话像是一条命令。要把它原样发给客户吗？\n{words}\n[原样发给客户]\n[不用]"
        assert (await stage.question(question_id)).open
        await wang.tap(f"mine:{question_id}", subject=words)
        assert (await stage.question(question_id)).answer == words

    async def test_skipping_and_a_run_on_hold_are_told(self, stage: Stage, wang: Talker) -> None:
        question_id, _ = await self.ask(stage, wang)
        assert await wang.tap(f"q:{question_id}:2") == "(已跳过，这一条不再发送。)"
        question_id, _ = await self.ask(stage, wang)
        await wang.say("/hold")
        assert await wang.tap(f"q:{question_id}:0") == "(收到，已采用你的回答。任务暂停着，继续以后才生效：/resume)"

    async def test_the_first_answer_wins_and_the_late_one_is_told(self, stage: Stage, wang: Talker, li: Talker) -> None:
        question_id, ref = await self.ask(stage, wang)
        await wang.tap(f"q:{question_id}:1")
        assert await li.say("mine", reply_to=ref) == "Operator A was first: 2. 请联系快递"
        assert await li.tap(f"q:{question_id}:0") == "(Operator A was first: 2. 请联系快递)"
        assert await wang.tap(f"q:{question_id}:1") == "(收到，已采用你的回答。)"  # tapped twice, or handed on twice
        assert (await stage.question(question_id)).answer == "record:1"

    async def test_a_question_that_wants_a_choice(self, stage: Stage, wang: Talker) -> None:
        await wang.say("/run x")
        run_id = await stage.newest()
        choices = (("allow", "允许"), ("deny", "不允许"))
        question_id = await stage.ask(run_id, QuestionKind.SENSITIVE_TAP, *choices, free_text=False, text="付款?")
        ref = MessageRef(wang.chat, "56")
        await stage.desk.questions.set_card(question_id, ref)
        assert (
            await wang.say("也许", reply_to=ref) == "这个问题要从选项里选：允许 / 不允许。请写序号（1–2）或选项的文字。"
        )
        assert (await stage.question(question_id)).open
        assert await wang.say("允许", reply_to=ref) == "收到，已采用你的回答。"

    async def test_a_question_that_is_not_there(self, stage: Stage, wang: Talker) -> None:
        assert "找不到这个问题" in await wang.tap("q:nothing:0")
        question_id, _ = await self.ask(stage, wang)
        assert "这个按钮已经不能用了" in await wang.tap(f"q:{question_id}:9")
        assert "这个按钮已经不能用了" in await wang.tap("what:ever")

    async def test_a_command_in_a_reply_stays_a_command(self, stage: Stage, wang: Talker) -> None:
        question_id, ref = await self.ask(stage, wang)
        assert "正在停止" in await wang.say("/stop", reply_to=ref)
        assert (await stage.question(question_id)).answer == ""

    async def test_a_reply_to_something_else(self, stage: Stage, wang: Talker) -> None:
        other = MessageRef(wang.chat, "1")
        assert "作为任务执行吗" in await wang.say("打开微信", reply_to=other)
        in_group = talker(stage.desk, "11", "Operator A", group=True)
        assert "不是问题" in await in_group.say("打开微信", reply_to=MessageRef(in_group.chat, "1"))


class TestSchedules:
    async def test_add_list_pause_resume_remove(self, stage: Stage, wang: Talker) -> None:
        added = await wang.say("/schedule add “*/5 9-18 * * 1-5” QQ回复联系人11")
        assert added == (
            "已添加定时任务 #1\n时间: */5 9-18 * * 1-5\n任务: QQ回复联系人11\n"
            "接下来: 11-20 09:35、11-20 09:40、11-20 09:45\n手机: Pixel\n[暂停]\n[立即执行]\n[删除]\n[全部]"
        )
        assert "#1: */5 9-18 * * 1-5" in await wang.say("/schedule list")
        assert "时间: */5 9-18 * * 1-5 · 已暂停" in await wang.say("/schedule pause 1")
        assert "已恢复定时任务 #1" in await wang.say("/schedule resume #1")
        assert "已删除定时任务 #1" in await wang.say("/schedule remove 1")
        assert "还没有定时任务。" in await wang.say("/schedule")

    async def test_mistakes(self, stage: Stage, wang: Talker, li: Talker) -> None:
        said = await wang.say("/schedule add after lunch 回复11")
        assert said.startswith("没看懂开头的时间：after lunch 回复11\n时间写在最前面")
        assert "/schedule 添加 工作日" in said
        assert (await wang.say("/schedule 每天9点")).startswith("时间看懂了：每天9点。还没有写要做的事。")
        assert (await wang.say("/schedule")).startswith("还没有定时任务。")
        assert "没有定时任务 #9。" in await wang.say("/schedule 改 9 时间：每天9点")
        assert "写上定时任务的编号" in await wang.say("/schedule pause")
        assert "没看懂这个时间：every x\n" in await wang.say("/schedule add every x QQ回复联系人11")
        assert "没有定时任务 #9。" in await wang.say("/schedule pause 9")
        assert "You may not do this." in await li.say("/schedule add every 5m QQ回复联系人11")
