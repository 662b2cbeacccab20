"""Failures of the database: which of them may pass, and which are tried again at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError

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
