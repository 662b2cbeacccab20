"""A host: a process that has phones. It holds its name, sends heartbeats, reports its phones and serves pictures."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from agent_core.errors import ConfigInvalid, PhonedeskError
from scheduler.jobs.periodic import Periodic
from storage.engine import MISSED_SECONDS, Database
from storage.hosts import DRAINING, ENDED, USABLE, HostPhone, Hosts
from storage.ids import new_id
from storage.leases import LEASE_SECONDS
from storage.runs import RunRow

LOOK_SECONDS = 1.0  # between two checks of the list of phones
MOST_BETWEEN_BEATS = 5.0
NEVER_SEEN_SECONDS = 15.0  # how long a run waits for a phone that no host has ever seen
RETELL_SECONDS = 60.0  # after this time the list of phones is stored again, changed or not
CLOCK_PART = 10  # a clock may be off by one in this many parts of the time for which a silent host counts as alive
ANSWER_SECONDS = 15.0  # how long a host has to answer another process's request for a picture

log = structlog.get_logger(__name__)

Listing = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns the phones that this process sees now: state by serial, as adb writes it."""
Picture = Callable[[str], Awaitable[bytes]]
"""A function that returns the present screen of the phone with this serial, as a JPEG of full resolution."""


@dataclass(frozen=True, slots=True)
class ClockCheck:
    """The check of this machine's clock against the database's. They must agree: heartbeat times decide who is alive.

    seconds: how long a process without a heartbeat counts as alive.
    """

    db: Database
    seconds: float = LEASE_SECONDS

    async def wrong(self) -> ConfigInvalid | None:
        """Return an error if the clock is off by more than ``seconds / CLOCK_PART``, else None.

        Even if two machines are both off by that much, a heartbeat may still be late.
        """
        ahead = await Hosts(self.db, seconds=self.seconds).clock_ahead()
        if abs(ahead) <= self.seconds / CLOCK_PART:
            return None
        return ConfigInvalid(
            f"This machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the database's.",
            advice="Set it by NTP: who has a phone is decided by the time of the last heartbeat.",
            key="clock_apart",
            seconds=f"{abs(ahead):.0f}",
        )


