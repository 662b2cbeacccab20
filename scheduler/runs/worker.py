"""The worker: does one leg of a run, with the phone's lease in hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from agent_core.errors import DeviceOffline, LeaseLost, PhonedeskError
from agent_core.texts import Lang
from scheduler.runs.lease import HeldLease, finish
from scheduler.runs.outcome import LegOutcome, gave_up, language_of, left_alone, said, store_outcome
from scheduler.runs.stop import Reason, StopRequests, StopSignal
from storage.engine import MISSED_SECONDS, Database, is_away
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import RunRow, Runs

CLEANUP_SECONDS = 20.0  # a cancelled leg may take so long to tidy up before it is cancelled once more

log = structlog.get_logger(__name__)


def leg_id(run_id: str, leg: int) -> str:
    """Return the id under which the queue has a leg, and starts it once."""
    return f"run-{run_id}-leg-{leg}"


def parse_leg_id(text: str) -> tuple[str, int]:
    """Return the run's id and the leg's number. Raises ValueError for anything else."""
    head, _, number = text.rpartition("-leg-")
    if not head.startswith("run-") or not number.isdecimal():
        raise ValueError(f"Not the id of a leg: {text!r}")
    return head.removeprefix("run-"), int(number)


@dataclass(slots=True)
class _LiveLeg:
    """A leg of this process, from before its first look at the database. ``lease``: None until it has the phone."""

    leg: int
    lease: HeldLease | None = None


LegWork = Callable[[str, int, HeldLease], Awaitable[LegOutcome]]
Taker = Callable[[int], bool]
"""Is told each time that a leg of its run has the phone, with the lease's fencing number. False: the leg is not begun,
and whoever says so ends the run.
"""
MayBegin = Callable[[RunRow], Awaitable[bool]]
"""Whether a leg may begin in this process now; otherwise it goes back into the line."""


class Worker:
    """``owner``: the executor's id. ``work(run_id, leg, lease)`` does the leg, given by the composition root.

    ``work`` is cancelled for a Stop: it tidies up (keyboard, input, screen) while it unwinds, and the lease is given
    back after that. ``lease_seconds``: how long a dead holder keeps a phone; heartbeats come at a third of it.
    ``lang``: of what people are told of a run that gets nowhere, where its own options name none.
    """

    def __init__(
        self,
        db: Database,
        work: LegWork,
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
        self.at_work_beside: set[str] = set()  # runs that this process makes without a leg: plans, calls of MCP
        self.takers: dict[str, Taker] = {}  # by run
        self._live: dict[str, _LiveLeg] = {}  # by run; a second leg of one is refused
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
        """Stop a leg of this process without waiting for the next look at its row."""
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request(reason)
        return lease is not None

    def hold_now(self, run_id: str) -> bool:
        """Have a leg of this process park without waiting for the next look at its row."""
        lease = self._lease_of(run_id)
        if lease is not None:
            lease.stop.request_hold()
        return lease is not None

    def _lease_of(self, run_id: str) -> HeldLease | None:
        live = self._live.get(run_id)
        return None if live is None else live.lease

    def end_replaced(self, run_id: str, due: int) -> None:
        """Leg ``due`` of a run is to begin: another one at work here has lost its phone, and may not know it yet."""
        live = self._live.get(run_id)
        if live is not None and live.lease is not None and live.leg != due and not live.lease.stop.requested:
            log.warning("leg.replaced", run_id=run_id, leg=live.leg)
            live.lease.stop.request(Reason.LEASE_LOST)

    async def drain(self, seconds: float) -> None:
        """Begin no leg any more. Legs at work get ``seconds`` to end by themselves, then they are put back.

        A leg that waits for a person's answer ends at once, and its question stays open.
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

    async def run_leg(self, leg_id: str) -> None:
        """Do a leg to its end. Gives it back to the line where the phone is not free. Never leaks a cancellation."""
        run_id, leg = parse_leg_id(leg_id)
        other = self._live.get(run_id)
        if other is not None:
            await self._refuse(run_id, leg, other)
            return
        live = self._live[run_id] = _LiveLeg(leg)
        self._idle.clear()
        try:
            await self._run_leg(run_id, live)
        finally:  # also where the database is away: a leg that stays "at work" is never revived, nor drained
            self._live.pop(run_id)
            if not self._live:
                self._idle.set()
            self._db.signal("runs").notify()

    async def _refuse(self, run_id: str, leg: int, other: _LiveLeg) -> None:
        """A leg of this run is at work here. One that another leg follows has lost its phone, and does not know yet."""
        if other.leg == leg:
            return
        if await self._runs.requeue_leg(run_id, leg):
            self.end_replaced(run_id, leg + 1)

    async def _run_leg(self, run_id: str, live: _LiveLeg) -> None:
        leg = live.leg
        run = await self._runs.get(run_id)
        if run is None or run.final or run.leg != leg or (run.leg_due_at is None and not run.was_added_begun):
            return
        if run.stop_requested:
            await self._runs.end_leg(run_id, leg, status="stopped")
            return
        if not run.serial:
            none = DeviceOffline("No phone is attached.", key="no_phones")
            await self._runs.end_leg(run_id, leg, status="failed", message=said(none, language_of(run)))
            return
        if self._closing or (self._may_begin is not None and not await self._may_begin(run)):
            await self._runs.requeue_leg(run_id, leg)
            return
        row = await self._leases.acquire(run.serial, self._owner, run_id)
        if row is None:
            await self._stand_back(run)
            return
        lease = live.lease = HeldLease(row, self._leases)
        try:
            if self._closing:  # since the look above
                await self._runs.requeue_leg(run_id, leg)
            elif (taker := self.takers.get(run_id)) is not None and not taker(lease.fencing):
                log.info("leg.not_taken", run_id=run_id)
            elif run.was_added_begun or await self._runs.begin_leg(run_id, leg, serial=run.serial):
                await self._do(run_id, leg, lease, language_of(run))
            else:
                await self._make_way(run_id)
        finally:
            await lease.release()

    async def _stand_back(self, run: RunRow) -> None:
        """The phone is not free: back into the line. Raises LeaseLost if it is this very run that has it, so that the
        queue tries again: whoever does the run there ends it, or begins this leg.
        """
        holder = await self._leases.get(run.serial)
        if holder is not None and holder.run_id == run.id:
            raise LeaseLost(f"The phone {run.serial} is in use.", key="phone_in_use", phone=run.serial)
        await self._runs.requeue_leg(run.id, run.leg)

    async def _make_way(self, run_id: str) -> None:
        """We had the phone for a leg whose turn is over; the leg whose turn it is may have stood back for us."""
        run = await self._runs.get(run_id)
        if run is not None:
            await self._runs.requeue_leg(run_id, run.leg)

    async def _do(self, run_id: str, leg: int, lease: HeldLease, lang: Lang) -> None:
        task = asyncio.ensure_future(self._work(run_id, leg, lease))
        lease.stop.attach(task)
        if lease.stop.requested:  # while the leg began
            lease.stop.cancel()
        try:
            async with lease.kept(), self._requests.heard(run_id, lease.stop):
                await _until_done(task, lease.stop)
        except asyncio.CancelledError:  # while these end
            lease.stop.request(Reason.SHUTDOWN)
            await _until_done(task, lease.stop)
        outcome = self._outcome(run_id, lease, task, lang)
        await finish(store_outcome(self._runs, run_id, leg, outcome, gave_up=self._gave_up))

    @staticmethod
    def _outcome(run_id: str, lease: HeldLease, task: asyncio.Future[LegOutcome], lang: Lang) -> LegOutcome:
        """What the leg came to, with an error in the language of its run."""
        reason = lease.stop.reason
        if task.cancelled():
            ended = {
                Reason.STOP: LegOutcome("stopped"),
                Reason.HOLD: LegOutcome("held"),
                Reason.LEASE_LOST: LegOutcome("put_back", said(lease.lost(), lang)),
            }
            return ended.get(reason, LegOutcome("put_back")) if reason is not None else LegOutcome("put_back")
        error = task.exception()
        if error is None:
            outcome = task.result()
            if reason is Reason.STOP and outcome.status in ("waiting", "held", "put_off"):
                return LegOutcome("stopped", outcome.message)
            return outcome
        if reason is Reason.STOP:
            log.warning("leg.stopped_with_error", run_id=run_id, error=repr(error))
            return LegOutcome("stopped")
        if isinstance(error, LeaseLost) or is_away(error) or reason is not None:
            log.warning("leg.put_back", run_id=run_id, reason=str(reason), error=repr(error))
            return LegOutcome("put_back", "" if reason is Reason.SHUTDOWN else said(error, lang))
        if not isinstance(error, PhonedeskError):
            log.error("leg.crashed", run_id=run_id, exc_info=error)
        return LegOutcome("failed", said(error, lang))


async def _until_done(task: asyncio.Future[LegOutcome], stop: StopSignal) -> None:
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
