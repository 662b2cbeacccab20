"""The durable queue: DBOS, over a SQLite file of its own or PostgreSQL.

Used in the one form that held when it was tried (see docs/explanation/choices.md): a constant application version, one
step in the workflow, ids as the only arguments and results, no limit of recoveries, a configured executor id that one
process at a time may use. A leg that was at work when its process died is handed out again at the next start under the
same executor id; so, rarely, is one that ended as the queue stopped: the worker sees that its turn is over.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import structlog
from dbos import DBOS, DBOSConfig, SetWorkflowID
from sqlalchemy.engine.url import make_url

from agent_core.errors import ConfigInvalid
from scheduler.queue import Work

APPLICATION = "phonedesk"
# Never changes with a release: DBOS leaves legs of another version alone for ever.
APPLICATION_VERSION = "1"
POLL_SECONDS = 0.5

log = structlog.get_logger(__name__)

# DBOS is one to a process, and finds its functions by name at the start: so they are here, and so is who they work for.
_working: list[Work] = []


@DBOS.step(name="work_on_leg")
async def _work_on_leg(leg: str) -> str:
    for work in _working:
        await work(leg)
    return leg


@DBOS.workflow(name="leg", max_recovery_attempts=None)
async def _leg(leg: str) -> str:
    return await _work_on_leg(leg)


class ProcessLock:
    """A lock file held as long as the process lives; a kill frees it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        return self._file is not None

    def acquire(self) -> None:
        """ConfigInvalid where another process has it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            file.close()
            raise ConfigInvalid(
                f"Another process ({holder}) works with this executor id.",
                advice="Stop it, or give this one its own executor id (PHONEDESK_QUEUE__EXECUTOR_ID).",
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


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
    """

    def __init__(self, url: str, *, executor_id: str, lock_path: Path, poll_seconds: float = POLL_SECONDS) -> None:
        self._url = system_url(url)
        self._executor_id = executor_id
        self._poll_seconds = poll_seconds
        self._name = f"legs-{executor_id}"
        self._lock = ProcessLock(lock_path)
        self._running = False

    @property
    def running(self) -> bool:
        return self._running

    def claim(self) -> None:
        """Take the process lock before ``start``; ConfigInvalid where another process has this executor id.

        The holder may take back the phones that its former process left.
        """
        self._lock.acquire()

    async def start(self, work: Work) -> None:
        """Launch and hand out legs. ConfigInvalid where another process has this executor id."""
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

    async def enqueue(self, leg_id: str) -> None:
        if not self._running:
            raise RuntimeError("The queue is not running.")
        with SetWorkflowID(leg_id):
            await DBOS.enqueue_workflow_async(self._name, _leg, leg_id)

    async def stop(self) -> None:
        """Destroy DBOS in a thread (in the loop it would block it), and give the loop an executor again."""
        if self._running:
            self._running = False
            loop = asyncio.get_running_loop()
            with ThreadPoolExecutor(1, thread_name_prefix="queue-stop") as own:
                await loop.run_in_executor(own, DBOS.destroy)
            # DBOS put its own, now closed, in the place of the loop's default one.
            loop.set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
            _working.clear()
        self._lock.release()
