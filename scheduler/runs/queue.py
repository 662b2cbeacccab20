"""The durable queue: DBOS, over a SQLite file of its own or PostgreSQL.

DBOS is used only in the form that passed our trials (see docs/explanation/choices.md): a constant application version,
one step in each workflow, ids as the only arguments and results, no limit of recoveries, and a configured executor id
that one process at a time may use. Workflows are started directly, not through a queue of DBOS: the dispatcher decides
which attempt is started and when, and a DBOS queue is polled. An attempt that was active when its process died is
started again at the next start under the same executor id. Rarely this also happens to an attempt that ended while the
queue stopped; then the worker sees that its turn is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from dbos import DBOS, DBOSConfig, SetWorkflowID, _dbos, _queue, _workflow_commands
from filelock import FileLock, Timeout
from sqlalchemy.engine.url import make_url

from agent_core.errors import ConfigInvalid, PhonedeskError
from scheduler.jobs.periodic import Periodic
from storage.engine import utc_now
from storage.failures import is_away

APPLICATION = "phonedesk"
AGAIN_SECONDS = 2.0  # before the next try, if the database was away or the phone was not free
THREADS_SECONDS = 2.0  # work that others gave to DBOS's threads begins within this time, or is cancelled
# Never changes with a release: DBOS never recovers attempts of another application version.
APPLICATION_VERSION = "1"
# The id of an ended attempt is kept this long, so that starting the same id again does nothing. After that its run has
# long moved on, and the worker would see that it is not this attempt's turn.
KEEP_ATTEMPTS = timedelta(days=2)
FORGET_EVERY_SECONDS = 3600.0
# DBOS looks every second for work of kinds that it never gets here: delayed, with a deadline, or in its own queue,
# which only recovery at the start uses. That was a third of what an idle server did. With PostgreSQL: less than 5 s.
LOOK_EVERY_SECONDS = 4.0
RECOVERED_SECONDS = 10.0  # after the start
FORGET_AT_ONCE = 200
OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

log = structlog.get_logger(__name__)

Work = Callable[[str], Awaitable[None]]
"""The function that does one attempt, given its id.

It returns when the attempt is over or belongs to another; it is called again if it raises.
"""


# DBOS exists once in a process and finds its functions by name at the start, so they and their callbacks are globals.
_working: list[Work] = []


@DBOS.step(name="work_on_attempt")
async def _work_on_attempt(attempt: str) -> str:
    """Work on the attempt, and repeat if that raises: an attempt that is given up would block its run.

    DBOS's own retries keep every error until the last, and log where nobody looks.
    """
    for work in _working:
        while True:
            try:
                await work(attempt)
                break
            except Exception as error:
                expected = isinstance(error, PhonedeskError) or is_away(error)
                log.warning("attempt_not_begun", attempt=attempt, error=repr(error), exc_info=not expected)
            await asyncio.sleep(AGAIN_SECONDS)
            if work not in _working:
                raise RuntimeError("The queue has stopped.")  # the attempt is started again at the next start
    return attempt


@DBOS.workflow(name="attempt", max_recovery_attempts=None)
async def _attempt(attempt: str) -> str:
    return await _work_on_attempt(attempt)


class ProcessLock:
    """A lock file that is held as long as the process lives; a kill frees it.

    The holder's process id is in a second file (``.holder``), because Windows does not let others read a locked file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._holder = path.with_suffix(".holder")
        self._lock = FileLock(path, timeout=0, thread_local=False)

    @property
    def held(self) -> bool:
        return self._lock.is_locked

    def acquire(self, token: str = "") -> str:
        """Take the lock.

        Return the token of the process that had it before. Raises ConfigInvalid if another process has it.

        token: the name of this process in the database.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire()
        except Timeout as error:
            raise self._is_held() from error
        _, former = self._told()
        self._holder.write_text(f"{os.getpid()} {token}", encoding="utf-8")
        return former

    def release(self) -> None:
        self._lock.release()

    def busy(self) -> ConfigInvalid | None:
        """Return the error that ``acquire`` would raise now, or None if the lock is free.

        The former holder stays on record.
        """
        if not self.path.exists():
            return None
        try:
            self._lock.acquire()
        except Timeout:
            return self._is_held()
        self._lock.release()
        return None

    def _is_held(self) -> ConfigInvalid:
        holder = self._told()[0] or "unknown"
        return ConfigInvalid(
            f"Another process ({holder}) on this machine works as this host.",
            advice="Stop it, or give this one a name of its own (--host, PHONEDESK_QUEUE__EXECUTOR_ID).",
            key="host_busy",
            host=self.path.stem,
            process=holder,
        )

    def _told(self) -> tuple[str, str]:
        """Return the holder's process id and its token; both are "" if nobody has held the lock."""
        try:
            holder, _, token = self._holder.read_text(encoding="utf-8").partition(" ")
        except FileNotFoundError:
            return "", ""
        return holder.strip(), token.strip()


