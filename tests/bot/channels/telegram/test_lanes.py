"""Who waits for whom: a person for what they said before, a Stop for nothing slow, nobody for somebody else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from agent_core.session import Choice, Question, QuestionKind
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.inbox import ordering_key, stops
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import ChatRef, Role
from simulator.telegram import FakeTelegram, FakeUser
from storage.events import Events
from storage.messages import InboxTable, OutboxTable
from storage.questions import Questions
from tests.bot.channels.telegram.house import FAST, House, WithARun, card_of, until, until_handled
from tests.support.shop import PHONE, Shop
from tests.support.telegram import picture

OURS = {"from": {"id": 5, "is_bot": True}}


def tapped(data: str) -> dict[str, Any]:
    return {"callback_query": {"data": data, "from": {"id": 7}, "message": {"chat": {"id": 11}}}}


def written(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"text": text, "from": {"id": 7}, "chat": {"id": 11}, **more}}


class TestNames:
    @pytest.mark.parametrize("words", ["/stop 12", "/hold@desk_bot #3"])
    def test_a_named_run_is_stopped_at_once(self, words: str) -> None:
        assert (
            ordering_key(written(words))
            == ordering_key(tapped("stop:r1"))
            == ordering_key(tapped("hold:r1"))
            == "stop:11:7"
        )
        assert stops(written(words))

    @pytest.mark.parametrize(
        "words", ["/stop", "/stop@desk_bot", "停止", "停", "暂停任务", "/run x", "运行 x", "/resume"]
    )
    def test_what_begins_and_ends_work_keeps_its_order(self, words: str) -> None:
        assert (
            ordering_key(written(words))
            == ordering_key(tapped("go"))
            == ordering_key(tapped("resume:r1"))
            == "start:11:7"
        )

    def test_answers_have_one_of_their_own(self) -> None:
        assert ordering_key(tapped("q:1:0")) == ordering_key(written("退货", reply_to_message=OURS)) == "answer:11:7"
        assert ordering_key(written("/screen", reply_to_message=OURS)) == "message:11:7"
        assert ordering_key(written("x", reply_to_message=OURS, document={})) == "message:11:7"
        assert ordering_key(written("x", reply_to_message={**OURS, "forum_topic_created": {}})) == "message:11:7"

    def test_all_others(self) -> None:
        assert ordering_key(tapped("look:r1")) == "callback_query:11:7"
        assert ordering_key(written("/screen")) == ordering_key(written("停止一下")) == "message:11:7"
        assert ordering_key({"edited_message": written("/stop")["message"]}) == "edited_message:11:7"
        assert not stops({"edited_message": written("/stop")["message"]})
        assert not stops(written("/run x"))


class Hanging:
    """A call of the desk that does not come back."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.free = asyncio.Event()

    async def __call__(self, *_: object, **__: object) -> Any:
        self.begun.set()
        await self.free.wait()
        return picture()


