"""A desk with an owner, an operator and a viewer, and raw updates before its door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_core.errors import DeviceOffline
from bot.channels.telegram.adapter import TelegramAdapter
from bot.channels.telegram.options import TelegramOptions
from bot.desk.actors import Actor, Role
from bot.desk.context import DeskContext
from bot.desk.desk import Desk
from scheduler.runs.service import RunService
from simulator.telegram import FakeTelegram, FakeUser
from storage.engine import Database
from storage.messages import InboxTable, OutboxTable
from storage.people import Audit
from tests.bot.channels.telegram.house import FAST

OPERATOR, STRANGER = 11, 99


class Door:
    """A desk with an owner (10), an operator (11) and a viewer (12), and the adapter in front of it."""

    def __init__(self, tg: FakeTelegram, db: Database) -> None:
        self.tg = tg
        self.db = db
        self.owner: Actor

        async def no_phones() -> list[Any]:
            return []

        async def no_phone(serial: str) -> Any:
            raise DeviceOffline("no phone")

        self.desk = Desk(DeskContext(db, RunService(db), no_phones, no_phone, "Asia/Shanghai"))

    async def open(self) -> Actor:
        code = await self.desk.people.first_code()
        assert code is not None
        owner = self.owner = await self.desk.people.pair("telegram", "10", "Chief", "zh", code)
        for user, role in ((OPERATOR, Role.OPERATOR), (12, Role.VIEWER)):
            made = await self.desk.team.invite(owner, role)
            await self.desk.people.pair("telegram", str(user), f"Person {user}", "zh", made.code)
        return owner

    async def user(self, number: int, lang: str = "zh") -> FakeUser:
        """Somebody who has written to the bot before."""
        user = self.tg.user(number, f"Person {number}", lang)
        await user.send("hello")
        self.tg.world.updates.clear()
        return user

    @asynccontextmanager
    async def adapter(self) -> AsyncIterator[TelegramAdapter]:
        options = TelegramOptions(self.tg.token, base_url=self.tg.url, base_file_url=self.tg.file_url, **FAST)
        async with TelegramAdapter(self.desk, InboxTable(self.db), OutboxTable(self.db), options) as adapter:
            await asyncio.wait_for(adapter.ready.wait(), 10)
            yield adapter

    async def comes_in(self, *raw: dict[str, Any]) -> None:
        """These updates are in the inbox as Telegram brought them, and dealt with."""
        await self.comes_in_as(1000, *raw)

    async def comes_in_as(self, first: int, *raw: dict[str, Any]) -> None:
        """The same, numbered from ``first``."""
        for number, update in enumerate(raw, start=first):
            assert await InboxTable(self.db).store(number, json.dumps({"update_id": number, **update}))
        async with self.adapter():
            async with asyncio.timeout(10):
                while await InboxTable(self.db).waiting():
                    await asyncio.sleep(0.01)

    async def refused(self) -> list[tuple[str, str, str]]:
        return [(row.actor, row.command, str(row.detail.get("why", ""))) for row in await Audit(self.db).refused(50)]

    def commands(self, scope: str) -> list[str]:
        return [command["command"] for command in self.tg.world.commands.get(scope, [])]


def user(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "is_bot": False, "first_name": f"Person {number}", "language_code": "zh", **more}


def private(number: int) -> dict[str, Any]:
    return {"id": number, "type": "private", "first_name": f"Person {number}"}


def message(number: int, text: Any = "/run 打开设置", **more: Any) -> dict[str, Any]:
    there = {"message_id": 5, "date": 1_700_000_000, "from": user(number), "chat": private(number), "text": text}
    return {key: value for key, value in {**there, **more}.items() if value is not None}
