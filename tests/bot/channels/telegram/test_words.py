"""Answers in words, what is none, and who wrote in a way that counts for nothing, as it looks in Telegram."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.session import QuestionKind
from simulator.telegram import Chat, FakeUser
from simulator.telegram.people import MEDIA
from storage.people import Audit
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, refused, until, until_handled


class TestAnswers(WithARun):
    async def test_plain_words_become_the_answer_by_a_tap(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await operator.send("今天就给您退 <b>")
            offer = await operator.sees(lambda chat: card_of(chat, "这是对这个问题的回答吗"))
            assert offer.buttons[0] == ["原样发给客户"]
        async with house.adapter():  # a restart between the offer and the tap
            assert (await operator.tap(offer, "原样发给客户")).text == "收到，已采用你的回答。"
            assert (await house.stage.question(question_id)).answer == "今天就给您退 <b>"
            await operator.sees(lambda chat: offer.buttons == [])
        assert await refused(house) == []

    async def test_a_tap_without_its_message_says_that_the_question_is_open(
        self, house: House, operator: FakeUser
    ) -> None:
        """Own words that do not reply to the prompt wait for a tap, and a server may leave out what the offer shows."""
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await operator.tap(card, "自己写")
            await operator.send("今天就给您退")
            offer = await operator.sees(lambda chat: card_of(chat, "这是对这个问题的回答吗"))
        async with house.adapter():  # after a kill
            for left_out in ({"reply_markup"}, {"reply_to_message"}, {"reply_markup", "reply_to_message", "text"}):
                query, answered = operator.tapped(offer, "原样发给客户")
                query["message"] = {key: value for key, value in query["message"].items() if key not in left_out}
                operator.world.push("callback_query", query)
                said = str((await asyncio.wait_for(answered, 10))["text"])
                assert said.startswith("什么都没有发，问题还在等回答")
            assert (await house.stage.question(question_id)).open
            assert (await operator.tap(offer, "原样发给客户")).text == "收到，已采用你的回答。"

    async def test_words_that_were_changed_since_are_not_sent(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            written = await operator.send("今天就给您退")
            offer = await operator.sees(lambda chat: card_of(chat, "这是对这个问题的回答吗"))
            await operator.edit(written, "明天再说")
            assert (await operator.tap(offer, "原样发给客户")).alert
            assert (await house.stage.question(question_id)).open

    async def test_own_words_open_the_input_in_private_and_survive_a_restart(
        self, house: House, operator: FakeUser
    ) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            assert (await operator.tap(card, "自己写")).text == "回复问题卡片，写下要发给客户的话。"
            prompt = await operator.sees(lambda chat: card_of(chat, "请回复这条消息"))
            assert (prompt.force_reply, prompt.selective) == (True, False)
            assert prompt.placeholder == "写下要发给客户的话"
            await until(lambda: house.has_cards(2))
        async with house.adapter():
            await operator.send_media("voice", reply_to=prompt)
            await operator.sees(lambda chat: chat.saying("只能用文字回答"))
            assert (await house.stage.question(question_id)).open
            await operator.send("今天就给您退", reply_to=prompt)
            await operator.sees(lambda chat: "Operator A 已回答：今天就给您退" in card.words)

    async def test_in_a_group_a_long_question_opens_the_input_of_whoever_tapped(
        self, house: House, operator: FakeUser
    ) -> None:
        group = house.tg.group(-1001, "shop")
        async with house.adapter():
            await operator.send("/run one", chat=group)
            run_id = await until(house.stage.newest)
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, text="字 " * 2500)
            card = await operator.sees(
                lambda chat: next((m for m in chat.from_bot if "自己写" in str(m.buttons)), None), chat=group
            )
            assert card is not None
            await operator.tap(card, "自己写")
            prompt = await operator.sees(
                lambda chat: next((m for m in chat.from_bot if m.force_reply), None), chat=group
            )
            assert prompt is not None
            assert prompt.selective
            assert "Operator A" in prompt.text.splitlines()[0]
            assert prompt.text.count("字") < 200
        assert await refused(house) == []

    @pytest.mark.parametrize("kind", MEDIA)
    async def test_what_is_not_words_is_no_answer(self, house: House, operator: FakeUser, kind: str) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            await operator.send_media(kind, reply_to=card)
            await operator.sees(lambda chat: chat.saying("只能用文字回答"))
            assert (await house.stage.question(question_id)).open
            await operator.send_media(kind)
            await operator.sees(lambda chat: chat.saying("我只看得懂文字"))

    async def test_a_caption_is_words_and_the_rest_of_an_album_is_not_told_of(
        self, house: House, operator: FakeUser
    ) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            await operator.send_media("photo", caption="今天就给您退", reply_to=card, album="a")
            await operator.send_media("photo", reply_to=card, album="a")
            await operator.sees(lambda chat: chat.saying("已采用你的回答"))
            for _ in range(3):
                await operator.send_media("photo", album="b")
            await operator.sees(lambda chat: chat.saying("我只看得懂文字"))
            await until_handled(house)
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("账号"))
        assert (await house.stage.question(question_id)).answer == "今天就给您退"
        assert len(operator.chat.saying("我只看得懂文字")) == 1
        assert operator.chat.saying("只能用文字回答") == []

    async def test_in_a_group_a_sticker_is_nobodys_business(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop")
        group.bot_admin = True  # it is sent everything
        async with house.adapter():
            await operator.send("/run one", chat=group)
            card = await operator.sees(lambda chat: card_of(chat, "one"), chat=group)
            await operator.send_media("sticker", chat=group)
            await operator.send_media("sticker", chat=group, reply_to=card)
            await operator.send("/whoami", chat=group)
            await operator.sees(lambda chat: chat.saying("账号"), chat=group)
        assert len(group.from_bot) == 2


class TestEdited:
    async def test_an_edited_command_does_nothing_and_is_told_of_once(self, house: House, operator: FakeUser) -> None:
        stranger = house.tg.user(99, "Who", "de")
        async with house.adapter():
            asked = ["message", "edited_message", "callback_query"]
            await until(lambda: house.tg.world.allowed_updates == asked)
            written = await operator.send("/help")
            for text in ("/run one", "/run two", "just words"):
                await operator.edit(written, text)
            theirs = await stranger.send("hello")
            await stranger.edit(theirs, "/run three")
            await operator.sees(lambda chat: chat.saying("改过的消息不算数"))
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("账号"))
            await until_handled(house)
        assert len(operator.chat.saying("改过的消息不算数")) == 1
        assert operator.chat.saying("改过的消息不算数")[0].reply_to is written
        assert len(stranger.chat.from_bot) == 1
        assert await house.stage.runs() == []
        mine = [row for row in await Audit(house.db).refused(50) if row.actor == (await house.stage.actor(11)).id]
        assert [row.command for row in mine] == ["edited"] * 2

    async def test_an_answer_that_is_edited_stays_as_it_was(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            await operator.send("/run one")
            await until(house.stage.newest)
            question_id = await house.stage.ask(await house.stage.newest(), QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until(lambda: house.desk.questions.card(question_id))
            answer = await operator.send("今天就给您退", reply_to=card)
            await operator.sees(lambda chat: chat.saying("已采用你的回答"))
            await operator.edit(answer, "明天再说")
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("账号"))
        assert (await house.stage.question(question_id)).answer == "今天就给您退"


class TestNameless:
    async def test_who_writes_as_the_group_or_a_channel_is_told_once(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop")
        news = Chat(-77, "channel", "news", started=True)
        async with house.adapter():
            await operator.send("/run one", chat=group, as_chat=group)
            hint = await operator.sees(lambda chat: card_of(chat, "请用自己的名字发"), chat=group)
            await operator.send("/run two", chat=group, as_chat=news)
            await operator.send("/help@other_bot", chat=group, as_chat=group)
            await operator.send("answer", chat=group, as_chat=group, reply_to=hint)
            await operator.send("/whoami", chat=group)
            await operator.sees(lambda chat: chat.saying("账号"), chat=group)
            await until_handled(house)
        async with house.adapter():
            await operator.send("/run three", chat=group, as_chat=group)
            await until(lambda: house.tg.world.updates == [])
            await until_handled(house)
        assert len(group.saying("请用自己的名字发")) == 1
        assert await house.stage.runs() == []
        assert await Audit(house.db).refused(50) == []  # it names no person
