"""What all repositories share: how they read rows, and that a cancellation does not cut their work.

A statement whose task is cancelled can leave its transaction open, and with it SQLite's only write lock: seen in one of
150 cancellations at random moments. So a repository's method runs to completion, and the cancellation is raised after
it.

If PostgreSQL rolled it back to end a deadlock, it runs once more: nothing of that transaction was written.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from storage.engine import Database
from storage.failures import lost_to_another

T = TypeVar("T")
Row = TypeVar("Row")
Class = TypeVar("Class")


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


def shielded(repository: type[Class]) -> type[Class]:
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


class Repository:
    """A repository of tables. Its public coroutine methods run to completion, see ``shielded``."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def __init_subclass__(cls) -> None:
        shielded(cls)

    def _notify(self, *subjects: str) -> None:
        """Wake who waits for changes of these subjects, see ``Database.signal``."""
        for subject in subjects:
            self._db.signal(subject).notify()

    async def _only(
        self, made: Callable[..., Row], statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> Row | None:
        """Read the only row that a statement finds, and return what ``made`` makes of its columns; None if none.

        Raises MultipleResultsFound if there are several.
        """
        async with self._db.read() as connection:
            row = (await connection.execute(statement, values)).mappings().one_or_none()
        return None if row is None else made(**row)

    async def _rows(
        self, made: Callable[..., Row], statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> list[Row]:
        """Read rows, and return what ``made`` makes of the columns of each."""
        async with self._db.read() as connection:
            return [made(**row) for row in (await connection.execute(statement, values)).mappings()]

    async def _read(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> Sequence[sa.Row[*tuple[Any, ...]]]:
        """Read rows, and return them as they are."""
        async with self._db.read() as connection:
            return (await connection.execute(statement, values)).all()

    async def _value(self, statement: sa.Select[T], values: Mapping[str, Any] | None = None) -> T | None:
        """Read the only value that a statement finds, and return it; None if none. Raises as ``_only`` does."""
        async with self._db.read() as connection:
            return (await connection.execute(statement, values)).scalar_one_or_none()

    async def _execute(self, change: sa.Executable, *, durable: bool = False) -> int:
        """Make a change in a transaction of its own. Return how many rows it has changed.

        ``change`` is built before the transaction begins, which may wait; if the time of writing counts, use
        ``Database.write``. durable: see there.
        """
        async with self._db.write(durable=durable) as connection:
            return (await connection.execute(change)).rowcount

    async def _changed(self, made: Callable[..., Row], change: sa.Executable, *, durable: bool) -> Row | None:
        """Write one row, and return what ``made`` makes of the columns that ``change`` returns; None if none."""
        async with self._db.write(durable=durable) as connection:
            row = (await connection.execute(change)).mappings().one_or_none()
        return None if row is None else made(**row)


def page_of(
    log: sa.Select[Any], number: sa.ColumnElement[int], before: int | None, after: int | None, limit: int
) -> sa.Select[Any]:
    """Return a page of a log, the newest first: all of it, or what is older than ``before``.

    after: the ``limit`` rows that follow this number instead, the oldest first.
    """
    page = log.limit(limit)
    if before is not None:
        page = page.where(number < before)
    return page.order_by(number.desc()) if after is None else page.where(number > after).order_by(number)
