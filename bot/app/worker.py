"""The part that ``phonedesk serve`` and ``phonedesk worker`` share: the host, the durable queue, the runs' attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from agent_core.devices.base import Device
from agent_core.errors import DeviceError, LeaseLost, ModelLimit, PhonedeskError
from agent_core.loop.tasks import TaskRules
from agent_core.ports import Event
from agent_core.session import FINAL, Session
from agent_core.texts import kept_language, told
from bot.app.core import Core, question_times
from bot.app.counters import CountedRuns
from bot.app.release import release
from bot.app.settings.layers import Settings
from bot.app.shutdown import start_in, wait_no_longer
from bot.desk.live_screens import encoded
from scheduler.runs.dispatcher import Dispatcher
from scheduler.runs.executor import AttemptOutcome, carry_out, left_alone, outcome_of
from scheduler.runs.host import Fleet, Host
from scheduler.runs.human import StoredHuman, given_answer, go_home, park
from scheduler.runs.lease import HeldLease
from scheduler.runs.queue import DbosQueue
from scheduler.runs.worker import Worker
from scheduler.sweeps.attempt import in_quiet_hours, sweep_attempt
from scheduler.sweeps.order import BY_WATCH, QUIET_HOURS, SWEEP_KIND
from scheduler.watches.watcher import Watcher, WatchTimes, watches_of
from storage.questions import Questions
from storage.runs import PLAN_PART, RunRow, Runs
from storage.sweeps import Sweeps

if TYPE_CHECKING:
    from bot.channels.web.metrics import Metrics

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class RunningWorker:
    """The parts of a process that works phones, under the host's name."""

    host: Host
    worker: Worker
    queue: DbosQueue
    drain: Callable[[], Awaitable[None]]  # nothing new begins, and active attempts end; a second call changes nothing


@asynccontextmanager
async def running_worker(core: Core, *, tells: bool) -> AsyncIterator[RunningWorker]:
    """Work the phones of this machine inside the block. Raises ConfigInvalid if another process has the host's name.

    At the end nothing new begins. Active attempts get some time to end by themselves, and are then put back into the
    queue. Other hosts see that this one is gone.
    tells: see ``Dispatcher``.
    """
    settings, name = core.settings, core.settings.queue.executor_id
    seconds = settings.queue.lost_after_seconds

    async def picture(serial: str) -> bytes:
        device = await core.attached.device(serial)
        try:
            shown = await core.picture(device)
        finally:
            await device.close()
        return await asyncio.to_thread(encoded, shown, full=True)

    async with AsyncExitStack() as stack:
        queue = DbosQueue(settings.queue_url, executor_id=name, lock_path=settings.data_dir / f"{name}.lock")
        host = Host(
            core.db,
            name,
            listing=lambda: listing(core, dispatcher.awaited),
            picture=picture,
            release=release(),
            seconds=seconds,
        )
        former = queue.claim(host.token)
        stack.callback(queue.release)
        await host.claim(former=former)
        fleet = fleet_of(core)

        async def may_begin(run: RunRow) -> bool:
            return await host.may_begin(run, fleet)

        attempts = AttemptExecutor(core, host)
        worker = Worker(
            core.db, attempts.work, owner=name, may_begin=may_begin, lease_seconds=seconds, lang=settings.lang
        )
        # No other process is this host, so the phones that it had before a restart are ours.
        freed = await worker.take_back()
        if freed:
            log.warning("leases_taken_back", serials=freed)

        dispatcher = Dispatcher(
            core.db,
            queue.enqueue,
            worker=worker,
            phones=host.reached,
            fleet=fleet,
            tells=tells,
            lease_seconds=seconds,
            lang=settings.lang,
        )
        await start_in(stack, host)
        await queue.start(worker.run_attempt)
        stack.push_async_callback(queue.stop)
        draining = await stack.enter_async_context(AsyncExitStack())
        draining.push_async_callback(worker.drain, settings.queue.drain_seconds)
        await start_in(draining, dispatcher)
        watcher = Watcher(core.db, lambda: host.usable, core.attached.device, watch_times(settings), core.limited)
        await start_in(draining, watcher)
        draining.push_async_callback(host.drain)
        draining.callback(wait_no_longer, core.db, settings.queue.drain_seconds)
        yield RunningWorker(host, worker, queue, draining.aclose)


