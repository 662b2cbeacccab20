"""Work on the database that is not cut off in the middle.

A statement whose task is cancelled can leave its transaction open, and with it SQLite's one write lock: seen in one of
150 cancellations at random moments. So what a repository does is done to its end, and the cancellation comes after it.

And where PostgreSQL chose it to end a deadlock it is done once more: of that transaction nothing was written.
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
Method = TypeVar("Method", bound=Callable[..., Any])
_MAY_BE_CUT: set[Callable[..., Any]] = set()


async def run_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` to its end, also where this task is cancelled meanwhile; the cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError:
                continue  # once is enough; the first is raised below
        if not task.cancelled():
            task.exception()  # looked at, so that it is not reported as forgotten
        raise


def may_be_cut(method: Method) -> Method:
    """One that waits for what others do, and writes nothing itself."""
    _MAY_BE_CUT.add(method)
    return method


def shielded(repository: type[Repository]) -> type[Repository]:
    """Every public coroutine method of a repository is done whole, but for those that ``may_be_cut``.

    One that makes several transactions leaves those that are committed; begun anew, it goes on with the rest.
    """
    for name, method in list(vars(repository).items()):
        if inspect.iscoroutinefunction(method) and not name.startswith("_") and method not in _MAY_BE_CUT:
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
