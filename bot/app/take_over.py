"""Phones in the hands of a person: they hold the phone's lease, and act on it from a page until they give it back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from agent_core.actions.types import Action, Type
from agent_core.devices.base import Device
from agent_core.errors import LeaseLost, PhonedeskError
from agent_core.loop.acting import do_on
from agent_core.loop.launching import AppLauncher
from bot.app.core import Core
from scheduler.runs.lease import HeldLease, lease_of
from storage.leases import TAKEN_OVER
from storage.ledger import StoredLedger

IDLE_SECONDS = 120.0  # without an act the phone is given back, so that a closed page does not keep it

log = structlog.get_logger(__name__)

Ended = Callable[[], Awaitable[object]]


@dataclass(eq=False)
class _Hold:
    """A phone in somebody's hands. ``acting``: one act at a time."""

    by: str
    device: Device
    lease: HeldLease
    until: float  # by the loop's clock
    over: asyncio.Event = field(default_factory=asyncio.Event)
    acting: asyncio.Lock = field(default_factory=asyncio.Lock)


class TakeOvers:
    """The phones of this process that people have taken over. ``by``: the id of the person."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._holds: dict[str, _Hold] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def holder(self, serial: str) -> str:
        """Return who has the phone, "" if nobody has taken it over here."""
        hold = self._holds.get(serial)
        return hold.by if hold is not None else ""

    async def take(self, serial: str, by: str, ended: Ended, *, name: str) -> None:
        """Lease the phone for this person until ``give_back``, or until they do nothing for two minutes.

        name: of the person, for others who want the phone.
        ended: called once the phone is free again.
        Raises LeaseLost if somebody else has the phone.
        """
        taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._hold(serial, by, name, taken, ended), name="take-over")
        try:
            await taken
        except asyncio.CancelledError:
            task.cancel()
            raise
        self._tasks[serial] = task
        task.add_done_callback(lambda done: self._forget(serial, done))

    def _forget(self, serial: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(serial) is task:
            del self._tasks[serial]

    async def _hold(self, serial: str, by: str, name: str, taken: asyncio.Future[None], ended: Ended) -> None:
        try:
            device = await self._core.attached.device(serial)
            try:
                owner, why = f"person-{os.getpid()}", TAKEN_OVER + name
                async with lease_of(self._core.db, device, owner=owner, why=why) as lease:
                    await device.recover()  # the changes of a dead run are not this person's work
                    await device.wake()
                    await self._held(_Hold(by, device, lease, 0.0), taken)
            finally:
                await asyncio.shield(device.close())
        except PhonedeskError as error:
            if not taken.done():
                taken.set_exception(error)
                return
            log.warning("take_over_lost", serial=serial, error=str(error))
        except BaseException as error:
            if not taken.done():
                taken.set_exception(error)
                return
            raise
        finally:
            if taken.done() and not taken.cancelled() and taken.exception() is None:
                await asyncio.shield(ended())

    async def _held(self, hold: _Hold, taken: asyncio.Future[None]) -> None:
        """Keep the phone until it is given back or idle."""
        loop = asyncio.get_running_loop()
        hold.until = loop.time() + IDLE_SECONDS
        self._holds[hold.lease.serial] = hold
        taken.set_result(None)
        try:
            while not hold.over.is_set() and (rest := hold.until - loop.time()) > 0:
                try:
                    async with asyncio.timeout(rest):
                        await hold.over.wait()
                except TimeoutError:
                    continue
        finally:
            del self._holds[hold.lease.serial]
            async with hold.acting:  # the act under way is finished first
                pass

    async def act(self, serial: str, by: str, action: Action) -> None:
        """Do one act. Raises LeaseLost if this person does not have the phone, and the device's DeviceError."""
        hold = self._of(serial, by)
        async with hold.acting:
            await self._of(serial, by).lease.check()
            device = hold.device
            hold.until = asyncio.get_running_loop().time() + IDLE_SECONDS
            if isinstance(action, Type):  # after the present text: a person sees what they add to
                async with device.keyboard() as keyboard:
                    await keyboard.type(action.text)
                return
            core = self._core
            async with core.client_rotation.used():
                launcher = AppLauncher(core.observer(device), StoredLedger(core.db), hold.lease)
                await do_on(device, action, (await device.info()).size, launcher)

    async def give_back(self, serial: str, by: str) -> None:
        """Give the phone back, and return once it is free. Raises LeaseLost if this person does not have it."""
        hold, task = self._of(serial, by), self._tasks.get(serial)
        hold.over.set()
        if task is not None:
            await asyncio.wait([task])

    def _of(self, serial: str, by: str) -> _Hold:
        hold = self._holds.get(serial)
        if hold is None or hold.by != by:
            said, advice = f"You do not have the phone {serial}.", "Take it over first."
            raise LeaseLost(said, advice=advice, key="not_taken_over", phone=serial)
        return hold

    async def close(self) -> None:
        """Give all phones back."""
        for hold in list(self._holds.values()):
            hold.over.set()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))