def system_url(url: str) -> str:
    """Return the URL for DBOS's drivers, which are not the asynchronous ones."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        return parsed.set(drivername="sqlite").render_as_string(hide_password=False)
    return parsed.set(drivername="postgresql").render_as_string(hide_password=False)


class DbosQueue:
    """The queue that starts attempts as DBOS workflows, and deletes its own old ones, which DBOS would keep for ever.

    url: DBOS's own database; with SQLite, another file than ours.
    executor_id: stays the same over restarts and differs between processes.
    lock_path: the lock file that keeps out a second process with this id.
    recovered: seconds after the start by which DBOS has begun what an earlier process left.
    """

    def __init__(
        self,
        url: str,
        *,
        executor_id: str,
        lock_path: Path,
        clock: Callable[[], datetime] = utc_now,
        recovered: float = RECOVERED_SECONDS,
    ) -> None:
        self._recovered = recovered
        self._url = system_url(url)
        self._executor_id = executor_id
        self._lock = ProcessLock(lock_path)
        self._running = False
        self._clock = clock
        self._resting: asyncio.TimerHandle | None = None
        self._forgetting = Periodic("queue-forgets", self._forget, FORGET_EVERY_SECONDS, first=FORGET_EVERY_SECONDS)

    @property
    def running(self) -> bool:
        return self._running

    def claim(self, token: str = "") -> str:
        """Take the process lock before ``start``. Return the token of the former process, which is dead by now.

        With that token the holder can take back the phones that its former process left. Raises ConfigInvalid if
        another process has this executor id.
        """
        return self._lock.acquire(token)

    def release(self) -> None:
        """Give the process lock back if the queue was never started; ``stop`` does so too."""
        self._lock.release()

    async def start(self, work: Work) -> None:
        """Launch DBOS and start attempts. Raises ConfigInvalid if another process has this executor id."""
        if not self._lock.held:
            self.claim()
        logger = logging.getLogger("dbos")
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": self._url,
            "application_version": APPLICATION_VERSION,
            "executor_id": self._executor_id,
            "log_level": "CRITICAL",
            "enable_otlp": False,
            "scheduler_polling_interval_sec": 3600.0,
        }
        _working.append(work)
        # There is no public setting for these two intervals.
        _workflow_commands._BACKGROUND_JOBS_INTERVAL_SEC = LOOK_EVERY_SECONDS
        own_queue = _dbos._get_or_create_dbos_registry().get_internal_queue()
        own_queue._polling_interval_sec = _queue.DEFAULT_QUEUE_POLLING_INTERVAL_SEC
        try:
            DBOS(config=config)
            DBOS.listen_queues([])
            DBOS.launch()  # in the event loop's thread, because DBOS adopts the loop that calls it
        except BaseException:
            self._running = True
            await self.stop()
            raise
        self._running = True
        self._resting = asyncio.get_running_loop().call_later(
            self._recovered, lambda: setattr(own_queue, "_polling_interval_sec", LOOK_EVERY_SECONDS)
        )
        await self._forgetting.start()

    async def forget(self) -> int:
        """Delete the attempts that ended more than ``KEEP_ATTEMPTS`` ago. Return how many."""
        before = (self._clock() - KEEP_ATTEMPTS).isoformat()
        count = 0
        while True:
            old = await DBOS.list_workflows_async(
                executor_id=self._executor_id,
                status=OVER,
                end_time=before,
                completed_before=before,
                limit=FORGET_AT_ONCE,
                load_input=False,
                load_output=False,
            )
            if not old:
                break
            await DBOS.delete_workflows_async([attempt.workflow_id for attempt in old])
            count += len(old)
        if count:
            log.info("old_attempts_deleted", attempts=count)
        return count

    async def _forget(self) -> None:
        await self.forget()

    async def enqueue(self, attempt_id: str) -> None:
        """Start an attempt; return once it is stored. An id that was started before is not started again."""
        if not self._running:
            raise RuntimeError("The queue is not running.")
        with SetWorkflowID(attempt_id):
            await DBOS.start_workflow_async(_attempt, attempt_id)

    async def stop(self) -> None:
        """Destroy DBOS in a thread, because it would block the event loop, and give the loop a new default executor."""
        await self._forgetting.stop()
        if self._resting is not None:
            self._resting.cancel()
        if self._running:
            self._running = False
            loop = asyncio.get_running_loop()
            # DBOS replaced the loop's default executor and closes its own, which others still need meanwhile. Work that
            # waits for one of its threads would be cancelled; when the last item has had its turn, all have.
            last = loop.run_in_executor(None, lambda: None)
            loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            await asyncio.wait({last}, timeout=THREADS_SECONDS)
            with ThreadPoolExecutor(1, thread_name_prefix="queue-stop") as own:
                await loop.run_in_executor(own, DBOS.destroy)
            _working.clear()
        self._lock.release()
