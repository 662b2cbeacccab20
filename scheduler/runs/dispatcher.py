"""The dispatcher: has the queue start attempts that are due, on phones that are free."""

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
from storage.questions import Questions
from storage.runs import RunRow, Runs

LOOK_SECONDS = 1.0  # between two looks, while a run waits for its turn
IDLE = 5  # times as long, while none does: what begins is told by a signal

log = structlog.get_logger(__name__)

Phones = Callable[[], Awaitable[Sequence[str]]]
"""The serials of the phones that this process reaches now."""
Enqueue = Callable[[str], Awaitable[None]]
"""Has an attempt started, given its id; the same id twice is started once."""


@dataclass(slots=True)
class _Started:
    """An attempt that was handed to the queue and has not begun."""

    attempt: int
    serial: str


class Dispatcher(Periodic):
    """Starts due attempts: at once if something changes in this process, within ``storage.engine.PULSE_SECONDS`` if
    another process changes it.

    For each phone one attempt is under way at a time, the first in line. ``phones``: the phones that this process
    reaches; without it every phone is its own. A run whose phone nobody reaches waits, as ``fleet`` says how long;
    after that it is started nevertheless, so that it ends with the phone's own error. ``enqueue``: None if this process
    starts none.

    ``tells``: that the phone of a run in the line went away, or is back, is told in the event log, as an event
    ``phone`` with ``missing``, for those who show the run. ``lang``: as for ``Worker``.

    While this machine's clock is off (see ``ClockCheck``) nobody is taken for dead by it, and nothing is begun.
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
        self._questions = Questions(db)
        self._events = Events(db)
        self._leases = Leases(db, seconds=lease_seconds)
        self._hosts = Hosts(db, seconds=lease_seconds)
        self._every_seconds = every_seconds
        self._started: dict[str, _Started] = {}
        self._waited_for = False  # whether a run waited for its turn at the last look
        self._tidied_at = -math.inf  # in the loop's time
        self._missing: dict[str, bool] = {}  # runs in the line: whether their phone was there at the last look
        self.addresses: list[str] = []  # host:port of the phones that they wait for and no other host has

    async def once(self) -> list[str]:
        """One look at everything; the ids of the attempts that were handed to the queue."""
        await self._tidy()
        return await self._hand_out()

    async def _tidy(self) -> None:
        """What time alone makes due: questions whose deadline passed, attempts that died."""
        worker = self._worker
        at_work = [*worker.runs_at_work, *worker.at_work_beside] if worker is not None else []
        await self._questions.expire()
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
            self.addresses = []
            return []
        self._waited_for = True
        here = None if self._phones is None else list(await self._phones())
        fleet = await self._seen(due, here)
        # The same address may be another phone seen from here, for example 127.0.0.1:5555.
        others = {serial for serial, phone in fleet.items() if phone.host not in {"", self._host}}
        self.addresses = sorted({run.wanted for run in due if ":" in run.wanted} - others)
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
        """The runs of which an attempt is at work here still, and their phones: it is to have let go of its phone
        first.
        """
        if self._worker is None:
            return {}
        at_work = self._worker.runs_at_work
        ending = {run.id: run for run in due if run.id in at_work}
        for run in ending.values():
            self._worker.end_replaced(run.id, run.attempt)
        return {run.id: run.serial for run in ending.values()}

    async def _start(self, enqueue: Enqueue, run: RunRow, serial: str) -> str | None:
        """Hand an attempt to the queue; its id, None where another host has it."""
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
        """The runs whose attempt lies in the queue of another host that lives."""
        taken = {run.id: run for run in due if run.taken_by() not in {"", self._host}}
        if not taken:
            return {}
        alive = await self._hosts.alive()
        return {run_id: run for run_id, run in taken.items() if run.taken_by() in alive}

    async def _seen(self, due: Sequence[RunRow], here: Sequence[str] | None) -> dict[str, HostPhone]:
        """The phones of all hosts; asked for only where a run waits for one that is not here."""
        mine = [HostPhone(serial, self._host, USABLE, self._db.now(), alive=True) for serial in here or ()]
        found = {phone.serial: phone for phone in mine}
        if here is None or all(run.wanted in found if run.wanted else found for run in due):
            return found
        return {**await self._fleet.phones(), **found}

    async def _tell_of_phones(self, due: Sequence[RunRow], fleet: Mapping[str, HostPhone]) -> None:
        """Whoever joins the line is shown with what its phone is then; only a change is news.

        The log, which the person at the server's terminal is told of, says it of whoever joins, too.
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
        """The phones that a run which takes any can have, the one that was used longest ago first."""
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
        """The phone to start on; empty: start without one, to fail; None: not now."""
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
