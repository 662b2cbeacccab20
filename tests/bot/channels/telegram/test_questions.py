"""Questions over time, as they look in Telegram."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from agent_core.session import QuestionKind
from bot.channels.chat.questions import question_card
from bot.channels.chat.texts import texts
from bot.channels.telegram import render
from bot.desk.actors import Role
from simulator.telegram import FakeUser
from storage.people import TERMINAL
from storage.questions import Questions
from storage.runs import NewRun
from storage.tables import questions
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, is_green, refused, until, until_out
from tests.support.stage import PHONE
from tests.support.telegram import picture


class TestAnsweredMeanwhile(WithARun):
    """A picture of the phone takes seconds; what was answered by then does not open again."""

    @pytest.mark.parametrize("by", ["look", "ask"])
    async def test_it_stays_closed(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch, by: str
    ) -> None:
        looks, free = asyncio.Event(), asyncio.Event()

        async def slow(*_: object, **__: object) -> bytes:
            looks.set()
            await free.wait()
            return picture(colour="red")

        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            choices = (("done", "完成"), ("stop", "停下"))
            question_id = await house.stage.ask(
                run_id, QuestionKind.TAKE_OVER, *choices, free_text=False, picture=picture()
            )
            asked = target = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            if by == "ask":
                await operator.send("/ask")
                target = await operator.sees(lambda chat: card_of(chat, "等待回答的问题"))
            monkeypatch.setattr(house.desk.phones, "screenshot", slow)
            tap = asyncio.create_task(operator.tap(target, "刷新画面" if by == "look" else "看第 1 个"))
            await asyncio.wait_for(looks.wait(), 10)
            await house.desk.questions.answer(await house.stage.actor(11), question_id, choice="done")
            await operator.sees(lambda chat: "已回答" in asked.words)
            free.set()
            assert (await tap).alert
            await until_out(house)
        assert asked.buttons == []
        assert not [card for card in operator.chat.from_bot if card.photo and card.buttons and "怎么退货" in card.words]

    async def test_a_card_whose_turn_comes_too_late_is_not_sent(self, house: House, operator: FakeUser) -> None:
        async with house.adapter() as adapter:
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            card = question_card(await house.stage.question(question_id), texts("zh"))
            await house.desk.questions.answer(await house.stage.actor(11), question_id, choice="skip")
            await operator.sees(lambda chat: "已回答" in asked.words)
            await adapter._outbox.put("11", render.outgoing(card), ref=f"question:{question_id}")
            await adapter._outbox.put("11", render.outgoing(card))
            await until_out(house)
        assert asked.buttons == []
        assert len(operator.chat.saying("怎么退货")) == 1


class TestOverTime(WithARun):
    async def test_a_reminder_replies_to_the_card_and_comes_once(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            for _ in range(2):  # told twice after a crash
                await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 1})
            reminder = await operator.sees(lambda chat: card_of(chat, "还在等回答"))
            assert reminder.reply_to is asked
        async with house.adapter():  # and by another process
            await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 1})
            await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 2})
            await operator.sees(lambda chat: len(chat.saying("还在等回答")) == 2)
            await operator.tap(asked, "退货")
            await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 3})
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
            reminders = [message for message in operator.chat.from_bot if message.reply_to is asked]
            await operator.sees(lambda chat: ["已回答" in one.words for one in reminders] == [True, True])
        assert [message for message in operator.chat.from_bot if message.reply_to is asked] == reminders
        assert await refused(house) == []

    async def test_a_reply_to_a_reminder_is_an_answer(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop")
        async with house.adapter():
            await operator.send("/run one", chat=group)
            run_id = await until(house.stage.newest)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await until(lambda: house.desk.questions.card(question_id))
            await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 1})
            reminder = await operator.sees(lambda chat: card_of(chat, "还在等回答"), chat=group)
            deadline = (await house.stage.question(question_id)).deadline
            assert deadline is not None
            assert f"截止 {deadline:%m-%d %H:%M} · 到时" in reminder.words
            assert reminder.buttons == [["看问题"]]
            await until(lambda: house.has_cards(2))
            await operator.send("今天就给您退", reply_to=reminder, chat=group)
            await operator.sees(lambda chat: "Operator A 已回答：今天就给您退" in reminder.words, chat=group)
            assert reminder.buttons == []
        assert (await house.stage.question(question_id)).answer == "今天就给您退"

    async def test_instead_of_a_reminder_a_lost_card_comes_again(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            await house.forget_card(question_id)
            await house.stage.tell(run_id, "reminder", {"question": question_id, "number": 1})
            again = await operator.sees(lambda chat: chat.saying("怎么退货")[1:])
            assert again[0].photo == picture()
            assert operator.chat.saying("还在等回答") == []

    async def test_a_second_person_answers_and_every_card_says_so(self, house: House, operator: FakeUser) -> None:
        second = house.tg.user(12, "Operator B", "zh")
        await second.send("/start")
        await house.stage.join(12, "Operator B", Role.OWNER, "zh")
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            first = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            for _ in range(2):
                await house.stage.tell(run_id, "escalated", {"question": question_id})
            other = await second.sees(lambda chat: card_of(chat, "怎么退货"))
            assert other.photo == picture()
            await operator.send("/ask")
            listed = await operator.sees(lambda chat: card_of(chat, "等待回答的问题"))
            await operator.tap(listed, "看第 1 个")
            third = await operator.sees(lambda chat: chat.saying("客户的话")[1:])
            assert (await second.tap(other, "退货")).text == "收到，已采用你的回答。"
            every = (first, other, third[0])
            await until(lambda: all("Operator B 已回答：退货" in card.words for card in every))
            assert [card.buttons for card in every] == [[], [], []]
            late = await operator.tap(listed, "看第 1 个")
            assert late.alert
        assert len(second.chat.saying("怎么退货")) == 1
        assert await refused(house) == []

    async def test_a_reply_to_a_further_card_answers_too(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await operator.send("/ask")
            listed = await operator.sees(lambda chat: card_of(chat, "等待回答的问题"))
            await operator.tap(listed, "看第 1 个")
            further = await operator.sees(lambda chat: chat.saying("客户的话")[1:])
            await until(lambda: house.has_cards(2))
            await operator.send("今天就给您退", reply_to=further[0])
            await until(lambda: house.is_answered(question_id))
            await operator.sees(lambda chat: "Operator A 已回答" in further[0].words)

    async def test_nobody_answered(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            async with house.db.write() as connection:  # its time is over
                await connection.execute(sa.update(questions).values(deadline=house.db.now() - timedelta(seconds=1)))
            assert [row.id for row in await Questions(house.db).expire()] == [question_id]
            await operator.sees(lambda chat: "没有人回答" in asked.words)
            assert asked.buttons == []

    async def test_after_a_restart_the_end_of_a_run_closes_its_question(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
        async with house.adapter():
            await house.stage.end(run_id, "stopped")
            await operator.sees(lambda chat: "没有人回答" in asked.words)
            assert asked.buttons == []

    async def test_hold_and_resume_on_the_live_card(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "执行中" in card.words)
            assert (await operator.tap(card, "暂停")).text == "正在暂停，马上让出手机。"
            await house.stage.park(run_id)
            await operator.sees(lambda chat: card.words.startswith("⏸ 已暂停"))
            assert card.buttons == [["继续", "停止", "看屏幕"]]
            assert (await operator.tap(card, "继续")).text == "任务继续。"
            await operator.sees(lambda chat: card.buttons[0][-1] == "暂停")

    async def test_a_fresh_picture_on_the_card_of_a_take_over(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            choices = (("done", "完成"), ("stop", "停止"))
            await house.stage.ask(
                run_id, QuestionKind.TAKE_OVER, *choices, text="请登录", free_text=False, picture=picture()
            )
            asked = await operator.sees(lambda chat: card_of(chat, "请登录"))
            assert asked.buttons == [["完成", "停止"], ["刷新画面"]]
            await operator.tap(asked, "刷新画面")
            await operator.sees(lambda chat: is_green(asked.photo))
            assert asked.buttons == [["完成", "停止"], ["刷新画面"]]
            await asyncio.wait_for(operator.tap(asked, "完成"), 10)
            await operator.sees(lambda chat: "Operator A 已回答：完成" in asked.words)


class TestOfATerminal:
    async def test_a_run_that_was_stopped_with_its_question_before_anybody_saw_it_is_one_card(
        self, house: House, operator: FakeUser
    ) -> None:
        async with house.adapter():
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        before = len(operator.chat.from_bot)
        run_id = await house.stage.rows.create(NewRun("打开设置", PHONE, requested_by=TERMINAL, begun=True))
        assert run_id is not None
        await house.stage.ask(run_id, QuestionKind.STUCK, ("stop", "结束"))
        await house.stage.rows.request_stop(run_id, by=TERMINAL)
        async with house.adapter():
            await operator.sees(lambda chat: chat.saying("已停止"))
            await until(house.has_told_all)
            await until_out(house)
        assert [message.words.partition("\n")[0] for message in operator.chat.from_bot[before:]] == ["⏹ 已停止"]