async def listing(core: Core, wanted: Sequence[str] = ()) -> dict[str, str]:
    """Connect to the phones of the settings and of ``wanted``, and return adb's states of all phones, by serial."""
    return {entry.serial: entry.state for entry in await core.attached.phones(wanted=wanted)}


def fleet_of(core: Core) -> Fleet:
    """Return the phones of all hosts, with the times of the settings."""
    settings = core.settings
    wait = settings.run.phone_wait_seconds
    return Fleet(core.db, settings.queue.lost_after_seconds, timedelta(seconds=wait) if wait else None)


def metrics_of(core: Core) -> Metrics:
    """Return the metrics of this process, under the host's name, and of the database."""
    from bot.channels.web.metrics import Metrics

    queue = core.settings.queue
    seconds = queue.lost_after_seconds
    return Metrics(core.db, core.counts, host=queue.executor_id, release=release(), seconds=seconds)


def watch_times(settings: Settings) -> WatchTimes:
    """Return the times of watches, as the settings say."""
    wanted = settings.watch
    return WatchTimes(
        wanted.every_seconds,
        wanted.settle_seconds,
        max(wanted.settle_seconds, wanted.longest_settle_seconds),
        settings.sweep.cool_down_seconds,
        lease=settings.queue.lost_after_seconds,
    )