class TestStop(WithARun):
    async def test_it_does_not_wait_for_a_screen(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hanging = Hanging()
        monkeypatch.setattr(house.desk.phones, "screenshot", hanging)
        async with house.adapter():
            _, card = await self.start(house, operator)
            screen = asyncio.create_task(operator.tap(card, "看屏幕"))
            await asyncio.wait_for(hanging.begun.wait(), 10)
            await operator.tap(card, "停止", timeout=1)
            assert not hanging.free.is_set()
            hanging.free.set()
            await screen

    async def test_it_stops_the_run_that_was_asked_for_before_it(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hanging = Hanging()
        monkeypatch.setattr(house.desk.phones, "screenshot", hanging)
        async with house.adapter():
            await operator.send("/screen")
            await asyncio.wait_for(hanging.begun.wait(), 10)
            await operator.send("/run 给全部客户群发")
            await operator.send("/stop")
            card = await operator.sees(lambda chat: card_of(chat, "给全部客户群发"))
            await operator.sees(lambda chat: "已停止" in card.words)
            assert operator.chat.saying("没有可以停止的任务") == []
            hanging.free.set()

    async def test_what_hangs_before_it_is_called_off(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with house.adapter(stop_patience=0.05):
            run_id, card = await self.start(house, operator)
            hanging = Hanging()
            monkeypatch.setattr(house.desk.runs, "start", hanging)
            first = await operator.send("/run 第一")
            second = await operator.send("/run 第二")
            await asyncio.wait_for(hanging.begun.wait(), 10)
            await operator.send("/stop")
            await operator.sees(lambda chat: chat.saying("正在停止"))
            await house.stage.end(run_id, "stopped")
            await operator.sees(lambda chat: "已停止" in card.words)
            await operator.sees(lambda chat: len(chat.saying("这条没有执行")) == 2)
            told = operator.chat.saying("这条没有执行")
            assert sorted(message.reply_to.id for message in told if message.reply_to) == [first.id, second.id]
            await until_handled(house)
        async with house.adapter():  # nor does it come after a restart
            assert [run.id for run in await house.stage.runs()] == [run_id]


class TestOrder(WithARun):
    async def test_what_failed_once_keeps_its_place(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real, left = house.desk.runs.start, [1]

        async def fails_once(*given: Any, **named: Any) -> Any:
            if left.pop() if left else 0:
                raise OSError("database is locked")
            return await real(*given, **named)

        monkeypatch.setattr(house.desk.runs, "start", fails_once)
        async with house.adapter():
            for task in ("第一", "第二", "第三"):
                await operator.send(f"/run {task}")
            await until(lambda: house.has_runs(3))
        assert [run.task for run in await house.stage.runs()] == ["第一", "第二", "第三"]


class TestAnswers(WithARun):
    async def test_nobody_waits_for_somebody_elses_screen(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        second = house.tg.user(12, "Operator B", "zh")
        await house.stage.join(12, "Operator B", Role.OPERATOR, "zh")
        group = house.tg.group(-1001, "shop")
        hanging = Hanging()
        monkeypatch.setattr(house.desk.phones, "screenshot", hanging)
        async with house.adapter():
            await operator.send("/run one", chat=group)
            card = await operator.sees(lambda chat: card_of(chat, "one"), chat=group)
            question_id = await house.stage.ask(
                await house.stage.newest(), QuestionKind.STUCK, ("go", "继续"), ("stop", "停下")
            )
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"), chat=group)
            screens = [asyncio.create_task(person.tap(card, "看屏幕")) for person in (operator, second)]
            await asyncio.wait_for(hanging.begun.wait(), 10)
            await second.tap(asked, "停下", timeout=2)  # behind a screen of their own, too
            assert not (await house.stage.question(question_id)).open
            hanging.free.set()
            await asyncio.gather(*screens)

    async def test_what_was_said_in_time_is_in_time(
        self, shop: Shop, tg: FakeTelegram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        actor = await shop.person(Role.OPERATOR, "A")
        person = tg.user(int(actor.user_id), "A", "zh")
        await person.send("/start")
        run = await shop.desk.runs.start(actor, "QQ回复联系人11", chat=ChatRef("telegram", actor.user_id), serial=PHONE)
        options = TelegramOptions(tg.token, base_url=tg.url, base_file_url=tg.file_url, **FAST)
        questions, real, hanging = Questions(shop.db), shop.desk.questions.to_answer, Hanging()
        async with TelegramAdapter(shop.desk, InboxTable(shop.db), OutboxTable(shop.db), options):
            asked = Question(
                id="q1",
                kind=QuestionKind.NO_SURE_ANSWER,
                text="怎么退款",
                choices=[Choice(value="skip", label="跳过")],
                free_text=True,
                data={"contact": "11"},
            )
            payload, deadline = asked.model_dump(mode="json"), shop.clock() + timedelta(minutes=1)
            await questions.ask("q1", run_id=run.id, kind=asked.kind.value, payload=payload, deadline=deadline)
            await Events(shop.db).append(run.id, "question", payload)
            card = await person.sees(lambda chat: card_of(chat, "怎么退款"))

            async def slow(*given: Any, **named: Any) -> Any:
                await hanging()
                return await real(*given, **named)

            monkeypatch.setattr(shop.desk.questions, "to_answer", slow)
            await person.send("七天内可以退", reply_to=card)
            await asyncio.wait_for(hanging.begun.wait(), 10)
            shop.clock.move(seconds=61)
            hanging.free.set()
            await person.sees(lambda chat: chat.saying("your answer counts"))
        assert [given.late for given in await questions.given("q1")] == [False]
