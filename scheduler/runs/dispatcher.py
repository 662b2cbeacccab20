"""The dispatcher: starts due attempts on free phones, through the queue."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from agent_core.texts import Lang
from scheduler.jobs.periodic import Periodic
from scheduler.runs.executor import gave_up, left_alone
from scheduler.runs.host import ClockCheck, Fleet
from scheduler.runs.service import BEGUN
from scheduler.runs.worker import Worker, attempt_id
from storage.engine import Database
from storage.events import Events
from storage.hosts import USABLE, HostPhone, Hosts
from storage.leases import LEASE_SECONDS, Leases
from storage.runs import RunRow, Runs

LOOK_SECONDS = 1.0  # between two turns while a run is in line
IDLE = 5  # times as long if no run is in line: a signal tells when one becomes due

log = structlog.get_logger(__name__)

Phones = Callable[[], Awaitable[Sequence[str]]]
"""Returns the serials of the phones that this process reaches now."""
Enqueue = Callable[[str], Awaitable[None]]
"""Starts the attempt with this id. The same id is started only once."""


@dataclass(slots=True)
class _Started:
    """An attempt that was handed to the queue and has not begun."""

    attempt: int
    serial: str


class Dispatcher(Periodic):
    """The dispatcher, which starts due attempts.

    A change by this process takes effect at once, one by another process within ``storage.signals.PULSE_SECONDS``.
    Each phone has one attempt under way at a time, the first in line. A run whose phone no host reaches waits for as
    long as ``fleet`` says. After that it is started nevertheless, so that it ends with the phone's own error.

    While this machine's clock is wrong (see ``ClockCheck``), no process is judged dead by it and no attempt is started.

    enqueue: None if this process starts no attempts.
    phones: lists the phones that this process reaches. If it is None, every phone counts as reachable here.
    tells: log in the event log when the phone of a waiting run goes away or comes back, as an event ``phone`` with
        ``missing``, for the channels that show the run.
    lang: as for ``Worker``.
    """

    def __init__(
        self,
        db: Database,
        enqueue: Enqueue | None,
        *,
        worker: Worker | None = None,
        phones: Phones | None = None,
        fleet: Fleet | None = None,
        tells: bool = True,
        lease_seconds: float = LEASE_SECONDS,
        every_seconds: float = LOOK_SECONDS,
        lang: Lang = "zh",
    ) -> None:
        super().__init__("dispatcher", self._turn, every_seconds, waiter=lambda: db.signal("runs").waiter())
        self._db = db
        self._gave_up = gave_up(lang)
        self._left = left_alone(lang)
        self._clock = ClockCheck(db, lease_seconds)
        self._clock_wrong = False
        self._enqueue = enqueue
        self._worker = worker
        self._host = worker.owner if worker is not None else ""
        self._phones = phones
        self._fleet = fleet or Fleet(db, lease_seconds)
        self._tells = tells
        self._runs = Runs(db)
        self._events = Events(db)
        self._leases = Leases(db, seconds=lease_seconds)
        self._hosts = Hosts(db, seconds=lease_seconds)
        self._every_seconds = every_seconds
        self._started: dict[str, _Started] = {}
        self._waited_for = False  # whether a run was in line in the last turn
        self._tidied_at = -math.inf  # in the event loop's time
        self._missing: dict[str, bool] = {}  # by waiting run: whether its phone was missing in the last turn
        self.awaited: list[str] = []  # phones that runs wait for and no other host has

    async def once(self) -> list[str]:
        """Take one turn. Return the ids of the attempts that were handed to the queue."""
        await self._tidy()
        return await self._hand_out()

    async def _tidy(self) -> None:
        """Revive attempts that died, which is due only by time."""
        worker = self._worker
        at_work = [*worker.runs_at_work, *worker.at_work_beside] if worker is not None else []
        if await self._is_clock_wrong():
            return
        ttl = self._leases.ttl
        revived = await self._runs.revive(older_than=ttl, alive_here=at_work, gave_up=self._gave_up, left=self._left)
        if revived:
            log.warning("runs.revived", run_ids=revived)

    async def _is_clock_wrong(self) -> bool:
        wrong = await self._clock.wrong()
        if (wrong is not None) is not self._clock_wrong:
            self._clock_wrong = wrong is not None
            log.error("clock_wrong", error=wrong.message) if wrong else log.warning("clock_right")
        return self._clock_wrong

    async def _hand_out(self) -> list[str]:
        due = await self._runs.due(begun=BEGUN)
        self._forget_begun(due)
        if not due:
            self._missing.clear()
            self.awaited = []
            return []
        self._waited_for = True
        here = None if self._phones is None else list(await self._phones())
        fleet = await self._seen(due, here)
        # The same address may be another phone seen from here, for example 127.0.0.1:5555.
        others = {serial for serial, phone in fleet.items() if phone.host not in {"", self._host}}
        self.awaited = sorted({run.wanted for run in due if run.wanted} - others)
        if here is not None and self._tells:
            await self._tell_of_phones(due, fleet)
        if self._enqueue is None or self._clock_wrong:
            return []
        elsewhere = await self._taken_elsewhere(due)
        ending = self._ending(due)
        busy = {lease.serial for lease in await self._leases.held()}
        busy |= {started.serial for started in self._started.values()}
        busy |= {run.serial for run in elsewhere.values()} | set(ending.values())
        free = await self._free(due, here, busy)
        handed = []
        for run in due:
            if run.id in elsewhere or run.id in ending or run.id in self._started:
                continue
            serial = self._phone_for(run, here, fleet, free, busy)
            if serial is not None and (attempt := await self._start(self._enqueue, run, serial)) is not None:
                busy.add(serial)
                handed.append(attempt)
        return handed

    def _ending(self, due: Sequence[RunRow]) -> dict[str, str]:
        """Return the runs whose earlier attempt is still active here, and their phones.

        The earlier attempt has to release its phone before the next one starts.
        """
        if self._worker is None:
            return {}
        at_work = self._worker.runs_at_work
        ending = {run.id: run for run in due if run.id in at_work}
        for run in ending.values():
            self._worker.end_replaced(run.id, run.attempt)
        return {run.id: run.serial for run in ending.values()}

    async def _start(self, enqueue: Enqueue, run: RunRow, serial: str) -> str | None:
        """Hand an attempt to the queue. Return its id, or None if another host has it."""
        alive_after = self._db.now() - self._hosts.ttl
        attempt = await self._runs.take(run, serial, self._host, alive_after=alive_after)
        if attempt is None:
            return None
        self._started[run.id] = _Started(attempt, serial)
        try:
            await enqueue(attempt_id(run.id, attempt))
        except BaseException:
            del self._started[run.id]
            raise
        return attempt_id(run.id, attempt)

    async def _taken_elsewhere(self, due: Sequence[RunRow]) -> dict[str, RunRow]:
        """Return the runs whose attempt is in the queue of another host that is alive."""
        taken = {run.id: run for run in due if run.taken_by() not in {"", self._host}}
        if not taken:
            return {}
        alive = await self._hosts.alive()
        return {run_id: run for run_id, run in taken.items() if run.taken_by() in alive}

    async def _seen(self, due: Sequence[RunRow], here: Sequence[str] | None) -> dict[str, HostPhone]:
        """Return all hosts' phones by serial. Other hosts' are queried only if a run needs a phone that is not here."""
        mine = [HostPhone(serial, self._host, USABLE, self._db.now(), alive=True) for serial in here or ()]
        found = {phone.serial: phone for phone in mine}
        if here is None or all(run.wanted in found if run.wanted else found for run in due):
            return found
        return {**await self._fleet.phones(), **found}

    async def _tell_of_phones(self, due: Sequence[RunRow], fleet: Mapping[str, HostPhone]) -> None:
        """Write an event for each waiting run whose phone went away or came back.

        A run that joins the line gets no event, because it is shown with the state that its phone has then. The log
        reports a missing phone for new runs too, for the person at the server's terminal.
        """
        before, self._missing = self._missing, {}
        for run in due:
            missing = self._fleet.is_missing(run, fleet)
            self._missing[run.id] = missing
            if missing and not before.get(run.id, False):
                kind = "run_waits_for_phone" if run.wanted else "run_waits_for_any_phone"
                if not await self._fleet.is_worked():
                    kind = "run_waits_for_worker"
                log.warning(kind, run_id=run.id, serial=run.wanted)
            if before.get(run.id, missing) is not missing:
                await self._events.append(run.id, "phone", {"missing": missing})

    async def _free(self, due: Sequence[RunRow], here: Sequence[str] | None, busy: set[str]) -> list[str]:
        """Return the phones for runs that take any phone, the least recently used first."""
        free = [serial for serial in here or () if serial not in busy]
        if len(free) > 1 and any(not run.wanted for run in due):
            used = await self._leases.last_used()
            free.sort(key=lambda serial: used[serial].timestamp() if serial in used else 0.0)
        return free

    def _forget_begun(self, due: Sequence[RunRow]) -> None:
        still = {run.id: run.attempt for run in due}
        self._started = {
            run_id: started for run_id, started in self._started.items() if still.get(run_id) == started.attempt
        }

    def _phone_for(
        self,
        run: RunRow,
        here: Sequence[str] | None,
        fleet: Mapping[str, HostPhone],
        free: Sequence[str],
        busy: set[str],
    ) -> str | None:
        """Return the phone to start on; "" to start without one, so that the run fails; None to wait."""
        if run.wanted:
            if run.wanted in busy:
                return None
            if here is None or run.wanted in here:
                return run.wanted
        elif (chosen := next((serial for serial in free if serial not in busy), None)) is not None:
            return chosen
        if here is None or not self._fleet.is_missing(run, fleet):
            return None
        return run.wanted if self._fleet.gives_up(run, fleet) else None

    async def _turn(self) -> float | None:
        now = asyncio.get_running_loop().time()
        if now - self._tidied_at >= self._every_seconds:
            self._tidied_at = now
            await self._tidy()
        self._waited_for = False
        await self._hand_out()
        return None if self._waited_for else IDLE * self._every_seconds
