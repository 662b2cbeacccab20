from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
import threading
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import OperationalError

from agent_core.errors import RateLimited
from storage import engine, migrations
from storage.engine import GUESTS, OVERFLOW, POOL, Database, as_guest, database_url
from storage.events import Events
from storage.failures import DatabaseAway, is_away
from storage.ids import new_id
from storage.migrations import OtherRelease
from storage.retention import Retention
from storage.signals import Signal
from storage.tables import consumers, metadata


async def test_a_new_database_has_the_tables_of_the_code_and_the_newest_revision(db: Database) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    async with db.read() as connection:
        assert await connection.run_sync(differences) == []
    assert await db.revision() == ScriptDirectory(str(migrations.MIGRATIONS)).get_current_head()


async def test_a_database_of_an_earlier_release_is_migrated_and_keeps_what_it_holds(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Events(db).append("r", "note", {"text": "在吗"})
    before, later = await db.revision(), "29991231"
    shutil.copytree(migrations.MIGRATIONS, tmp_path / "migrations")
    (tmp_path / "migrations" / "versions" / f"{later}_more.py").write_text(
        f"from alembic import op\nimport sqlalchemy as sa\nrevision, down_revision = {later!r}, {before!r}\n"
        "def upgrade():\n"
        "    op.add_column('events', sa.Column('more', sa.Text(), server_default='x', nullable=False))\n"
    )
    monkeypatch.setattr(migrations, "MIGRATIONS", tmp_path / "migrations")
    await asyncio.gather(db.migrate(), db.migrate())
    assert await db.revision() == later
    async with db.read() as connection:
        assert (await connection.execute(sa.text("SELECT more FROM events"))).scalars().all() == ["x"]
    assert [event.data for event in await Events(db).after(0)] == [{"text": "在吗"}]


async def test_a_second_migration_changes_nothing(db: Database) -> None:
    events = Events(db)
    await events.append("r", "note", {"text": "在吗"})
    await db.migrate()
    assert [event.data for event in await events.after(0)] == [{"text": "在吗"}]


@pytest.mark.parametrize("revision", ["0020", "2099", "x" * 5000])
async def test_a_database_of_another_release_is_told_and_left_as_it_is(tmp_path: Path, revision: str) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    async with db.write() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = :v"), {"v": revision})
    with pytest.raises(OtherRelease, match=f"version {revision[:40]}\\)") as told:
        await db.migrate()
    assert (told.value.key, told.value.values["name"]) == ("database_other_release", db.url.render_as_string())
    async with db.read() as connection:
        assert (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar_one() == revision
    await db.close()


async def test_several_processes_migrate_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'fresh' / 'desk.db'}"
    program = (
        "import asyncio, sys\nfrom storage.engine import Database\n"
        "async def main():\n    db = Database(sys.argv[1])\n    await db.migrate()\n    await db.close()\n"
        "asyncio.run(main())\nassert 'alembic' not in sys.modules"
    )
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, url, stderr=asyncio.subprocess.PIPE)
        for _ in range(3)
    ]
    results = await asyncio.gather(*(process.communicate() for process in processes))
    assert [process.returncode for process in processes] == [0, 0, 0], results


