"""Thoughts as they come: drafts in private chats, and what they never disturb."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from structlog.testing import capture_logs
from telegram import Bot
from telegram.error import BadRequest, Forbidden, RetryAfter

from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outlet import DRAFT_MARK, Drafts, draft_id, draft_text
from bot.channels.telegram.render import units
from bot.desk.actors import ChatRef
from simulator.telegram import Chat, FakeTelegram, FakeUser, Message
from tests.bot.channels.telegram.house import House, WithARun, card_of, until
from tests.support.telegram import picture


def drafts(chat: Chat) -> list[str]:
    return [draft.text for draft in chat.drafts]


def drafted(words: str) -> Callable[[Chat], bool]:
    return lambda chat: DRAFT_MARK + words in drafts(chat)


def told(card: Message, words: str, chat: Chat) -> bool:
    return words in card.words


class TestDrafts(WithARun):
    async def think(self, house: House, run_id: str, text: str) -> None:
        await house.stage.tell(run_id, "thinking", {"text": text, "step": 1})

    async def test_a_thought_streams_into_one_draft(self, house: House, operator: FakeUser) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            for words in ("先打开", "先打开 QQ", "先打开 QQ，再找联系人"):
                await self.think(house, run_id, words)
                await operator.sees(drafted(words))
            assert {draft.id for draft in operator.chat.drafts} == {draft_id(run_id)}
            assert [draft.animated for draft in operator.chat.drafts] == [False, True, True]
            await house.stage.step(run_id, self.step(1))
            await operator.sees(lambda chat: "第 1 步" in card.words and "想法1" in card.words)
            assert operator.chat.from_bot == [card]

    async def test_while_a_draft_tells_of_it_the_card_is_not_edited_for_a_thought(
        self, house: House, operator: FakeUser
    ) -> None:
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await self.think(house, run_id, "一")
            await operator.sees(lambda chat: chat.draft is not None and "一" in card.words)
            await operator.sees(lambda chat: "排队" not in card.words)
            await self.think(house, run_id, "二")
            await operator.sees(drafted("二"))
            thoughts = ("三", "四", "五")
            for words in thoughts:
                await self.think(house, run_id, words)
                await operator.sees(drafted(words))
            shown = "".join(edit.content.text + edit.content.caption for edit in card.edits)
            assert not any(words in shown for words in thoughts), "those of the run's begin may come late"
            await house.stage.step(run_id, self.step(1))
            await operator.sees(lambda chat: "想法1" in card.words)

    async def test_drafts_keep_their_distance_and_the_newest_wins(self, house: House, operator: FakeUser) -> None:
        async with house.adapter(edit_private=0.3):
            run_id, _ = await self.start(house, operator)
            for number in range(1, 31):
                await self.think(house, run_id, f"想到{number}")
                await asyncio.sleep(0.01)
            await operator.sees(lambda chat: f"{DRAFT_MARK}想到30" in drafts(chat))
        times = [draft.at for draft in operator.chat.drafts]
        assert len(times) <= 6
        assert all(later - earlier >= 0.29 for earlier, later in itertools.pairwise(times))

    async def test_what_is_over_is_not_sent_any_more(self, house: House, operator: FakeUser) -> None:
        async with house.adapter(edit_private=0.3):
            run_id, card = await self.start(house, operator)
            await self.think(house, run_id, "一")
            await operator.sees(lambda chat: chat.draft is not None)
            await self.think(house, run_id, "二")  # waits for the chat's pace
            await house.stage.end(run_id, "succeeded", "好了")
            await operator.sees(lambda chat: "已完成" in card.words)
            await asyncio.sleep(0.4)
            assert drafts(operator.chat) == [DRAFT_MARK + "一"]

    async def test_a_group_gets_none(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop")
        async with house.adapter():
            await operator.send("/run@desk_bot QQ回复联系人11", chat=group)
            card = await operator.sees(lambda chat: card_of(chat, "QQ回复联系人11"), chat=group)
            run_id = await until(house.stage.newest)
            await house.stage.begin(run_id)
            await self.think(house, run_id, "先看看")
            await operator.sees(lambda chat: "先看看" in card.words, chat=group)
        assert "sendMessageDraft" not in {call.method for call in house.tg.world.calls}

    async def test_who_does_not_want_them_reads_the_card(self, house: House, operator: FakeUser) -> None:
        await house.desk.team.stream(await house.stage.actor(11), False)
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            for words in ("一", "二"):
                await self.think(house, run_id, words)
                await operator.sees(partial(told, card, words))
        assert operator.chat.drafts == []

    @pytest.mark.parametrize("code", [400, 404, 429])
    async def test_a_refusal_turns_them_off_and_the_card_goes_on(
        self, house: House, operator: FakeUser, code: int
    ) -> None:
        house.tg.world.refuse_drafts(code, retry_after=30)
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            with capture_logs() as logs:
                await self.think(house, run_id, "一")
                await until(lambda: [entry for entry in logs if entry["event"] == "telegram_drafts_off"])
                began = time.monotonic()
                for words in ("二", "三"):
                    await self.think(house, run_id, words)
                    await operator.sees(partial(told, card, words))
                assert time.monotonic() - began < 20  # nobody waited for what was asked of the draft
            assert [entry["log_level"] for entry in logs if "draft" in entry["event"]] == ["info"]
        assert [call.method for call in house.tg.world.calls].count("sendMessageDraft") == 1
        assert operator.chat.drafts == []

    async def test_a_draft_that_hangs_delays_no_card(self, house: House, operator: FakeUser) -> None:
        house.tg.world.refuse_drafts(0)
        async with house.adapter():
            run_id, card = await self.start(house, operator)
            await self.think(house, run_id, "一")
            await until(lambda: house.tg.world.hanging)
            await house.stage.step(run_id, self.step(1), picture=picture(colour="red"))
            await operator.sees(lambda chat: card.photo == picture(colour="red"))


class Alone:
    """The drafts by themselves, with a chat that is free and a person who wants them."""

    def __init__(self, tg: FakeTelegram, bot: Bot) -> None:
        async def wanted(chat: ChatRef) -> bool:
            return True

        self.drafts = Drafts(
            bot, TelegramOptions(tg.token, edit_private=0.01), wanted=wanted, free=lambda chat_id: True
        )

    async def __aenter__(self) -> Drafts:
        self._task = asyncio.create_task(self.drafts.run())
        return self.drafts

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


PRIVATE = ChatRef("telegram", "11")


async def test_a_group_is_not_even_asked_about(tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
    async with Alone(tg, bot) as alone:
        assert not alone.think("r1", replace(PRIVATE, kind="group"), "一")
        assert alone._thoughts == {}
        assert not alone.think("r1", PRIVATE, " \x00 ")
        assert alone._thoughts == {}


async def test_a_run_that_was_refused_stays_without_and_the_next_one_may_try(
    tg: FakeTelegram, bot: Bot, user: FakeUser
) -> None:
    tg.world.refuse_drafts(429, retry_after=1)
    async with Alone(tg, bot) as alone:
        alone.think("r1", PRIVATE, "一")
        await until(lambda: "r1" in alone._off)
        tg.world.take_drafts()
        assert not alone.think("r1", PRIVATE, "二")
        alone.think("r2", PRIVATE, "三")
        await until(lambda: alone.shown("r2"))
        assert alone.think("r2", PRIVATE, "四")
        await user.sees(drafted("四"))
    assert drafts(user.chat) == [DRAFT_MARK + "三", DRAFT_MARK + "四"]


class TestRhythm(WithARun):
    async def test_a_group_is_edited_at_its_own_pace(self, house: House, operator: FakeUser) -> None:
        group = house.tg.group(-1001, "shop")
        async with house.adapter(edit_private=0.05, edit_group=0.3):
            await operator.send("/run@desk_bot QQ回复联系人11", chat=group)
            card = await operator.sees(lambda chat: card_of(chat, "QQ回复联系人11"), chat=group)
            run_id = await until(house.stage.newest)
            await house.stage.begin(run_id)
            for number in range(1, 21):
                await house.stage.step(run_id, self.step(number))
                await asyncio.sleep(0.01)
            await operator.sees(lambda chat: "第 20 步" in card.words, chat=group)
        times = [edit.at for edit in card.edits]
        assert len(times) < 20, "not one for each step, however slow the machine is"
        assert all(later - earlier >= 0.29 for earlier, later in itertools.pairwise(times))

    def test_the_paces_are_those_that_telegram_bears(self) -> None:
        options = TelegramOptions("1:x")
        assert options.edit_private >= 1.2  # about one message a second in a chat
        assert options.edit_group >= 4.0  # 20 a minute in a group, edits among them


async def test_what_the_server_refuses(tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
    group = tg.group(-1001, "shop")
    with pytest.raises(BadRequest, match=r"(?i)peer_invalid"):
        await bot.send_message_draft(group.id, 1, "x")
    with pytest.raises(BadRequest, match="non-zero"):
        await bot.send_message_draft(11, 0, "x")
    with pytest.raises(BadRequest, match="too long"):
        await bot.send_message_draft(11, 1, "x" * 4097)
    tg.user(12, "Stranger", "en")
    with pytest.raises(Forbidden, match="initiate"):
        await bot.send_message_draft(12, 1, "x")
    tg.world.limit_next(11)
    with pytest.raises(RetryAfter):
        await bot.send_message_draft(11, 1, "x")
    assert user.chat.drafts == []


async def test_what_the_server_takes(tg: FakeTelegram, bot: Bot, user: FakeUser) -> None:
    await bot.send_message_draft(11, 1)  # nothing yet: that the bot thinks
    await bot.send_message_draft(11, 1, "x" * 4096)
    await bot.send_message_draft(11, 2, "<b>y", parse_mode=None)
    assert [(draft.id, len(draft.text), draft.animated) for draft in user.chat.drafts] == [
        (1, 0, False),
        (1, 4096, True),
        (2, 4, False),
    ]
    await bot.send_message(11, "done")
    assert user.chat.draft is None


def test_a_draft_has_room_for_the_newest_words() -> None:
    assert draft_text(" 想\x00一想 ") == DRAFT_MARK + "想一想"
    long = draft_text("开头" + "🙂" * 4000 + "结尾")
    assert units(long) <= 4096
    assert long.startswith(DRAFT_MARK + "…")
    assert long.endswith("🙂结尾")
    assert "\ufffd" not in long
    assert draft_id("a") != draft_id("b")
    assert all(0 < draft_id(str(number)) < 2**31 for number in range(1000))
