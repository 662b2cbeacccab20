from __future__ import annotations

import asyncio

from storage.engine import Database
from storage.leases import Leases
from tests.support.clock import Clock


async def test_one_of_many_gets_the_phone(db: Database, other_db: Database) -> None:
    results = await asyncio.gather(
        *(Leases(one).acquire("phone", f"host-{index}", "r") for index, one in enumerate([db, other_db] * 3))
    )
    won = [lease for lease in results if lease is not None]
    assert len(won) == 1
    assert await Leases(db).held() == won


async def test_fencing_grows_with_every_holder(db: Database, clock: Clock) -> None:
    leases = Leases(db, seconds=30)
    first = await leases.acquire("phone", "a")
    assert first is not None
    assert await leases.acquire("phone", "a", "another run of the same process") is None
    assert await leases.release(first)
    second = await leases.acquire("phone", "a")
    assert second is not None
    clock.move(seconds=30)
    third = await leases.acquire("phone", "b")
    assert third is not None
    assert first.fencing < second.fencing < third.fencing


async def test_who_lost_the_phone_can_do_nothing_with_it(db: Database, clock: Clock) -> None:
    leases = Leases(db, seconds=30)
    old = await leases.acquire("phone", "a")
    assert old is not None
    assert await leases.check(old)
    clock.move(seconds=29)
    assert await leases.renew(old)
    clock.move(seconds=19)
    assert await leases.check(old)
    clock.move(seconds=10)
    assert await leases.acquire("phone", "b") is None
    assert not await leases.check(old), "who has the phone gives up before others may take it"
    assert await leases.renew_in_time(old), "unless it is heard first"
    assert await leases.check(old)
    clock.move(seconds=30)
    assert not await leases.check(old), "without a heartbeat it may not act"
    assert not await leases.renew_in_time(old)
    new = await leases.acquire("phone", "b")
    assert new is not None
    assert not await leases.renew(old)
    assert not await leases.release(old)
    assert not await leases.check(old)
    assert await leases.check(new)


async def test_a_late_heartbeat_keeps_a_phone_that_nobody_took(db: Database, clock: Clock) -> None:
    leases = Leases(db, seconds=30)
    lease = await leases.acquire("phone", "a")
    assert lease is not None
    clock.move(seconds=120)
    assert await leases.renew(lease)
    assert await leases.check(lease)


async def test_a_new_process_takes_back_what_its_former_self_had(db: Database) -> None:
    leases = Leases(db)
    old = await leases.acquire("p1", "a", "r1")
    other = await leases.acquire("p2", "b", "r2")
    assert old is not None
    assert other is not None
    assert await leases.take_back("a") == ["p1"]
    assert not await leases.check(old)
    assert await leases.check(other)
    assert await leases.acquire("p1", "a", "r1") is not None
