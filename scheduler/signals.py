"""How a leg is told to end: Stop, Hold, a lost phone, the end of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum


class Reason(StrEnum):
    STOP = "stop"  # a person asked for it: the run ends as stopped
    LEASE_LOST = "lease_lost"  # somebody else has the phone: hands off, at once
    SHUTDOWN = "shutdown"  # this process ends: the next leg goes on elsewhere


class StopSignal:
    """Handed to the work of a leg. A stop cancels the task that works, but never inside ``shielded()``.

    ``requested`` and ``hold_requested`` may be looked at between steps; at Hold the work ends its leg as ``held`` where
    it waits for a person, or after the step it is in.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.hold_requested = False
        self._task: asyncio.Task[object] | None = None
        self._shields = 0
        self._changed = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self.reason is not None

    @property
    def is_shielded(self) -> bool:
        return self._shields > 0

    async def wait(self) -> None:
        """Until a stop or Hold is asked for."""
        await self._changed.wait()

    def attach(self, task: asyncio.Task[object]) -> None:
        """The task to cancel."""
        self._task = task

    def request(self, reason: Reason) -> None:
        """End the leg. The first reason counts; the task is cancelled now, or when it leaves its shield."""
        if self.reason is not None:
            return
        self.reason = reason
        self._changed.set()
        if not self._shields:
            self.cancel()

    def request_hold(self) -> None:
        self.hold_requested = True
        self._changed.set()

    def cancel(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()

    @asynccontextmanager
    async def shielded(self) -> AsyncIterator[None]:
        """What must not be cut in two: from Send until its outcome was seen. A stop that came takes effect at its end.

        Everything inside has a time limit of its own, or Stop would wait for it.
        """
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self.requested and not self._shields:
                self.cancel()
        if self.requested and not self._shields:
            await asyncio.sleep(0)  # the cancellation arrives here, not in the middle of what comes next
