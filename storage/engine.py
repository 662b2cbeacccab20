"""The database: one object for SQLite and PostgreSQL.

``read()`` and ``write()`` give a connection in a transaction, which is committed at the end of the block and rolled
back by an exception. On SQLite a writing transaction takes the write lock at once (``BEGIN IMMEDIATE``): one that reads
first and writes later would otherwise fail at once beside another writer, whatever the ``busy_timeout``.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import sqlalchemy as sa
import structlog
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.url import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from agent_core.errors import RateLimited
from storage.failures import DatabaseAway, reached
from storage.migrations import revision_of, upgrade
from storage.signals import Signal, Signals

if TYPE_CHECKING:
    from sqlalchemy.pool import QueuePool

    from storage.sqlite_driver import Connection

log = structlog.get_logger(__name__)

Clock = Callable[[], datetime]

BUSY_SECONDS = 30
MISSED_SECONDS = 5.0  # the longest wait for a signal before the data is read again anyway
AWAY_SECONDS = 0.5  # between two tries to reach a database that is away
CLOSING_SECONDS = 10.0  # how long ``close`` waits for busy connections
LAST_SECONDS = 0.5  # how long SQLite waits for another writer if no time is left; attempts are put back then
SHRINK_PAGES = 500  # 2 MB: nobody else can write for some milliseconds
MIGRATION_LOCK = 7_406_101  # PostgreSQL advisory lock: only one process migrates
EVENT_LOCK = 7_406_102  # PostgreSQL advisory lock: events get their numbers in the order of the commits


def utc_now() -> datetime:
    return datetime.now(UTC)


def database_url(url: str | URL) -> URL:
    """Return ``sqlite:///file.db`` and ``postgresql://…`` with our drivers. Raises ValueError for anything else."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ValueError(str(error)) from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise ValueError("The SQLite database must be a file: a database in memory is lost with its connection.")
        return parsed.set(drivername="sqlite+aiosqlite")
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+asyncpg")
    raise ValueError(f"The database must be sqlite:///FILE or postgresql://…, not {backend}.")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _begin_sqlite(connection: sa.Connection) -> None:
    """Begin a transaction: one that reads with its first statement, one that writes at once."""
    begin = connection.get_execution_options().get("sqlite_begin")
    if begin is None:
        cast("Connection", connection.connection.driver_connection).begin_later()
    else:
        connection.exec_driver_sql(begin)


@dataclass(slots=True)
class _View:
    """The transaction of a ``Database.one_view``."""

    database: Database
    connection: AsyncConnection
    is_over: bool = False


_VIEW: ContextVar[_View | None] = ContextVar("view", default=None)


GUESTS = 8  # reading at once, of the POOL + OVERFLOW connections
GUEST_SECONDS = 10.0  # that a guest waits for its turn
POOL, OVERFLOW = 5, 10
_GUEST: ContextVar[_Guest | None] = ContextVar("guest", default=None)


@dataclass
class _Guest:
    """A request from outside. ``is_over``: for a task that was begun in it and goes on."""

    is_over: bool = False


@contextmanager
def as_guest() -> Iterator[None]:
    """Read as a guest in the block: any number of requests from outside leave connections for the runs.

    A guest whose turn does not come in ``GUEST_SECONDS`` gets RateLimited.
    """
    guest = _Guest()
    token = _GUEST.set(guest)
    try:
        yield
    finally:
        guest.is_over = True
        _GUEST.reset(token)


