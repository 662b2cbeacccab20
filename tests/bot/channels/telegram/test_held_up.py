"""What takes long, or fails alone, holds up nothing else, and nothing is lost by it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy.exc import DataError, OperationalError

from bot.channels.chat.cards import Card
from bot.channels.telegram import render
from bot.channels.telegram.options import TelegramOptions
from simulator.telegram import FakeUser
from storage.messages import InboxTable
from tests.bot.channels.telegram.house import House, WithARun, card_of, refused, until_out
from tests.support.telegram import picture


class TestLate:
    async def test_a_late_answer_is_waited_for(self, house: House, operator: FakeUser) -> None:
        assert TelegramOptions("t").read_seconds >= 30
        assert TelegramOptions("t").pool_seconds >= 10
        await operator.send("/start")
        async with house.adapter(read_seconds=0.2) as adapter:
            for seconds, times in ((0.05, 1), (0.6, 2)):  # the second: the option is what decides
                house.tg.world.answer_late("sendMessage", seconds)
                await adapter._outbox.put("11", render.outgoing(Card(f"waited {seconds}")))
                await until_out(house)
                assert len(operator.chat.saying(f"waited {seconds}")) == times


class TestAlone:
    async def test_a_picture_that_never_arrives_is_left_out(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            house.tg.world.break_next("sendPhoto", 1000, "502")
            await adapter._outbox.put("11", render.outgoing(Card("one", picture=picture())))
            await operator.sees(lambda chat: card_of(chat, "one"))
            await until_out(house)
        assert await refused(house) == []

    async def test_a_text_that_never_arrives_is_given_up(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        async with house.adapter(own_fault_seconds=0.0) as adapter:
            house.tg.world.break_next("sendMessage", 5, "502")
            await adapter._outbox.put("11", render.outgoing(Card("one")))
            await adapter._outbox.put("11", render.outgoing(Card("two")))
            await operator.sees(lambda chat: card_of(chat, "two"))
        assert operator.chat.saying("one") == []
        (why,) = await refused(house)
        assert why.startswith("Telegram answers, but not to this message")


class TestOnce:
    async def test_two_at_once_are_one(self, house: House, operator: FakeUser) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            await asyncio.gather(*(adapter._outbox.put("11", render.outgoing(Card("one")), once="x") for _ in range(3)))
            await until_out(house)
        assert len(operator.chat.saying("one")) == 1

    async def test_what_could_not_be_stored_can_be_said_again(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            box = adapter._outbox

            async def full(*_: object, **__: object) -> int:
                raise OSError("disk full")

            with monkeypatch.context() as broken:
                broken.setattr(box._store, "put", full)
                with pytest.raises(OSError, match="disk full"):
                    await box.put("11", render.outgoing(Card("one")), once="x")
            await box.put("11", render.outgoing(Card("one")), once="x")
            await operator.sees(lambda chat: card_of(chat, "one"))


class TestDatabaseAway(WithARun):
    @pytest.mark.parametrize(("error", "arrives"), [(OperationalError, True), (DataError, False)])
    async def test_an_event_waits_for_the_database(
        self,
        house: House,
        operator: FakeUser,
        monkeypatch: pytest.MonkeyPatch,
        error: type[Exception],
        arrives: bool,
    ) -> None:
        async with house.adapter() as adapter:
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "执行中" in card.words)
            put, left = adapter._outbox.put, [4]

            async def away(*given: Any, **named: Any) -> None:
                if left[0]:
                    left[0] -= 1
                    raise error("", {}, Exception("away"))
                await put(*given, **named)

            monkeypatch.setattr(adapter._outbox, "put", away)
            await house.stage.end(run_id, "succeeded", "好")
            if arrives:
                await operator.sees(lambda chat: "已完成" in card.words)
            else:
                async with asyncio.timeout(10):
                    while left[0] > 1:
                        await asyncio.sleep(0.005)

    async def test_a_live_card_comes_again_after_a_mistake(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with house.adapter() as adapter:
            run_id, card = await self.start(house, operator)
            await operator.sees(lambda chat: "执行中" in card.words)
            draw, left = adapter._feed.live_card, [2]

            async def fails(*given: str) -> Any:
                if left[0]:
                    left[0] -= 1
                    raise OSError("away")
                return await draw(*given)

            monkeypatch.setattr(adapter._feed, "live_card", fails)
            await house.stage.step(run_id, self.step(1))
            await operator.sees(lambda chat: "第 1 步" in card.words)


async def test_updates_in_hand_hide_no_others(house: House) -> None:
    box = InboxTable(house.db)
    for number in range(1, 6):
        await box.store(number, "{}")
    assert [row.update_id for row in await box.waiting(2, without={1, 2, 4})] == [3, 5]
