"""Copies of SQLite files that are whole, whatever is written meanwhile; and runs that a restored database holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from storage.engine import Database
from storage.runs import ACTIVE, Runs
from storage.shielded import shielded
from storage.tables import clocks, hosts, leases, metadata, runs

BUSY_SECONDS = 30.0


class BrokenCopy(Exception):
    """A file that is no whole SQLite database."""


class InUse(Exception):
    """Another process has the file open."""


def copy(source: Path, target: Path, *, without: Sequence[str] = ()) -> None:
    """Copy a database as it is at one moment, ``without`` the rows of these tables; others may go on writing. Blocking.

    FileNotFoundError where there is none; BrokenCopy where what came out is not whole.
    """
    if not source.is_file():
        raise FileNotFoundError(source)
    try:
        with closing(sqlite3.connect(source, timeout=BUSY_SECONDS)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)
            other.execute("PRAGMA journal_mode=DELETE")  # everything in one file
            _emptied(other, without)
    except sqlite3.Error as error:  # a full disk, or a file that is no database
        raise BrokenCopy(str(error)) from None
    check(target)


def _emptied(copied: sqlite3.Connection, tables: Sequence[str]) -> None:
    """Take out the rows of those tables that there are, and the room that they took."""
    there = {name for (name,) in copied.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not (left_out := there.intersection(tables)):
        return
    copied.execute("PRAGMA secure_delete=OFF")  # the copy is written anew: nothing of them is left in it
    copied.execute("PRAGMA synchronous=OFF")  # what is not whole is thrown away
    for name in left_out:
        copied.execute(f'DELETE FROM "{name}"')  # noqa: S608 - a name of ours
    copied.commit()
    copied.execute("VACUUM")


def check(file: Path) -> None:
    """BrokenCopy where the file is no whole database. Blocking."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        raise BrokenCopy(str(error)) from None
    if said != ["ok"]:
        raise BrokenCopy("; ".join(map(str, said[:3])))


def schema(file: Path) -> dict[str, str]:
    """By its name, what kind of thing each is in the database: table, index, view, trigger. Blocking."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return dict(connection.execute("SELECT name, type FROM sqlite_master"))


def alone(file: Path) -> None:
    """Make one file of a database and its journal. InUse where another process has it open. Blocking.

    Only who has a database for himself can take it out of its write-ahead log. What is no database is left as it is.
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


@shielded
class Restored:
    """A database as it was some time ago, before anything works with it again."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def check(self) -> None:
        """Read every row as the server would, without pictures. Raises whatever is wrong with a table or a value."""
        async with self._db.read() as connection:
            for table in metadata.sorted_tables:
                columns = [column for column in table.c if not isinstance(column.type, sa.LargeBinary)]
                async with connection.stream(sa.select(*columns)) as rows:
                    async for _ in rows:
                        pass

    async def settle(self) -> Sequence[HeldRun]:
        """Hold every run that was not over: a person resumes or stops it, for what it has done since is not known.

        No phone is taken, and no host or clock is there: they are those of that time.
        """
        async with self._db.write(durable=True) as connection:
            await connection.execute(sa.update(leases).values(owner="", run_id="", heartbeat_at=None))
            await connection.execute(sa.update(hosts).values(state="ended"))
            await connection.execute(sa.delete(clocks))
            found = sa.select(runs.c.id, runs.c.task, runs.c.serial, runs.c.status).where(runs.c.status.in_(ACTIVE))
            going = [HeldRun(*row) for row in await connection.execute(found.order_by(runs.c.id))]
        held = Runs(self._db)
        for run in going:
            await held.request_hold(run.id)
        return going
