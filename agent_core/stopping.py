"""Stop cancels a run, but never between Send and the look at its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

T = TypeVar("T")


class StopSignal:
    """Cancels the task that ``run`` runs; inside ``shielded`` the cancelling waits until the block has ended.

    Everything happens in one event loop.
    """

    def __init__(self) -> None:
        self.requested = False
        self._task: asyncio.Task[object] | None = None
        self._depth = 0

    async def run(self, work: Awaitable[T]) -> T:
        """Run ``work`` in a task of its own, which ``request`` cancels. A cancel of the caller is a request too."""
        task: asyncio.Task[T] = asyncio.ensure_future(_as_coroutine(work))
        self._task = task
        if self.requested:
            self._cancel()
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                if task.done():
                    break
                self.request()
        return task.result()

    def request(self) -> None:
        """Stop as soon as it may be."""
        self.requested = True
        if self._depth == 0:
            self._cancel()

    @asynccontextmanager
    async def shielded(self) -> AsyncIterator[None]:
        """What runs inside is not cut by ``request``; a request that came meanwhile takes effect behind it."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0 and self.requested:
                self._cancel()

    def _cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()


async def _as_coroutine(work: Awaitable[T]) -> T:
    return await work
