"""A desk with a store, and the adapter in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_core.errors import DeviceOffline
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from bot.desk.people import new_code
from knowledge.embedded import EmbeddedKnowledge
from scheduler.runs.service import RunService
from simulator.telegram import FakeTelegram, FakeUser
from storage.engine import Database
from storage.messages import InboxTable, OutboxTable
from tests.bot.channels.telegram.house import FAST


class Shop:
    """A desk with a store, and the adapter in front of it."""

    def __init__(self, tg: FakeTelegram, db: Database, store: EmbeddedKnowledge) -> None:
        self.tg = tg
        self.db = db
        self.store = store

        async def no_phones() -> list[Any]:
            return []

        async def no_phone(serial: str) -> Any:
            raise DeviceOffline("no phone")

        self.desk = Desk(DeskContext(db, RunService(db), no_phones, no_phone, "Asia/Shanghai", store=store))

    async def person(self, user_id: int, role: Role, lang: str = "zh") -> FakeUser:
        code = await new_code(self.db, role, created_by="test")
        await self.desk.people.pair("telegram", str(user_id), f"Person {user_id}", lang, code)
        return self.tg.user(user_id, f"Person {user_id}", lang)

    @asynccontextmanager
    async def adapter(self) -> AsyncIterator[None]:
        options = TelegramOptions(self.tg.token, base_url=self.tg.url, base_file_url=self.tg.file_url, **FAST)
        async with TelegramAdapter(self.desk, InboxTable(self.db), OutboxTable(self.db), options) as adapter:
            await asyncio.wait_for(adapter.ready.wait(), 10)
            yield
