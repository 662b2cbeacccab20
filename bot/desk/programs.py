"""What programs do on phones themselves: whether they may, and a line in the audit log for each thing."""

from __future__ import annotations

from typing import Any

from bot.desk.actors import Actor, Role
from bot.desk.context import DeskService, no_phone
from bot.desk.phonebook import PhoneBook


class DeskPrograms(DeskService):
    """For channels in which a program acts on a phone in this process, and does not queue a run."""

    async def may_act(
        self, actor: Actor, command: str, device_id: str = "", *, paced: bool = True, **detail: Any
    ) -> str:
        """Return the serial of the phone that ``device_id`` names, or the one that is meant if it is "".

        ``paced``: it counts for how much one may ask within a minute.
        Raises AccessDenied for a viewer or for a phone that is not theirs, NotFound for one that nobody has seen.
        """
        wanted, book = await self._meant(actor, device_id)
        await self._allow(actor, Role.OPERATOR, command, phone=wanted, paced=paced, serial=wanted, **detail)
        if device_id and wanted not in book.known:
            raise no_phone(device_id)
        return wanted

    async def serial_of(self, actor: Actor, device_id: str = "") -> str:
        """Return the serial that ``device_id`` stands for, as ``may_act``, without asking for the right to use it."""
        wanted, _ = await self._meant(actor, device_id)
        return wanted

    async def _meant(self, actor: Actor, device_id: str) -> tuple[str, PhoneBook]:
        book = await self._book(await self.context.entries() if device_id else [])
        return self._phone_for(actor, book.serial(device_id) if device_id else ""), book

    async def may_list(self, actor: Actor) -> None:
        """Raise AccessDenied if they may not see what phones there are; which of them are theirs is ``sees``."""
        await self._allow(actor, Role.VIEWER, "mcp devices", paced=False)
