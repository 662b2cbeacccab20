"""What programs do on phones themselves: whether they may, and a line in the audit log for each thing."""

from __future__ import annotations

from typing import Any

from bot.desk.actors import Actor, Role
from bot.desk.house import DeskPart, no_phone


class ProgramsDesk(DeskPart):
    """For channels in which a program acts on a phone in this process, and does not queue a run."""

    async def may_act(self, actor: Actor, command: str, device_id: str = "", **detail: Any) -> str:
        """The serial of the phone that ``device_id`` names, or that is meant where it names none ("": the only one).

        AccessDenied for a viewer, or for a phone that is not theirs; NotFound for one that nobody has seen.
        """
        entries = await self.house.entries() if device_id else []
        book = await self._book(entries)
        wanted = self._phone_for(actor, book.serial(device_id) if device_id else "")
        await self._allow(actor, Role.OPERATOR, command, phone=wanted, serial=wanted, **detail)
        if device_id and wanted not in book.known:
            raise no_phone(device_id)
        return wanted

    async def may_list(self, actor: Actor) -> None:
        """Whether they may see what phones there are; which of them are theirs is ``sees``."""
        await self._allow(actor, Role.VIEWER, "mcp devices")
