"""Runs and sweeps in this process, without the queue: ``phonedesk run``, ``phonedesk sweep`` and the plain demo."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

import structlog

from agent_core.devices.base import Device
from agent_core.errors import InputRejected
from agent_core.loop.launching import installed
from agent_core.loop.tasks import NO_RULES, TaskRules, check_rules, check_task
from agent_core.policies import PolicyName
from agent_core.ports import Human, RunStore
from agent_core.session import Session, Status
from agent_core.settings import AgentSettings
from bot.app.core import Core
from bot.app.shutdown import on_signals
from scheduler.runs.executor import carry_out, outcome_of, said, store_outcome
from scheduler.runs.lease import lease_of, refuse_if_in_use
from scheduler.runs.stop import Reason, StopRequests, StopSignal
from scheduler.sweeps.attempt import Prepared, not_found, prepare
from scheduler.sweeps.order import SweepOrder, read_task
from storage.people import TERMINAL, Audit
from storage.runs import FAILED, STOPPED, SUCCEEDED, WAITING, NewRun, RunRow, Runs
from storage.sweeps import NewSweep, NewSwept, Sweeps

log = structlog.get_logger(__name__)


async def run_here(
    core: Core,
    task: str,
    *,
    serial: str = "",
    human: Human,
    store: RunStore,
    lang: str | None = None,
    max_steps: int | None = None,
    rules: TaskRules = NO_RULES,
    dry_run: bool = False,
    run_id: str | None = None,
    interrupt: StopSignal | None = None,
) -> Session:
    """Do a task now and return the session. Like any run it has a row, a lease and events.

    Ctrl-C stops it, from the moment its row exists, and so does a stop request in its row, but never in the middle of
    Send.
    interrupt: the caller's signal of Ctrl-C; None to hear Ctrl-C here.
    run_id: the run's row, which exists and has begun; None to make one.
    Raises InputRejected if the text is not a task, is a sweep, or needs an app that is not installed, ModelLimit if
    today's limit for models is reached, and errors of the phone.
    """
    task = check_task(task)
    check_rules(task, rules)
    if rules.policy in ("", PolicyName.REPLY) and read_task(task) is not None:
        raise InputRejected(
            "Several contacts are answered by a sweep.", advice="Use: phonedesk sweep.", key="reply_several"
        )
    await core.may_ask(lang)
    device = await core.attached.device(serial)
    try:
        if run_id is None:
            await refuse_if_in_use(core.db, device.serial)  # a run that never had the phone has not failed
        await _check_installed(device, rules)
        settings = core.agent_settings(lang=lang, max_steps=max_steps)
        options = {"lang": settings.lang, **rules.data()}
        heard = StopSignal() if interrupt is None else interrupt
        with stopped_by_interrupt(heard) if interrupt is None else nullcontext():
            if run_id is None:
                run_id = await Runs(core.db).create(
                    NewRun(task, device.serial, options=options, requested_by=TERMINAL, begun=True)
                )
                if run_id is None:
                    raise RuntimeError("The run was not stored.")
                await Audit(core.db).write(TERMINAL, TERMINAL, "run", {"task": task, "serial": device.serial})
            session = await core.session(task, device.serial, settings, run_id=run_id, rules=rules, dry_run=dry_run)
            try:
                await _work(core, device, session, settings, human, store, heard)
            finally:
                if heard.requested and interrupt is None:  # else the caller tells it
                    await Audit(core.db).write(TERMINAL, TERMINAL, "stop", {"run_id": run_id})
        return session
    finally:
        await device.close()


async def _work(
    core: Core,
    device: Device,
    session: Session,
    settings: AgentSettings,
    human: Human,
    store: RunStore,
    interrupt: StopSignal,
) -> None:
    """Do the run, and store its outcome."""
    runs, run_id = Runs(core.db), session.run_id
    try:
        async with lease_of(core.db, device, owner=f"terminal-{os.getpid()}", why=run_id) as lease:
            agent = core.agent(device, settings, human=human, lease=lease, store=store, attempt=1, run_id=run_id)
            async with StopRequests(core.db).heard(run_id, lease.stop), passed_on(interrupt, lease.stop):
                await carry_out(agent, session, lease.stop)
            # Stored while we still have the phone, so that a server beside us does not take the run for a dead one.
            await store_outcome(runs, run_id, 1, outcome_of(session))
    except BaseException as error:
        session.end(Status.FAILED, said(error, session.lang))
        await store_outcome(runs, run_id, 1, outcome_of(session))
        raise


async def _check_installed(device: Device, rules: TaskRules) -> None:
    """Raise InputRejected if the phone lacks one of the apps that the task is limited to."""
    for app in rules.apps:
        if await installed(device, app):
            continue
        said = f"{app} is not installed on the phone."
        raise InputRejected(said, advice="Install it, or name another.", key="app_not_here", name=app)


@asynccontextmanager
async def passed_on(interrupt: StopSignal, stop: StopSignal) -> AsyncIterator[None]:
    """Pass a stop request on inside the block, also one that came earlier."""

    async def wait() -> None:
        await interrupt.wait()
        stop.request(Reason.STOP)

    waiting = asyncio.create_task(wait(), name="interrupt")
    try:
        yield
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


@contextmanager
def stopped_by_interrupt(stop: StopSignal) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a stop request inside the block. A stop waits for the end of protected work."""
    with on_signals(lambda: stop.request(Reason.STOP)):
        yield


