"""The durable queue: DBOS, over a SQLite file of its own or PostgreSQL.

Used in the one form that held when it was tried (see docs/explanation/choices.md): a constant application version, one
step in the workflow, ids as the only arguments and results, no limit of recoveries, a configured executor id that one
process at a time may use. An attempt that was at work when its process died is handed out again at the next start under
the same executor id; so, rarely, is one that ended as the queue stopped: the worker sees that its turn is over.
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
from dbos import DBOS, DBOSConfig, SetWorkflowID
from filelock import FileLock, Timeout
from sqlalchemy.engine.url import make_url

from agent_core.errors import ConfigInvalid, PhonedeskError
from scheduler.jobs.periodic import Periodic
from storage.engine import is_away, utc_now

APPLICATION = "phonedesk"
AGAIN_SECONDS = 2.0  # after an attempt could not be begun because the database was away, or its phone was not free
THREADS_SECONDS = 2.0  # what others gave to DBOS's threads begins within this, or is cancelled with them
# Never changes with a release: DBOS leaves attempts of another version alone for ever.
APPLICATION_VERSION = "1"
POLL_SECONDS = 0.5
# An attempt that is over is known for so long, so that one that is handed in again, by its id, is not done again. After
# that its run has long gone on: the worker would see that it is not this attempt's turn.
KEEP_ATTEMPTS = timedelta(days=2)
FORGET_EVERY_SECONDS = 3600.0
FORGET_AT_ONCE = 200
OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]

log = structlog.get_logger(__name__)

Work = Callable[[str], Awaitable[None]]
"""Does one attempt, given its id, and returns when the attempt is over or somebody else's. Called again if it raises.
"""


# DBOS is one to a process, and finds its functions by name at the start: so they are here, and so is who they work for.
_working: list[Work] = []


@DBOS.step(name="work_on_attempt")
async def _work_on_attempt(attempt: str) -> str:
    """Work on the attempt, again and again if that raises: an attempt that is given up would keep its run from going
    on.

    DBOS's own tries keep every error until the last, and log where nobody looks.
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
                raise RuntimeError("The queue has stopped.")  # it is handed out at the next start
    return attempt


@DBOS.workflow(name="attempt", max_recovery_attempts=None)
async def _attempt(attempt: str) -> str:
    return await _work_on_attempt(attempt)


class ProcessLock:
    """A lock file held as long as the process lives; a kill frees it.

    Who holds it stands in a file beside it (``.holder``): Windows lets nobody read what is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._holder = path.with_suffix(".holder")
        self._lock = FileLock(path, timeout=0, thread_local=False)

    @property
    def held(self) -> bool:
        return self._lock.is_locked

    def acquire(self, token: str = "") -> str:
        """Return the token of the process that had it before. Raises ConfigInvalid if another process has it.

        ``token``: what this process is known by elsewhere.
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
        """Return what ``acquire`` would raise now, None if the lock is free. Who had it before is not forgotten."""
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
        """The holder's process id and its token; "" each if nobody has held it."""
        try:
            holder, _, token = self._holder.read_text(encoding="utf-8").partition(" ")
        except FileNotFoundError:
            return "", ""
        return holder.strip(), token.strip()


def system_url(url: str) -> str:
    """The URL in the form that DBOS's drivers take (it does not use the asynchronous ones)."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        if parsed.database:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        return parsed.set(drivername="sqlite").render_as_string(hide_password=False)
    return parsed.set(drivername="postgresql").render_as_string(hide_password=False)


class DbosQueue:
    """``url``: DBOS's own database (another file than ours where it is SQLite). ``executor_id``: stays the same over
    restarts, differs between processes. ``lock_path``: the file that keeps a second process of this id out.

    It forgets its own old attempts: DBOS itself keeps them for ever.
    """

    def __init__(
        self,
        url: str,
        *,
        executor_id: str,
        lock_path: Path,
        poll_seconds: float = POLL_SECONDS,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._url = system_url(url)
        self._executor_id = executor_id
        self._poll_seconds = poll_seconds
        self._name = f"attempts-{executor_id}"
        self._lock = ProcessLock(lock_path)
        self._running = False
        self._clock = clock
        self._forgetting = Periodic("queue-forgets", self._forget, FORGET_EVERY_SECONDS, first=FORGET_EVERY_SECONDS)

    @property
    def running(self) -> bool:
        return self._running

    def claim(self, token: str = "") -> str:
        """Take the process lock before ``start``; ConfigInvalid where another process has this executor id.

        The holder may take back the phones that its former process left; that one's token is given, it is dead.
        """
        return self._lock.acquire(token)

    def release(self) -> None:
        """Give the process lock back where the queue was never started; ``stop`` does it, too."""
        self._lock.release()

    async def start(self, work: Work) -> None:
        """Launch and hand out attempts. ConfigInvalid where another process has this executor id."""
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
        try:
            DBOS(config=config)
            DBOS.listen_queues([self._name])
            DBOS.launch()  # in the loop's thread: it adopts the loop that calls it
            await DBOS.register_queue_async(
                self._name, polling_interval_sec=self._poll_seconds, on_conflict="always_update"
            )
        except BaseException:
            self._running = True
            await self.stop()
            raise
        self._running = True
        await self._forgetting.start()

    async def forget(self) -> int:
        """Delete the attempts that were over ``KEEP_ATTEMPTS`` ago; how many."""
        before = (self._clock() - KEEP_ATTEMPTS).isoformat()
        count = 0
        while True:
            old = await DBOS.list_workflows_async(
                queue_name=self._name,
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
        if not self._running:
            raise RuntimeError("The queue is not running.")
        with SetWorkflowID(attempt_id):
            await DBOS.enqueue_workflow_async(self._name, _attempt, attempt_id)

    async def stop(self) -> None:
        """Destroy DBOS in a thread (in the loop it would block it), and give the loop an executor again."""
        await self._forgetting.stop()
        if self._running:
            self._running = False
            loop = asyncio.get_running_loop()
            # DBOS put its own in the place of the loop's default one, and closes it: others still need one meanwhile.
            # What waits for a thread of DBOS's would be cancelled; when the last one has had its turn, all have.
            last = loop.run_in_executor(None, lambda: None)
            loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            await asyncio.wait({last}, timeout=THREADS_SECONDS)
            with ThreadPoolExecutor(1, thread_name_prefix="queue-stop") as own:
                await loop.run_in_executor(own, DBOS.destroy)
            _working.clear()
        self._lock.release()
