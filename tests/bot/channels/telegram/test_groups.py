"""Several people in one group, privacy mode on, no rights for the bot."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.session import QuestionKind
from bot.desk.actors import Role
from simulator.telegram import Chat, FakeUser, Message
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, refused, until
from tests.support.telegram import picture


@pytest.fixture
def group(house: House) -> Chat:
    return house.tg.group(-1001, "shop")


@pytest.fixture
async def second(house: House) -> FakeUser:
    await house.stage.join(12, "Operator B", Role.OPERATOR, "zh")
    return house.tg.user(12, "Operator B", "zh")


class InAGroup(WithARun):
    async def asked(self, house: House, operator: FakeUser, group: Chat) -> tuple[str, str, Message]:
        """The run, its question and the question's card."""
        await operator.send("/run one", chat=group)
        await operator.sees(lambda chat: card_of(chat, "one"), chat=group)
        run_id = await house.stage.newest()
        await until(lambda: house.desk.runs.card(run_id))
        await house.stage.begin(run_id)
        question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
        card = await operator.sees(lambda chat: card_of(chat, "怎么退货"), chat=group)
        await until(lambda: house.desk.questions.card(question_id))
        return run_id, question_id, card


class TestPrivacyMode(InAGroup):
    async def test_a_reply_to_the_card_is_the_answer(
        self, house: House, operator: FakeUser, second: FakeUser, group: Chat
    ) -> None:
        async with house.adapter():
            _, question_id, card = await self.asked(house, operator, group)
            await second.send("不回复任何消息，机器人收不到", chat=group)
            assert (await house.stage.question(question_id)).open
            await second.send("今天就给您退", chat=group, reply_to=card)
            await operator.sees(lambda chat: "Operator B 已回答：今天就给您退" in card.words, chat=group)

    async def test_own_words_are_asked_for_by_a_forced_reply(
        self, house: House, operator: FakeUser, second: FakeUser, group: Chat
    ) -> None:
        async with house.adapter():
            _, question_id, card = await self.asked(house, operator, group)
            assert (await second.tap(card, "自己写")).text == "回复问题卡片，写下要发给客户的话。"
            prompt = await second.sees(lambda chat: card_of(chat, "请回复这条消息"), chat=group)
            assert (prompt.force_reply, prompt.selective, prompt.reply_to) == (True, True, card)
            mention = dict(prompt.content.entities[0])
            assert mention["url"] == "tg://user?id=12"
            assert prompt.text.startswith("Operator B\n")
            await until(lambda: house.has_cards(2))
            await second.send("今天就给您退", chat=group, reply_to=prompt)
            await operator.sees(lambda chat: "Operator B 已回答：今天就给您退" in card.words, chat=group)
            assert (await operator.tap_stale(card, f"own:{question_id}")).alert
        assert (await house.stage.question(question_id)).answer == "今天就给您退"
        assert len(group.saying("请回复这条消息")) == 1
        assert await refused(house) == []

    async def test_commands_with_and_without_the_name_of_the_bot(
        self, house: House, operator: FakeUser, group: Chat
    ) -> None:
        async with house.adapter():
            await operator.send("/run@desk_bot one", chat=group)
            await operator.sees(lambda chat: card_of(chat, "one"), chat=group)
            await operator.send("/run two", chat=group)
            card = await operator.sees(lambda chat: card_of(chat, "two"), chat=group)
            await operator.send("/stop", chat=group, reply_to=card)
            await operator.sees(lambda chat: "已停止" in card.words, chat=group)


class TestSeveral(InAGroup):
    async def test_two_press_the_same_button_at_once(
        self, house: House, operator: FakeUser, second: FakeUser, group: Chat
    ) -> None:
        async with house.adapter():
            _, question_id, card = await self.asked(house, operator, group)
            toasts = await asyncio.gather(operator.tap(card, "退货"), second.tap(card, "退货"))
            by = (await house.stage.question(question_id)).by
            won, lost = toasts if by == "Operator A" else toasts[::-1]
            assert (won.text, won.alert) == ("收到，已采用你的回答。", False)
            assert (lost.text, lost.alert) == (f"{by} 已经先回答了：退货", True)
            await operator.sees(lambda chat: f"{by} 已回答：退货" in card.words and not card.buttons, chat=group)

    async def test_one_taps_while_the_other_writes(
        self, house: House, operator: FakeUser, second: FakeUser, group: Chat
    ) -> None:
        async with house.adapter():
            _, question_id, card = await self.asked(house, operator, group)
            await second.send("今天就给您退", chat=group, reply_to=card)
            toast = await operator.tap_stale(card, f"q:{question_id}:1")
            view = await house.stage.question(question_id)
            await operator.sees(lambda chat: f"{view.by} 已回答：" in card.words, chat=group)
            if view.by == "Operator B":
                assert toast.text == "Operator B 已经先回答了：今天就给您退"
            else:
                await second.sees(lambda chat: chat.saying("Operator A 已经先回答了：跳过"), chat=group)
        assert len(group.saying("怎么退货")) == 1

    async def test_two_stop_at_once(self, house: House, operator: FakeUser, second: FakeUser, group: Chat) -> None:
        async with house.adapter():
            run_id, _, _ = await self.asked(house, operator, group)
            card = group.saying("one")[0]
            toasts = await asyncio.gather(
                operator.tap_stale(card, f"stop:{run_id}"), second.tap_stale(card, f"stop:{run_id}")
            )
            by = (await house.stage.run(run_id)).stopped_by
            assert sorted(toast.text for toast in toasts) == [f"{by} 已经先停止了。", "正在停止。"]
            await operator.sees(lambda chat: "已停止" in card.words and f"停止人：{by}" in card.words, chat=group)