# Sweeps: the look, then one contact after the other -------------------------------------------------------------------


@dataclass
class SweepDone:
    """The result of a sweep. ``status``: as of a run; ``waiting`` if a contact waits for a person."""

    run_id: str
    look: NewSweep
    sessions: list[tuple[str, Session]] = field(default_factory=list)  # by contact
    status: str = SUCCEEDED


async def sweep_here(
    core: Core,
    order: SweepOrder,
    task: str,
    *,
    serial: str,
    human: Human,
    store: RunStore,
    looks: Callable[[RunRow], Awaitable[None]],
    ended: Callable[[Session], Awaitable[None]],
) -> SweepDone:
    """Check for new messages, answer each contact with a run like any other, and return the result.

    looks: called with the sweep's row before the look, which takes seconds. ended: called with each contact's run.
    Ctrl-C stops the active run, and no other one begins. Raises the errors of reading the chat list.
    """
    device = await core.attached.device(serial)
    runs = Runs(core.db)
    options = {"lang": core.settings.lang, **order.data()}
    new = NewRun(task, device.serial, options=options, requested_by=TERMINAL, begun=True)
    interrupt = StopSignal()
    with stopped_by_interrupt(interrupt):
        run_id = await runs.create(new)
        row = await runs.get(run_id or "")
        if row is None:
            raise RuntimeError("The sweep was not stored.")
        await Audit(core.db).write(TERMINAL, TERMINAL, "sweep", {"task": task, "serial": device.serial})
        try:
            await looks(row)
            prepared = await _look_for_messages(core, row, device.serial, interrupt)
            done = SweepDone(row.id, prepared.sweep)
            for one in prepared.start:
                if interrupt.requested or (await runs.asked([row.id])).get(row.id, (False, False))[0]:
                    done.status = STOPPED
                    break
                session = await _answer_contact(core, prepared, one, human, store, interrupt)
                done.sessions.append((one.contact, session))
                await ended(session)
                if session.status is Status.STOPPED:
                    break
            done.status = _sweep_status(done)
            await _close_sweep(runs, row, done, await not_found(core.db, row, prepared.sweep.details))
        except BaseException as error:
            stopped = interrupt.requested and isinstance(error, asyncio.CancelledError)
            status, message = (STOPPED, "") if stopped else (FAILED, said(error, core.settings.lang))
            await runs.end_attempt(row.id, row.attempt, status=status, message=message)
            raise
        finally:
            if interrupt.requested:
                await Audit(core.db).write(TERMINAL, TERMINAL, "stop", {"run_id": row.id})
        return done


async def _look_for_messages(core: Core, row: RunRow, serial: str, interrupt: StopSignal) -> Prepared:
    device = await core.attached.device(serial)
    try:
        async with lease_of(core.db, device, owner=f"terminal-{os.getpid()}", why=row.id) as lease:
            async with StopRequests(core.db).heard(row.id, lease.stop), passed_on(interrupt, lease.stop):
                prepared = await prepare(core.db, row, device, core.sweep_eyes(), lease)
            # Stored while we still have the phone, so that a server beside us does not take the sweep for a dead one.
            # Its runs are stored later, one at a time.
            await Sweeps(core.db).looked(row.id, row.attempt, prepared.sweep, ())
            return prepared
    finally:
        await device.close()


async def _answer_contact(
    core: Core, prepared: Prepared, one: NewSwept, human: Human, store: RunStore, interrupt: StopSignal
) -> Session:
    begun = replace(one, run=replace(one.run, begun=True))
    run_id = await Sweeps(core.db).start(prepared.sweep.place, begun)
    try:
        return await run_here(
            core, one.run.task, serial=one.run.serial, human=human, store=store, run_id=run_id, interrupt=interrupt
        )
    except BaseException as error:
        await Runs(core.db).end_attempt(run_id, 1, status=FAILED, message=said(error, core.settings.lang))
        raise


def _sweep_status(done: SweepDone) -> str:
    """Return the worst status of all: stopped, failed, waiting, succeeded."""
    ended = {session.comes_to for _, session in done.sessions}
    if done.status == STOPPED or Status.STOPPED in ended:
        return STOPPED
    if Status.FAILED in ended:
        return FAILED
    return WAITING if ended - {Status.SUCCEEDED} else SUCCEEDED


async def _close_sweep(runs: Runs, row: RunRow, done: SweepDone, message: str) -> None:
    """Store the outcome. The sweep waits only for its own runs, not for an older run that a contact is left to."""
    if done.status != WAITING:
        await runs.end_attempt(row.id, row.attempt, status=done.status, message=message)
    elif any(session.status is Status.WAITING for _, session in done.sessions):
        await runs.park_attempt(row.id, row.attempt, message=message)
    else:
        await runs.end_attempt(row.id, row.attempt, status=SUCCEEDED, message=message)
