"""A stand-in server of Telegram and what answers there. What it takes is loaded when a test needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.telegram import bot, plain_logs, tg, user

if TYPE_CHECKING:
    from simulator.telegram import FakeTelegram, FakeUser
    from storage.engine import Database
    from tests.bot.channels.telegram.door import Door
    from tests.bot.channels.telegram.house import House
    from tests.bot.channels.telegram.shop import Shop

__all__ = ["bot", "plain_logs", "tg", "user"]


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    from storage.engine import Database

    database = Database(url)
    yield database
    await database.close()


@pytest.fixture
async def house(tg: FakeTelegram, db: Database) -> House:
    """Operator A, 11, is its owner."""
    from bot.desk.actors import Role
    from tests.bot.channels.telegram.house import House
    from tests.support.stage import Stage

    stage = Stage(db)
    await stage.prepare()
    await stage.join(11, "Operator A", Role.OWNER)
    return House(tg, stage)


@pytest.fixture
def operator(tg: FakeTelegram) -> FakeUser:
    return tg.user(11, "Operator A", "zh")


@pytest.fixture
async def door(tg: FakeTelegram, db: Database) -> Door:
    from tests.bot.channels.telegram.door import Door

    door = Door(tg, db)
    await door.open()
    return door


@pytest.fixture
async def tg_shop(tg: FakeTelegram, db: Database, tmp_path: Path) -> AsyncIterator[Shop]:
    from knowledge.embedded import EmbeddedKnowledge
    from tests.bot.channels.telegram.shop import Shop

    store = EmbeddedKnowledge(db)
    yield Shop(tg, db, store)
    await store.close()
