"""The signals that end an attempt: Stop, Hold, a lost phone, the end of the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum

import structlog

from storage.engine import MISSED_SECONDS, Database
from storage.runs import Runs

log = structlog.get_logger(__name__)


class Reason(StrEnum):
    """The reason why an attempt must end."""

    STOP = "stop"  # a person asked for it: the run ends as stopped
    HOLD = "hold"  # a person parks the run: the next attempt begins at Resume
    LEASE_LOST = "lease_lost"  # another owner has the phone: touch it no more, at once
    SHUTDOWN = "shutdown"  # this process ends: the next attempt continues elsewhere


class StopSignal:
    """The signal that ends the work of an attempt. A stop cancels its task, but never inside ``shielded()``.

    ``requested`` and ``hold_requested`` may be read between steps. At Hold the attempt ends at a point where no part of
    a step is lost: at once inside ``may_park()`` (a model is being asked), else at the next ``park_here()`` (before an
    action).
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.hold_requested = False
        self.closing = asyncio.Event()  # set when the process ends: stop waiting for a person's answer
        self._task: asyncio.Task[object] | None = None
        self._shields = 0
        self._idle = 0  # how many ``may_park()`` blocks the work is in
        self._changed = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self.reason is not None

    @property
    def is_shielded(self) -> bool:
        return self._shields > 0

    async def wait(self) -> None:
        """Wait until a stop or Hold is requested."""
        await self._changed.wait()

    def attach(self, task: asyncio.Task[object]) -> None:
        """Set the task to cancel."""
        self._task = task

    def request(self, reason: Reason) -> None:
        """End the attempt. The first reason counts; the task is cancelled now, or when it leaves its shield."""
        if self.reason is not None:
            return
        self.reason = reason
        self._changed.set()
        if not self._shields:
            self.cancel()

    def request_hold(self) -> None:
        """Park the run: at once if it is inside ``may_park()``, else at the next ``park_here()``."""
        self.hold_requested = True
        self._changed.set()
        if self._idle:
            self.park_here()

    def park_here(self) -> None:
        """Let Hold take effect here: cancel the work if Hold was requested and nothing shields the work."""
        if self.hold_requested and not self._shields:
            self.request(Reason.HOLD)

    @contextmanager
    def may_park(self) -> Iterator[None]:
        """Let Hold take effect at once inside the block, because it interrupts nothing there."""
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
        """Shield work that must not be interrupted, such as Send until its outcome was seen.

        A stop takes effect at the end.

        Everything inside needs a time limit of its own, or Stop would wait for it.
        """
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            if self.requested and not self._shields:
                self.cancel()
        if self.requested and not self._shields:
            await asyncio.sleep(0)  # the cancellation arrives here, not in the middle of the next step


class StopRequests:
    """The poll for Stop and Hold requests, which are written into the run's row.

    One query serves all runs that are active here. It runs at each change of the runs, and every ``seconds`` in case a
    change was missed.
    """

    def __init__(self, db: Database, *, seconds: float = MISSED_SECONDS) -> None:
        self._db = db
        self._runs = Runs(db)
        self._seconds = seconds
        self._stops: dict[str, StopSignal] = {}  # by run
        self._watching: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def heard(self, run_id: str, stop: StopSignal) -> AsyncIterator[None]:
        """Pass requests for the run on to ``stop`` while inside the block, including earlier ones."""
        self._stops[run_id] = stop
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch(), name="stop-requests")
        else:  # its last query may have been before this run was added
            self._db.signal("runs").notify()
        try:
            yield
        finally:
            del self._stops[run_id]
            if not self._stops and self._watching is not None:
                watching, self._watching = self._watching, None
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self) -> None:
        while True:
            waiter = self._db.signal("runs").waiter()
            await self._look()
            await waiter.wait(self._seconds)

    async def _look(self) -> None:
        try:
            asked = await self._runs.asked(list(self._stops))
        except Exception as error:  # noqa: BLE001 - a database that is away for a moment ends no run
            log.warning("stop_requests_not_seen", runs=list(self._stops), error=repr(error))
            return
        for run_id, (stop, hold) in asked.items():
            signal = self._stops.get(run_id)
            if signal is not None and stop:
                signal.request(Reason.STOP)
            elif signal is not None and hold:
                signal.request_hold()