async def until_ended(ended: asyncio.Event, work: RunningWorker | None) -> None:
    """Wait until ``ended`` is set. Raises ConfigInvalid if this process can no longer be its host (``Host.why``)."""
    waits = [asyncio.create_task(ended.wait())]
    if work is not None:
        waits.append(asyncio.create_task(work.host.lost.wait()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    if work is not None and work.host.lost.is_set() and not ended.is_set():
        raise work.host.why


class AttemptExecutor:
    """The executor of a run's attempt: it loads the session, runs the agent on the phone, and stores the session."""

    def __init__(self, core: Core, host: Host) -> None:
        self._core = core
        self._host = host
        self._runs = Runs(core.db)
        self._left = left_alone(core.settings.lang)

    async def work(self, run_id: str, attempt: int, lease: HeldLease) -> AttemptOutcome:
        """Do an attempt with the leased phone, and return its outcome.

        Raises LeaseLost if the attempt is over or the phone is lost, and the error if the run cannot begin.
        """
        row = await self._runs.get(run_id)
        if row is None:
            return AttemptOutcome("stopped")
        if row.attempt != attempt or row.final:  # a part of a plan may have ended between two looks
            raise LeaseLost(f"Attempt {attempt} of the run {run_id} is over.", key="attempt_over")
        try:
            # Every log line names its run, and the models and knowledge bases in use stay open until the attempt ends.
            with structlog.contextvars.bound_contextvars(run_id=run_id, attempt=attempt, serial=lease.serial):
                async with self._core.client_rotation.used():
                    return await self._work(row, lease)
        except LeaseLost:
            raise  # the attempt is put back, so the run has not ended
        except PhonedeskError as error:
            # This is an error from before the agent had the phone. Of later errors the agent stores the outcome itself.
            if lease.stop.reason is None:  # otherwise the attempt is put back or stopped
                outcome = {
                    "status": "failed",
                    "message": told(error, kept_language(row.options.get("lang"))),
                    "error_kind": error.kind,
                }
                await CountedRuns(self._core.runs(attempt), self._core.counts).event(run_id, Event("outcome", outcome))
            raise

    async def _work(self, row: RunRow, lease: HeldLease) -> AttemptOutcome:
        of_plan = row.options.get("kind") == PLAN_PART
        if of_plan and row.session is None:  # it died at once, and only its plan knew its gate
            return AttemptOutcome("failed", self._left(row.options))
        one_of_many = bool(row.options.get(BY_WATCH) or (row.parent_id and not of_plan))
        if row.session is None and (later := await self._not_now(row, one_of_many=one_of_many)) is not None:
            return later
        device = await self._device(lease.serial)
        if device is None:
            return AttemptOutcome("put_back")
        try:
            if row.options.get("kind") == SWEEP_KIND:
                return await self._sweep(row, device, lease)
            session = await self._run(row, device, lease, one_of_many=one_of_many)
        finally:
            try:
                await device.leave()
            finally:
                await device.close()
        log.info("run_rests", run_id=session.run_id, status=session.status.value, replies=len(session.replies))
        outcome = outcome_of(session)
        return AttemptOutcome("stopped", self._left(row.options)) if await self._cut_off(row.id, outcome) else outcome

    async def _run(self, row: RunRow, device: Device, lease: HeldLease, *, one_of_many: bool) -> Session:
        """Carry out an attempt of a run, and return the session."""
        core = self._core
        settings = core.agent_settings(lang=row.options.get("lang"), max_steps=row.options.get("max_steps"))
        # While a person is asked about one contact, the phone is free to answer the others.
        hold = 0.0 if one_of_many else core.settings.run.hold_seconds
        store = core.runs(row.attempt)
        times = question_times(core.settings)
        human = StoredHuman(core.db, hold_seconds=hold, times=times, stop=lease.stop, attempt=row.attempt)
        if row.session is None:
            session = await core.session(
                row.task, lease.serial, settings, run_id=row.id, rules=TaskRules.of(row.options)
            )
        else:
            session = await self._taken_up(row.session)
        steps = len(session.steps)
        agent = core.agent(device, settings, human=human, lease=lease, store=store, attempt=row.attempt, run_id=row.id)
        await carry_out(agent, session, lease.stop)
        if not (session.is_put_off and len(session.steps) == steps):  # otherwise nothing was touched
            await self._rest(row, device, lease, session)
        return session

    async def _cut_off(self, run_id: str, outcome: AttemptOutcome) -> bool:
        """Tell whether this was a part of a plan that nobody stopped, but that ended with its process."""
        row = await self._runs.get(run_id) if outcome.status == "stopped" else None
        if row is None or row.options.get("kind") != PLAN_PART or row.stopped_by:
            return False
        plan = await self._runs.get(row.parent_id)
        return plan is None or not plan.stop_requested

    async def _not_now(self, row: RunRow, *, one_of_many: bool) -> AttemptOutcome | None:
        """Return the outcome of a new run that cannot begin now (quiet hours, or a limit); None if it can.

        Raises ModelLimit if a person waits for the run.
        """
        core = self._core
        sweep = row.options.get("kind") == SWEEP_KIND
        if one_of_many and await in_quiet_hours(core.db, row, core.db.now()):
            return AttemptOutcome("stopped", QUIET_HOURS)
        if sweep and await Sweeps(core.db).get(row.id) is not None:
            return None  # it has looked already, and waits for its runs
        try:
            await core.may_ask(row.options.get("lang"))
        except ModelLimit as error:
            if sweep and row.planned_at is not None:
                return AttemptOutcome("succeeded", error.message)
            if one_of_many:
                return AttemptOutcome("stopped", error.message)  # it has not begun, so the contact is handled again
            raise
        return None

    async def _rest(self, row: RunRow, device: Device, lease: HeldLease, session: Session) -> None:
        """Park the phone if the run waits, and save the session."""
        if session.status not in FINAL:
            async with lease.stop.shielded():  # the run rests in any case, so Hold need not cut this off
                if await park(device, lease, session):
                    await self._core.runs(row.attempt).save(session)

    async def _sweep(self, row: RunRow, device: Device, lease: HeldLease) -> AttemptOutcome:
        """Look at the chat list. On a watched phone, leave the app afterwards: in front it shows no notifications."""
        try:
            return await sweep_attempt(self._core.db, row, device, self._core.sweep_eyes(), lease)
        finally:
            if await watches_of(self._core.db, lease.serial):
                async with lease.stop.shielded():
                    await go_home(device, lease, row.id)

    async def _device(self, serial: str) -> Device | None:
        """Return the phone; None if it was here at the last look and has just gone, so that the run waits for it."""
        was_here = serial in self._host.usable
        try:
            return await self._core.attached.device(serial)
        except DeviceError:
            if was_here and serial not in await self._host.look():
                return None
            raise

    async def _taken_up(self, saved: str) -> Session:
        """Return the saved session, with an answer that has come meanwhile."""
        session = Session.model_validate_json(saved)
        if session.question is not None and session.answered is None:
            session.answered = given_answer(await Questions(self._core.db).get(session.question.id))
        return session
