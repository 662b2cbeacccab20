"""Runs as the rest of the product asks for them, and the reconciler that has due legs started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from scheduler.queue import Queue, leg_id
from scheduler.worker import Worker
from storage.engine import Database
from storage.leases import LEASE_SECONDS, Leases
from storage.questions import AnswerResult, Questions
from storage.runs import NewRun, RunRow, Runs

RECONCILE_SECONDS = 1.0
MISSING_PHONE_SECONDS = 15.0
LOST_LEG_SECONDS = 60.0

log = structlog.get_logger(__name__)

Phones = Callable[[], Awaitable[Sequence[str]]]
"""The serials of the phones that this process reaches now."""


class RunService:
    """What can be done with runs. Every call takes effect in the database; the reconciler is woken in this process."""

    def __init__(self, db: Database, *, worker: Worker | None = None) -> None:
        self._runs = Runs(db)
        self._questions = Questions(db)
        self._worker = worker

    async def submit(
        self,
        task: str,
        *,
        serial: str = "",
        options: Mapping[str, Any] | None = None,
        requested_by: str = "",
        chat: Mapping[str, Any] | None = None,
        priority: int = 0,
        key: str = "",
    ) -> str:
        """Have a task done; the run's id. ``serial`` empty: on any phone that is free.

        ``key`` names the request: asked again, it gives the run that it started the first time.
        """
        run_id = await self._runs.create(
            NewRun(
                task=task,
                serial=serial,
                options=options or {},
                requested_by=requested_by,
                chat=chat,
                priority=priority,
            ),
            key=key,
        )
        if run_id is None:  # only a schedule's tick can have its run already
            raise RuntimeError("The run was not stored.")
        return run_id

    async def request_stop(self, run_id: str, *, by: str = "") -> str | None:
        """Stop a run: the status afterwards (``running`` until the leg has tidied up), None for an unknown run."""
        status = await self._runs.request_stop(run_id, by=by)
        if status is not None and self._worker is not None:
            self._worker.stop_now(run_id)
        return status

    async def hold(self, run_id: str) -> bool:
        """Park a run until ``resume``: it gives its phone back, or does not begin. False: held already, or over."""
        held = await self._runs.request_hold(run_id)
        if held and self._worker is not None:
            self._worker.hold_now(run_id)
        return held

    async def resume(self, run_id: str) -> bool:
        """Bring a held run back. False where it is not held."""
        return await self._runs.resume(run_id)

    async def answer(self, question_id: str, answer: Mapping[str, Any], *, by: str) -> AnswerResult:
        """Answer a question; the first answer wins. KeyError for an unknown question."""
        return await self._questions.answer(question_id, answer, by=by)

    async def get(self, run_id: str) -> RunRow | None:
        return await self._runs.get(run_id)


@dataclass(slots=True)
class _Started:
    """A leg that was handed to the queue and has not begun."""

    leg: int
    serial: str
    at: datetime


class Reconciler:
    """Has due legs started: at once when something changes in this process, and every second for what others changed.

    For each phone one leg is under way at a time, the first in line. ``phones``: the phones that this process reaches;
    without it every phone is its own. A run whose phone nobody reaches is started after ``missing_phone_seconds``
    nevertheless, so that it ends with the phone's own error.
    """

    def __init__(
        self,
        db: Database,
        queue: Queue,
        *,
        worker: Worker | None = None,
        phones: Phones | None = None,
        lease_seconds: float = LEASE_SECONDS,
        every_seconds: float = RECONCILE_SECONDS,
        missing_phone_seconds: float = MISSING_PHONE_SECONDS,
        lost_leg_seconds: float = LOST_LEG_SECONDS,
    ) -> None:
        self._db = db
        self._queue = queue
        self._worker = worker
        self._phones = phones
        self._runs = Runs(db)
        self._questions = Questions(db)
        self._leases = Leases(db, seconds=lease_seconds)
        self._every_seconds = every_seconds
        self._missing_phone = timedelta(seconds=missing_phone_seconds)
        self._lost_leg = timedelta(seconds=lost_leg_seconds)
        self._started: dict[str, _Started] = {}
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Keep at it until ``stop``."""
        self._task = asyncio.create_task(self._forever(), name="reconciler")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def once(self) -> list[str]:
        """One look at everything; the ids of the legs that were handed to the queue."""
        await self._tidy()
        return await self._hand_out()

    async def _tidy(self) -> None:
        """What time alone makes due: questions whose deadline passed, legs that died."""
        at_work = self._worker.runs_at_work if self._worker is not None else []
        await self._questions.expire()
        revived = await self._runs.revive(older_than=self._leases.ttl, alive_here=at_work)
        if revived:
            log.warning("runs.revived", run_ids=revived)

    async def _hand_out(self) -> list[str]:
        due = await self._runs.due()
        self._forget_begun(due)
        if not due:
            return []
        busy = {lease.serial for lease in await self._leases.held()}
        busy |= {started.serial for started in self._started.values()}
        here = None if self._phones is None else list(await self._phones())
        handed = []
        for run in due:
            if run.id in self._started:
                await self._look_after(run)
                continue
            serial = self._phone_for(run, here, busy)
            if serial is None:
                continue
            if serial and not run.serial and not await self._runs.assign(run.id, serial):
                continue
            busy |= {serial} if serial else set()
            self._started[run.id] = _Started(run.leg, serial, self._db.now())
            handed.append(leg_id(run.id, run.leg))
            try:
                await self._queue.enqueue(handed[-1])
            except BaseException:
                del self._started[run.id]
                raise
        return handed

    def _forget_begun(self, due: Sequence[RunRow]) -> None:
        still = {run.id: run.leg for run in due}
        self._started = {
            run_id: started for run_id, started in self._started.items() if still.get(run_id) == started.leg
        }

    async def _look_after(self, run: RunRow) -> None:
        """A leg the queue has had for long without beginning it is lost there: its successor is due."""
        if self._db.now() - self._started[run.id].at > self._lost_leg:
            log.warning("leg.lost", run_id=run.id, leg=run.leg)
            await self._runs.requeue_leg(run.id, run.leg)

    def _phone_for(self, run: RunRow, here: Sequence[str] | None, busy: set[str]) -> str | None:
        """The phone to start on; empty: start without one, to fail; None: not now."""
        overdue = run.leg_due_at is not None and self._db.now() - run.leg_due_at >= self._missing_phone
        if run.serial:
            if run.serial in busy:
                return None
            return run.serial if here is None or run.serial in here or overdue else None
        free = [serial for serial in here or () if serial not in busy]
        if free:
            return free[0]
        return "" if overdue and not here else None

    async def _forever(self) -> None:
        loop = asyncio.get_running_loop()
        tidied_at = loop.time() - self._every_seconds
        while True:
            waiter = self._db.signal("runs").waiter()
            try:
                if loop.time() - tidied_at >= self._every_seconds:
                    tidied_at = loop.time()
                    await self._tidy()
                await self._hand_out()
            except Exception as error:  # noqa: BLE001 - the database may be away for a moment; the next look repeats it
                log.warning("reconciler.failed", error=repr(error))
            await waiter.wait(self._every_seconds)
