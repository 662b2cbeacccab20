"""Consistent copies of SQLite files that are in use, and the runs in a restored database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from storage.events import skip_event_ids
from storage.repository import Repository
from storage.runs import ACTIVE, Runs
from storage.tables import clocks, hosts, leases, metadata, runs

BUSY_SECONDS = 30.0


class BrokenCopy(Exception):
    """The file is not an intact SQLite database."""


class InUse(Exception):
    """Another process has the file open."""


def copy(source: Path, target: Path, *, without: Sequence[str] = ()) -> None:
    """Copy a database as it is at one moment, while others may continue to write. Blocks.

    without: tables whose rows are left out.

    Raises FileNotFoundError if there is no source, and BrokenCopy if the copy is not intact.
    """
    if not source.is_file():
        raise FileNotFoundError(source)
    try:
        with closing(sqlite3.connect(source, timeout=BUSY_SECONDS)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)
            other.execute("PRAGMA journal_mode=DELETE")  # keep everything in one file
            _emptied(other, without)
    except sqlite3.Error as error:  # a full disk, or a file that is not a database
        raise BrokenCopy(str(error)) from None
    check(target)


def _emptied(copied: sqlite3.Connection, tables: Sequence[str]) -> None:
    """Delete the rows of those of the tables that exist, and free their space."""
    there = {name for (name,) in copied.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not (left_out := there.intersection(tables)):
        return
    copied.execute("PRAGMA secure_delete=OFF")  # VACUUM rewrites the file, so nothing of them is left
    copied.execute("PRAGMA synchronous=OFF")  # a copy that is not intact is thrown away
    for name in left_out:
        copied.execute(f'DELETE FROM "{name}"')  # noqa: S608 - a name of ours
    copied.commit()
    copied.execute("VACUUM")


def check(file: Path) -> None:
    """Raise BrokenCopy if the file is not an intact database. Blocks."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        raise BrokenCopy(str(error)) from None
    if said != ["ok"]:
        raise BrokenCopy("; ".join(map(str, said[:3])))


def schema(file: Path) -> dict[str, str]:
    """Return the type (table, index, view, trigger) of everything in the database, by name. Blocks."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return dict(connection.execute("SELECT name, type FROM sqlite_master"))


def alone(file: Path) -> None:
    """Merge a database and its write-ahead log into one file. Raises InUse if another process has it open. Blocks.

    SQLite leaves write-ahead mode only if nobody else has the database open. A file that is not a database is left as
    it is.
    """
    if not file.is_file():
        return
    with closing(sqlite3.connect(file, timeout=0)) as connection:
        try:
            ((mode,),) = connection.execute("PRAGMA journal_mode=DELETE").fetchall()
        except sqlite3.OperationalError as error:
            raise InUse(str(error)) from None
        except sqlite3.DatabaseError:
            return
    if mode != "delete":
        raise InUse(mode)


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that was not over when the copy was made."""

    id: str
    task: str
    serial: str
    status: str


class Restored(Repository):
    """A restored database, before anything works with it again."""

    async def check(self) -> None:
        """Read every row except pictures, as the server would. Raises whatever is wrong with a table or a value."""
        async with self._db.read() as connection:
            for table in metadata.sorted_tables:
                columns = [column for column in table.c if not isinstance(column.type, sa.LargeBinary)]
                async with connection.stream(sa.select(*columns)) as rows:
                    async for _ in rows:
                        pass

    async def settle(self) -> Sequence[HeldRun]:
        """Hold every run that was not over, and return them. Jump ahead with the numbers of events.

        A person resumes or stops each, because its actions since the copy are unknown. Leases are freed, hosts marked
        as ended and clocks deleted, because they date from the time of the copy.
        """
        async with self._db.write(durable=True) as connection:
            await connection.execute(sa.update(leases).values(owner="", run_id="", heartbeat_at=None))
            await connection.execute(sa.update(hosts).values(state="ended"))
            await connection.execute(sa.delete(clocks))
            await skip_event_ids(connection, self._db)
            found = sa.select(runs.c.id, runs.c.task, runs.c.serial, runs.c.status).where(runs.c.status.in_(ACTIVE))
            going = [HeldRun(*row) for row in await connection.execute(found.order_by(runs.c.id))]
        held = Runs(self._db)
        for run in going:
            await held.request_hold(run.id)
        return going
