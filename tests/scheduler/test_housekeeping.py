"""What is old goes, what is new or waits stays."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from scheduler.housekeeping import Housekeeping
from scheduler.runs import RunService
from storage.engine import Database
from storage.events import Events
from storage.inbox import Inbox
from storage.outbox import Outbox
from storage.runs import Runs
from tests.storage.conftest import Clock

KEEP = timedelta(days=30)


async def test_old_and_over_goes(db: Database, clock: Clock) -> None:
    events, inbox, outbox = Events(db), Inbox(db), Outbox(db)
    run_id = await RunService(db).submit("task")
    await events.append(run_id, "step", {}, picture=b"jpeg")
    (*_, step) = await events.after(0)
    assert step.picture_id is not None
    for update_id in (1, 2):
        await inbox.store(update_id, "{}")
    await inbox.done(1)
    sent, waiting = [await outbox.put("7", {"text": name}) for name in ("sent", "waiting")]
    await outbox.sent(sent)
    keeping = Housekeeping(db, keep=KEEP)
    assert await keeping.once() == {"events": 0, "inbox": 0, "outbox": 0}
    clock.move(days=31)
    newest = await events.append(run_id, "step", {})
    assert await keeping.once() == {"events": 2, "inbox": 1, "outbox": 1}
    assert [event.id for event in await events.after(0)] == [newest]
    assert await events.picture(step.picture_id) is None
    assert [row.update_id for row in await inbox.waiting()] == [2]
    assert await outbox.get(waiting) is not None
    assert await Runs(db).get(run_id) is not None


async def test_it_is_done_again_and_again_until_it_is_stopped(db: Database, clock: Clock) -> None:
    keeping = Housekeeping(db, keep=KEEP, every_seconds=0.01)
    await keeping.start()
    await Events(db).append("r1", "step", {})
    clock.move(days=31)
    async with asyncio.timeout(10):
        while await Events(db).after(0):
            await asyncio.sleep(0.005)
    await keeping.stop()
