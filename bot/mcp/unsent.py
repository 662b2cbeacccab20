"""What a dead run left in the input of a chat: before a single act there it is taken away, as a run does it first."""

from __future__ import annotations

from agent_core.apps.profile import profile_of_package
from agent_core.delivery.deliver import Delivery
from agent_core.delivery.leftovers import Leftovers
from agent_core.devices.adb.device import AdbDevice
from agent_core.errors import ActionFailed
from agent_core.ports import LedgerRow, ReplyState
from agent_core.run import Touches
from agent_core.session import GateState
from bot.app import Core
from scheduler.ports import StoredLedger
from scheduler.worker import HeldLease


async def take_unsent_away(core: Core, device: AdbDevice, lease: HeldLease) -> None:
    """Empty the input of the chat in front where a dead run typed a reply into it.

    ActionFailed where something of one may stand there still: the next touch could send it. Whether one that was being
    sent has arrived, only the next run for this contact finds out.
    """
    ledger = StoredLedger(core.db)
    unfinished = await ledger.unfinished(device.serial)
    app = profile_of_package((await device.window()).package) if unfinished else None
    rows = [row for row in unfinished if app is not None and row.key.app == app.key]
    if app is None or not rows:
        return
    observer = core.observer(device)
    async with core.turnover.used():
        seen = await observer.observe_closely(app)
        chat = seen.chat
        if chat is None and seen.unread_below is None:
            return  # a page of the app that is no chat
        if chat is None or not chat.sure:
            raise _may_stand_there(rows[0])
        delivery = Delivery(observer, app, ledger, guard=lease.stop, lease=lease, touches=Touches())
        leftovers = Leftovers(observer, app, ledger, delivery)
        gate = GateState(app=app.key, contact=chat.title)
        for row in await leftovers.rows(device.serial, chat.title):
            if row.state is ReplyState.TYPING:
                row, _ = await leftovers.settle(row, chat, gate)  # noqa: PLW2901 - as it is now
            if row.state in (ReplyState.TYPING, ReplyState.SENDING):
                raise _may_stand_there(row)


def _may_stand_there(row: LedgerRow) -> ActionFailed:
    return ActionFailed(
        f"A reply to {row.key.contact} that was never finished may stand in this chat: a touch could send it.",
        advice=f"Have the agent reply to {row.key.contact} first, or leave the chat with BACK or HOME.",
    )
