"""Waiting for a state of the phone, and finishing work that must be finished."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from agent_core.retry import Sleep

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Time:
    """The source of time. ``clock`` returns seconds that never go back."""

    clock: Callable[[], float]
    sleep: Sleep

    async def until(self, check: Callable[[], Awaitable[T | None]], seconds: float) -> T | None:
        """Ask ``check`` until it gives something, ever more slowly (20 ms to 0.25 s); None after ``seconds``."""
        deadline = self.clock() + seconds
        pause = 0.02
        while True:
            found = await check()
            left = deadline - self.clock()
            if found is not None or left <= 0:
                return found
            await self.sleep(min(pause, left))
            pause = min(pause * 1.5, 0.25)


async def finish(work: Coroutine[object, object, T]) -> T:
    """Await ``work`` to its end even if the caller is cancelled meanwhile; the cancellation is raised afterwards.

    For cleaning up a phone. ``work`` must limit itself in time.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.cancelled() or task.exception()  # it was looked at: no complaint about a lost exception
        raise cancelled
    return task.result()
