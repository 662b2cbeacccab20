"""A failure of ours, or of the database, costs no message, says none twice, and holds up no other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from agent_core.session import QuestionKind
from bot.channels.chat.cards import Card, Document, Line, ReplayOrder
from bot.channels.chat.texts import texts
from bot.channels.telegram import files, render
from simulator.telegram import FakeUser
from storage.events import Events
from tests.bot.channels.telegram.house import CHOICES, House, WithARun, card_of, refused, until, until_out

LOCKED = OperationalError("", {}, Exception("database is locked"))
FILM = Card("回放", (Line(texts("zh").get("replay.making")),), film=ReplayOrder("r1", "gif", "zh"))


def failing(patch: pytest.MonkeyPatch, owner: object, name: str, *errors: Exception | None) -> None:
    """The first calls raise these errors (None: that one does not), then it is as it was."""
    real, left = getattr(owner, name), list(errors)

    async def call(*given: Any, **named: Any) -> Any:
        if left and (error := left.pop(0)) is not None:
            raise error
        return await real(*given, **named)

    patch.setattr(owner, name, call)


class TestTaken(WithARun):
    """What Telegram has is not sent again, whatever fails after that."""

    async def test_what_could_not_be_written_down_is_not_said_again(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            failing(monkeypatch, adapter._outbox._store, "sent", LOCKED)
            await adapter._outbox.put("11", render.outgoing(Card("said")))
            await until_out(house)
        assert len(operator.chat.saying("said")) == 1

    @pytest.mark.parametrize("error", [LOCKED, ValueError("a mistake of ours")])
    async def test_a_card_that_could_not_be_remembered_is_shown_once_and_closed(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        async with house.adapter():
            run_id, _ = await self.start(house, operator)
            failing(monkeypatch, house.desk.questions, "set_card", *[error] * 3)
            question_id = await house.stage.ask(run_id, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            asked = await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            await until_out(house)
            await operator.tap(asked, "退货")
            await operator.sees(lambda chat: "已回答" in asked.words)
            await until_out(house)
            assert await house.desk.questions.card(question_id) is not None
        assert len(operator.chat.saying("怎么退货")) == 1
        assert await refused(house) == []

    @pytest.mark.parametrize("errors", [[ValueError("ours")], [LOCKED] * 5])
    async def test_failures_of_the_network_are_no_mistakes_of_ours(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch, errors: list[Exception]
    ) -> None:
        await operator.send("/start")
        async with house.adapter() as adapter:
            house.tg.world.break_next("sendMessage", 2, "502")
            failing(monkeypatch, adapter._outbox._delivery, "send", None, None, *errors)
            await adapter._outbox.put("11", render.outgoing(Card("important")))
            await until_out(house)
        assert len(operator.chat.saying("important")) == 1
        assert await refused(house) == []


class TestFilms:
    async def test_while_a_film_is_made_everything_else_goes_on(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        second = house.tg.user(12, "Operator B", "zh")
        free, begun = asyncio.Event(), asyncio.Event()

        async def slow(*_: object) -> Card:
            begun.set()
            await free.wait()
            return Card("the film")

        monkeypatch.setattr(files, "media_card", slow)
        async with house.adapter() as adapter:
            for person, chat in ((operator, "11"), (second, "12")):
                await person.send("/start")
                await adapter._outbox.put(chat, render.outgoing(FILM))
            await asyncio.wait_for(begun.wait(), 10)
            for person, chat in ((operator, "11"), (second, "12")):
                await adapter._outbox.put(chat, render.outgoing(Card("a question")))
                await person.sees(lambda chat: chat.saying("a question"))
            free.set()
            for person in (operator, second):
                await person.sees(lambda chat: chat.saying("the film"))

    async def test_one_that_does_not_arrive_was_made_once_and_is_said_to_have_failed(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = []

        async def quick(*_: object) -> Card:
            made.append(1)
            return Card("回放", animation=Document("a.gif", b"GIF89a" + b"x" * 50))

        monkeypatch.setattr(files, "media_card", quick)
        await operator.send("/start")
        async with house.adapter(retry=(0.001,)) as adapter:
            house.tg.world.break_next("sendAnimation", 1000, "502")
            await adapter._outbox.put("11", render.outgoing(FILM))
            await operator.sees(lambda chat: chat.saying(texts("zh").get("replay.failed")))
            await until_out(house)
        assert len(made) == 1
        assert operator.chat.saying(texts("zh").get("replay.making")) == []
        assert await refused(house) == []


class TestFeed(WithARun):
    async def test_an_event_that_fails_holds_up_its_own_run_alone(
        self, house: House, operator: FakeUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with house.adapter(retry=(1.0, 1.0, 60)) as adapter:
            broken, card = await self.start(house, operator)
            await operator.send("/run B")
            await operator.sees(lambda chat: card_of(chat, "B"))
            await until(lambda: house.has_runs(2))
            other = await house.stage.newest()
            real, tries = house.desk.questions.of_run, []

            async def fails(run_id: str) -> Any:
                if run_id == broken:
                    tries.append(adapter._feed._last)
                    raise ValueError("a row of another release")
                return await real(run_id)

            monkeypatch.setattr(house.desk.questions, "of_run", fails)
            await house.stage.end(broken, "succeeded", "好")
            await until(lambda: tries)
            before = await Events(house.db).position("telegram")
            await house.stage.ask(other, QuestionKind.NO_SURE_ANSWER, *CHOICES)
            await operator.sees(lambda chat: card_of(chat, "怎么退货"))
            assert len(tries) == 1  # the other did not wait for the next try
            assert await Events(house.db).position("telegram") == before  # cut off now, it would come again
            await until(house.has_told_all)
            assert len(tries) == 3
            assert "已完成" in card.words
