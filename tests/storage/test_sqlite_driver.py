"""The driver for SQLite: how often it goes to its thread, and that no row is lost on the way."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from storage.engine import Database
from storage.sqlite_driver import ROWS_AHEAD, Connection

ROWS = sa.text(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) SELECT i FROM n WHERE :most > 0"
)


async def test_a_read_makes_no_trip_and_a_change_one_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    trips = 0
    call = Connection._execute

    async def counted(self: Connection, *given: object) -> object:
        nonlocal trips
        trips += 1
        return await call(self, *given)  # type: ignore[no-untyped-call]

    async def read(statements: int) -> None:
        async with db.read() as connection:
            for _ in range(statements):
                assert (await connection.execute(ROWS, {"most": 3})).all() == [(1,), (2,), (3,)]

    async def write() -> None:
        async with db.write() as connection:
            await connection.execute(sa.text("CREATE TABLE IF NOT EXISTS t (a)"))

    async def change() -> None:
        async with db.write() as connection:
            await connection.execute(sa.text("INSERT INTO t VALUES (1)"))
            await connection.execute(sa.text("UPDATE t SET a = a + 1"))
            assert (await connection.execute(sa.text("SELECT a FROM t LIMIT 1"))).scalar_one() > 1

    await read(1)
    await write()
    monkeypatch.setattr(Connection, "_execute", counted)
    for act, most in ((read(1), 0), (read(3), 0), (change(), 1), (write(), 2)):
        trips = 0
        await act
        assert trips <= most
    await db.close()


async def test_a_long_read_leaves_the_loop_alone(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    async with db.read() as connection:
        reading = asyncio.create_task(
            connection.scalar(sa.text(f"SELECT count(*) FROM ({ROWS.text})"), {"most": 10**6})
        )
        turns = 0
        while not reading.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert await reading == 10**6
        assert turns > 20  # it takes half a second
        # The transaction goes on, and short ones are done at once again.
        assert (await connection.execute(ROWS, {"most": 2})).scalars().all() == [1, 2]
    await db.close()


async def test_a_long_query_of_a_change_leaves_the_loop_alone_and_undoes_nothing(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    async with db.write() as connection:
        await connection.execute(sa.text("CREATE TABLE t (a)"))
        await connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        counting = sa.text(f"SELECT count(*) FROM ({ROWS.text})")
        reading = asyncio.create_task(connection.scalar(counting, {"most": 10**6}))
        turns = 0
        while not reading.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert await reading == 10**6
        assert turns > 20
    async with db.read() as connection:
        assert (await connection.execute(sa.text("SELECT a FROM t"))).scalars().all() == [1]
    await db.close()


async def test_a_read_waits_for_who_has_locked_the_file(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}", busy_seconds=20)
    await db.migrate()
    await db.close()
    other = sqlite3.connect(tmp_path / "desk.db", isolation_level=None)
    for statement in ("PRAGMA locking_mode=EXCLUSIVE", "BEGIN IMMEDIATE", "CREATE TABLE t (a)", "COMMIT"):
        other.execute(statement)

    async def count() -> int:
        async with db.read() as connection:
            return int((await connection.execute(sa.text("SELECT count(*) FROM t"))).scalar_one())

    waiting = asyncio.create_task(count())
    await asyncio.sleep(0.3)
    assert not waiting.done()
    other.close()
    assert await waiting == 0
    await db.close()


async def test_a_cut_statement_leaves_no_transaction_open(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}", pool_size=1)
    async with db.write() as connection:
        await connection.execute(sa.text("CREATE TABLE t (a)"))

    async def slow() -> None:
        async with db.read() as connection:
            await connection.execute(ROWS, {"most": 300_000})

    for wait in (0.0, 0.001, 0.005):
        cut = asyncio.create_task(slow())
        await asyncio.sleep(wait)
        cut.cancel()
        await asyncio.wait([cut])
        async with db.write() as connection:
            await connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        async with db.read() as connection:  # not the snapshot of the cut one
            found = (await connection.execute(sa.text("SELECT count(*) FROM t"))).scalar_one()
        async with db.write() as connection:
            await connection.execute(sa.text("DELETE FROM t"))
        assert found == 1
    await db.close()


@pytest.mark.parametrize("most", [0, 1, ROWS_AHEAD - 1, ROWS_AHEAD, ROWS_AHEAD + 1, 3 * ROWS_AHEAD])
async def test_all_rows_come_at_once_and_in_pieces(tmp_path: Path, most: int) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    expected = list(range(1, most + 1))
    async with db.read() as connection:
        assert (await connection.execute(ROWS, {"most": most})).scalars().all() == expected
        async with connection.stream(ROWS, {"most": most}) as rows:
            assert [row[0] async for row in rows] == expected
        async with connection.stream(ROWS, {"most": most}) as rows:  # left before its end
            assert await rows.fetchmany(7) == [(each,) for each in expected[:7]]
    async with db.write() as connection:  # nothing is left open that keeps others from writing
        await connection.execute(sa.text("CREATE TABLE t (a)"))
        returned = await connection.execute(
            sa.text(f"INSERT INTO t SELECT * FROM ({ROWS.text}) RETURNING a"),
            {"most": most},
        )
        assert returned.scalars().all() == expected
    async with db.read() as connection:
        assert (await connection.execute(sa.text("SELECT count(*) FROM t"))).scalar_one() == most
    await db.close()


def still_there(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads of connections that were begun since, and do not end: one that has said its last word takes a moment."""
    begun = [thread for thread in threading.enumerate() if "connection_worker" in thread.name and thread not in before]
    for thread in begun:
        thread.join(10)
    return [thread for thread in begun if thread.is_alive()]


async def test_a_file_that_cannot_be_opened_leaves_no_thread_behind(tmp_path: Path) -> None:
    path = tmp_path / "desk.db"
    path.write_bytes(b"not a database" * 500)
    db = Database(f"sqlite:///{path}")
    before = set(threading.enumerate())
    for _ in range(20):
        with pytest.raises(sa.exc.DatabaseError, match="not a database"):
            async with db.read():
                pass
        assert not still_there(before)
    await db.close()


async def test_an_opening_that_is_cancelled_leaves_no_thread_behind(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    for number in range(20):
        db = Database(f"sqlite:///{tmp_path / 'desk.db'}")

        async def opened(db: Database = db) -> None:
            async with db.read():
                pass

        opening = asyncio.create_task(opened())
        for _ in range(number % 5):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await db.close()
        assert not still_there(before)
