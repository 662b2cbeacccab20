"""How a leg is told to end: Stop, Hold, a lost phone, the end of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum


class Reason(StrEnum):
    STOP = "stop"  # a person asked for it: the run ends as stopped
    HOLD = "hold"  # a person parks the run: the next leg begins at Resume
    LEASE_LOST = "lease_lost"  # somebody else has the phone: hands off, at once
    SHUTDOWN = "shutdown"  # this process ends: the next leg goes on elsewhere


class StopSignal:
    """Handed to the work of a leg. A stop cancels the task that works, but never inside ``shielded()``.

    ``requested`` and ``hold_requested`` may be looked at between steps. At Hold the leg ends where nothing of a step is
    lost: in ``may_park()`` (a model is asked) at once, else at the next ``park_here()`` (before an act).
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.hold_requested = False
        self.closing = asyncio.Event()  # the process ends: no person's answer is waited for here any more
        self._task: asyncio.Task[object] | None = None
        self._shields = 0
        self._idle = 0  # how many ``may_park()`` the work is in
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
        """Park the run: at once where it may, else where it comes to such a place."""
        self.hold_requested = True
        self._changed.set()
        if self._idle:
            self.park_here()

    def park_here(self) -> None:
        """A place where Hold may take effect: the work is cancelled where it was asked for, and nothing shields it."""
        if self.hold_requested and not self._shields:
            self.request(Reason.HOLD)

    @contextmanager
    def may_park(self) -> Iterator[None]:
        """Inside nothing is done that Hold would cut in two: it takes effect at once."""
        self.park_here()
        self._idle += 1
        try:
            yield
        finally:
            self._idle -= 1

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
