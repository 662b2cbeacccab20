"""Hosts: one process a name, phones that come and go between them, who goes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from agent_core.errors import AdbNotFound, ConfigInvalid, DeviceOffline
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.host import RETELL_SECONDS, Fleet, Host
from scheduler.runs.lease import HeldLease
from scheduler.runs.service import PERSON, SCHEDULE, SWEEP, WATCH, RunService, places
from scheduler.runs.worker import Worker
from storage.engine import Database
from storage.events import Events
from storage.hosts import FAILED, Hosts
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import NewRun, RunRow, Runs
from tests.support.clock import Clock
from tests.support.queue import LocalQueue

SOON = 10.0


class Machine:
    """A process with phones: a host, a queue, a worker, looked after by hand."""

    def __init__(self, db: Database, name: str, phones: Sequence[str], *, wait: timedelta | None = None) -> None:
        self.db = db
        self.phones = dict.fromkeys(phones, "device")
        self.done: list[tuple[str, str]] = []  # the run and its phone
        self.host = Host(db, name, listing=self._listing, picture=self._picture)
        self.fleet = Fleet(db, wait=wait)
        self.worker = Worker(db, self._work, owner=name, may_begin=self._may_begin)
        self.queue = LocalQueue()
        self.dispatcher = Dispatcher(db, self.queue.enqueue, worker=self.worker, phones=self._here, fleet=self.fleet)

    async def _listing(self) -> dict[str, str]:
        return self.phones

    async def _picture(self, serial: str) -> bytes:
        if serial == "dark":
            raise DeviceOffline("It is dark.")
        if serial == "broken":
            raise ValueError(serial)
        if serial == "slow":
            await asyncio.Event().wait()
        return serial.encode()

    async def _here(self) -> list[str]:
        return await self.host.reached()

    async def _may_begin(self, run: RunRow) -> bool:
        return await self.host.may_begin(run, self.fleet)

    async def _work(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if lease.serial not in self.phones:
            raise DeviceOffline(f"No phone {lease.serial}.")
        self.done.append((run_id, lease.serial))
        return AttemptOutcome("succeeded")

    async def begin(self) -> None:
        await self.host.claim()
        await self.host.look()
        await self.queue.start(self.worker.run_attempt)

    async def look(self) -> list[str]:
        """One look at phones and runs, and the end of what was begun."""
        await self.host.look()
        attempts = await self.dispatcher.once()
        async with asyncio.timeout(SOON):
            while self.queue._tasks:
                await asyncio.sleep(0)
        return attempts

    async def beat(self) -> None:
        assert await Hosts(self.db).beat(self.host.name, self.host.token)


@asynccontextmanager
async def machine(db: Database, name: str, *phones: str, wait: timedelta | None = None) -> AsyncIterator[Machine]:
    made = Machine(db, name, phones, wait=wait)
    await made.begin()
    yield made
    await made.queue.stop()


async def new_run(db: Database, serial: str = "", priority: int = PERSON) -> str:
    return await RunService(db).submit("task", serial=serial, priority=priority)


async def row(db: Database, run_id: str) -> RunRow:
    found = await Runs(db).get(run_id)
    assert found is not None
    return found


async def told(db: Database, run_id: str) -> list[bool]:
    return [event.data["missing"] for event in await Events(db).after(0, run_id=run_id) if event.kind == "phone"]


async def test_a_run_is_done_where_its_phone_is(db: Database) -> None:
    async with machine(db, "a", "S1") as a, machine(db, "b", "S2") as b:
        run_id = await new_run(db, "S2")
        assert await a.look() == []
        await b.look()
        assert (a.done, b.done) == ([], [(run_id, "S2")])


async def test_any_phone_is_the_one_that_was_used_longest_ago(db: Database, clock: Clock) -> None:
    async with machine(db, "a", "S1", "S2", "S3") as a:
        for serial in ("S2", "S1", "S3"):
            clock.move(seconds=1)
            lease = await Leases(db).acquire(serial, "a")
            assert lease is not None
            await Leases(db).release(lease)
        ids = [await new_run(db) for _ in range(3)]
        await a.look()
        assert [(await row(db, run_id)).serial for run_id in ids] == ["S2", "S1", "S3"]


async def test_the_phone_of_a_host_that_died_goes_on_at_another(db: Database, clock: Clock) -> None:
    async with machine(db, "a", "S1") as a, machine(db, "b", "S2") as b:
        run = await row(db, await new_run(db, "S2"))
        # It is in b's queue, and b has begun it, when b dies.
        assert await Runs(db).take(run, "S2", "b", alive_after=clock()) == 1
        assert await Leases(db).acquire("S2", "b", run.id)
        assert await Runs(db).begin_attempt(run.id, 1, serial="S2")
        clock.move(seconds=LEASE_SECONDS)
        await a.beat()
        assert await a.look() == []
        assert (await row(db, run.id)).status == "waiting", "its attempt is known to be dead; it waits for the phone"
        assert await told(db, run.id) == []
        clock.move(days=3)
        await a.beat()
        assert await a.look() == [], "for ever"
        a.phones["S2"] = "device"
        assert await a.look() == [f"run-{run.id}-attempt-2"]
        assert (a.done, b.done) == ([(run.id, "S2")], [])
        await b.worker.run_attempt(f"run-{run.id}-attempt-1")
        assert b.done == [], "what the dead one had in its queue is nothing any more"


async def test_that_a_phone_goes_and_comes_back_is_told_once_each(db: Database) -> None:
    async with machine(db, "a", "S1") as a, machine(db, "b") as b:
        lease = await Leases(db).acquire("S1", "someone")
        assert lease is not None
        run_id = await new_run(db, "S1")
        for phones in ({"S1": "device"}, {}, {}, {"S1": "offline"}, {"S1": "device"}):
            a.phones = phones
            await a.look()
        assert await told(db, run_id) == [True, False]
        await b.look()
        assert await told(db, run_id) == [True, False], "the other one sees that somebody has the phone"


@pytest.mark.parametrize(
    ("serial", "wait", "fails_after"),
    [("S1", None, None), ("S1", 60.0, 60), ("never", None, 15), ("never", 60.0, 15), ("", None, None), ("", 60.0, 60)],
)
async def test_how_long_a_run_waits_for_a_phone_that_is_away(
    db: Database, clock: Clock, serial: str, wait: float | None, fails_after: int | None
) -> None:
    async with machine(db, "a", "S1", wait=timedelta(seconds=wait) if wait else None) as a:
        a.phones = {}
        run_id = await new_run(db, serial)
        waited = 0
        for moment in (0, 14, 15, 59, 60, 100_000):
            clock.move(seconds=moment - waited)
            waited = moment
            await a.look()
            over = fails_after is not None and moment >= fails_after
            assert (await row(db, run_id)).status == ("failed" if over else "queued"), moment


async def test_the_time_in_line_behind_others_is_no_waiting_for_a_phone(db: Database, clock: Clock) -> None:
    async with machine(db, "a", "S1", wait=timedelta(seconds=600)) as a:
        lease = await Leases(db).acquire("S1", "someone")
        assert lease is not None
        ids = [await new_run(db, serial) for serial in ("S1", "")]
        clock.move(seconds=900)
        await a.beat()
        a.phones = {}
        await a.look()
        for seconds, status in ((4, "queued"), (595, "queued"), (1, "failed")):
            clock.move(seconds=seconds)
            await a.beat()
            for _ in ids:
                await a.look()
            assert [(await row(db, run_id)).status for run_id in ids] == [status] * 2, seconds


async def test_nothing_is_given_up_before_the_first_look_at_the_phones(db: Database, clock: Clock) -> None:
    made, asked = Machine(db, "a", ("S1",)), asyncio.Event()

    async def here() -> list[str]:
        asked.set()
        return await made.host.reached()

    run_id = await new_run(db)
    clock.move(seconds=20)
    await made.host.claim()
    await made.queue.start(made.worker.run_attempt)
    assert not await made.host.may_begin(await row(db, run_id), made.fleet)
    dispatcher = Dispatcher(db, made.queue.enqueue, worker=made.worker, phones=here, fleet=made.fleet)
    async with asyncio.timeout(SOON), asyncio.TaskGroup() as group:
        group.create_task(dispatcher.once())
        await asked.wait()
        await made.host.look()
    await made.look()
    assert made.done == [(run_id, "S1")]
    await made.queue.stop()


async def test_the_log_says_once_which_phone_a_run_waits_for(db: Database) -> None:
    async with machine(db, "a", "S1") as a:
        run_id = await new_run(db, "S2")
        with capture_logs() as told:
            await a.look()
            await a.look()
    waits = [entry for entry in told if entry["event"] == "run_waits_for_phone"]
    assert [(entry["log_level"], entry["run_id"], entry["serial"]) for entry in waits] == [("warning", run_id, "S2")]


async def test_without_anybody_who_works_phones_the_log_does_not_ask_for_a_phone(db: Database) -> None:
    await new_run(db, "S1")
    alone = Dispatcher(db, None, phones=_here)  # of a server without phones
    with capture_logs() as told:
        await alone.once()
        await alone.once()
    assert [entry["event"] for entry in told] == ["run_waits_for_worker"]


async def _here() -> list[str]:
    return []


async def test_what_a_host_sees_is_told_again_after_a_while(db: Database, clock: Clock) -> None:
    async with machine(db, "a", "S1") as a:
        assert await Hosts(db).sees("a", a.host.token, {})  # whoever wrote that
        await a.host.look()
        assert not (await a.fleet.phones())["S1"].usable
        clock.move(seconds=RETELL_SECONDS)
        await a.beat()
        await a.host.look()
        assert (await a.fleet.phones())["S1"].usable


async def test_a_phone_that_just_went_puts_the_attempt_back_into_the_line(db: Database) -> None:
    async with machine(db, "a", "S1") as a:
        run_id = await new_run(db, "S1")
        run = await row(db, run_id)
        assert await Runs(db).take(run, "S1", "a", alive_after=db.now()) == 1
        a.phones = {}
        await a.host.look()
        await a.worker.run_attempt(f"run-{run_id}-attempt-1")
        run = await row(db, run_id)
        assert (run.status, run.attempt, a.done) == ("queued", 2, [])


async def test_who_goes_first_on_a_phone(db: Database) -> None:
    async with machine(db, "a", "S1") as a:
        sweep = await new_run(db, "S1", SWEEP)
        tick = await Runs(db).create(NewRun("task", "S1"))
        watch = await new_run(db, "S1", WATCH)
        begun = await new_run(db, "S1", SWEEP)
        person = await new_run(db, "S1")
        assert await Runs(db).begin_attempt(begun, 1, serial="S1")
        assert await Runs(db).park_attempt(begun, 1)  # nobody is asked any more: it goes on
        wanted = [person, begun, watch, tick, sweep]
        seen = await RunService(db).place(begun, ["S1"]), await RunService(db).place(sweep, ["S1"])
        assert seen == (2, 5)
        for _ in wanted:
            await a.look()
        assert [run_id for run_id, _ in a.done] == wanted
    assert (await row(db, tick or "")).priority == SCHEDULE


async def test_places_of_runs_that_take_any_phone(db: Database) -> None:
    ids = [await new_run(db, serial) for serial in ("S1", "S1", "", "", "", "")]
    due = await Runs(db).due()
    assert [places(due, ["S1", "S2"])[run_id] for run_id in ids] == [1, 2, 1, 2, 3, 3]
    assert [places(due, [])[run_id] for run_id in ids] == [1, 2, 1, 2, 3, 4]


async def test_a_name_is_one_processs_until_it_is_dead_or_gives_it_back(db: Database, clock: Clock) -> None:
    one, two = (Host(db, "a", listing=no_phones) for _ in range(2))
    await one.claim()
    with pytest.raises(ConfigInvalid, match="Another process works as the host a"):
        await two.claim()
    clock.move(seconds=LEASE_SECONDS)
    await two.claim()
    await one.start()
    async with asyncio.timeout(SOON):
        await one.lost.wait()  # it was away for too long, and has to end
    await one.stop()
    with pytest.raises(ConfigInvalid):  # the one that lost it took nothing from the other
        await Host(db, "a", listing=no_phones).claim()
    await two.stop()
    await Host(db, "a", listing=no_phones).claim()


async def no_phones() -> dict[str, str]:
    return {}


async def test_without_adb_a_host_has_no_phones_and_does_not_end(db: Database) -> None:
    async def no_adb() -> dict[str, str]:
        raise AdbNotFound("no adb")

    host = Host(db, "a", listing=no_adb)
    await host.claim()
    assert await host.look() == []


@pytest.mark.slow
async def test_pictures_of_phones_for_other_processes(db: Database) -> None:
    made = Machine(db, "a", ("S1", "dark", "broken", "slow"))
    made.host._answer_seconds = 0.01
    await made.host.claim()
    await made.host.look()
    await made.host.start()
    hosts = Hosts(db)
    answers = {}
    for serial in ("S1", "dark", "S9", "broken", "slow"):
        number = await hosts.want("a", serial)
        async with asyncio.timeout(SOON):
            while (answer := await hosts.answer(number)) is None:
                await asyncio.sleep(0.005)
        answers[serial] = answer
    await made.host.stop()
    assert answers["S1"].jpeg == b"S1"
    assert (answers["dark"].state, answers["dark"].error) == (FAILED, "It is dark.")
    assert "does not reach" in answers["S9"].error
    assert "could not make a picture" in answers["broken"].error
    assert "gave no picture" in answers["slow"].error
