"""What a watch decides: who has stopped typing, and whether a sweep starts or one that comes anyway is enough."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from scheduler.runs.human import LEFT_ALONE
from scheduler.runs.service import WATCH
from scheduler.sweeps.order import BY_WATCH, SWEEP_KIND, WORDS, SweepOrder, read_watch, watched
from storage.engine import Database
from storage.runs import QUEUED, RUNNING, NewRun, RunRow
from storage.schedules import ScheduleRow
from storage.sweeps import Sweeps, SweptApp
from storage.watches import Use, Watches

log = structlog.get_logger(__name__)


def at_work(run: RunRow) -> bool:
    """Tell whether an unfinished run is in line or active, not waiting for a person."""
    return run.status in (QUEUED, RUNNING) or run.attempt_due_at is not None


def sweep_of(row: ScheduleRow, serial: str, *, by_hand: bool = False) -> NewRun:
    """Return a sweep of the chat list for the contacts of a watch.

    ``by_hand``: a person wants it, so quiet hours don't apply.
    """
    order = read_watch(row.task) or SweepOrder()
    word = WORDS[-1] if row.options.get("lang") == "en" else WORDS[0]
    return NewRun(
        f"{word} {watched(row.task) or ''}".strip(),
        serial,
        priority=WATCH,
        options={**row.options, **order.data(), **({} if by_hand else {BY_WATCH: True})},
        requested_by=row.created_by,
        chat=row.chat,
        schedule_id=row.id,
    )


async def start_look(db: Database, row: ScheduleRow, serial: str, why: str, once: str) -> str | None:
    """Start a sweep of the chat list, once per ``once``. Return its run id, or None if it was started before.

    It has a planned time, as a schedule's tick has, because nobody waits for its result.
    """
    run = replace(sweep_of(row, serial), planned_at=db.now())
    run_id = await Watches(db).sweep(row.id, run, key=f"watch:{row.id}:{serial}:{why}:{once}")
    if run_id is not None:
        log.info("watch.looks", schedule_id=row.id, run_id=run_id, why=why)
    return run_id


async def use_since_look(db: Database, place: SweptApp, lease_seconds: float) -> Use | None:
    """Return the newest use of a phone that is free and whose chat list was not checked since, or None.

    While an app was in front it showed no notifications of messages, and messages that came into the open chat after a
    run had read it count as read in the app. Return None, too, while a person is using the phone.
    """
    watches = Watches(db, lease_seconds=lease_seconds)
    return await watches.use_since_look(place, left_alone=[kind.value for kind in LEFT_ALONE])


@dataclass(frozen=True)
class Coming:
    """The sweeps of one chat list that are about to run or are active.

    in_line: the sweeps in line that are as urgent as a watch's.
    working: the active sweeps; they may have read the list already.
    """

    in_line: Sequence[SweepOrder]
    working: Sequence[SweepOrder]

    def will_see(self, order: SweepOrder) -> bool:
        """Tell whether a sweep that has not begun covers everybody in ``order``."""
        return any(one.everybody or one == order for one in self.in_line)

    def sees(self, names: Collection[str]) -> bool:
        """Tell whether a sweep covers these contacts anyway."""
        wanted = set(names)
        return any(one.everybody or wanted <= set(one.names) for one in (*self.in_line, *self.working))


async def looks_coming(db: Database, app: str, active: Sequence[RunRow]) -> Coming:
    """Return the coming sweeps of an app's chat list. ``active``: the runs of this phone that are not over."""
    in_line, working = [], []
    for run in active:
        if run.options.get("kind") != SWEEP_KIND or not at_work(run):
            continue
        order = SweepOrder.of(run.options, run.task)
        if order.app != app or await Sweeps(db).get(run.id) is not None:
            continue
        if run.status == RUNNING:
            working.append(order)
        elif run.priority >= WATCH:
            in_line.append(order)
    return Coming(in_line, working)


@dataclass(slots=True)
class _Typing:
    state: str
    since: float
    newest: float


@dataclass(slots=True)
class Settling:
    """The contacts who have written and were not handled yet. Times are seconds of one clock, which are passed in.

    A contact is ready ``settle`` seconds after their newest message, and no later than ``longest`` after the first.
    """

    settle: float
    longest: float
    _typing: dict[str, _Typing] = field(default_factory=dict)
    _done: dict[str, str] = field(default_factory=dict)

    def see(self, standing: Mapping[str, str], now: float) -> None:
        """Take in the current contacts: a state by name, which changes when they write again.

        A missing name was read by somebody.
        """
        self._typing = {name: one for name, one in self._typing.items() if name in standing}
        self._done = {name: state for name, state in self._done.items() if name in standing}
        for name, state in standing.items():
            typing = self._typing.get(name)
            if self._done.get(name) == state:
                continue
            if typing is None:
                self._typing[name] = _Typing(state, now, now)
            elif typing.state != state:
                typing.state, typing.newest = state, now

    def ready(self, now: float) -> dict[str, str]:
        """Return the contacts who have stopped typing, with their states, until ``done`` is called for them."""
        return {name: one.state for name, one in self._typing.items() if now >= self._due(one)}

    def done(self, name: str) -> None:
        """Mark a contact as handled until they write again."""
        if (typing := self._typing.pop(name, None)) is not None:
            self._done[name] = typing.state

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next contact is ready, or None if nobody types."""
        coming = [due - now for one in self._typing.values() if (due := self._due(one)) > now]
        return min(coming, default=None)

    def _due(self, typing: _Typing) -> float:
        return min(typing.newest + self.settle, typing.since + self.longest)
