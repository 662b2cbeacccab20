"""The watcher of a host: it follows the notifications of the phones for which a watch is on.

Reading notifications needs no lease. A contact's new message starts a run once they have stopped typing; a notification
that hides its sender starts a sweep of the chat list. Such a sweep also begins each watch, and follows each run on the
phone: while the app is in front it shows no notifications.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from agent_core.devices.base import Device
from agent_core.errors import InputRejected
from agent_core.perception.compare import same_name
from agent_core.policies.detect import reply_task
from agent_core.sweep import LookOutcome, UnreadLook, Waiting
from agent_core.sweep.rows import noted
from agent_core.texts import kept_language
from scheduler.clock import never
from scheduler.jobs.periodic import Periodic
from scheduler.runs.service import WATCH
from scheduler.sweeps.attempt import contacts_of
from scheduler.sweeps.order import BY_WATCH, WATCH_KIND, SweepOrder, read_watch, reply_to
from scheduler.sweeps.plan import ChosenContact, Left, Rules, plan
from scheduler.times.shop import quiet_of
from scheduler.watches.looks import Settling, at_work, looks_coming, start_look, use_since_look
from storage.engine import Database
from storage.ids import new_id
from storage.leases import LEASE_SECONDS
from storage.runs import ACTIVE, NewRun, RunRow, Runs
from storage.schedules import ScheduleRow, Schedules
from storage.sweeps import MarkRow, NewSwept, Sweeps, SweptApp
from storage.watches import Watches

# The longest time between two refreshes. A change by another process is seen within ``storage.signals.PULSE_SECONDS``.
REFRESH_SECONDS = 5.0
AWAY_SECONDS = 10.0  # before a phone whose notifications cannot be read is asked again
LIST = ""  # the chat list among the names of contacts

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """The times of a watch, in seconds.

    ``settle``: since the newest message. ``longest``: since the first. ``cool_down``: as for sweeps. ``lease``: how
    long a holder without a heartbeat keeps a phone.
    """

    every: float = 2.0
    settle: float = 2.0
    longest: float = 15.0
    cool_down: float = 60.0
    refresh: float = REFRESH_SECONDS
    lease: float = LEASE_SECONDS


@dataclass(slots=True)
class _Watch:
    """A watch on one phone. ``targets``: None for everybody."""

    row: ScheduleRow
    order: SweepOrder
    settling: Settling
    begun: bool = False
    owed_at: float = 0.0  # when contacts whose run failed are checked next
    looked_at: datetime | None = None  # when the list was last checked before the last sweep was started,
    look_again_at: float = 0.0  # which is started again at this time if it failed
    targets: Sequence[str] | None = None
    known: Sequence[str] = ()
    people: Sequence[str] = ()


def is_on(row: ScheduleRow, serial: str) -> bool:
    """Tell whether this schedule is a watch that follows this phone."""
    return row.kind == WATCH_KIND and not row.paused and row.serial in ("", serial)


async def watches_of(db: Database, serial: str) -> list[ScheduleRow]:
    """Return the watches that follow this phone, except those in their quiet hours."""
    rows = [row for row in await Schedules(db).all() if is_on(row, serial)]
    return [row for row in rows if not _is_quiet(db, row)]


class PhoneWatch:
    """The watches of one phone. ``refresh`` sets them; ``look`` reads the notifications once."""

    def __init__(self, db: Database, device: Device, times: WatchTimes) -> None:
        self.device = device
        self._db = db
        self._times = times
        self._watches: dict[tuple[int, str], _Watch] = {}

    async def refresh(self, rows: Sequence[ScheduleRow]) -> None:
        """Set the watches that are on, and look up the contacts that they mean."""
        before, self._watches = self._watches, {}
        for row in rows:
            try:
                order = read_watch(row.task)
            except InputRejected as error:  # a row of another release; the others continue
                log.error("watch.unreadable", schedule_id=row.id, error=str(error))
                continue
            if order is None:
                continue
            key = (row.id, row.task)
            watch = before.get(key) or _Watch(row, order, Settling(self._times.settle, self._times.longest))
            watch.row = row
            watch.targets, watch.known = await contacts_of(self._db, order, self.device.serial)
            watch.people = await Sweeps(self._db).people(SweptApp(self.device.serial, order.app))
            self._watches[key] = watch

    async def look(self, now: float) -> float:
        """Read the notifications and start the runs that are ready. Return the seconds until the next call.

        now: the time of a clock that does not jump.
        """
        awake = [watch for watch in self._watches.values() if not self._rests(watch)]
        if not awake:
            return self._times.every
        for watch in awake:  # first, because a phone may not let its notifications be read
            await self._look_at_list(watch, now)
        notes = await self.device.notifications()
        wait = self._times.every
        for watch in awake:
            found = noted(notes, watch.order.profile, known=watch.known, targets=watch.targets, people=watch.people)
            standing = {**found.contacts, **({LIST: found.nameless} if found.nameless else {})}
            watch.settling.see(standing, now)
            await self._start(watch, watch.settling.ready(now), now)
            due = watch.settling.due_in(now)
            wait = wait if due is None else min(wait, due)
        return wait

    def _rests(self, watch: _Watch) -> bool:
        """Tell whether it is quiet. At the end of the quiet hours the watch begins again."""
        quiet = _is_quiet(self._db, watch.row)
        if quiet:
            watch.begun = False
        return quiet

    async def _look_at_list(self, watch: _Watch, now: float) -> None:
        """Start a sweep when the watch begins, and after each use of the phone.

        It sees messages from before the watch or from while the phone was in use, whether or not a notification still
        shows them.
        """
        serial, app = self.device.serial, watch.order.app
        use = await use_since_look(self._db, SweptApp(serial, app), self._times.lease) if watch.begun else None
        if watch.begun and (use is None or (use.looked_at == watch.looked_at and now < watch.look_again_at)):
            return  # if a sweep fails, the next one waits
        coming = await looks_coming(self._db, app, await self._active())
        if not watch.begun:
            if not coming.will_see(watch.order):
                await start_look(self._db, watch.row, serial, "begin", new_id())
            watch.begun = True
        elif use is not None and not coming.will_see(watch.order):
            await start_look(self._db, watch.row, serial, "after", str(use.fencing))
            watch.looked_at, watch.look_again_at = use.looked_at, now + self._pause

    async def _start(self, watch: _Watch, ready: Mapping[str, str], now: float) -> None:
        if LIST in ready:
            await start_look(self._db, watch.row, self.device.serial, "list", ready[LIST])
            watch.settling.done(LIST)
        named = {name: state for name, state in ready.items() if name != LIST}
        if not named and now < watch.owed_at:
            return
        watch.owed_at = now + self._pause
        active = await self._active()
        if (await looks_coming(self._db, watch.order.app, active)).sees(named):
            return  # the sweep sees them, too
        await self._answer(watch, named, _at_work(active))

    async def _active(self) -> list[RunRow]:
        """Return the runs of this phone that are not over."""
        active = await Runs(self._db).find(statuses=ACTIVE, limit=1000)
        return [run for run in active if run.serial in ("", self.device.serial)]

    @property
    def _pause(self) -> float:
        """Seconds before a failed start is tried again."""
        return max(self._times.cool_down / 2, self._times.every)

    async def _answer(self, watch: _Watch, named: Mapping[str, str], busy: Sequence[str]) -> None:
        place = SweptApp(self.device.serial, watch.order.app)
        marks = await Sweeps(self._db).marks(place)
        look = UnreadLook(LookOutcome.READ, tuple(Waiting(name, state) for name, state in named.items()))
        rules = Rules(self._db.now(), timedelta(seconds=self._times.cool_down))
        chosen = plan(look, watch.targets, marks, rules)
        for one in chosen.start:
            if any(same_name(one.contact, name) for name in busy):
                continue  # a person has them answered; whatever is there afterwards is new
            await self._run(watch, place, one, marks.get(one.contact))
            watch.settling.done(one.contact)
        for contact, why in chosen.left:
            if why not in (Left.AT_WORK, Left.COOLING):
                watch.settling.done(contact)

    async def _run(self, watch: _Watch, place: SweptApp, one: ChosenContact, mark: MarkRow | None) -> None:
        row = watch.row
        task = reply_to(one.contact, watch.order.profile, kept_language(row.options.get("lang")))
        if task is None:
            log.warning("watch.unnamed", schedule_id=row.id)
            return
        kept = {name: row.options[name] for name in ("lang",) if name in row.options}
        run = NewRun(
            task,
            place.serial,
            priority=WATCH,
            options={**kept, "contact": one.contact, BY_WATCH: True},
            requested_by=row.created_by,
            chat=row.chat,
            schedule_id=row.id,
        )
        # Another run may follow the newest: that one failed, never began, or the same words have come once more.
        again = mark.run_id if mark is not None else ""
        key = f"watch:{row.id}:{place.serial}:{place.app}:{one.contact}:{one.state}:{again}"
        new = NewSwept(one.contact, one.state, one.tries, run)
        run_id = await Watches(self._db).answer(row.id, place, new, key=key)
        if run_id is not None:
            log.info("watch.started", schedule_id=row.id, run_id=run_id)


@dataclass
class Watcher:
    """The watcher that follows the phones of this host, from ``start`` to ``stop``.

    phones: returns the serials of this host's phones.
    device: opens a phone; the watcher closes it.
    limited: tells whether no more model calls are allowed today. Then no phone is followed. Afterwards each watch
        begins again, and sees the messages in the chat list.
    """

    db: Database
    phones: Callable[[], Sequence[str]]
    device: Callable[[str], Awaitable[Device]]
    times: WatchTimes = WatchTimes()
    limited: Callable[[], Awaitable[bool]] = never
    _rows: list[ScheduleRow] = field(default_factory=list)
    _followed: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._loop = Periodic(
            "watcher", self._keep, self.times.refresh, waiter=lambda: self.db.signal("schedules").waiter()
        )

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()
        for task in self._followed.values():
            task.cancel()
        await asyncio.gather(*self._followed.values(), return_exceptions=True)
        self._followed = {}

    async def _keep(self) -> None:
        """Follow the phones for which a watch is on, and no others."""
        rows = [row for row in await Schedules(self.db).all() if row.kind == WATCH_KIND and not row.paused]
        self._rows = [] if rows and await self.limited() else rows
        wanted = {serial for serial in self.phones() if any(is_on(row, serial) for row in self._rows)}
        for serial in set(self._followed) - wanted:
            self._followed.pop(serial).cancel()
        for serial in wanted - set(self._followed):
            self._followed[serial] = asyncio.create_task(self._follow(serial), name=f"watch-{serial}")

    async def _follow(self, serial: str) -> None:
        """Follow a phone. Its state is kept if reading it fails."""
        phone, told = None, ""
        while True:
            try:
                device = await self.device(serial)
                phone = phone or PhoneWatch(self.db, device, self.times)
                phone.device = device
                try:
                    await self._look(phone, serial)
                finally:
                    await device.close()
            except Exception as error:  # noqa: BLE001 - the phone or the database may be away: it is asked again
                if repr(error) != told:
                    log.warning("watch.not_read", serial=serial, error=repr(error))
                told = repr(error)
            await asyncio.sleep(AWAY_SECONDS)

    async def _look(self, phone: PhoneWatch, serial: str) -> None:
        """Refresh the watches and read notifications until something goes wrong."""
        loop = asyncio.get_running_loop()
        fresh_until = look_at = 0.0
        while True:
            waiter = self.db.signal("schedules").waiter()
            if loop.time() >= fresh_until:
                fresh_until = loop.time() + self.times.refresh
                await phone.refresh([row for row in self._rows if is_on(row, serial)])
            if loop.time() >= look_at:  # a signal does not ask the phone sooner
                look_at = loop.time() + await phone.look(loop.time())
            if await waiter.wait(max(0.0, look_at - loop.time())):
                fresh_until = 0.0


def _is_quiet(db: Database, row: ScheduleRow) -> bool:
    return bool(row.quiet) and quiet_of(row.quiet, row.timezone).holds(db.now())


def _at_work(active: Sequence[RunRow]) -> list[str]:
    """Return the contacts that a run is to answer now."""
    read = [reply_task(run.task) for run in active if at_work(run)]
    return [one.contact for one in read if one is not None]
