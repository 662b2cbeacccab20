"""Small pieces of work that are not cut off in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Do ``work`` to its end, also where this task is cancelled meanwhile; the cancellation comes after it.

    For writes to the store: one that is cut off can leave its transaction, and with it SQLite's lock, open.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that it is not reported as forgotten
        raise
