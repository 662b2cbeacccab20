"""Sweeps in this process, for ``phonedesk sweep``: the look, then one contact after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agent_core.ports import Human, RunStore
from agent_core.session import Session, Status
from bot.app.core import Core
from bot.app.run_here import passed_on, run_here, stopped_by_interrupt
from scheduler.runs.executor import said
from scheduler.runs.lease import lease_of
from scheduler.runs.stop import StopRequests, StopSignal
from scheduler.sweeps.attempt import Prepared, not_found, prepare
from scheduler.sweeps.order import SweepOrder
from storage.people import TERMINAL, Audit
from storage.runs import FAILED, STOPPED, SUCCEEDED, WAITING, NewRun, RunRow, Runs
from storage.sweeps import NewSweep, NewSwept, Sweeps


@dataclass
class Done:
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
    serial: str = "",
    human: Human,
    store: RunStore,
    looks: Callable[[RunRow], Awaitable[None]],
    ended: Callable[[Session], Awaitable[None]],
) -> Done:
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
            prepared = await _look(core, row, device.serial, interrupt)
            done = Done(row.id, prepared.sweep)
            for one in prepared.start:
                if interrupt.requested or (await runs.asked([row.id])).get(row.id, (False, False))[0]:
                    done.status = STOPPED
                    break
                session = await _answer(core, prepared, one, human, store, interrupt)
                done.sessions.append((one.contact, session))
                await ended(session)
                if session.status is Status.STOPPED:
                    break
            done.status = _status(done)
            await _close(runs, row, done, await not_found(core.db, row, prepared.sweep.details))
        except BaseException as error:
            stopped = interrupt.requested and isinstance(error, asyncio.CancelledError)
            status, message = (STOPPED, "") if stopped else (FAILED, said(error, core.settings.lang))
            await runs.end_attempt(row.id, row.attempt, status=status, message=message)
            raise
        finally:
            if interrupt.requested:
                await Audit(core.db).write(TERMINAL, TERMINAL, "stop", {"run_id": row.id})
        return done


async def _look(core: Core, row: RunRow, serial: str, interrupt: StopSignal) -> Prepared:
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


async def _answer(
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


def _status(done: Done) -> str:
    """Return the worst status of all: stopped, failed, waiting, succeeded."""
    ended = {session.comes_to for _, session in done.sessions}
    if done.status == STOPPED or Status.STOPPED in ended:
        return STOPPED
    if Status.FAILED in ended:
        return FAILED
    return WAITING if ended - {Status.SUCCEEDED} else SUCCEEDED


async def _close(runs: Runs, row: RunRow, done: Done, message: str) -> None:
    """Store the outcome. The sweep waits only for its own runs, not for an older run that a contact is left to."""
    if done.status != WAITING:
        await runs.end_attempt(row.id, row.attempt, status=done.status, message=message)
    elif any(session.status is Status.WAITING for _, session in done.sessions):
        await runs.park_attempt(row.id, row.attempt, message=message)
    else:
        await runs.end_attempt(row.id, row.attempt, status=SUCCEEDED, message=message)
