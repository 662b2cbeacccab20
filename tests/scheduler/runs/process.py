"""A whole process with the durable queue, to be killed: ``python -m tests.scheduler.runs.process FOLDER [EXECUTOR]``.

Each run has five steps, counted in its session. Every step is told in a line on standard output before it is stored:
``step RUN ATTEMPT FENCING NUMBER``. When every run is over it says ``all over`` and ends by itself.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import structlog

from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.lease import HeldLease
from scheduler.runs.queue import DbosQueue
from scheduler.runs.worker import Worker
from storage.engine import Database
from storage.runs import ACTIVE, Runs

STEPS = 5


async def main(folder: Path, executor: str) -> None:
    db = Database(f"sqlite:///{folder / 'desk.db'}")
    await db.migrate()
    runs = Runs(db)

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        run = await runs.get(run_id)
        assert run is not None
        for number in range(int(run.session or 0), STEPS):
            await lease.check()
            print("step", run_id, attempt, lease.fencing, number, flush=True)  # noqa: T201 - read by the test
            await asyncio.sleep(0.01)
            await runs.save_session(run_id, str(number + 1))
        return AttemptOutcome("succeeded", f"attempt {attempt}")

    worker = Worker(db, work, owner=executor)
    queue = DbosQueue(
        f"sqlite:///{folder / 'queue.db'}",
        executor_id=executor,
        lock_path=folder / f"{executor}.lock",
        poll_seconds=0.1,
    )
    queue.claim()
    await worker.take_back()
    await queue.start(worker.run_attempt)
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker, every_seconds=0.2)
    await dispatcher.start()
    print("started", flush=True)  # noqa: T201 - read by the test
    while True:
        waiter = db.signal("runs").waiter()
        if not await runs.find(statuses=ACTIVE):
            break
        await waiter.wait(0.5)
    await dispatcher.stop()
    await worker.drain(5)
    await queue.stop()
    await db.close()
    print("all over", flush=True)  # noqa: T201 - read by the test


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # standard output is read
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "host"))
