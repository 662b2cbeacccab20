"""What one process changes is seen by those who wait in another; our own changes wake nobody a second time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
import sqlalchemy as sa

from storage import signals
from storage.engine import Database
from storage.events import EventLogReader, Events
from storage.runs import NewRun, Runs
from storage.tables import consumers

SOON = 4.0  # seconds: less than a look without a signal takes (``MISSED_SECONDS``)


@pytest.mark.slow
async def test_a_change_of_another_process_gives_every_signal(db: Database, other_db: Database) -> None:
    first = db.signal("runs").waiter()
    await first.wait(signals.PULSE_SECONDS / 10)  # from now on it is looked at; the first look gives every signal
    await asyncio.sleep(3 * signals.PULSE_SECONDS)
    waiters = [db.signal(subject).waiter() for subject in ("runs", "questions")]
    await Runs(other_db).create(NewRun("QQ回复联系人11", "phone"))
    assert await asyncio.gather(*(waiter.wait(SOON) for waiter in waiters)) == [True, True]


@pytest.mark.slow
async def test_a_change_of_another_process_is_seen_though_we_write_ourselves(db: Database, other_db: Database) -> None:
    """Ours waits for the other one to commit, and commits at once behind it."""
    await db.signal("runs").waiter().wait(0.01)
    await asyncio.sleep(3 * signals.PULSE_SECONDS)
    waiter = db.signal("questions").waiter()
    async with other_db.write() as connection:
        await connection.execute(sa.insert(consumers).values(consumer="card", position=1))
        ours = asyncio.create_task(Runs(db).create(NewRun("QQ回复联系人11", "phone")))
        await asyncio.sleep(0.2)  # it stands before the lock, if there is one
    await ours
    assert await waiter.wait(SOON)


@pytest.mark.slow
async def test_our_own_changes_in_a_file_wake_nobody_else(db: Database) -> None:
    if not db.is_sqlite:
        return  # a server's transactions are not told apart
    await db.signal("questions").waiter().wait(0.01)
    await asyncio.sleep(3 * signals.PULSE_SECONDS)
    waiter = db.signal("questions").waiter()
    for _ in range(5):
        await Runs(db).create(NewRun("QQ回复联系人11", "phone"))
    assert not await waiter.wait(4 * signals.PULSE_SECONDS)


async def test_transactions_are_counted(db: Database) -> None:
    reads, writes = db.reads, db.writes
    async with db.read() as connection:
        await connection.execute(sa.text("SELECT 1"))
    async with db.write() as connection:
        await connection.execute(sa.text("SELECT 1"))
    assert (db.reads - reads, db.writes - writes) == (1, 1)


async def test_one_view_is_one_transaction_and_writes_nothing(db: Database, other_db: Database) -> None:
    runs, other = Runs(db), Runs(other_db)
    await runs.create(NewRun("QQ回复联系人11", "phone"))
    reads = db.reads
    async with db.one_view():
        assert len(await runs.find()) == 1
        async with db.one_view():
            await other.create(NewRun("QQ回复联系人12", "phone"))
            # SQLite shows one moment, PostgreSQL what is committed.
            assert len(await runs.find()) == (1 if db.is_sqlite else 2)
        with pytest.raises(RuntimeError):
            await runs.create(NewRun("QQ回复联系人13", "phone"))
        later = asyncio.create_task(_found_after(asyncio.sleep(0.05), runs))
    assert db.reads - reads == 1
    assert await later == 2, "a task that goes on reads for itself"
    assert db.reads - reads == 2


async def _found_after(wait: Awaitable[None], runs: Runs) -> int:
    await wait
    return len(await runs.find())


async def test_an_event_is_read_once(db: Database) -> None:
    if not db.is_sqlite:
        return  # looking for changes of others is a read there
    log, reader = Events(db), EventLogReader(db, 0)
    await db.signal("events").waiter().wait(2 * signals.PULSE_SECONDS)  # the first look gives every signal
    for _ in range(3):
        await log.append("r", "step")
    reads = db.reads
    found = await reader.more(limit=2)
    assert len(found) == 2
    assert [row.id for row in await reader.more(limit=2)] == [row.id for row in found], "they were not handled"
    reader.position = found[-1].id
    [last] = await reader.more(limit=2)
    reader.position = last.id
    assert db.reads - reads == 3
    waiting = asyncio.create_task(reader.more(seconds=60))
    await asyncio.sleep(0.05)
    assert db.reads - reads == 3, "it knows that there is nothing"
    added = await log.append("r", "step")
    assert [row.id for row in await asyncio.wait_for(waiting, 10)] == [added]
    assert db.reads - reads == 4
