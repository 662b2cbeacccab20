"""Repeat work in the background: one loop for every watch, with one rule for its errors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from storage.failures import is_away
from storage.signals import Waiter

log = structlog.get_logger(__name__)

Work = Callable[[], Awaitable[float | None]]


class Periodic:
    """A task that does ``work`` again and again, from ``start`` to ``stop``.

    If ``work`` raises, the error is logged, and it is tried again the next time: the database may be away for a moment.

    work: is called each time, and may return the seconds until the next time.
    seconds: until the next time, if ``work`` returns None.
    waiter: returns a waiter that ends the pause early. It is taken before the work begins, so that nothing is missed.
    first: seconds until the first time.
    """

    def __init__(
        self,
        name: str,
        work: Work,
        seconds: float,
        *,
        waiter: Callable[[], Waiter] | None = None,
        first: float = 0.0,
    ) -> None:
        self._name = name
        self._work = work
        self._seconds = seconds
        self._waiter = waiter
        self._first = first
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._forever(), name=self._name)

    async def stop(self) -> None:
        """Cancel the work, and wait until it has ended."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _forever(self) -> None:
        if self._first:
            await asyncio.sleep(self._first)
        while True:
            waiter = None if self._waiter is None else self._waiter()
            seconds = None
            try:
                seconds = await self._work()
            except Exception as error:
                event = f"{self._name.replace('-', '_')}_failed"
                log.warning(event, error=repr(error), exc_info=not is_away(error))
            seconds = self._seconds if seconds is None else seconds
            if waiter is None:
                await asyncio.sleep(seconds)
            else:
                await waiter.wait(seconds)
