"""What a dead run left in the input of a chat: before a single act there it is taken away, as a run does it first."""

from __future__ import annotations

from agent_core.devices.adb.device import AdbDevice
from agent_core.errors import ActionFailed
from agent_core.loop.run import PersonTouches
from agent_core.reply.leftovers import clear_in_front
from bot.app.core import Core
from scheduler.runs.lease import HeldLease
from storage.ledger import StoredLedger


async def take_unsent_away(core: Core, device: AdbDevice, lease: HeldLease) -> None:
    """Empty the input of the chat in front. ActionFailed if a reply may stand there still: the next touch could send
    it.
    """
    async with core.turnover.used():
        observer, ledger = core.observer(device), StoredLedger(core.db)
        row = await clear_in_front(observer, ledger, lease=lease, guard=lease.stop, touches=PersonTouches())
    if row is not None:
        raise ActionFailed(
            f"A reply to {row.key.contact} that was never finished may stand in this chat: a touch could send it.",
            advice=f"Have the agent reply to {row.key.contact} first, or leave the chat with BACK or HOME.",
        )
