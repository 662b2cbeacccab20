"""The worker: does one attempt of a run while it holds the phone's lease."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from agent_core.errors import DeviceOffline, LeaseLost, PhonedeskError
from agent_core.texts import Lang
from scheduler.runs.executor import AttemptOutcome, gave_up, language_of, left_alone, said, store_outcome
from scheduler.runs.lease import HeldLease, finish
from scheduler.runs.stop import Reason, StopRequests, StopSignal
from storage.engine import MISSED_SECONDS, Database
from storage.failures import is_away
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import RunRow, Runs

CLEANUP_SECONDS = 20.0  # how long a cancelled attempt may tidy up before it is cancelled again

log = structlog.get_logger(__name__)


def attempt_id(run_id: str, attempt: int) -> str:
    """Return the id under which the queue starts an attempt, once."""
    return f"run-{run_id}-attempt-{attempt}"


def parse_attempt_id(text: str) -> tuple[str, int]:
    """Return the run's id and the attempt's number. Raises ValueError if the text is not an attempt's id."""
    head, _, number = text.rpartition("-attempt-")
    if not head.startswith("run-") or not number.isdecimal():
        raise ValueError(f"Not the id of an attempt: {text!r}")
    return head.removeprefix("run-"), int(number)


@dataclass(slots=True)
class _LiveAttempt:
    """An attempt in this process, from before it reads the database. ``lease``: None until it has the phone."""

    attempt: int
    lease: HeldLease | None = None


AttemptWork = Callable[[str, int, HeldLease], Awaitable[AttemptOutcome]]
Taker = Callable[[int], bool]
"""A function that is called each time an attempt of its run gets the phone, with the lease's fencing token.

If it returns False, the attempt does not begin, and the taker ends the run.
"""
MayBegin = Callable[[RunRow], Awaitable[bool]]
"""Tells whether an attempt may begin in this process now. If not, it goes back into the line."""