async def test_sqlite_settings(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    async with db.write() as connection:
        values = {
            name: (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }
    assert values == {"journal_mode": "wal", "busy_timeout": 30000, "foreign_keys": 1, "synchronous": 1}
    async with db.write(durable=True) as connection:
        assert (await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one() == 2
    async with db.write() as connection:
        assert (await connection.exec_driver_sql("PRAGMA synchronous")).scalar_one() == 1
    await db.close()


async def test_a_write_that_fails_leaves_nothing(db: Database) -> None:
    async def fail() -> None:
        async with db.write() as connection:
            await connection.execute(sa.insert(consumers).values(consumer="card", position=1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    async with db.read() as connection:
        assert (await connection.execute(sa.select(consumers))).all() == []


async def test_read_then_write_beside_another_writer(db: Database, other_db: Database) -> None:
    """Two transactions that look first and write then: both succeed, one after the other."""

    async def count(database: Database) -> None:
        for _ in range(20):
            async with database.write() as connection:
                lock = sa.select(consumers.c.position).where(consumers.c.consumer == "n").with_for_update()
                position = (await connection.execute(lock)).scalar_one()
                await connection.execute(sa.update(consumers).values(position=position + 1))

    async with db.write() as connection:
        await connection.execute(sa.insert(consumers).values(consumer="n", position=0))
    await asyncio.gather(count(db), count(other_db), count(db))
    assert await Events(db).position("n") == 60


async def test_cancelled_calls_leave_the_database_usable(db: Database) -> None:
    """Stop cancels a run in the middle of a write: nothing half done, no connection lost."""
    events = Events(db)
    for delay in range(40):
        task = asyncio.create_task(events.append("r", "note", {"n": delay}, picture=b"jpeg"))
        for _ in range(delay):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await events.append("r", "note", {"n": "last"})
    found = await events.after(0)
    assert found[-1].data == {"n": "last"}
    assert all(event.picture_id is not None for event in found[:-1])


async def test_an_error_does_not_repeat_what_people_wrote(db: Database) -> None:
    with pytest.raises(sa.exc.DBAPIError, match="nowhere") as caught:
        async with db.read() as connection:
            await connection.execute(sa.text("SELECT 1 FROM nowhere WHERE a = :words"), {"words": "private words"})
    assert "private words" not in f"{caught.value!r} {caught.value}"


async def test_a_time_without_a_zone_is_refused(db: Database) -> None:
    with pytest.raises(sa.exc.StatementError, match="without a time zone"):
        await Retention(db).events(datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake itself


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://x/y"])
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        database_url(url)


async def test_a_signal_between_look_and_wait_is_not_missed() -> None:
    signal = Signal()
    waiter = signal.waiter()
    signal.notify()
    assert await waiter.wait(0)
    assert not await signal.waiter().wait(0)


def test_ids_are_short_unique_and_in_order() -> None:
    ids = [new_id() for _ in range(1000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert {len(one) for one in ids} == {13}


async def test_another_process_that_writes_is_waited_for(tmp_path: Path) -> None:
    """SQLite's own lock, held by somebody else for a moment."""
    path = tmp_path / "desk.db"
    db = Database(f"sqlite:///{path}")
    await db.migrate()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(Events(db).append("r", "note"))
    done, _ = await asyncio.wait([write], timeout=0.1)
    assert not done
    await asyncio.to_thread(other.execute, "COMMIT")
    assert await write == 1
    other.close()
    await db.close()


async def test_at_the_end_nobody_waits_for_a_database_that_is_locked(tmp_path: Path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    db.patience = 60.0
    other = sqlite3.connect(tmp_path / "desk.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db.end_within(10.0)
    waits = asyncio.create_task(Events(db).append("r", "note", {}))
    done, _ = await asyncio.wait([waits], timeout=0.1)
    assert not done
    other.execute("COMMIT")
    await waits
    other.execute("BEGIN IMMEDIATE")
    db.end_within(0.0)
    db.end_within(60.0)  # what ends later does not prolong it
    async with asyncio.timeout(10):
        with pytest.raises(OperationalError):
            await Events(db).append("r", "note", {})
    other.close()
    await db.close()


async def test_what_is_the_databases_own_doing_is_away(tmp_path: Path) -> None:
    """A statement that is wrong, or a file of somebody else's, is not; a server that nobody reaches is."""
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    with pytest.raises(OperationalError) as wrong:
        async with db.read() as connection:
            await connection.exec_driver_sql("SELECT nothing FROM nowhere")
    assert not is_away(wrong.value)
    assert not is_away(FileNotFoundError(2, "No such file", "det.onnx"))
    assert not is_away(ConnectionResetError("of a model's server"))
    await db.close()
    gone = Database(f"postgresql://nobody@/desk?host={tmp_path}")
    with pytest.raises(DatabaseAway) as away:
        async with gone.read():
            pass
    assert is_away(away.value)
    await gone.close()


async def test_closing_cuts_no_look_at_other_processes(tmp_path: Path) -> None:
    failed: list[threading.ExceptHookArgs] = []
    hook, threading.excepthook = threading.excepthook, failed.append

    async def watched(path: Path, seconds: float) -> None:
        db = Database(f"sqlite:///{path}")
        await db.signal("runs").waiter().wait(seconds)
        await db.close()

    try:
        for number in range(60):
            await asyncio.to_thread(asyncio.run, watched(tmp_path / "desk.db", number / 4000))
        await asyncio.sleep(0.1)
    finally:
        threading.excepthook = hook
    assert failed == []


async def _read_once(db: Database, begin: asyncio.Event) -> None:
    await begin.wait()
    async with db.read():
        pass


async def test_guests_leave_connections_for_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "GUEST_SECONDS", 0.05)
    async with AsyncExitStack() as reading:
        with as_guest():
            for _ in range(GUESTS):
                await reading.enter_async_context(db.read())
            with pytest.raises(RateLimited):
                async with db.read():
                    pass
        async with db.read() as connection:  # whoever is no guest
            assert (await connection.execute(sa.select(1))).scalar_one() == 1
        with as_guest():
            over = asyncio.Event()
            going_on = asyncio.create_task(_read_once(db, over))
        over.set()
        await going_on  # the request that began it is over, so it is no guest
    with as_guest():
        async with db.one_view(), db.read():
            pass
    assert GUESTS < POOL + OVERFLOW
