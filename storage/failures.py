"""Failures of the database: which of them may pass, and how work on it survives a deadlock and a cancellation.

A statement whose task is cancelled can leave its transaction open, and with it SQLite's only write lock: seen in one of
150 cancellations at random moments. So a repository's method runs to completion, and the cancellation is raised after
it.

If PostgreSQL rolled it back to end a deadlock, it runs once more: nothing of that transaction was written.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError

T = TypeVar("T")
Repository = TypeVar("Repository")

# Primary result codes of SQLite, and classes of PostgreSQL's SQLSTATE, of errors that may pass.
_SQLITE_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
_POSTGRES_AWAY = ("08", "53", "57P", "58")  # connection, resources, shutting down or starting, its own disk


class DatabaseAway(ConnectionError):
    """The database cannot be reached, or the connection to it broke."""


def is_away(error: BaseException | None) -> bool:
    """Tell whether the database failed now but may work later: it is gone, locked, or its disk is full.

    As a rule nothing was written then. The one exception is a connection that was lost during the commit. Errors of
    other files, phones and services do not count, and neither does a wrong statement.
    """
    if isinstance(error, DatabaseAway):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or _has_away_code(error.orig):
        return True
    return isinstance(error, InterfaceError) and not isinstance(error.orig, sqlite3.Error)


def _has_away_code(error: BaseException | None) -> bool:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _SQLITE_AWAY  # the higher bits are details of the same code
    return str(getattr(error, "sqlstate", None) or "").startswith(_POSTGRES_AWAY)


def lost_to_another(error: BaseException) -> bool:
    """Tell whether PostgreSQL rolled back a transaction in favour of another (a deadlock).

    It may be retried at once.
    """
    return isinstance(error, DBAPIError) and getattr(error.orig, "sqlstate", None) in {"40P01", "40001"}


@contextmanager
def reached(*errors: type[OSError]) -> Iterator[None]:
    """Raise DatabaseAway for a driver's error that means it did not reach its database, or lost it."""
    try:
        yield
    except DatabaseAway:
        raise
    except Exception as error:
        if isinstance(error, errors) or (not isinstance(error, DBAPIError) and _has_away_code(error)):
            raise DatabaseAway(str(error) or type(error).__name__) from error
        raise


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to completion, even if this task is cancelled meanwhile. The cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue  # one is enough; it is raised below
        if not task.cancelled():
            task.exception()  # read, so that it is not reported as never retrieved
        raise


def shielded(repository: type[Repository]) -> type[Repository]:
    """Run every public coroutine method of a repository to completion.

    If a method makes several transactions, the committed ones stay; a repeated call continues with the rest.
    """
    for name, method in list(vars(repository).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_"):
            setattr(repository, name, _whole_method(method))
    return repository


def _whole_method(method: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @functools.wraps(method)
    async def done_whole(*args: Any, **values: Any) -> Any:
        return await run_shielded(twice(*args, **values))

    async def twice(*args: Any, **values: Any) -> Any:
        try:
            return await method(*args, **values)
        except DBAPIError as error:
            if not lost_to_another(error):
                raise
        return await method(*args, **values)

    return done_whole
