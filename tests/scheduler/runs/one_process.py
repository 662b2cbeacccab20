"""The queue, the worker and the dispatcher of one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.lease import HeldLease
from scheduler.runs.service import RunService
from scheduler.runs.worker import AttemptWork, Worker
from storage.engine import Database
from storage.hosts import Hosts
from storage.runs import RunRow
from tests.support.queue import LocalQueue

PHONE = "phone-1"
SOON = 10.0  # seconds after which a test that waits has failed


@dataclass
class Desk:
    """The parts of one process."""

    db: Database
    worker: Worker
    queue: LocalQueue
    dispatcher: Dispatcher
    service: RunService
    attempts: list[tuple[str, int]] = field(default_factory=list)

    async def run(self, run_id: str) -> RunRow:
        found = await self.service.get(run_id)
        assert found is not None
        return found

    async def until(self, run_id: str, *statuses: str) -> RunRow:
        async with asyncio.timeout(SOON):
            while True:
                waiter = self.db.signal("runs").waiter()
                run = await self.run(run_id)
                if run.status in statuses:
                    return run
                await waiter.wait(0.5)

    async def worker_idle(self) -> None:
        """Until every attempt has given its phone back."""
        async with asyncio.timeout(SOON):
            while self.worker.runs_at_work:
                await asyncio.sleep(0.005)


@asynccontextmanager
async def desk(
    db: Database, work: AttemptWork, *, owner: str = "host", phones: list[str] | None = None
) -> AsyncIterator[Desk]:
    attempts: list[tuple[str, int]] = []

    async def counted(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        attempts.append((run_id, attempt))
        return await work(run_id, attempt, lease)

    async def attached() -> list[str]:
        return phones or []

    await Hosts(db).register(owner, owner)
    worker = Worker(db, counted, owner=owner, watch_seconds=0.05)
    queue = LocalQueue()
    dispatcher = Dispatcher(
        db, queue.enqueue, worker=worker, phones=None if phones is None else attached, every_seconds=0.05
    )
    await queue.start(worker.run_attempt)
    await dispatcher.start()
    try:
        yield Desk(db, worker, queue, dispatcher, RunService(db, worker=worker), attempts)
    finally:
        await dispatcher.stop()
        await worker.drain(0)
        await queue.stop()
