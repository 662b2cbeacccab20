"""A queue in memory, for tests of what stands around the durable one."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from scheduler.runs.queue import Work

AGAIN_SECONDS = 0.05


class LocalQueue:
    """Attempts as tasks of this process. It remembers nothing: after a restart the dispatcher finds what is due."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._seen: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> bool:
        return self._work is not None

    async def start(self, work: Work) -> None:
        self._work = work

    async def enqueue(self, attempt_id: str) -> None:
        if self._work is None:
            raise RuntimeError("The queue is not running.")
        if attempt_id in self._seen:
            return
        self._seen.add(attempt_id)
        task = asyncio.create_task(self._do(attempt_id), name=attempt_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        self._work = None
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _do(self, attempt_id: str) -> None:
        """Call the work again if it raises, as the durable queue does, but sooner."""
        while self._work is not None:
            with suppress(Exception):
                await self._work(attempt_id)
                break
            await asyncio.sleep(AGAIN_SECONDS)
