"""Runs in this process, without the queue: ``phonedesk run`` and the plain demo."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

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
from scheduler.sweeps.order import read_task
from storage.people import TERMINAL, Audit
from storage.runs import NewRun, Runs

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
