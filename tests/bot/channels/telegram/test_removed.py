"""Who was removed, or may not see a phone any more, is shown nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from agent_core.session import Choice, Question, QuestionKind
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import Actor, Role
from simulator.telegram import FakeTelegram, FakeUser
from storage.events import Events
from storage.messages import InboxTable, OutboxTable
from storage.questions import Questions
from storage.runs import Runs
from tests.bot.channels.telegram.house import FAST, card_of
from tests.support.shop import PHONE, Shop
from tests.support.telegram import picture

ASKED = Question(
    id="q1",
    kind=QuestionKind.NO_SURE_ANSWER,
    text="怎么退款",
    choices=[Choice(value="skip", label="跳过")],
    free_text=True,
    data={"contact": "11"},
)


@pytest.fixture
async def desk_in_chat(shop: Shop, tg: FakeTelegram) -> AsyncIterator[None]:
    options = TelegramOptions(tg.token, base_url=tg.url, base_file_url=tg.file_url, **FAST)
    async with TelegramAdapter(shop.desk, InboxTable(shop.db), OutboxTable(shop.db), options):
        yield


async def joined(shop: Shop, tg: FakeTelegram, role: Role, name: str) -> tuple[Actor, FakeUser]:
    actor = await shop.person(role, name)
    user = tg.user(int(actor.user_id), name, "zh")
    await user.send("/start")
    return actor, user


async def ask(shop: Shop, run_id: str) -> None:
    payload = ASKED.model_dump(mode="json")
    deadline = shop.clock() + timedelta(minutes=10)
    await Questions(shop.db).ask("q1", run_id=run_id, kind=ASKED.kind.value, payload=payload, deadline=deadline)
    await Events(shop.db).append(run_id, "question", payload, picture=picture())


@pytest.mark.parametrize("how", ["removed", "limited"])
@pytest.mark.parametrize("asked_before", [False, True])
async def test_the_owner_sees_and_answers_in_their_place(
    shop: Shop, tg: FakeTelegram, desk_in_chat: None, how: str, asked_before: bool
) -> None:
    boss, owner = await joined(shop, tg, Role.OWNER, "Boss")
    operator, leaver = await joined(shop, tg, Role.OPERATOR, "Leaver")
    await leaver.send(f"/run -d {PHONE} QQ回复联系人11")
    await leaver.sees(lambda chat: card_of(chat, "QQ回复联系人11"))
    (run,) = await Runs(shop.db).find()
    if asked_before:
        await ask(shop, run.id)
        await leaver.sees(lambda chat: card_of(chat, "怎么退款"))
    if how == "removed":
        await shop.desk.team.remove(boss, f"#{operator.id}")
    else:
        await shop.desk.team.limit(boss, f"#{operator.id}", phones=["S1"])
    before = len(leaver.chat.from_bot)
    if not asked_before:
        await ask(shop, run.id)
    card = await owner.sees(lambda chat: card_of(chat, "怎么退款"))
    assert card.photo == picture()
    await owner.send("七天内可以退", reply_to=card)
    await owner.sees(lambda chat: "七天内可以退" in card.words)
    assert len(leaver.chat.from_bot) == before
    assert not leaver.chat.saying("七天内可以退")
