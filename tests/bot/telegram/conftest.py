from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.desk.actors import Role
from knowledge.embedded import EmbeddedKnowledge
from simulator.telegram import FakeTelegram, FakeUser
from storage.engine import Database
from tests.bot.telegram.door import Door
from tests.bot.telegram.house import House
from tests.bot.telegram.shop import Shop
from tests.support.database import empty_sqlite
from tests.support.stage import Stage
from tests.support.telegram import bot, plain_logs, tg, user

__all__ = ["bot", "plain_logs", "tg", "user"]


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(await empty_sqlite(tmp_path / "desk.db"))
    yield database
    await database.close()


@pytest.fixture
async def house(tg: FakeTelegram, db: Database) -> House:
    """Operator A, 11, is its owner."""
    stage = Stage(db)
    await stage.prepare()
    await stage.join(11, "Operator A", Role.OWNER)
    return House(tg, stage)


@pytest.fixture
def operator(tg: FakeTelegram) -> FakeUser:
    return tg.user(11, "Operator A", "zh")


@pytest.fixture
async def shop(tg: FakeTelegram, db: Database, tmp_path: Path) -> AsyncIterator[Shop]:
    store = EmbeddedKnowledge(tmp_path / "knowledge.sqlite3")
    yield Shop(tg, db, store)
    await store.close()


@pytest.fixture
async def door(tg: FakeTelegram, db: Database) -> Door:
    door = Door(tg, db)
    await door.open()
    return door
