"""A desk, a store and a stand-in server, in which the adapter is started and ended."""

from __future__ import annotations

import asyncio
import inspect
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa
from aiohttp import web
from PIL import Image

from agent_core.session import StepRecord
from bot.channels.telegram.adapter import WEBHOOK_PATH, TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from simulator.telegram import Chat, FakeTelegram, FakeUser, Message
from storage.chats import TopicTable
from storage.events import Events
from storage.messages import QUESTION, InboxRow, InboxTable, OutboxTable
from storage.tables import cards, outbox
from tests.support.stage import Stage
from tests.support.telegram import picture

FAST: dict[str, Any] = {"edit_private": 0.05, "edit_group": 0.05, "retry": (0.02, 0.05), "poll_seconds": 5}
CHOICES = (("record:0", "退货"), ("skip", "跳过"))


class House:
    """A desk, a store and a server, in which the adapter is started and ended."""

    def __init__(self, tg: FakeTelegram, stage: Stage) -> None:
        self.tg = tg
        self.stage = stage
        self.desk = stage.desk
        self.db = stage.db
        self.updates: list[InboxRow] = []

    async def is_answered(self, question_id: str) -> bool:
        return not (await self.stage.question(question_id)).open

    async def question_cards(self) -> list[str]:
        """Return the names of the questions' cards that are remembered."""
        async with self.db.read() as connection:
            found = await connection.execute(sa.select(cards.c.subject_id).where(cards.c.subject == QUESTION))
            return list(found.scalars())

    async def has_cards(self, number: int) -> bool:
        return len(await self.question_cards()) == number

    async def has_runs(self, number: int) -> bool:
        return len(await self.stage.runs()) == number

    async def forget_card(self, question_id: str) -> None:
        """Have a card not be remembered, as if we had been killed before that."""
        async with self.db.write() as connection:
            await connection.execute(sa.delete(cards).where(cards.c.subject_id == question_id))

    async def has_told_all(self) -> bool:
        """Whether the channel has dealt with every event of the log."""
        log = Events(self.db)
        return not await log.after(await log.position("telegram"), limit=1)

    @asynccontextmanager
    async def adapter(self, *, ready: bool = True, **options: Any) -> AsyncIterator[TelegramAdapter]:
        chosen = TelegramOptions(
            self.tg.token, base_url=self.tg.url, base_file_url=self.tg.file_url, **{**FAST, **options}
        )
        adapter = TelegramAdapter(
            self.desk,
            InboxTable(self.db),
            OutboxTable(self.db),
            chosen,
            topics=TopicTable(self.db),
        )
        async with adapter:
            if ready:
                await asyncio.wait_for(adapter.ready.wait(), 10)
            yield adapter

    @asynccontextmanager
    async def webhook(self, **options: Any) -> AsyncIterator[tuple[TelegramAdapter, str]]:
        """The adapter behind its webhook, served on a port of its own."""
        app = web.Application()
        holder: list[TelegramAdapter] = []

        async def serve(request: web.Request) -> web.Response:
            return await holder[0].webhook(request)

        app.router.add_post(WEBHOOK_PATH, serve)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}{WEBHOOK_PATH}"
        chosen = TelegramOptions(
            self.tg.token, base_url=self.tg.url, webhook_url=url, webhook_secret="s-e-c", **{**FAST, **options}
        )
        adapter = TelegramAdapter(
            self.desk,
            InboxTable(self.db),
            OutboxTable(self.db),
            chosen,
            topics=TopicTable(self.db),
        )
        holder.append(adapter)
        try:
            async with adapter:
                await asyncio.wait_for(adapter.ready.wait(), 10)
                yield adapter, url
        finally:
            await runner.cleanup()


async def until(met: Callable[[], Any], seconds: float = 30) -> Any:
    """For what is in the house, not in the chat. ``met`` may have to be awaited."""
    async with asyncio.timeout(seconds):
        while True:
            value = met()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await asyncio.sleep(0.005)


def card_of(chat: Chat, words: str) -> Message:
    return chat.saying(words)[-1]


def is_green(photo: bytes | None) -> bool:
    """Whether a photo is the screen that the stage's phone shows."""
    with Image.open(io.BytesIO(photo or picture())) as shown:
        pixel = shown.convert("RGB").getpixel((5, 5))
    assert isinstance(pixel, tuple)
    return pixel[1] > 100 > pixel[0]


async def until_handled(house: House) -> None:
    async with asyncio.timeout(10):
        while await InboxTable(house.db).waiting():
            await asyncio.sleep(0.005)


async def refused(house: House) -> list[str]:
    """What the outbox gave up on."""
    async with house.db.read() as connection:
        found = await connection.execute(sa.select(outbox.c.error).where(outbox.c.state == "failed"))
        return list(found.scalars())


class WithARun:
    async def start(self, house: House, operator: FakeUser) -> tuple[str, Message]:
        await operator.send("/run QQ回复联系人11")
        card = await operator.sees(lambda chat: card_of(chat, "QQ回复联系人11"))
        run_id = await until(house.stage.newest)
        await until(lambda: house.desk.runs.card(run_id))
        await house.stage.begin(run_id)
        return run_id, card

    def step(self, number: int) -> StepRecord:
        return StepRecord(index=number, thinking=f"想法{number}", action={"kind": "launch", "app": "QQ"})


async def rows(house: House, state: str) -> list[str]:
    async with house.db.read() as connection:
        found = await connection.execute(sa.select(outbox.c.ref).where(outbox.c.state == state).order_by(outbox.c.id))
        return list(found.scalars())


async def until_out(house: House) -> None:
    """Nothing waits any more."""
    async with asyncio.timeout(30):
        while await rows(house, "pending") or await InboxTable(house.db).waiting():
            await asyncio.sleep(0.005)
