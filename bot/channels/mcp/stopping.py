"""Stops a call that its client cancels as a run is stopped: a current delivery is not cut, and the phone is left clean.

The SDK cancels a handler again at each of its waits until it has ended, which would cut the tidying up, too. So a call
works in a separate task, which is cancelled once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from agent_core.errors import PhonedeskError
from scheduler.runs.stop import Reason, StopSignal

T = TypeVar("T")


class CallStopped(PhonedeskError):
    """The server cancelled the call, not its client."""


class Stopper:
    """The stop of one call: through its phone's stop signal while it has a phone, otherwise by cancelling it."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._signal: StopSignal | None = None
        self._requested = False

    def works_in(self, task: asyncio.Task[object]) -> None:
        self._task = task

    def heard_by(self, stop: StopSignal | None) -> None:
        """Send stop requests to this signal from now on; None: no longer."""
        self._signal = stop
        if stop is not None and self._requested:
            stop.request(Reason.STOP)

    def stop(self) -> None:
        self._requested = True
        if self._signal is not None and not self._signal.requested:
            self._signal.request(Reason.STOP)
        elif self._signal is None and self._task is not None:
            self._task.cancel()


class Calls:
    """The running calls, so that they can all be stopped at the end of the server."""

    def __init__(self) -> None:
        self._working: dict[asyncio.Task[object], Stopper] = {}
        self._sessions: Counter[str] = Counter()

    def at_work(self, session: str) -> bool:
        """Tell whether a call of this client session is running, whether or not its client waits for it."""
        return self._sessions[session] > 0

    async def apart(self, work: Callable[[Stopper], Awaitable[T]], session: str = "") -> T:
        """Do ``work`` in a separate task. A cancellation of the caller stops it, and is raised when it has ended.

        session: the client's whose call it is; "" for none.
        """

        async def whole() -> T:
            return await work(stopper)

        stopper = Stopper()
        task = asyncio.create_task(whole(), name="mcp-call")
        stopper.works_in(task)
        self._working[task] = stopper
        self._sessions[session] += 1
        task.add_done_callback(lambda done: self._ended(done, session))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and not (caller and caller.cancelling()):
                raise CallStopped("The call was stopped: the server ends.", advice="Call again later.") from None
            stopper.stop()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not report it: nobody waits for it
            raise

    def _ended(self, task: asyncio.Task[object], session: str) -> None:
        self._working.pop(task, None)
        self._sessions[session] -= 1
        if not self._sessions[session]:
            del self._sessions[session]

    async def stop(self) -> None:
        """Stop all calls, and wait until they have tidied up."""
        working = dict(self._working)
        for stopper in working.values():
            stopper.stop()
        if working:
            await asyncio.wait(working)