class Host:
    """A host. Call ``claim``, then ``start``, and ``stop`` at the end.

    ``lost`` is set if this process can no longer be the host, because another process has its name or because this
    machine's clock went wrong. The process must end then; ``why`` is the error.

    listing: lists the phones. It may be slow or fail; heartbeats do not wait for it.
    seconds: how long other processes count us as alive without a heartbeat.
    """

    def __init__(
        self,
        db: Database,
        name: str,
        *,
        listing: Listing,
        picture: Picture | None = None,
        release: str = "",
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self._db = db
        self.name = name
        self.token = new_id()
        self.lost = asyncio.Event()
        self.why = ConfigInvalid(
            f"Another process has taken the name of the host {name}.",
            advice="This one was not heard for too long. Give each a name of its own, and start this one again.",
            key="host_name_taken",
            host=name,
        )
        self.looked = asyncio.Event()  # set after the first check of the phones
        self._hosts = Hosts(db, seconds=seconds)
        self._clock = ClockCheck(db, seconds)
        self._listing = listing
        self._picture = picture
        self._release = release
        self._seconds = seconds
        self._answer_seconds = ANSWER_SECONDS - 1  # so that the asking process hears in time
        self._states: dict[str, str] = {}
        self._told: dict[str, str] | None = None
        self._told_at = db.now()
        self._looking = asyncio.Lock()
        self._loops = (
            Periodic("host-beat", self._beat, min(seconds / 3, MOST_BETWEEN_BEATS)),
            Periodic("host-phones", self._follow, LOOK_SECONDS),
            Periodic("host-requests", self._serve, MISSED_SECONDS, waiter=lambda: db.signal("phone_requests").waiter()),
        )
        self._answering: set[asyncio.Task[None]] = set()
        self._busy: set[int] = set()  # ids of the requests that are being answered
        self._forgot_at = -math.inf  # when requests that nobody waits for were last deleted, in the event loop's time

    @property
    def usable(self) -> list[str]:
        """The serials of the phones that a run can use here, as of the last check."""
        return [serial for serial, state in self._states.items() if state == USABLE]

    async def reached(self) -> list[str]:
        """Return ``usable`` after the first check of the phones, so that unknown phones are not taken for missing."""
        await self.looked.wait()
        return self.usable

    async def may_begin(self, run: RunRow, fleet: Fleet) -> bool:
        """Return whether an attempt may begin here: its phone is here, or its wait for a missing phone is over."""
        if run.serial in self.usable:
            return True
        return self.looked.is_set() and fleet.gives_up(run, await fleet.phones())

    async def claim(self, *, former: str = "") -> None:
        """Take the name. Raises ConfigInvalid if a living process has it, or if this machine's clock is wrong.

        former: the token of the process on this machine that had the name before and is surely dead.
        """
        if (wrong := await self._clock.wrong()) is not None:
            raise wrong
        holder = await self._hosts.register(self.name, self.token, release=self._release, former=former)
        if holder is None:
            return
        age = (self._db.now() - holder.heartbeat_at).total_seconds()
        raise ConfigInvalid(
            f"Another process works as the host {self.name}: it was heard {max(age, 0):.0f} s ago.",
            advice="Give this one a name of its own (--host, PHONEDESK_QUEUE__EXECUTOR_ID). "
            f"If the other one is dead, its name is free {self._seconds:.0f} s after it was last heard.",
            key="host_at_work",
            host=self.name,
        )

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def drain(self) -> None:
        """Tell other processes that nothing new begins here."""
        await self._say(DRAINING)

    async def stop(self) -> None:
        """Give the name back, so that others need not wait until this host counts as dead."""
        for loop in self._loops:
            await loop.stop()
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)
        await self._say(ENDED)

    async def look(self) -> list[str]:
        """Check the list of phones now and store changes. Return the usable ones."""
        async with self._looking:
            try:
                self._states = dict(await self._listing())
            except PhonedeskError as error:  # without adb there are no phones
                if self._states or self._told is None:
                    log.warning("phones_not_listed", error=str(error))
                self._states = {}
            finally:
                self.looked.set()
            if self._states != self._told or self._is_time_to_retell():
                seen = dict(self._states)
                # If the name is no longer ours, the next heartbeat finds out.
                if await self._hosts.sees(self.name, self.token, seen):
                    self._told, self._told_at = seen, self._db.now()
        return self.usable

    def _is_time_to_retell(self) -> bool:
        """Tell whether the list is due to be stored again; a clock that was put back counts too."""
        return abs(self._db.now() - self._told_at) >= timedelta(seconds=RETELL_SECONDS)

    async def _say(self, state: str) -> None:
        try:
            await self._hosts.set_state(self.name, self.token, state)
        except Exception as error:  # noqa: BLE001 - the database is away: this host counts as dead a little later
            log.warning("host_state_not_told", host=self.name, state=state, error=repr(error))

    async def _beat(self) -> None:
        if self.lost.is_set():
            return
        if not await self._hosts.beat(self.name, self.token):
            log.error("host_name_lost", host=self.name)
            self.lost.set()
        elif (wrong := await self._clock.wrong()) is not None:
            log.error("host_clock_wrong", host=self.name, error=wrong.message)
            self.why = wrong
            self.lost.set()

    async def _follow(self) -> None:
        await self.look()

    async def _serve(self) -> None:
        """Answer other processes' requests for pictures of our phones."""
        for asked in await self._hosts.wanted(self.name):
            if asked.id not in self._busy:
                self._busy.add(asked.id)
                task = asyncio.create_task(self._answer(asked.id, asked.serial))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)
        now = asyncio.get_running_loop().time()
        if now - self._forgot_at >= RETELL_SECONDS:
            await self._hosts.forget_requests()
            self._forgot_at = now

    async def _answer(self, number: int, serial: str) -> None:
        """Answer a request with a picture or with the reason why there is none."""
        jpeg, said, kind = None, "", ""
        try:
            async with asyncio.timeout(self._answer_seconds):
                if self._picture is None or serial not in self.usable:
                    said = f"{self.name} does not reach the phone {serial}."
                else:
                    jpeg = await self._picture(serial)
        except PhonedeskError as error:
            said, kind = error.message, error.kind
        except TimeoutError:
            said = f"The phone {serial} gave no picture within {self._answer_seconds:.0f} s."
        except Exception as error:  # noqa: BLE001 - the asking process gets no details, which may be secret
            log.warning("phone_request_failed", host=self.name, serial=serial, error=repr(error))
            said = f"{self.name} could not make a picture of the phone {serial}."
        try:
            await self._hosts.give(number, jpeg=jpeg, error=said, error_kind=kind)
        except Exception as error:  # noqa: BLE001 - the database is away: the request is read again later
            log.warning("phone_request_not_answered", host=self.name, serial=serial, error=repr(error))
        finally:
            self._busy.discard(number)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The phones of all hosts, and how long a run waits for one that is missing.

    wait: None to wait for ever.
    never_seen: the longest wait for a phone that no host has ever seen.
    """

    db: Database
    seconds: float = LEASE_SECONDS
    wait: timedelta | None = None
    never_seen: timedelta = timedelta(seconds=NEVER_SEEN_SECONDS)

    async def phones(self) -> dict[str, HostPhone]:
        """Return every phone that was ever seen, by its serial."""
        return {phone.serial: phone for phone in await Hosts(self.db, seconds=self.seconds).phones()}

    async def is_worked(self) -> bool:
        """Tell whether any process works phones."""
        return bool(await Hosts(self.db, seconds=self.seconds).alive())

    def is_missing(self, run: RunRow, phones: Mapping[str, HostPhone]) -> bool:
        """Tell whether no host reaches the phone that the run wants, or any phone if it wants none in particular."""
        if run.wanted:
            return run.wanted not in phones or not phones[run.wanted].usable
        return not any(phone.usable for phone in phones.values())

    def waits_until(self, run: RunRow, phones: Mapping[str, HostPhone]) -> datetime | None:
        """Return the time until which a waiting run waits for its missing phone, or None for ever.

        The wait counts from when the run was due and its phone was missing. Time spent in line behind other runs does
        not count.
        """
        there = [phone for phone in phones.values() if run.wanted in {"", phone.serial}]
        wait = self.wait if there else min(self.wait or self.never_seen, self.never_seen)
        if wait is None or run.attempt_due_at is None:
            return None
        return max([run.attempt_due_at, *(phone.since for phone in there)]) + wait

    def gives_up(self, run: RunRow, phones: Mapping[str, HostPhone]) -> bool:
        """Tell whether a run has waited long enough for its missing phone.

        It is then started, to end with the phone's error.
        """
        until = self.waits_until(run, phones)
        return until is not None and self.db.now() >= until