class Database:
    """The database of the product, on SQLite or PostgreSQL.

    url: as in the settings.
    clock: gives the time of every row (UTC, aware).
    busy_seconds: how long SQLite waits for another process that writes.
    """

    def __init__(
        self, url: str | URL, *, clock: Clock = utc_now, pool_size: int = POOL, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.url = database_url(url)
        self.clock = clock
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and self.url.database is not None:
            Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        self._opened: WeakSet[Connection] = WeakSet()
        self._busy_seconds = busy_seconds
        self.engine = self._engine(pool_size, OVERFLOW, reads=True)
        # SQLite has one writer at a time anyway: see ``_version``.
        self._writer = self._engine(1, 0, reads=False) if self.is_sqlite else self.engine
        self.patience = 0.0  # how many seconds to wait for a database that is away before raising
        self._ends_at: float | None = None  # in the loop's time: nothing waits for the database after this
        self.away_since: datetime | None = None  # since when no transaction can begin
        self._reads_only = False  # whether only writes have failed since then
        self._signals = Signals(self._version)
        self.reads = self.writes = 0  # transactions begun
        # Writers of one process wait here instead of polling for SQLite's lock.
        self._writing = asyncio.Lock()
        self._guests = asyncio.Semaphore(GUESTS)

    def _engine(self, pool_size: int, max_overflow: int, *, reads: bool) -> AsyncEngine:
        engine = create_async_engine(
            self.url,
            json_serializer=_dump,
            pool_size=pool_size,
            max_overflow=max_overflow,
            pool_pre_ping=not self.is_sqlite,
            hide_parameters=True,  # errors reach cards and logs: keep the words of customers and people out of them
            **({"async_creator": partial(self._connect, reads=reads)} if self.is_sqlite else {}),
        )
        if self.is_sqlite:
            sa.event.listen(engine.sync_engine, "begin", _begin_sqlite)
        return engine

    async def _connect(self, *, reads: bool) -> Connection:
        """Connect to SQLite."""
        from storage.sqlite_driver import Connection  # aiosqlite is loaded when a file is opened

        arguments, options = self.url.get_dialect()().create_connect_args(self.url)
        connect = partial(sqlite3.connect, *arguments, **options)
        connection = Connection(connect, busy_seconds=self._busy_seconds, reads=reads)
        self._opened.add(connection)
        await connection
        return connection

    @property
    def engines(self) -> tuple[AsyncEngine, ...]:
        """The engines behind all connections."""
        return (self.engine,) if self._writer is self.engine else (self.engine, self._writer)

    def now(self) -> datetime:
        return self.clock()

    def signal(self, subject: str) -> Signal:
        """Return the signal of a subject: ``events``, ``questions``, ``runs``, ``schedules``, ``phone_requests``.

        Code that changes something in this process notifies it. A change by another process is seen within
        ``storage.signals.PULSE_SECONDS`` while anybody waits, whatever its subject.
        """
        return self._signals.of(subject)

    async def _version(self) -> int | str:
        """Return a value that changes when another process has changed something.

        SQLite counts for each connection what others have committed
        (https://www.sqlite.org/pragma.html#pragma_data_version). All our writes go through one connection, so none of
        them counts. PostgreSQL tells which transactions are over, including ours; a needless signal costs one query.
        """
        if self.is_sqlite:
            async with self._writing, self._writer.connect() as connection:
                return await (await _driver(connection)).number("data_version")
        async with self.read() as connection:
            return str((await connection.execute(sa.text("SELECT pg_current_snapshot()::text"))).scalar_one())

    def end_within(self, seconds: float) -> None:
        """Limit every wait for a database that is away or locked to ``seconds`` from now, because the process ends.

        The earliest end counts. A wait for SQLite's lock that has already begun keeps its ``busy_seconds``.
        """
        ends_at = asyncio.get_running_loop().time() + seconds
        self._ends_at = ends_at if self._ends_at is None else min(self._ends_at, ends_at)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        shared = self._view()
        if shared is not None:
            yield shared.connection
            return
        self.reads += 1
        guest = _GUEST.get()
        is_guest = guest is not None and not guest.is_over
        async with self._turn() if is_guest else nullcontext(), self._transaction() as connection:
            yield connection

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until fewer than ``GUESTS`` guests read."""
        try:
            async with asyncio.timeout(GUEST_SECONDS):
                await self._guests.acquire()
        except TimeoutError:
            raise RateLimited(
                "There are more requests than can be answered.",
                advice="Ask again later, and less often.",
                key="overloaded",
                seconds=round(GUEST_SECONDS),
            ) from None
        try:
            yield
        finally:
            self._guests.release()

    @asynccontextmanager
    async def one_view(self) -> AsyncIterator[None]:
        """Read everything in the block in one transaction, whichever methods read it, one after the other.

        On SQLite all of it is the state of one moment. For views that are made of many tables. Raises RuntimeError if
        something is written in the block, because it would not be seen in it.
        """
        if self._view() is not None:
            yield
            return
        async with self.read() as connection:
            view = _View(self, connection)
            token = _VIEW.set(view)
            try:
                yield
            finally:
                view.is_over = True  # for a task that was begun in the block and goes on
                _VIEW.reset(token)

    def _view(self) -> _View | None:
        view = _VIEW.get()
        return view if view is not None and view.database is self and not view.is_over else None

    @asynccontextmanager
    async def write(self, *, durable: bool = False) -> AsyncIterator[AsyncConnection]:
        """Begin a write transaction.

        ``durable``: it survives a loss of power once the block has ended (``synchronous=FULL``).
        """
        if self._view() is not None:
            raise RuntimeError("Nothing can be written inside one_view().")
        self.writes += 1
        full = durable and self.is_sqlite
        async with (
            self._writing if self.is_sqlite else nullcontext(),
            self._transaction(write=True, full=full) as connection,
        ):
            yield connection

    @asynccontextmanager
    async def _transaction(self, *, write: bool = False, full: bool = False) -> AsyncIterator[AsyncConnection]:
        """Give a connection in a transaction. If it cannot begin, try again for ``patience`` seconds.

        Nothing has been done before it begins, so nothing is done twice.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self.patience
        while True:
            async with AsyncExitStack() as stack:
                try:
                    with reached(OSError):
                        connection = await self._begin(stack, write=write, full=full)
                except (DBAPIError, DatabaseAway) as error:
                    self._is_away(error, write=write)
                    if loop.time() + AWAY_SECONDS > (until if self._ends_at is None else min(until, self._ends_at)):
                        raise
                else:
                    self._is_back(write=write)
                    with reached(ConnectionError, TimeoutError):
                        yield connection
                        await stack.aclose()  # commits
                    return
            await asyncio.sleep(AWAY_SECONDS)

    async def _begin(self, stack: AsyncExitStack, *, write: bool, full: bool) -> AsyncConnection:
        engine = self._writer if write else self.engine
        connection = await stack.enter_async_context(engine.connect())
        if write:
            await connection.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        if self._ends_at is not None and self.is_sqlite:
            left = max(self._ends_at - asyncio.get_running_loop().time(), LAST_SECONDS)
            (await _driver(connection)).busy_seconds = min(left, self._busy_seconds)
        if full:
            await self._pragma(connection, "synchronous=FULL")
            stack.push_async_callback(self._pragma, connection, "synchronous=NORMAL")
        await stack.enter_async_context(connection.begin())
        return connection

    def _is_away(self, error: Exception, *, write: bool) -> None:
        self._reads_only = write and (self._reads_only or self.away_since is None)
        if self.away_since is None:
            self.away_since = self.now()
            log.warning("database_away", error=str(getattr(error, "orig", None) or error))

    def _is_back(self, *, write: bool) -> None:
        """Clear ``away_since``, unless only writing failed: SQLite can be read while another process holds its write
        lock.
        """
        if self.away_since is not None and (write or not self._reads_only):
            log.warning("database_back", seconds=round((self.now() - self.away_since).total_seconds(), 1))
            self.away_since = None

    @staticmethod
    async def _pragma(connection: AsyncConnection, setting: str) -> None:
        """Execute a pragma on the driver's connection, because settings have no effect inside a transaction."""
        await (await _driver(connection)).work("execute", f"PRAGMA {setting}")

    def insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """Return an insert with ``on_conflict_do_nothing`` and ``on_conflict_do_update`` for this engine."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def upsert(self, table: sa.Table, values: Mapping[str, Any], **key: object) -> sqlite.Insert | postgresql.Insert:
        """Return an insert of a row with this key and these values; if the key is there, its row gets the values.

        key: all columns of a unique index. values: at least one.
        """
        new = self.insert(table).values(**key, **values)
        return new.on_conflict_do_update(index_elements=list(key), set_=dict(values))

    async def migrate(self) -> None:
        """Make the tables, or bring them to this release. One of several processes works, the others wait.

        Raises OtherRelease, and changes nothing, if the tables are of a release that this one does not know.
        """
        if self.is_sqlite:
            await self._use_wal()
        async with self.write() as connection:
            if not self.is_sqlite:
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            await connection.run_sync(upgrade, self.url.render_as_string())

    async def revision(self) -> str:
        """Return the revision of the tables, "" if there are none. Raises OtherRelease as ``migrate`` does."""
        async with self.read() as connection:
            return await connection.run_sync(revision_of, self.url.render_as_string())

    async def _use_wal(self) -> None:
        """Switch the file to WAL, which stays set. Two processes that do so at once do not wait for each other."""
        async with asyncio.timeout(BUSY_SECONDS):
            while True:
                try:
                    async with self.engine.connect() as connection:
                        # This has an effect only before the first table; it lets deleted space be given back.
                        driver = await _driver(connection)
                        await driver.in_thread("PRAGMA auto_vacuum=INCREMENTAL")
                        await driver.in_thread("PRAGMA journal_mode=WAL")
                    return
                except sqlite3.OperationalError as error:
                    if "locked" not in str(error):
                        raise
                    await asyncio.sleep(0.01)

    async def shrink(self, pages: int = SHRINK_PAGES) -> int:
        """Give up to ``pages`` free pages back to the disk.

        Return how many; 0 on PostgreSQL, which does it by itself.
        """
        if not self.is_sqlite:
            return 0
        async with self._writing, self._writer.connect() as connection:
            return await (await _driver(connection)).shrink(pages)

    async def close(self) -> None:
        """Close all connections. The database may be used again afterwards.

        Each connection to SQLite works in a thread. If a task is cancelled during a statement, or while a connection is
        made, the pool forgets the connection and its thread stays: the process would never end, or the thread would
        fail because the loop is closed before it. So the threads are ended here.
        """
        async with self._signals.closed():
            pools = [cast("QueuePool", engine.pool) for engine in self.engines]
            for engine in self.engines:
                await engine.dispose()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    while any(pool.checkedout() for pool in pools):  # noqa: ASYNC110 - the pool notifies nobody
                        await asyncio.sleep(0.01)
            ended = [connection.stop() for connection in self._opened if connection._running]
            if ended:
                await asyncio.wait(filter(None, ended), timeout=CLOSING_SECONDS)


async def _driver(connection: AsyncConnection) -> Connection:
    """Return the connection of our driver for SQLite."""
    return cast("Connection", (await connection.get_raw_connection()).driver_connection)
