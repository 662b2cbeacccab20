"""One attempt of a run on a phone: whoever drives a run, the agent is built, stopped, held and ended here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agent_core.devices.adb.device import AdbDevice
from agent_core.ports import Human, RunStore
from agent_core.session import FINAL, Session, Status
from agent_core.settings import AgentSettings
from bot.app import Core
from scheduler.runs.lease import HeldLease
from scheduler.runs.parking import ParkingModel
from scheduler.runs.stop import Reason


async def attempt(
    core: Core,
    device: AdbDevice,
    session: Session,
    settings: AgentSettings,
    lease: HeldLease,
    *,
    human: Human,
    store: RunStore,
    leg: int,
    prepare: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Have the agent go on with ``session`` until an outcome, a question that nobody answers now, Stop or Hold.

    leg: the number of this attempt, under which everything is written.
    prepare: what is done on the phone before the agent's first look. Stop reaches it, too.

    The session tells how it ended; who calls stores that, while the phone is still ours. LeaseLost is raised, and so is
    a cancel that is neither Stop nor Hold: then the run is not over, and somebody else goes on with it.
    """
    stop = lease.stop
    agent = core.agent(
        device,
        settings,
        human=human,
        lease=lease,
        guard=stop,
        store=store,
        model=ParkingModel(core.model, stop),
        leg=leg,
        run_id=session.run_id,
    )
    begun = False
    try:
        if prepare is not None:
            await prepare()
        begun = True
        await agent.go_on(session)
    except asyncio.CancelledError:
        if stop.reason not in (Reason.STOP, Reason.HOLD):
            raise
        if session.status in FINAL and begun:
            await agent.go_on(session)  # it was over in this very moment: only told how
        elif stop.reason is Reason.STOP and begun:
            await agent.end_stopped()
        elif stop.reason is Reason.STOP:
            session.end(Status.STOPPED, "")
