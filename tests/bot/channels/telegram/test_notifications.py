"""Digests, alerts and quiet hours through the whole channel: a real desk behind it, the stand-in server before it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa
from PIL import Image

from agent_core.ports import AnswerEvent, Event, ReplyState
from agent_core.session import Question, QuestionKind
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import ChatRef, Role
from bot.desk.context import chat_data
from scheduler.jobs.digests import DigestWatch, digest_times
from scheduler.runs.executor import StoredRuns
from scheduler.times.shop import quiet_of
from simulator.telegram import Chat, Message
from storage.engine import Database
from storage.events import Events
from storage.messages import InboxTable, OutboxTable
from storage.outages import Outages
from storage.questions import Questions
from storage.runs import NewRun, Runs
from storage.tables import answers, people
from tests.bot.channels.telegram.house import FAST
from tests.bot.channels.telegram.shop import Shop

ZONE = ZoneInfo("Asia/Shanghai")
NIGHT = datetime(2026, 11, 20, 23, 0, tzinfo=ZONE)
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=ZONE)


@asynccontextmanager
async def adapter(tg_shop: Shop, now: datetime = NOON) -> AsyncIterator[None]:
    quiet = quiet_of("22:00-08:00", "Asia/Shanghai")
    options = TelegramOptions(
        tg_shop.tg.token, base_url=tg_shop.tg.url, base_file_url=tg_shop.tg.file_url, quiet=quiet, **FAST
    )
    async with TelegramAdapter(
        tg_shop.desk, InboxTable(tg_shop.db), OutboxTable(tg_shop.db), options, clock=lambda: now
    ) as at:
        await asyncio.wait_for(at.ready.wait(), 10)
        yield


async def one_answer(db: Database) -> str:
    run_id = await Runs(db).create(NewRun("QQ回复联系人11", "S1", chat=chat_data(ChatRef("telegram", "11"))))
    assert run_id is not None
    event = AnswerEvent(1, "qq", "11", "几天发货", ReplyState.SENT, sent="三天", provenance="knowledge")
    await StoredRuns(db).event(run_id, Event("answer", event.data()))
    return run_id


def watch(tg_shop: Shop, database: Database) -> DigestWatch:
    quiet = quiet_of("", "Asia/Shanghai")
    return DigestWatch(
        database,
        digest_times("23:59", ""),
        ZONE,
        quiet,
        chats=tg_shop.desk.digest.chats,
        is_empty=tg_shop.desk.digest.is_empty,
    )


def says(message: Message, *words: str) -> bool:
    return all(word in message.words for word in words)


async def test_a_digest_goes_out_once_with_its_chart(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    other = await tg_shop.person(12, Role.OWNER, "en")
    await owner.send("/start")
    await other.send("/start")
    await one_answer(tg_shop.db)
    async with tg_shop.db.write() as connection:
        await connection.execute(sa.update(people).values(paired_at=NOON))
        await connection.execute(sa.update(answers).values(created_at=NOON))
    tonight = Database(tg_shop.db.url, clock=lambda: NOON.replace(hour=23, minute=59, second=30))
    try:
        for _ in range(2):
            await watch(tg_shop, tonight).once()
    finally:
        await tonight.close()
    async with adapter(tg_shop):
        seen = await owner.sees(lambda chat: chat.saying("每日小结")[0])
        theirs = await other.sees(lambda chat: chat.saying("Daily digest")[0])
    async with adapter(tg_shop):  # again after a restart
        await owner.send("/whoami")
        await owner.sees(lambda chat: chat.saying("身份")[0])
    assert says(seen, "客户提问 1 个，已回答 1 个（100%）")
    assert says(theirs, "Customers asked 1, answered 1 (100 %)")
    assert seen.photo is not None
    with Image.open(io.BytesIO(seen.photo)) as chart:
        assert chart.format == "PNG"
    assert (len(owner.chat.saying("每日小结")), len(other.chat.saying("Daily digest"))) == (1, 1)


async def test_asked_for_and_changed_in_place(tg_shop: Shop) -> None:
    viewer = await tg_shop.person(11, Role.VIEWER)
    await one_answer(tg_shop.db)
    async with adapter(tg_shop):
        await viewer.send("/digest")
        card = await viewer.sees(lambda chat: chat.saying("今天")[0])
        first = card.photo
        await viewer.tap(card, "30 天")
        await viewer.sees(lambda chat: says(card, "最近 30 天"))
        assert first is not None
        assert card.photo not in (None, first)


def _told_of_themselves(chat: Chat, times: int) -> bool:
    return len(chat.saying("语言：")) == times


async def test_the_outbox_tells_a_digest_handed_in_twice_once(tg_shop: Shop) -> None:
    """The event is dealt with again where a kill came before it was confirmed."""
    owner = await tg_shop.person(11, Role.OWNER)
    await owner.send("/start")
    watched = Outages(tg_shop.db)
    await watched.down("model", "no answer", after=timedelta(0), gap=timedelta(hours=1))
    for times in (1, 2):
        async with adapter(tg_shop):
            await owner.sees(lambda chat: chat.saying("模型 连不上了")[0])
            await owner.send("/whoami")  # when that is answered, what came before is written down as sent
            await owner.sees(partial(_told_of_themselves, times=times))
            await _all_sent(tg_shop)
        async with tg_shop.db.write() as connection:  # as if nothing had been confirmed
            await connection.exec_driver_sql("DELETE FROM consumers")
    await watched.up("model")
    async with adapter(tg_shop):
        await owner.sees(lambda chat: chat.saying("模型 恢复了")[0])
    assert len(owner.chat.saying("连不上了")) == 1


async def test_alerts_are_for_owners(tg_shop: Shop) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    operator = await tg_shop.person(12, Role.OPERATOR)
    await owner.send("/start")
    await operator.send("/start")
    await Outages(tg_shop.db).down("phone:S1", "offline", after=timedelta(0), gap=timedelta(hours=1))
    async with adapter(tg_shop):
        await owner.sees(lambda chat: chat.saying("手机 S1 连不上了")[0])
        await operator.send("/whoami")
        await operator.sees(lambda chat: chat.saying("身份")[0])
    assert operator.chat.saying("连不上了") == []


@pytest.mark.parametrize(("now", "quiet"), [(NIGHT, True), (NOON, False)])
async def test_in_quiet_hours_only_what_is_urgent_makes_a_sound(tg_shop: Shop, now: datetime, quiet: bool) -> None:
    owner = await tg_shop.person(11, Role.OWNER)
    await owner.send("/start")
    await Outages(tg_shop.db).down("model", "", after=timedelta(0), gap=timedelta(hours=1))
    run_id = await one_answer(tg_shop.db)
    for question_id, kind in (("q1", QuestionKind.NO_SURE_ANSWER), ("q2", QuestionKind.DELIVERY_UNKNOWN)):
        asked = Question(id=question_id, kind=kind, text=f"问题 {question_id}")
        payload = asked.model_dump(mode="json")
        await Questions(tg_shop.db).ask(question_id, run_id=run_id, kind=kind.value, payload=payload)
        await Events(tg_shop.db).append(run_id, "question", payload)
    async with adapter(tg_shop, now):
        alert = await owner.sees(lambda chat: chat.saying("连不上了")[0])
        plain = await owner.sees(lambda chat: chat.saying("问题 q1")[0])
        urgent = await owner.sees(lambda chat: chat.saying("问题 q2")[0])
        await owner.send("/whoami")
        answer = await owner.sees(lambda chat: chat.saying("身份")[0])
    sounds = [message.silent for message in (alert, plain, urgent, answer)]
    assert sounds == [quiet, quiet, False, False]


async def _all_sent(tg_shop: Shop) -> None:
    async with asyncio.timeout(10):
        while True:
            async with tg_shop.db.read() as connection:
                waiting = "SELECT count(*) FROM outbox WHERE state = 'pending'"
                if (await connection.exec_driver_sql(waiting)).scalar_one() == 0:
                    return
            await asyncio.sleep(0.01)
