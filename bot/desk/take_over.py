"""Taking a phone over: a person holds it and acts on it, and its run is parked meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_core.actions.types import Action, Type
from agent_core.errors import LeaseLost
from bot.desk.actors import Actor, BadRequest, Conflict, Role, no_phone
from bot.desk.context import DeskService
from scheduler.runs.lease import in_use
from storage.events import Events
from storage.leases import Leases
from storage.runs import Runs

if TYPE_CHECKING:
    from bot.app.take_over import TakeOvers

PARK_SECONDS = 30.0  # for a run to reach a point at which it can be parked
LOOK_SECONDS = 0.2


class DeskTakeOver(DeskService):
    """The service for taking phones over. ``serial``: a phone's serial, or its name."""

    def holder(self, serial: str) -> str:
        """Return the id of the person who has taken the phone over in this process, "" if nobody has.

        Checks no rights.
        """
        return self.context.take_overs.holder(serial) if self.context.take_overs is not None else ""

    async def take(self, actor: Actor, serial: str) -> str:
        """Take the phone over, and return its serial. A run that has it is parked, and continues afterwards.

        Raises LeaseLost if another person or a set-up has the phone, Conflict if its run does not stop in time, and
        NotFound if no such phone is attached here.
        """
        serial = await self._allowed(actor, serial, "take over")
        entries = {entry.serial for entry in await self.context.entries()}
        takes = self._own()
        if serial not in entries:
            raise no_phone(serial)
        if takes.holder(serial) == actor.id:
            return serial
        parked: list[str] = []

        async def ended() -> None:
            await self._resume(parked)
            await Events(self._db).append("", "take_over", {"serial": serial, "by": actor.name, "taken": False})

        try:
            async with asyncio.timeout(PARK_SECONDS):
                while True:
                    try:
                        await takes.take(serial, actor.id, ended, name=actor.name)
                        break
                    except LeaseLost:
                        parked += await self._park(serial)
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            await self._resume(parked)
            said, advice = "The run on this phone has not stopped yet.", "Try again in a moment."
            raise Conflict(said, advice=advice, key="not_parked_yet") from None
        except BaseException:
            await asyncio.shield(self._resume(parked))
            raise
        await Events(self._db).append("", "take_over", {"serial": serial, "by": actor.name, "taken": True})
        return serial

    async def _park(self, serial: str) -> list[str]:
        """Park the run that has the phone; return its id, none if it is parked already. Raises LeaseLost for others."""
        lease = next((lease for lease in await Leases(self._db).held() if lease.serial == serial), None)
        if lease is None:
            return []  # it has just become free
        if await Runs(self._db).get(lease.run_id) is None:
            raise await in_use(self._db, serial, (await self._book()).name(serial))
        return [lease.run_id] if await self.context.runs.hold(lease.run_id) else []

    async def _resume(self, runs: list[str]) -> None:
        for run_id in runs:
            await self.context.runs.resume(run_id)

    async def act(self, actor: Actor, serial: str, action: Action) -> None:
        """Do one act on a phone that this person has taken over. The audit log has no words that are typed."""
        told = action.model_dump(mode="json") if not isinstance(action, Type) else {"kind": action.kind}
        serial = await self._allowed(actor, serial, "act", **told)
        await self._own().act(serial, actor.id, action)

    async def give_back(self, actor: Actor, serial: str) -> str:
        """Give the phone back, and return its serial. A parked run continues."""
        serial = await self._allowed(actor, serial, "give back")
        await self._own().give_back(serial, actor.id)
        return serial

    async def _allowed(self, actor: Actor, serial: str, command: str, **detail: Any) -> str:
        wanted = (await self._book(await self.context.entries())).serial(serial)
        await self._allow(actor, Role.OPERATOR, command, phone=wanted, paced=False, serial=wanted, **detail)
        return wanted

    def _own(self) -> TakeOvers:
        if self.context.take_overs is None:
            said, advice = "No phone is worked by this process.", "Open the console of the machine that has the phone."
            raise BadRequest(said, advice=advice, key="take_over_elsewhere")
        return self.context.take_overs
