"""What models used is counted over all processes."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta

from storage.engine import Database
from storage.model_usage import UsageTotals, Used
from storage.outages import Outages

DAY = date(2026, 3, 1)
MINUTE = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


async def test_a_day_is_added_up_by_model(db: Database, other_db: Database) -> None:
    here, there = UsageTotals(db), UsageTotals(other_db)
    one = Used(1, 1000, 50, 400, 0.25)
    await asyncio.gather(*(spending.add(DAY, "m", one) for spending in (here, there, here, there)))
    await there.add(DAY, "n", Used(1, 10, 1))
    await there.add(DAY + timedelta(days=1), "m", one)
    assert await here.by_model(DAY) == {"m": Used(4, 4000, 200, 1600, 1.0), "n": Used(1, 10, 1)}
    assert await here.of_day(DAY) == Used(5, 4010, 201, 1600, 1.0)
    assert await here.of_day(DAY - timedelta(days=1)) == Used()


async def test_a_minute_has_so_many_calls_whoever_takes_them(db: Database, other_db: Database) -> None:
    takers = [UsageTotals(db), UsageTotals(other_db)] * 4
    taken = await asyncio.gather(*(taker.take(MINUTE, calls=3, cost=0) for taker in takers))
    assert sum(taken) == 3
    later = MINUTE + timedelta(minutes=1)
    assert await takers[0].take(later, calls=3, cost=0.5)
    await takers[1].add(DAY, "m", Used(1, cost=0.5), minute=later)
    assert not await takers[0].take(later, calls=3, cost=0.5)
    assert await takers[0].take(later, calls=3, cost=0)


async def test_who_tells_first_tells_alone(db: Database, other_db: Database) -> None:
    told = await asyncio.gather(*(Outages(each).once("limit", "2026-03-01", {}) for each in (db, other_db) * 2))
    assert sum(told) == 1
