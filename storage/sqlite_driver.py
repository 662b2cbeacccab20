"""aiosqlite, with fewer trips to the thread of a connection.

aiosqlite does each call in its connection's thread, and SQLAlchemy makes four calls for a statement: one each for the
cursor, the statement, its rows and the cursor's end. A trip costs more than what SQLite does in it, and under load it
waits for Python's lock twice. Here a statement is one trip, and ``BEGIN`` goes with the first one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self, TypeVar, cast

import aiosqlite

T = TypeVar("T")

ROWS_AHEAD = 500  # rows that come with the statement; whoever reads a whole table in pieces asks for the rest


class Connection(aiosqlite.Connection):
    """A connection for SQLAlchemy's asyncio adapter, for ``async_creator``.

    connect: opens the file. Transactions are begun explicitly, because ``sqlite3`` guesses.
    pragmas: settings of this connection, ``name=value``.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], pragmas: Sequence[str]) -> None:
        def prepared() -> sqlite3.Connection:
            connection = connect()
            connection.isolation_level = None
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
            return connection

        super().__init__(prepared, iter_chunk_size=ROWS_AHEAD)
        self._thread.daemon = True  # as SQLAlchemy does it: a forgotten connection does not keep the process alive
        self._begins = False
        self._is_at_work = False  # still so after a call whose task was cancelled

    def begin_later(self) -> None:
        """Begin a transaction together with its first statement. SQLite itself takes no lock before that."""
        self._begins = True

    def cursor(self) -> Cursor:  # type: ignore[override]  # SQLAlchemy awaits its __aenter__
        return Cursor(self)

    async def commit(self) -> None:
        self._begins = False
        if self.in_transaction:
            await super().commit()

    async def rollback(self) -> None:
        self._begins = False
        if self._is_at_work or self.in_transaction:
            await super().rollback()
            self._is_at_work = False

    async def work(self, method: str, *arguments: Any) -> tuple[sqlite3.Cursor, list[Any]]:
        """Call a method of a new cursor, and return the cursor and its first rows."""
        begins, self._begins = self._begins, False

        def work() -> tuple[sqlite3.Cursor, list[Any]]:
            cursor = self._conn.cursor()
            if begins:
                cursor.execute("BEGIN")
            getattr(cursor, method)(*arguments)
            return cursor, cursor.fetchmany(ROWS_AHEAD) if cursor.description else []

        return await self.call(work)

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
