"""Learning an app on a phone of this process: read a chat, have a person confirm it, try the input, store it.

The phone is leased for reading and for trying, but not while the person looks.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace

from agent_core.apps.learning import AppLearning, TriedInput
from agent_core.apps.learnt import LearntApp, Part, SendsBy, differs, version_of
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device
from agent_core.errors import AppNotFound, LearningFailed
from bot.app.core import Core
from bot.app.run_here import stopped_by_interrupt
from bot.desk.learning import ShownChat
from scheduler.runs.lease import HeldLease, lease_of
from storage.ledger import StoredLedger

WHY = "learn"  # in the lease's row, instead of a run's id


class CoreLearning:
    """The learning of apps on the phones of this process. Each call that needs the phone leases it and gives it back.

    interruptible: Ctrl-C stops a call that needs the phone.
    Raises LeaseLost if somebody else has the phone, LearningFailed if the app cannot be learnt, and device errors.
    """

    def __init__(self, core: Core, *, interruptible: bool = False) -> None:
        self._core = core
        self._interruptible = interruptible

    async def show(self, app: AppProfile, contact: str, *, serial: str, here: bool) -> ShownChat:
        """Open the chat with ``contact`` (``here``: take the one in front), read it and return the reading.

        Raises LeaseLost if another owner has the phone, AppNotFound if the app is not installed, and LearningFailed if
        there is nothing to confirm.
        """
        async with self._phone(serial) as (device, lease):
            if not set(app.packages) & set(await device.packages()):
                raise AppNotFound(
                    f"{app.name} is not on the phone {device.serial}.",
                    key="learn_no_app",
                    app=app.name,
                    phone=device.serial,
                )
            version = await version_of(device, app)
            if not version:
                said = f"The phone does not tell the version of {app.name}."
                raise LearningFailed(said, key="learn_no_version", app=app.name)
            learning = AppLearning(self._core.observer(device), app, lease)
            read = await (learning.in_front(contact) if here else learning.open_chat(contact))
            page, title = await self._core.page(device), read.chat.title
            return ShownChat(device.serial, app, version, title, here, read.look, read.tree.value, page, read.listed)

    async def try_input(self, shown: ShownChat, text: str, *, send: bool) -> TriedInput:
        """Type ``text`` into the chat that a person has confirmed and delete it, and return the control that sends.

        send: send the text before.

        Raises LearningFailed if the chat does not look as it was confirmed.
        """
        async with self._phone(shown.serial) as (device, lease):
            learning = AppLearning(self._core.observer(device), shown.app, lease)
            read = await (learning.in_front(shown.contact) if shown.here else learning.open_chat(shown.contact))
            if differs(_learnt(shown, "button"), read.look):
                raise LearningFailed(
                    f"The chat with {shown.contact} does not look as it did when it was confirmed.",
                    advice="Begin again.",
                    key="learn_changed",
                    contact=shown.contact,
                )
            return await learning.type_and_delete(read, text, send=send)

    async def keep(self, shown: ShownChat, sends_by: SendsBy, *, person: str) -> LearntApp:
        """Store the look that a person has confirmed, beside the earlier looks of this version."""
        before = await StoredLedger(self._core.db).learnt(shown.serial, shown.app.key, shown.version)
        learnt = _learnt(shown, sends_by)
        if before is not None:
            learnt = replace(learnt, looks=before.looks).with_look(shown.look)
        return await self._stored(shown.serial, learnt, person)

    async def correct(self, shown: ShownChat, part: Part, *, person: str) -> LearntApp:
        """Store that a part of the page was read wrongly, whatever was confirmed for this version before."""
        before = await StoredLedger(self._core.db).learnt(shown.serial, shown.app.key, shown.version)
        learnt = (before or LearntApp(shown.app.key, shown.version, tree=shown.tree)).corrected(part)
        return await self._stored(shown.serial, learnt, person)

    async def _stored(self, serial: str, learnt: LearntApp, person: str) -> LearntApp:
        now = self._core.db.now().isoformat(timespec="seconds")
        learnt = replace(learnt, confirmed_by=person, confirmed_at=now)
        await StoredLedger(self._core.db).learn(serial, learnt)
        return learnt

    @asynccontextmanager
    async def _phone(self, serial: str) -> AsyncIterator[tuple[Device, HeldLease]]:
        """Lease a phone, restore the settings that a run left changed, and keep it awake inside the block."""
        device = await self._core.attached.device(serial)
        try:
            async with lease_of(self._core.db, device, owner=f"learn-{os.getpid()}", why=WHY) as lease:
                with stopped_by_interrupt(lease.stop) if self._interruptible else nullcontext():
                    await device.recover()
                    await device.wake()
                    async with device.kept_awake(), self._core.client_rotation.used():
                        yield device, lease
        finally:
            await asyncio.shield(device.close())


def _learnt(shown: ShownChat, sends_by: SendsBy) -> LearntApp:
    return LearntApp(shown.app.key, shown.version, sends_by, (shown.look,), shown.tree)
