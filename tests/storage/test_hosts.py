"""Hosts, what they see of phones, and which of them takes a run."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from agent_core.errors import ConfigInvalid
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.host import Host
from scheduler.runs.lease import lease_of
from storage.engine import Database, utc_now
from storage.hosts import DONE, DRAINING, ENDED, GONE, HostPhone, Hosts
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import NewRun, RunRow, Runs
from storage.tables import runs as runs_table
from tests.support.clock import Clock
from tests.support.phones import far_phone

TTL = timedelta(seconds=LEASE_SECONDS)


async def phone(db: Database, serial: str = "S1") -> HostPhone:
    return next(phone for phone in await Hosts(db).phones() if phone.serial == serial)


async def test_one_process_has_a_name_at_a_time(db: Database, other_db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    assert await hosts.register("a", "one", release="1") is None
    holder = await Hosts(other_db).register("a", "two")
    assert holder is not None
    assert (holder.token, holder.release, holder.heartbeat_at) == ("one", "1", clock())
    clock.move(seconds=LEASE_SECONDS - 1)
    assert await hosts.beat("a", "one")
    clock.move(seconds=LEASE_SECONDS - 1)
    assert await hosts.register("a", "two") is not None, "it is still heard"
    clock.move(seconds=1)
    assert await hosts.register("a", "two") is None
    assert not await hosts.beat("a", "one"), "the first one learns of it"
    assert await hosts.register("a", "three", former="one") is not None, "that one is not the dead one"
    assert await hosts.register("a", "three", former="two") is None, "it is known to be dead"
    await hosts.set_state("a", "three", ENDED)
    assert await hosts.register("a", "four") is None, "the name was given back"


async def test_two_who_want_a_name_at_once(db: Database, other_db: Database) -> None:
    asked = (Hosts(each).register("a", f"{n}") for n, each in enumerate((db, other_db) * 4))
    taken = [holder is None for holder in await asyncio.gather(*asked)]
    assert taken.count(True) == 1


async def test_what_hosts_see_of_phones(db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    await hosts.register("a", "a")
    await hosts.sees("a", "a", {"S1": "device", "S2": "unauthorized"})
    begun = clock()
    assert await phone(db) == HostPhone("S1", "a", "device", begun, alive=True)
    assert not (await phone(db, "S2")).usable
    clock.move(seconds=5)
    await hosts.beat("a", "a")
    await hosts.sees("a", "a", {"S1": "device", "S2": "device"})
    assert (await phone(db)).since == begun, "nothing changed for it"
    assert (await phone(db, "S2")).since == clock()
    await hosts.sees("a", "a", {})
    assert ((await phone(db)).state, (await phone(db)).since) == (GONE, clock())


async def test_the_phones_of_a_host_that_dies_are_away_until_another_has_them(db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    await hosts.register("a", "a")
    await hosts.sees("a", "a", {"S1": "device"})
    clock.move(seconds=3)
    await hosts.beat("a", "a")
    heard = clock()
    clock.move(seconds=LEASE_SECONDS)
    assert await phone(db) == HostPhone("S1", "a", "device", heard, alive=False)
    assert await hosts.alive() == set()
    await hosts.register("b", "b")
    await hosts.sees("b", "b", {"S1": "device"})
    assert await phone(db) == HostPhone("S1", "b", "device", clock(), alive=True)
    await hosts.sees("b", "b", {})
    assert (await phone(db)).state == GONE
    await hosts.set_state("b", "b", DRAINING)
    assert await hosts.alive() == {"b"}, "it still works"


async def test_what_a_former_process_of_the_name_sees_counts_for_nothing(db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    await hosts.register("a", "old")
    clock.move(seconds=LEASE_SECONDS)
    await hosts.register("a", "new")
    assert await hosts.sees("a", "new", {"S1": "device"})
    assert not await hosts.sees("a", "old", {})
    assert (await phone(db)).usable


async def test_a_phone_is_away_since_the_last_host_could_use_it(db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    await hosts.register("a", "a")
    await hosts.register("b", "b")
    await hosts.sees("a", "a", {"S1": "offline"})
    await hosts.sees("b", "b", {"S1": "device"})
    clock.move(seconds=5)
    went = clock()
    await hosts.sees("b", "b", {})
    assert ((await phone(db)).state, (await phone(db)).since) == ("offline", went)
    clock.move(seconds=5)
    await hosts.sees("a", "a", {})
    await hosts.sees("b", "b", {"S1": "offline"})
    assert (await phone(db)).since == went, "from one way of being away to another"


async def test_who_has_a_wrong_clock_takes_nobody_for_dead(db: Database, other_db: Database) -> None:
    """Neither a process without phones, nor a terminal beside it."""
    if db.is_sqlite:
        return
    db.clock, off = utc_now, timedelta(seconds=45)
    other_db.clock = lambda: utc_now() + off
    run_id = await Runs(db).create(NewRun("task", "S1"))
    assert run_id is not None
    assert await Leases(db).acquire("S1", "a", run_id) is not None
    assert await Runs(db).begin_attempt(run_id, 1, serial="S1")
    watching = Dispatcher(other_db, None, phones=_nothing_here)
    with capture_logs() as logs:
        await watching.once()
        await watching.once()
    assert [entry["event"] for entry in logs] == ["clock_wrong"]
    run = await Runs(db).get(run_id)
    assert run is not None
    assert (run.status, run.attempt) == ("running", 1)
    with pytest.raises(ConfigInvalid, match="45 s ahead"):
        async with lease_of(other_db, far_phone("S1"), owner="terminal", why="r"):
            pass
    off = timedelta()
    await Leases(db).take_back("a")
    async with other_db.write() as connection:
        await connection.execute(sa.update(runs_table).values(started_at=utc_now() - timedelta(minutes=1)))
    with capture_logs() as logs:
        await watching.once()
    assert [entry["event"] for entry in logs] == ["clock_right", "runs.revived", "run_waits_for_worker"]


async def _nothing_here() -> list[str]:
    return []


async def test_a_clock_that_goes_wrong_ends_the_host(db: Database, clock: Clock) -> None:
    if db.is_sqlite:
        assert await Hosts(db).clock_ahead() == 0
        return
    off = timedelta()
    db.clock = lambda: utc_now() + off
    host = Host(db, "a", listing=_no_phones, seconds=0.9)
    await host.claim()
    off = timedelta(seconds=-0.2)
    await host.start()
    async with asyncio.timeout(10):
        await host.lost.wait()
    await host.stop()
    assert "0 s behind the database's" in host.why.message
    with pytest.raises(ConfigInvalid):
        await host.claim()


async def _no_phones() -> dict[str, str]:
    return {}


async def test_a_picture_that_another_process_wants(db: Database, other_db: Database) -> None:
    hosts, other = Hosts(db), Hosts(other_db)
    number = await hosts.want("a", "S1")
    assert await hosts.answer(number) is None
    assert await other.wanted("b") == []
    [asked] = await other.wanted("a")
    await other.give(asked.id, jpeg=b"jpeg")
    answer = await hosts.answer(number)
    assert answer is not None
    assert (answer.state, answer.jpeg) == (DONE, b"jpeg")
    assert await hosts.answer(number) is None, "it is not kept"
    number = await hosts.want("a", "S1")
    await hosts.withdraw(number)
    assert await other.wanted("a") == []


async def test_the_pictures_of_who_died_while_waiting_are_not_kept(db: Database, clock: Clock) -> None:
    hosts = Hosts(db)
    await hosts.give(await hosts.want("a", "S1"), jpeg=b"jpeg")
    await hosts.want("a", "S1")
    clock.move(minutes=11)
    asked = await hosts.want("a", "S1")
    assert await hosts.forget_requests() == 2
    assert [request.id for request in await hosts.wanted("a")] == [asked]


async def new_run(db: Database, serial: str = "S1") -> RunRow:
    return await found(db, await Runs(db).create(NewRun("task", serial)))


async def found(db: Database, run_id: str | None) -> RunRow:
    run = await Runs(db).get(run_id or "")
    assert run is not None
    return run


async def test_one_host_takes_a_run(db: Database, other_db: Database, clock: Clock) -> None:
    for host in "abc":
        await Hosts(db).register(host, host)
    run, after = await new_run(db), clock() - TTL
    tried = (
        Runs(each).take(run, "S1", host, alive_after=after) for each, host in ((db, "a"), (other_db, "b"), (db, "c"))
    )
    assert sorted(attempt or 0 for attempt in await asyncio.gather(*tried)) == [0, 0, 1]


async def test_the_run_of_a_host_that_died_is_taken_under_another_attempt(db: Database, clock: Clock) -> None:
    await Hosts(db).register("a", "a")
    runs = Runs(db)
    run = await new_run(db)
    assert await runs.take(run, "S1", "a", alive_after=clock() - TTL) == 1
    taken = await found(db, run.id)
    assert taken.taken_by() == "a"
    assert await runs.take(taken, "S1", "a", alive_after=clock() - TTL) == 1, "its own attempt, handed out once more"
    assert await runs.take(taken, "S1", "b", alive_after=clock() - TTL) is None
    clock.move(seconds=LEASE_SECONDS)
    assert await runs.take(taken, "S1", "b", alive_after=clock() - TTL) == 2
    assert await runs.begin_attempt(run.id, 1, serial="S1") is None, "what lay in the dead one's queue does nothing"
    assert await runs.begin_attempt(run.id, 2, serial="S1") is not None


@pytest.mark.parametrize("begun", [False, True])
async def test_a_run_for_any_phone_may_change_it_until_it_begins(db: Database, clock: Clock, begun: bool) -> None:
    runs = Runs(db)
    run = await new_run(db, "")
    attempt = await runs.take(run, "S1", "a", alive_after=clock())
    assert attempt == 1
    if begun:
        await runs.begin_attempt(run.id, 1, serial="S1")
        await runs.interrupt_attempt(run.id, 1)
    taken = await found(db, run.id)
    assert (taken.serial, taken.wanted) == ("S1", "S1" if begun else "")
    assert await runs.take(taken, "S2", "b", alive_after=clock()) == 2
    assert (await found(db, run.id)).any_phone


async def test_what_has_begun_goes_before_what_has_not(db: Database) -> None:
    runs = Runs(db)
    tick = await new_run(db)
    later = await new_run(db)
    person = await found(db, await runs.create(NewRun("task", "S1", priority=10)))
    await runs.begin_attempt(later.id, 1, serial="S1")
    await runs.interrupt_attempt(later.id, 1)
    assert [run.id for run in await runs.due(begun=8)] == [person.id, later.id, tick.id]
    assert [run.id for run in await runs.due()] == [person.id, tick.id, later.id]
