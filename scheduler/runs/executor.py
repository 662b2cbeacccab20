"""The executor: has an agent do one attempt of a run, whoever drives the run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agent_core.agent import PhoneAgent
from agent_core.session import FINAL, Session, Status
from scheduler.runs.stop import Reason, StopSignal


async def carry_out(
    agent: PhoneAgent, session: Session, stop: StopSignal, *, prepare: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Have the agent go on with ``session`` until an outcome, a question that nobody answers now, Stop or Hold.

    stop: of the lease that the agent has; it cancels this task.
    prepare: what is done on the phone before the agent's first look. Stop reaches it, too.

    The session tells how it ended; who calls stores that, while the phone is still ours. LeaseLost is raised, and so is
    a cancel that is neither Stop nor Hold: then the run is not over, and somebody else goes on with it.
    """
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
