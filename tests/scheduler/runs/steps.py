"""A process whose runs make steps, and whether each was stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.lease import HeldLease
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from storage.engine import Database
from storage.events import Events
from storage.runs import Runs
from tests.support.queue import LocalQueue

STEPS = 6
SOON = 30.0


class Desk:
    """The line and the worker of one process, over a database that may go away. Each run makes ``STEPS`` steps."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.service = RunService(db)
        self.made: list[tuple[str, int]] = []
        self.in_midst = asyncio.Event()
        self.go_on = asyncio.Event()

    async def work(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        run = await Runs(self.db).get(run_id)
        assert run is not None
        for number in range(int(run.session or 0), STEPS):
            await lease.check()
            self.made.append((run_id, number))
            if number == 2 and not self.go_on.is_set():
                self.in_midst.set()
                await self.go_on.wait()
            await Events(self.db).append(run_id, "step", {"n": number}, picture=b"x" * 9000)
            await Runs(self.db).save_session(run_id, str(number + 1))
        return AttemptOutcome("succeeded")

    async def over(self, *ids: str) -> None:
        async with asyncio.timeout(SOON):
            while True:
                found = [await self.service.get(run_id) for run_id in ids]
                if all(run is not None and run.final for run in found):
                    break
                await asyncio.sleep(0.02)
        assert [(run.status, run.message) for run in found if run] == [("succeeded", "")] * len(ids)


@asynccontextmanager
async def desk(db: Database, *, lease_seconds: float = 1.0) -> AsyncIterator[Desk]:
    made = Desk(db)
    worker, queue = Worker(db, made.work, owner="host", lease_seconds=lease_seconds, watch_seconds=0.05), LocalQueue()
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker, lease_seconds=lease_seconds, every_seconds=0.1)
    await queue.start(worker.run_attempt)
    await dispatcher.start()
    try:
        yield made
    finally:
        await dispatcher.stop()
        await worker.drain(1)
        await queue.stop()


async def steps_once(db: Database, *ids: str) -> None:
    """Each step of each run was stored once, or, where its end was not heard of, once more: never out of order."""
    for run_id in ids:
        told = [event.data["n"] for event in await Events(db).after(0, run_id=run_id) if event.kind == "step"]
        assert sorted(set(told)) == list(range(STEPS))
        assert told == sorted(told)
        ends = [e for e in await Events(db).after(0, run_id=run_id) if e.data.get("status") == "succeeded"]
        assert len(ends) == 1
