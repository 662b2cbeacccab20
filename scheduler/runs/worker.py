"""The worker: does one attempt of a run, with the phone's lease in hand."""

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
from storage.engine import MISSED_SECONDS, Database, is_away
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import RunRow, Runs

CLEANUP_SECONDS = 20.0  # a cancelled attempt may take so long to tidy up before it is cancelled once more

log = structlog.get_logger(__name__)


def attempt_id(run_id: str, attempt: int) -> str:
    """Return the id under which the queue has an attempt, and starts it once."""
    return f"run-{run_id}-attempt-{attempt}"


def parse_attempt_id(text: str) -> tuple[str, int]:
    """Return the run's id and the attempt's number. Raises ValueError for anything else."""
    head, _, number = text.rpartition("-attempt-")
    if not head.startswith("run-") or not number.isdecimal():
        raise ValueError(f"Not the id of an attempt: {text!r}")
    return head.removeprefix("run-"), int(number)


@dataclass(slots=True)
class _LiveAttempt:
    """An attempt of this process, also before it looks at the database. ``lease``: None until it has the phone."""

    attempt: int
    lease: HeldLease | None = None


AttemptWork = Callable[[str, int, HeldLease], Awaitable[AttemptOutcome]]
Taker = Callable[[int], bool]
"""Is told each time that an attempt of its run has the phone, with the lease's fencing number. False: the attempt is
not begun, and whoever says so ends the run.
"""
MayBegin = Callable[[RunRow], Awaitable[bool]]
"""Whether an attempt may begin in this process now; otherwise it goes back into the line."""


class Worker:
    """``owner``: the executor's id. ``work(run_id, attempt, lease)`` does the attempt, given by the composition root.

    ``work`` is cancelled for a Stop: it tidies up (keyboard, input, screen) while it unwinds, and the lease is given
    back after that. ``lease_seconds``: how long a dead holder keeps a phone; heartbeats come at a third of it.
    ``lang``: of what people are told of a run that gets nowhere, where its own options name none.
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
        self._owner = owner
        self._requests = StopRequests(db, seconds=watch_seconds)
        self.at_work_beside: set[str] = set()  # runs that this process makes without an attempt: plans, calls of MCP
        self.takers: dict[str, Taker] = {}  # by run
        self._live: dict[str, _LiveAttempt] = {}  # by run; a second attempt of one is refused
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False

    @property
    def owner(self) -> str:
        return self._owner

    @property
    def runs_at_work(self) -> list[str]:
        return list(self._live)

    async def take_back(self) -> list[str]:
        """At the start, with the executor's process lock held: end the plans of our former process and free its phones;
        their serials.
        """
        ended = await self._runs.end_plans_of(self._owner, left=self._left)
        if ended:
            log.warning("plans.ended", run_ids=ended)
        return await self._leases.take_back(self._owner)

    def stop_now(self, run_id: str, reason: Reason = Reason.STOP) -> bool:
        """Stop an attempt of this process without waiting for the next look at its row."""
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request(reason)
        return lease is not None

    def hold_now(self, run_id: str) -> bool:
        """Have an attempt of this process park without waiting for the next look at its row."""
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request_hold()
        return lease is not None

    def _lease_of(self, run_id: str) -> HeldLease | None:
        live = self._live.get(run_id)
        return None if live is None else live.lease

    def end_replaced(self, run_id: str, due: int) -> None:
        """End another attempt of the run at work here: ``due`` is to begin, so its phone is lost, known or not."""
        live = self._live.get(run_id)
        if live is not None and live.lease is not None and live.attempt != due and not live.lease.stop.requested:
            log.warning("attempt.replaced", run_id=run_id, attempt=live.attempt)
            live.lease.stop.request(Reason.LEASE_LOST)

    async def drain(self, seconds: float) -> None:
        """Begin no attempt any more. Attempts at work get ``seconds`` to end by themselves, then they are put back.

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
        """Do an attempt to its end, or give it back to the line if the phone is taken. Never leaks a cancellation."""
        run_id, attempt = parse_attempt_id(attempt_id)
        other = self._live.get(run_id)
        if other is not None:
            await self._refuse(run_id, attempt, other)
            return
        live = self._live[run_id] = _LiveAttempt(attempt)
        self._idle.clear()
        try:
            await self._run_attempt(run_id, live)
        finally:  # also where the database is away: an attempt that stays "at work" is never revived, nor drained
            self._live.pop(run_id)
            if not self._live:
                self._idle.set()
            self._db.signal("runs").notify()

    async def _refuse(self, run_id: str, attempt: int, other: _LiveAttempt) -> None:
        """An attempt of this run is at work here. One that another attempt follows has lost its phone, and does not
        know yet.
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
        row = await self._leases.acquire(run.serial, self._owner, run_id)
        if row is None:
            await self._stand_back(run)
            return
        lease = live.lease = HeldLease(row, self._leases)
        try:
            if self._closing:  # since the look above
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
        """The phone is not free: back into the line. Raises LeaseLost if it is this very run that has it, so that the
        queue tries again: whoever does the run there ends it, or begins this attempt.
        """
        holder = await self._leases.get(run.serial)
        if holder is not None and holder.run_id == run.id:
            raise LeaseLost(f"The phone {run.serial} is in use.", key="phone_in_use", phone=run.serial)
        await self._runs.requeue_attempt(run.id, run.attempt)

    async def _make_way(self, run_id: str) -> None:
        """Requeue the attempt whose turn it is: it may have stood back for ours, which had the phone too late."""
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
        except asyncio.CancelledError:  # while these end
            lease.stop.request(Reason.SHUTDOWN)
            await _until_done(task, lease.stop)
        outcome = self._outcome(run_id, lease, task, lang)
        await finish(store_outcome(self._runs, run_id, attempt, outcome, gave_up=self._gave_up))

    @staticmethod
    def _outcome(run_id: str, lease: HeldLease, task: asyncio.Future[AttemptOutcome], lang: Lang) -> AttemptOutcome:
        """What the attempt came to, with an error in the language of its run."""
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
    """Wait for the work. A cancellation of ours becomes a stop of it; if it does not end it is cancelled again."""
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
