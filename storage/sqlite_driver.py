"""aiosqlite, with fewer trips to the thread of a connection.

aiosqlite does each call in its connection's thread, and SQLAlchemy makes four calls for a statement: one each for the
cursor, the statement, its rows and the cursor's end. A trip there costs more than what SQLite does in it: it wakes a
sleeping core, twice, and under load it waits for Python's lock.

Here most statements make no trip: they are done at once, in the event loop's thread. The others make one. They are done
in the connection's thread if they

- are queries that take SQLite longer than ``STEPS_AT_ONCE``, or have to wait for another process: they are tried at
  once, and then done again.
- may change many rows, or the tables themselves.
- end a transaction that has written, because they may wait for the disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self, TypeVar, cast

import aiosqlite

T = TypeVar("T")

ROWS_AHEAD = 500  # rows that come with the statement; whoever reads a whole table in pieces asks for the rest
STEPS_AT_ONCE = 20_000  # of SQLite's virtual machine, about 2 ms
# Never interrupted, because SQLite would undo all before. Those with a query inside may change many rows.
_CHANGES = ("INSERT", "UPDATE", "BEGIN", "PRAGMA synchronous")
_TAKES_LONGER = {sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class Connection(aiosqlite.Connection):
    """A connection for SQLAlchemy's asyncio adapter, for ``async_creator``.

    connect: opens the file. Transactions are begun explicitly, because ``sqlite3`` guesses.
    busy_seconds: how long a statement waits for another process that writes.
    reads: True for a connection that changes nothing, so that its transactions end at once, too.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, busy_seconds: float, reads: bool) -> None:
        self.busy_seconds = busy_seconds
        self._reads = reads
        self._may_interrupt = False  # whether a statement that takes longer than ``STEPS_AT_ONCE`` is to end
        self._begins = False
        self._is_at_work = False  # still so after a call whose task was cancelled

        def prepared() -> sqlite3.Connection:
            connection = connect()
            try:
                connection.isolation_level = None
                for pragma in (_busy(busy_seconds), "PRAGMA foreign_keys=ON", "PRAGMA synchronous=NORMAL", _busy(0)):
                    connection.execute(pragma)
                connection.set_progress_handler(lambda: self._may_interrupt, STEPS_AT_ONCE)
            except sqlite3.Error:
                connection.close()
                raise
            return connection

        super().__init__(prepared, iter_chunk_size=ROWS_AHEAD)
        self._thread.daemon = True  # as SQLAlchemy does it: a forgotten connection does not keep the process alive

    async def _connect(self) -> Self:
        """Open the file. If that fails or is cancelled, return when the thread has ended: its last word is to this
        event loop.
        """
        try:
            await super()._connect()
        except BaseException:
            await asyncio.to_thread(self._thread.join)
            raise
        return self

    def begin_later(self) -> None:
        """Begin a transaction together with its first statement. SQLite itself takes no lock before that."""
        self._begins = True

    def cursor(self) -> Cursor:  # type: ignore[override]  # SQLAlchemy awaits its __aenter__
        return Cursor(self)

    async def commit(self) -> None:
        self._begins = False
        if not self.in_transaction:
            return
        if self._reads and not self._is_at_work:
            self._conn.commit()
        else:
            await self.call(self._commit)

    async def rollback(self) -> None:
        self._begins = False
        if self._is_at_work or self.in_transaction:
            await super().rollback()
            self._is_at_work = False

    async def work(self, method: str, *arguments: Any) -> tuple[sqlite3.Cursor, list[Any]]:
        """Call a method of a new cursor, and return the cursor and its first rows."""
        is_query = self._reads or (method == "execute" and arguments[0].startswith("SELECT"))
        if (is_query or _is_small_change(method, *arguments)) and not self._is_at_work:
            self._may_interrupt = is_query
            try:
                return self._work(method, *arguments)
            except sqlite3.OperationalError as error:
                if (
                    getattr(error, "sqlite_errorcode", 0) & 0xFF not in _TAKES_LONGER
                ):  # an error of the module has no code
                    raise
            finally:
                self._may_interrupt = False
        return await self.call(partial(self._patiently, method, *arguments))

    async def in_thread(self, sql: str) -> list[Any]:
        """Do a statement in the thread, to its end, and return its rows."""
        return await self.call(partial(self._to_its_end, sql))

    async def number(self, pragma: str) -> int:
        """Return the value of a pragma that is a number."""
        ((value,),) = await self.in_thread(f"PRAGMA {pragma}")
        return int(value)

    async def shrink(self, pages: int) -> int:
        """Give up to ``pages`` free pages back to the disk, and return how many; if there is none, empty the WAL."""
        free = await self.number("freelist_count")
        if free:
            await self.in_thread(f"PRAGMA incremental_vacuum({pages})")
        given = free - await self.number("freelist_count")
        if not given:
            await self.in_thread("PRAGMA wal_checkpoint(TRUNCATE)")
        return given

    def _to_its_end(self, sql: str) -> list[Any]:
        with self._patience():
            return self._conn.execute(sql).fetchall()

    def _commit(self) -> None:
        with self._patience():
            self._conn.commit()

    def _patiently(self, method: str, *arguments: Any) -> tuple[sqlite3.Cursor, list[Any]]:
        with self._patience():
            return self._work(method, *arguments)

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """Wait inside the block for another process that writes."""
        self._conn.execute(_busy(self.busy_seconds))
        try:
            yield
        finally:
            self._conn.execute(_busy(0))

    def _work(self, method: str, *arguments: Any) -> tuple[sqlite3.Cursor, list[Any]]:
        cursor = self._conn.cursor()
        if self._begins:
            cursor.execute("BEGIN")
            self._begins = False
        getattr(cursor, method)(*arguments)
        return cursor, cursor.fetchmany(ROWS_AHEAD) if cursor.description else []

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread."""
        self._is_at_work = True
        try:
            result = await self._execute(function)  # type: ignore[no-untyped-call]
        except Exception:
            self._is_at_work = False
            raise
        self._is_at_work = False
        return cast("T", result)


def _is_small_change(method: str, sql: str, *_: Any) -> bool:
    return method == "execute" and sql.startswith(_CHANGES) and "SELECT" not in sql


def _busy(seconds: float) -> str:
    return f"PRAGMA busy_timeout={round(seconds * 1000)}"


class Cursor:
    """What SQLAlchemy's asyncio adapter needs of a cursor (PEP 249, with coroutines)."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor: sqlite3.Cursor | None = None  # as long as it may have more rows
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Any = ()) -> Self:
        return await self._done("execute", sql, parameters)

    async def executemany(self, sql: str, parameters: Any) -> Self:
        return await self._done("executemany", sql, parameters)

    async def _done(self, method: str, *arguments: Any) -> Self:
        await self.close()
        cursor, self._rows = await self._connection.work(method, *arguments)
        self.description, self.rowcount, self.lastrowid = cursor.description, cursor.rowcount, cursor.lastrowid
        self._cursor = cursor if len(self._rows) == ROWS_AHEAD else None
        return self

    async def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        if self._cursor is not None:
            rows += await self._connection.call(self._cursor.fetchall)
            self._cursor = None
        return rows

    async def fetchmany(self, size: int | None = None) -> list[Any]:
        size = size or self.arraysize
        if not self._rows and self._cursor is not None:
            self._rows = await self._connection.call(partial(self._cursor.fetchmany, max(size, ROWS_AHEAD)))
            self._cursor = self._cursor if self._rows else None
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    async def fetchone(self) -> Any:
        return next(iter(await self.fetchmany(1)), None)

    async def close(self) -> None:
        self._rows = []
        if self._cursor is not None:
            cursor, self._cursor = self._cursor, None
            await self._connection.call(cursor.close)