class Worker:
    """The part of this process that does attempts.

    A Stop cancels ``work``. It tidies up (keyboard, input, screen) while it unwinds, and the lease is released after
    that.

    work: ``work(run_id, attempt, lease)`` does the attempt; the composition root provides it.
    owner: the executor's id.
    lease_seconds: how long a dead holder keeps a phone. Heartbeats are sent at a third of it.
    lang: of messages about failed runs whose own options name no language.
    """

    def __init__(
        self,
        db: Database,
        work: AttemptWork,
        *,
        owner: str,
        may_begin: MayBegin | None = None,
        lease_seconds: float = LEASE_SECONDS,
        watch_seconds: float = MISSED_SECONDS,
        lang: Lang = "zh",
    ) -> None:
        self._db = db
        self._gave_up = gave_up(lang)
        self._left = left_alone(lang)
        self._may_begin = may_begin
        self._runs = Runs(db)
        self._leases = Leases(db, seconds=lease_seconds)
        self._work = work
        self.owner = owner
        self._requests = StopRequests(db, seconds=watch_seconds)
        self.at_work_beside: set[str] = set()  # runs that this process does without an attempt: plans, MCP calls
        self.takers: dict[str, Taker] = {}  # by run
        self._live: dict[str, _LiveAttempt] = {}  # by run; a second attempt of the same run is refused
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def runs_at_work(self) -> list[str]:
        return list(self._live)

    async def take_back(self) -> list[str]:
        """End the plans of this executor's former process and free its phones. Return the phones' serials.

        Call it at the start, with the executor's process lock held.
        """
        ended = await self._runs.end_plans_of(self.owner, left=self._left)
        if ended:
            log.warning("plans.ended", run_ids=ended)
        return await self._leases.take_back(self.owner)

    def stop_now(self, run_id: str, reason: Reason = Reason.STOP) -> bool:
        """Stop an attempt of this process without waiting for the next query of its row.

        Return whether it is active here.
        """
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request(reason)
        return lease is not None

    def hold_now(self, run_id: str) -> bool:
        """Park an attempt of this process without waiting for the next query of its row.

        Return whether it is active here.
        """
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request_hold()
        return lease is not None

    def _lease_of(self, run_id: str) -> HeldLease | None:
        live = self._live.get(run_id)
        return None if live is None else live.lease

    def end_replaced(self, run_id: str, due: int) -> None:
        """End an older attempt of the run that is active here: attempt ``due`` is to begin, so the older one's phone is
        lost.
        """
        live = self._live.get(run_id)
        if live is not None and live.lease is not None and live.attempt != due and not live.lease.stop.requested:
            log.warning("attempt.replaced", run_id=run_id, attempt=live.attempt)
            live.lease.stop.request(Reason.LEASE_LOST)

    async def drain(self, seconds: float) -> None:
        """Begin no more attempts.

        Active ones get ``seconds`` to end by themselves; then they are put back into the line.

        An attempt that waits for a person's answer ends at once, and its question stays open.
        """
        self._closing = True
        for live in self._live.values():
            if live.lease is not None:
                live.lease.stop.closing.set()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            for run_id in self.runs_at_work:
                self.stop_now(run_id, Reason.SHUTDOWN)
            await self._idle.wait()

    async def run_attempt(self, attempt_id: str) -> None:
        """Do an attempt to its end, or put it back into the line if the phone is taken. Never leaks a cancellation."""
        run_id, attempt = parse_attempt_id(attempt_id)
        other = self._live.get(run_id)
        if other is not None:
            await self._refuse(run_id, attempt, other)
            return
        live = self._live[run_id] = _LiveAttempt(attempt)
        self._idle.clear()
        try:
            await self._run_attempt(run_id, live)
        finally:  # also if the database is away: an attempt left in ``_live`` is never revived, nor drained
            self._live.pop(run_id)
            if not self._live:
                self._idle.set()
            self._db.signal("runs").notify()

    async def _refuse(self, run_id: str, attempt: int, other: _LiveAttempt) -> None:
        """Refuse an attempt because another of this run is active here.

        If that one is older, it has lost its phone and does not know yet.
        """
        if other.attempt == attempt:
            return
        if await self._runs.requeue_attempt(run_id, attempt):
            self.end_replaced(run_id, attempt + 1)

    async def _run_attempt(self, run_id: str, live: _LiveAttempt) -> None:
        attempt = live.attempt
        run = await self._runs.get(run_id)
        if (
            run is None
            or run.final
            or run.attempt != attempt
            or (run.attempt_due_at is None and not run.was_added_begun)
        ):
            return
        if run.stop_requested:
            await self._runs.end_attempt(run_id, attempt, status="stopped")
            return
        if not run.serial:
            none = DeviceOffline("No phone is attached.", key="no_phones")
            await self._runs.end_attempt(run_id, attempt, status="failed", message=said(none, language_of(run)))
            return
        if self._closing or (self._may_begin is not None and not await self._may_begin(run)):
            await self._runs.requeue_attempt(run_id, attempt)
            return
        row = await self._leases.acquire(run.serial, self.owner, run_id)
        if row is None:
            await self._stand_back(run)
            return
        lease = live.lease = HeldLease(row, self._leases)
        try:
            if self._closing:  # it may have been set since the check above
                await self._runs.requeue_attempt(run_id, attempt)
            elif (taker := self.takers.get(run_id)) is not None and not taker(lease.fencing):
                log.info("attempt.not_taken", run_id=run_id)
            elif run.was_added_begun or await self._runs.begin_attempt(run_id, attempt, serial=run.serial):
                await self._do(run_id, attempt, lease, language_of(run))
            else:
                await self._make_way(run_id)
        finally:
            await lease.release()

    async def _stand_back(self, run: RunRow) -> None:
        """Put the run back into the line because its phone is not free.

        Raises LeaseLost if this very run has the phone, so that the queue tries again: the holder ends the run or
        begins this attempt.
        """
        holder = await self._leases.get(run.serial)
        if holder is not None and holder.run_id == run.id:
            raise LeaseLost(f"The phone {run.serial} is in use.", key="phone_in_use", phone=run.serial)
        await self._runs.requeue_attempt(run.id, run.attempt)

    async def _make_way(self, run_id: str) -> None:
        """Requeue the attempt whose turn it is: it may have stood back for ours, which got the phone too late."""
        run = await self._runs.get(run_id)
        if run is not None:
            await self._runs.requeue_attempt(run_id, run.attempt)

    async def _do(self, run_id: str, attempt: int, lease: HeldLease, lang: Lang) -> None:
        task = asyncio.ensure_future(self._work(run_id, attempt, lease))
        lease.stop.attach(task)
        if lease.stop.requested:  # while the attempt began
            lease.stop.cancel()
        try:
            async with lease.kept(), self._requests.heard(run_id, lease.stop):
                await _until_done(task, lease.stop)
        except asyncio.CancelledError:  # while the heartbeats or the stop requests end
            lease.stop.request(Reason.SHUTDOWN)
            await _until_done(task, lease.stop)
        outcome = self._outcome(run_id, lease, task, lang)
        await finish(store_outcome(self._runs, run_id, attempt, outcome, gave_up=self._gave_up))

    @staticmethod
    def _outcome(run_id: str, lease: HeldLease, task: asyncio.Future[AttemptOutcome], lang: Lang) -> AttemptOutcome:
        """Return the attempt's outcome, with an error in the run's language."""
        reason = lease.stop.reason
        if task.cancelled():
            ended = {
                Reason.STOP: AttemptOutcome("stopped"),
                Reason.HOLD: AttemptOutcome("held"),
                Reason.LEASE_LOST: AttemptOutcome("put_back", said(lease.lost(), lang)),
            }
            return ended.get(reason, AttemptOutcome("put_back")) if reason is not None else AttemptOutcome("put_back")
        error = task.exception()
        if error is None:
            outcome = task.result()
            if reason is Reason.STOP and outcome.status in ("waiting", "held", "put_off"):
                return AttemptOutcome("stopped", outcome.message)
            return outcome
        if reason is Reason.STOP:
            log.warning("attempt.stopped_with_error", run_id=run_id, error=repr(error))
            return AttemptOutcome("stopped")
        if isinstance(error, LeaseLost) or is_away(error) or reason is not None:
            log.warning("attempt.put_back", run_id=run_id, reason=str(reason), error=repr(error))
            return AttemptOutcome("put_back", "" if reason is Reason.SHUTDOWN else said(error, lang))
        if not isinstance(error, PhonedeskError):
            log.error("attempt.crashed", run_id=run_id, exc_info=error)
        return AttemptOutcome("failed", said(error, lang))


async def _until_done(task: asyncio.Future[AttemptOutcome], stop: StopSignal) -> None:
    """Wait for the work. If we are cancelled, request a stop; if the work then does not end, cancel it again."""
    asked_at: float | None = None
    loop = asyncio.get_running_loop()
    while not task.done():
        try:
            await asyncio.wait([task], timeout=1.0)
        except asyncio.CancelledError:
            stop.request(Reason.SHUTDOWN)
        if stop.requested and not stop.is_shielded:
            asked_at = asked_at or loop.time()
            if loop.time() - asked_at > CLEANUP_SECONDS:
                stop.cancel()
                asked_at = loop.time()
