from __future__ import annotations

import asyncio

import pytest

from storage.engine import Database
from storage.ids import AlreadyMade, find, made_under, remember
from storage.runs import NewRun, Runs
from storage.schedules import NewSchedule, Schedules


async def test_a_key_keeps_what_was_made_under_it(db: Database, other_db: Database) -> None:
    async with db.write() as connection:
        assert await made_under(connection, "k") is None
        await remember(connection, db, "k", "r1")
    assert await find(other_db, "k") == "r1"
    with pytest.raises(AlreadyMade):
        async with other_db.write() as connection:
            await remember(connection, other_db, "k", "r2")
    assert await find(db, "k") == "r1"


async def test_no_key_remembers_nothing(db: Database) -> None:
    async with db.write() as connection:
        await remember(connection, db, "", "r1")
        await remember(connection, db, "", "r2")
    assert await find(db, "") is None


async def test_what_is_rolled_back_was_not_asked(db: Database) -> None:
    async def broken() -> None:
        async with db.write() as connection:
            await remember(connection, db, "k", "r1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await broken()
    assert await find(db, "k") is None


async def test_one_request_from_many_sides_makes_one_thing(db: Database, other_db: Database) -> None:
    sides = [Runs(database) for database in (db, other_db)] * 5
    ids = await asyncio.gather(*(side.create(NewRun("打开设置"), key="same") for side in sides))
    assert len(set(ids)) == 1
    assert len(await Runs(db).find()) == 1


async def test_schedules_too(db: Database, other_db: Database) -> None:
    new = NewSchedule("every 5m", "UTC", "打开设置")
    rows = await asyncio.gather(*(Schedules(side).add(new, key="same") for side in (db, other_db) * 3))
    assert {row.id for row in rows} == {rows[0].id}
    assert len(await Schedules(db).all()) == 1
