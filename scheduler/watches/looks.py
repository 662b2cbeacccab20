"""When a watch has the list of chats looked at, and when a look that comes anyway is enough."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import structlog

from scheduler.runs.human import LEFT_ALONE
from scheduler.runs.service import WATCH
from scheduler.sweeps.order import KIND as SWEEP
from scheduler.sweeps.order import SweepOrder
from scheduler.watches.order import sweep_of
from storage.engine import Database
from storage.runs import QUEUED, RUNNING, RunRow
from storage.schedules import ScheduleRow
from storage.sweeps import Sweeps, SweptApp
from storage.watches import Use, Watches

log = structlog.get_logger(__name__)


def at_work(run: RunRow) -> bool:
    """Whether an active run is in the line or at work, not waiting for a person."""
    return run.status in (QUEUED, RUNNING) or run.attempt_due_at is not None


async def start_look(db: Database, row: ScheduleRow, serial: str, why: str, once: str) -> str | None:
    """Look at the list of chats, once for ``once``. It has a time as a tick has: nobody waits for what it finds."""
    run = replace(sweep_of(row, serial), planned_at=db.now())
    run_id = await Watches(db).sweep(row.id, run, key=f"watch:{row.id}:{serial}:{why}:{once}")
    if run_id is not None:
        log.info("watch.looks", schedule_id=row.id, run_id=run_id, why=why)
    return run_id


async def use_since_look(db: Database, place: SweptApp, lease_seconds: float) -> Use | None:
    """The newest use of a phone that is free now and whose list was not looked at since; None where there is none.

    While an app was in front it showed no notification of what others wrote, and what came into the open chat after a
    run had read it counts as read for the app. None, too, while somebody has the phone in hand.
    """
    watches = Watches(db, lease_seconds=lease_seconds)
    return await watches.use_since_look(place, left_alone=[kind.value for kind in LEFT_ALONE])


@dataclass(frozen=True)
class Coming:
    """The looks at one list that are about to be had: those in the line that are as urgent as a watch's, and whether
    one is at work. That one may have read the list already.
    """

    in_line: Sequence[SweepOrder]
    working: Sequence[SweepOrder]

    def will_see(self, order: SweepOrder) -> bool:
        """Whether a look that has not begun is about everybody whom ``order`` is about."""
        return any(one.everybody or one == order for one in self.in_line)

    def sees(self, names: Collection[str]) -> bool:
        """Whether these contacts are looked at anyway."""
        wanted = set(names)
        return any(one.everybody or wanted <= set(one.names) for one in (*self.in_line, *self.working))


async def looks_coming(db: Database, app: str, active: Sequence[RunRow]) -> Coming:
    """``active``: the runs of this phone that are not over."""
    in_line, working = [], []
    for run in active:
        if run.options.get("kind") != SWEEP or not at_work(run):
            continue
        order = SweepOrder.of(run.options, run.task)
        if order.app != app or await Sweeps(db).get(run.id) is not None:
            continue
        if run.status == RUNNING:
            working.append(order)
        elif run.priority >= WATCH:
            in_line.append(order)
    return Coming(in_line, working)
