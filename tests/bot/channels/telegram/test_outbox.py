"""What becomes of a message that its chat does not take as it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_core.session import QuestionKind, ReplyRecord
from bot.channels.chat.cards import Card
from bot.channels.telegram import render
from simulator.telegram import FakeUser
from storage.messages import OutboxTable
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, refused, until, until_out
from tests.support.telegram import picture

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"


class TestLongTexts(WithARun):
    async def test_a_long_question_comes_whole_in_several_messages(self, house: House, operator: FakeUser) -> None:
        words = f"<b>{FAMILY} 第一句。</b> " * 500
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, text=words)
            card = await operator.sees(
                lambda chat: next((m for m in chat.from_bot if "自己写" in str(m.buttons)), None)
            )
            parts = operator.chat.from_bot[1:]
            assert len(parts) > 1
            assert parts[-1] is card
            assert "".join(part.text for part in parts).count(FAMILY) == 500
            assert "…" not in "".join(part.text for part in parts)
            await operator.send("今天就给您退", reply_to=parts[0])  # a reply to any of them is an answer
            await until(lambda: house.is_answered(question_id))
            await operator.sees(lambda chat: "Operator A 已回答" in card.words)
        assert len(operator.chat.saying("第一句")) == len(parts)
        assert await refused(house) == []

    async def test_a_long_caption_comes_whole_before_its_picture(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, text="字" * 1500, picture=picture())
            # The run's own card has the picture, too, and may have it before.
            card = await operator.sees(
                lambda chat: next((m for m in chat.from_bot if m.photo and "字" in m.caption), None)
            )
            assert card is not None
            whole = operator.chat.saying("字" * 1500)
            assert [message.id < card.id for message in whole] == [True]
            assert card.caption.count("字") < 1024
            assert card.buttons == [["退货", "跳过"], ["自己写"]]

    async def test_how_a_run_looked_at_first_never_takes_the_place_of_what_is_shown(
        self, house: House, operator: FakeUser
    ) -> None:
        async with house.adapter() as adapter:
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "排队" not in card.words)
            first = render.outgoing(Card("⏳ 排队中", ()))
            await adapter._outbox.put("11", first, ref=f"run:{run_id}", begins=True)
            await house.stage.end(run_id, "failed", "到此为止")
            await operator.sees(lambda chat: "到此为止" in card.words)
        assert not any("排队中" in edit.content.text + edit.content.caption for edit in card.edits[1:])
        assert operator.chat.from_bot == [card]

    async def test_an_edit_stays_in_one_message(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.end(run_id, "failed", "字" * 5000)
            await operator.sees(lambda chat: "失败" in card.words and "…" in card.words)
        assert operator.chat.from_bot == [card]

    @pytest.mark.parametrize(("count", "length"), [(25, 40), (1, 1500), (60, 300)])
    async def test_what_was_sent_to_customers_is_not_cut(
        self, house: House, operator: FakeUser, count: int, length: int
    ) -> None:
        replies = tuple(
            ReplyRecord(contact=f"客户{n}", question="怎么退", text=f"答{n}：" + "退" * length, provenance="person")
            for n in range(count)
        )
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.step(run_id, self.step(1), picture=picture())
            await operator.sees(lambda chat: card.photo)
            await house.stage.end(run_id, "succeeded", "好", replies=replies)
            first = await operator.sees(lambda chat: card_of(chat, f"发出的全部回复：{count} 条"))
            await until_out(house)
            others = [message for message in operator.chat.from_bot if message is not card]
            words = "\n".join(message.text for message in others)
            all_of_them = [f"答{n}：" + "退" * length in words.replace("\n", "") for n in range(count)]
            assert all(all_of_them) is (count < 60)
            assert ("还发出了" in words) is (count == 60)
            assert first.reply_to is card
            assert ("还发出了" in card.words) is (count > 2)
            assert await refused(house) == []

    async def test_what_the_card_holds_is_not_said_twice(self, house: House, operator: FakeUser) -> None:
        reply = ReplyRecord(contact="11", question="怎么退", text="七天内可以退", provenance="person")
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.end(run_id, "succeeded", "好", replies=(reply,) * 3)
            await operator.sees(lambda chat: card.words.count("七天内可以退") == 3)
            await until_out(house)
        assert operator.chat.from_bot == [card]


class TestPictures(WithARun):
    async def test_what_is_no_photo_goes_as_a_file_and_is_left_out_of_a_live_card(
        self, house: House, operator: FakeUser
    ) -> None:
        tall = picture(20, 900)
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await house.stage.step(run_id, self.step(1), picture=tall)
            await operator.sees(lambda chat: "第 1 步" in card.text)
            await house.stage.step(run_id, self.step(2), picture=picture(colour="red"))
            await operator.sees(lambda chat: card.photo == picture(colour="red") and "第 2 步" in card.caption)
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=tall)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            assert (asked.content.media, asked.file) == ("document", tall)
        assert operator.chat.from_bot == [card, asked]
        assert await refused(house) == []


class TestShutOut(WithARun):
    async def test_blocked_and_let_in_again(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            operator.chat.blocked = True
            for number in range(1, 6):
                await house.stage.step(run_id, self.step(number))
                await asyncio.sleep(0.06)
            await until(lambda: [call for call in house.tg.world.calls if call.code == 403])
            await house.stage.end(run_id, "succeeded", "好")
            async with asyncio.timeout(10):
                while not (why := await refused(house)):
                    await asyncio.sleep(0.005)
            assert why == ["Forbidden: bot was blocked by the user"]
            assert len([call for call in house.tg.world.calls if call.code == 403]) == 2  # not each step
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        assert "已完成" not in card.words

    async def test_a_question_that_its_group_does_not_take_goes_to_somebody_else(
        self, house: House, operator: FakeUser
    ) -> None:
        group = house.tg.group(-1001, "shop")
        await operator.send("/start")
        async with house.adapter():
            await operator.send("/run one", chat=group)
            await operator.sees(lambda chat: card_of(chat, "one"), chat=group)
            group.kicked = True
            run_id = await house.stage.newest()
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            assert await refused(house) == ["Forbidden: bot was kicked from the supergroup chat"]
            await operator.tap(card, "退货")
            assert (await house.stage.question(question_id)).answer == "record:0"
            await operator.sees(lambda chat: "已回答" in card.words)


class TestMoved(WithARun):
    @pytest.mark.parametrize("heard", [True, False])
    async def test_a_group_becomes_a_supergroup(self, house: House, operator: FakeUser, heard: bool) -> None:
        """Told by Telegram, or met when something is sent; the cards come anew, in the new chat alone."""
        old = house.tg.group(-5, "shop", "group")
        async with house.adapter():
            await operator.send("/run one", chat=old)
            await operator.sees(lambda chat: card_of(chat, "one"), chat=old)
            run_id = await house.stage.newest()
            await until(lambda: house.desk.runs.card(run_id))
            await house.stage.begin(run_id)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES, picture=picture())
            await operator.sees(lambda chat: card_of(chat, "怎么退货"), chat=old)
            await until(lambda: house.desk.questions.card(question_id))
            new = house.tg.world.upgrade(old, -1005, operator.member)
            mine = house.tg.world.post(new, house.tg.world.bot, old.from_bot[0].content)
            ours = await house.desk.runs.card(run_id)
            assert ours is not None
            mine.id = int(ours.message_id)  # another message has the number of our card
            if not heard:
                house.tg.world.updates.clear()
            await house.stage.step(run_id, self.step(1))
            card = await operator.sees(lambda chat: card_of(chat, "怎么退货"), chat=new)
            assert card.photo == picture()
            await operator.sees(lambda chat: chat.saying("第 1 步"), chat=new)
            await operator.tap(card, "退货")
            await operator.sees(lambda chat: "Operator A 已回答：退货" in card.words, chat=new)
            await house.stage.end(run_id, "succeeded", "好")
            await operator.sees(lambda chat: chat.saying("已完成"), chat=new)
            await until_out(house)
        run = await house.stage.run(run_id)
        assert run.chat is not None
        assert run.chat.chat_id == str(new.id)
        assert not mine.edited
        assert len([m for m in new.from_bot if m is not mine]) == 2
        assert await refused(house) == []


class TestRetries(WithARun):
    async def test_after_an_outage_all_comes_in_order(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            house.tg.world.break_next("sendMessage", 4, "502")
            house.tg.world.break_next("editMessageText", 3, "before")
            await operator.send("/help")
            await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("身份：管理员"))
            await until_out(house)
        said = [message.text for message in operator.chat.from_bot if message is not card]
        assert len(said) == 3
        assert await refused(house) == []
        assert ["使用说明" in text for text in said].count(True) == 1
        helped, whoami = (
            next(n for n, text in enumerate(said) if word in text) for word in ("使用说明", "身份：管理员")
        )
        assert helped < whoami

    async def test_what_was_sent_while_the_store_was_looked_into_is_not_sent_again(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await operator.send("/start")
        real_due, real_sent = OutboxTable.due, OutboxTable.sent
        begun, looked, written = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def due(self: OutboxTable, *given: Any, **named: Any) -> Any:
            rows = await real_due(self, *given, **named)
            if begun.is_set() and not written.is_set():
                looked.set()
                await written.wait()
                await asyncio.sleep(0.05)  # what was read is old by now
            return rows

        async def sent(self: OutboxTable, *given: Any, **named: Any) -> None:
            begun.set()
            await looked.wait()
            await real_sent(self, *given, **named)
            written.set()

        monkeypatch.setattr(OutboxTable, "due", due)
        monkeypatch.setattr(OutboxTable, "sent", sent)
        async with house.adapter() as adapter:
            await adapter._outbox.put("11", render.outgoing(Card("甲句")))
            await asyncio.wait_for(begun.wait(), 10)
            await adapter._outbox.put("11", render.outgoing(Card("乙句")))
            await operator.sees(lambda chat: chat.saying("乙句"))
            await until_out(house)
        assert [len(operator.chat.saying(words)) for words in ("甲句", "乙句")] == [1, 1]

    async def test_given_up_after_a_day_with_a_row_that_says_why(self, house: House, operator: FakeUser) -> None:
        async with house.adapter(give_up_seconds=0.2):
            house.tg.world.break_next("sendMessage", 1000, "502")
            house.tg.world.break_next("getMe", 1000, "502")
            await operator.send("/help")
            await until(lambda: operator.chat.every)
            async with asyncio.timeout(10):
                while not (why := await refused(house)):
                    await asyncio.sleep(0.01)
            assert "hours" in why[0]
            house.tg.world._faults.clear()
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
        assert operator.chat.saying("使用说明") == []

    async def test_a_row_that_cannot_be_read_holds_nobody_up(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        payload: dict[str, Any] = render.outgoing(Card("x")).payload() | {"thread_id": "no number"}
        async with house.adapter() as adapter:
            await adapter._outbox._store.put("11", payload, ref="run:broken")
            await operator.send("/whoami")
            await operator.sees(lambda chat: chat.saying("管理员"))
            (why,) = await refused(house)
        assert "thread_id" in why

    async def test_a_mistake_of_ours_holds_nobody_up(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            await adapter._outbox.put("no number", render.outgoing(Card("x")))
            await until_out(house)
            (why,) = await refused(house)
        assert why.startswith("ValueError")

    async def test_a_file_that_is_too_large_is_given_up(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        outgoing = render.outgoing(Card("x")).model_copy(
            update={"document": b"x" * (50 * 1024 * 1024 + 1), "document_name": "x.bin"}
        )
        async with house.adapter() as adapter:
            await adapter._outbox.put("11", outgoing)
            await until_out(house)
            (why,) = await refused(house)
        assert "Too Large" in why
