"""A run in this process, with the phone's lease in hand: ``phonedesk run`` and the plain demo."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog
from sqlalchemy.exc import DBAPIError

from agent_core.devices.adb.device import AdbDevice
from agent_core.errors import InputRejected
from agent_core.gate import PolicyName
from agent_core.hand import installed
from agent_core.ports import Human, RunStore
from agent_core.session import Session, Status
from agent_core.settings import AgentSettings
from agent_core.tasks import NO_RULES, TaskRules, check_rules, check_task
from bot.app import Core
from bot.ending import on_signals
from bot.executor import attempt
from scheduler.parking import store_end
from scheduler.signals import Reason, StopSignal
from scheduler.sweeps.order import read_task
from scheduler.worker import lease_of, said
from storage.engine import MISSED_SECONDS, Database
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
) -> Session:
    """Do a task now, as a run like any other: a row, a lease, events.

    Ctrl-C stops it, and so does a stop in its row; never in the midst of Send. ``run_id``: its row is there, begun.
    """
    task = check_task(task)
    check_rules(task, rules)
    if rules.policy in ("", PolicyName.REPLY) and read_task(task) is not None:
        raise InputRejected(
            "Several contacts are answered by a sweep.", advice="Use: phonedesk sweep.", key="reply_several"
        )
    await core.may_ask(lang)
    device = await core.device(serial)
    try:
        await _check_installed(device, rules)
        settings = core.agent_settings(lang=lang, max_steps=max_steps)
        runs = Runs(core.db)
        options = {"lang": settings.lang, **rules.data()}
        run_id = run_id or await runs.create(
            NewRun(task, device.serial, options=options, requested_by="terminal", begun=True)
        )
        if run_id is None:
            raise RuntimeError("The run was not stored.")
        session = await core.session(task, device.serial, settings, run_id=run_id, rules=rules, dry_run=dry_run)
        await _work(core, device, session, settings, human, store)
        return session
    finally:
        await device.close()


async def _work(
    core: Core, device: AdbDevice, session: Session, settings: AgentSettings, human: Human, store: RunStore
) -> None:
    """Do the run, and store how it ended."""
    runs, run_id = Runs(core.db), session.run_id
    try:
        async with lease_of(core.db, device.serial, owner=f"terminal-{os.getpid()}", why=run_id) as lease:
            with stopped_by_interrupt(lease.stop):
                async with stopped_by_row(core.db, run_id, lease.stop):
                    await attempt(core, device, session, settings, lease, human=human, store=store, leg=1)
            # While the phone is still ours: a server beside us must not take the run for a dead one.
            await store_end(runs, session, 1)
    except BaseException as error:
        session.end(Status.FAILED, said(error, session.lang))
        await store_end(runs, session, 1)
        raise


async def _check_installed(device: AdbDevice, rules: TaskRules) -> None:
    """InputRejected for a task that may use an app alone which the phone has not."""
    for app in rules.apps:
        if await installed(device, app):
            continue
        said = f"{app} is not installed on the phone."
        raise InputRejected(said, advice="Install it, or name another.", key="app_not_here", name=app)


@asynccontextmanager
async def stopped_by_row(db: Database, run_id: str, stop: StopSignal) -> AsyncIterator[None]:
    """A stop, or Hold, that another process (the server, from a chat) wrote into the run's row is heard inside."""

    async def watch() -> None:
        while not stop.requested:
            waiter = db.signal("runs").waiter()
            try:
                asked = await Runs(db).asked([run_id])
            except DBAPIError as error:  # a database that is away for a moment ends no run
                log.warning("run_not_watched", run_id=run_id, error=repr(error))
                asked = {}
            stopped, held = asked.get(run_id, (False, False))
            if stopped:
                stop.request(Reason.STOP)
            elif held:
                stop.request_hold()
            await waiter.wait(MISSED_SECONDS)

    watching = asyncio.create_task(watch(), name="run-watch")
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@contextmanager
def stopped_by_interrupt(stop: StopSignal) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask for a stop, which waits while something must not be cut in two."""
    with on_signals(lambda: stop.request(Reason.STOP)):
        yield
