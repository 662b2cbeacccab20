"""A phone's lease while we hold it: checked before every action, kept by heartbeats, released at the end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import structlog

from agent_core.devices.base import Device
from agent_core.errors import LeaseLost
from scheduler.runs.host import ClockCheck
from scheduler.runs.stop import Reason, StopSignal
from storage.engine import Database
from storage.history import History
from storage.leases import LEASE_SECONDS, LeaseRow, Leases
from storage.questions import OPEN, Questions
from storage.runs import Runs

MOST_OF_TASK = 60  # characters of the task of the run that has a phone

log = structlog.get_logger(__name__)


class PhoneTakenOver(LeaseLost):
    """A person has taken the phone over."""

    default_advice = (
        "Wait until it is given back, or ask for it. It comes back by itself after two minutes without an act."
    )


class HeldLease:
    """A phone that is ours for now. Implements ``agent_core.ports.Lease``.

    ``serial`` is the phone's, ``fencing`` grows with each holder, ``stop`` says when the attempt is to end.
    """

    def __init__(self, row: LeaseRow, leases: Leases) -> None:
        self._row = row
        self._leases = leases
        self.stop = StopSignal()

    @property
    def serial(self) -> str:
        return self._row.serial

    @property
    def fencing(self) -> int:
        return self._row.fencing

    async def check(self) -> None:
        """Check the lease before an action; Hold takes effect here. Raises LeaseLost if the phone is no longer ours."""
        if self.stop.reason is None and self.stop.hold_requested:
            self.stop.park_here()
            await asyncio.sleep(0)  # the cancellation arrives here
        # A late heartbeat is made up for if nobody has taken the phone, and then nobody takes it.
        if not (await self._leases.check(self._row) or await self._leases.renew_in_time(self._row)):
            self.stop.request(Reason.LEASE_LOST)
            raise self.lost()

    def lost(self) -> LeaseLost:
        return LeaseLost(f"The phone {self.serial} was taken by another owner.", key="phone_taken", phone=self.serial)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Send heartbeats inside the block, at a third of the lease's lifetime.

        If the phone is lost, request a stop.
        """
        heart = asyncio.create_task(self._beat(), name="lease-heart")
        try:
            yield
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)

    async def _beat(self) -> None:
        while self.stop.reason is not Reason.LEASE_LOST:  # also during a stop, because tidying up needs the phone
            await asyncio.sleep(self._leases.ttl.total_seconds() / 3)
            try:
                if not await self._leases.renew(self._row):
                    self.stop.request(Reason.LEASE_LOST)
            except Exception as error:  # noqa: BLE001 - the next heartbeat may succeed; otherwise the lease expires
                log.warning("lease_not_renewed", serial=self.serial, error=repr(error))

    async def release(self) -> None:
        """Give the phone back. Finishes even if the caller is cancelled meanwhile."""
        await finish(self._leases.release(self._row))


@asynccontextmanager
async def lease_of(
    db: Database, device: Device, *, owner: str, why: str, seconds: float = LEASE_SECONDS
) -> AsyncIterator[HeldLease]:
    """Lease a phone inside the block, and leave it as a run does before it is given back.

    Losing the phone cancels the body.

    Raises LeaseLost if another owner has the phone, and ConfigInvalid if this machine's clock is wrong, because a
    living holder may then look dead.

    why: is stored in the lease's row in place of a run's id.
    """
    if (wrong := await ClockCheck(db, seconds).wrong()) is not None:
        raise wrong
    serial, leases = device.serial, Leases(db, seconds=seconds)
    row = await leases.acquire(serial, owner, why)
    if row is None:
        raise await in_use(db, serial)
    lease = HeldLease(row, leases)
    task = asyncio.current_task()
    if task is not None:
        lease.stop.attach(task)

    try:
        async with lease.kept():
            try:
                yield lease
            finally:
                await device.leave()
    except asyncio.CancelledError:
        if lease.stop.reason is Reason.LEASE_LOST and task is not None:
            task.uncancel()
            raise LeaseLost(
                f"The phone {serial} was taken by another owner.", key="phone_taken", phone=serial
            ) from None
        raise
    finally:
        await lease.release()


async def refuse_if_in_use(db: Database, serial: str) -> None:
    """Raise LeaseLost if another owner has the phone, before anything of a new run is stored."""
    if serial in {row.serial for row in await Leases(db).held()}:
        raise await in_use(db, serial)


async def in_use(db: Database, serial: str, name: str = "") -> LeaseLost:
    """Return the error of a phone that another has: who has it, and what to do.

    name: the phone's name for people, "" if it is not known here.
    """
    phone, holder = name or serial, await Leases(db).get(serial)
    if holder is not None and holder.person is not None and holder.acquired_at is not None:
        minutes = math.ceil((db.now() - holder.acquired_at).total_seconds() / 60) or 1
        by = holder.person
        return PhoneTakenOver(
            f"{by} has taken over the phone {phone}, {minutes} min ago.",
            key="phone_taken_over",
            phone=phone,
            by=by,
            minutes=minutes,
        )
    run = await Runs(db).get(holder.run_id) if holder is not None and holder.run_id else None
    if run is None:
        return LeaseLost(f"The phone {phone} is in use.", key="phone_in_use", phone=phone)
    number, task = await History(db).number_of(run.id), run.task[:MOST_OF_TASK]
    said = f"The phone {phone} is in use: run #{number} ({task})"
    stop = "stop it: Ctrl-C in its terminal, or Stop on its card in Telegram."
    told = {"phone": phone, "number": number, "task": task, "seconds": round(LEASE_SECONDS)}
    if await Questions(db).find(run_id=run.id, state=OPEN, limit=1):
        advice = f"Answer it (phonedesk questions list), or {stop}"
        return LeaseLost(f"{said} waits for an answer.", advice=advice, key="phone_in_use_asks", **told)
    advice = f"Wait until it is over, or {stop}"
    return LeaseLost(f"{said} is at work.", advice=advice, key="phone_in_use_by_run", **told)


async def finish(work: Awaitable[object]) -> None:
    """Finish ``work`` even if the caller is cancelled meanwhile, because its data must not be lost."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                break
    if not task.cancelled():
        task.result()
