"""Who hears the Stop and Hold that another process wrote into a run's row."""

from __future__ import annotations

import asyncio

from scheduler.runs.stop import Reason, StopRequests, StopSignal
from storage.engine import Database
from storage.runs import NewRun, Runs


async def test_what_was_asked_before_a_run_joins_is_heard_at_once(db: Database) -> None:
    """Though the look for the runs that were there already is long over, and no change of the runs follows."""
    runs, requests = Runs(db), StopRequests(db, seconds=3600)
    first, second = [await runs.create(NewRun("task", f"phone-{number}", begun=True)) for number in (1, 2)]
    assert first is not None
    assert second is not None
    await runs.request_stop(second)
    here, there = StopSignal(), StopSignal()
    async with requests.heard(first, here):
        await asyncio.sleep(0.1)
        async with requests.heard(second, there), asyncio.timeout(30):
            await there.wait()
        assert there.reason is Reason.STOP
        await runs.request_hold(first)
        async with asyncio.timeout(30):
            await here.wait()
    assert (here.reason, here.hold_requested) == (None, True)
