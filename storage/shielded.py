"""Work on the database that a cancellation does not cut.

A statement whose task is cancelled can leave its transaction open, and with it SQLite's only write lock: seen in one of
150 cancellations at random moments. So a repository's method runs to completion, and the cancellation is raised after
it.

If PostgreSQL rolled it back to end a deadlock, it runs once more: nothing of that transaction was written.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from sqlalchemy.exc import DBAPIError

from storage.engine import lost_to_another

T = TypeVar("T")
Repository = TypeVar("Repository")


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
