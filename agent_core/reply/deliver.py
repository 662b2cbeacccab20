"""From a chosen text to a bubble that is seen, once.

``planned → typing → sending → sent | unknown | failed``. The ledger is moved on before each act, so that a restart
knows what may have happened; between Send and the look at its outcome nothing is cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import structlog

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import TouchWatch
from agent_core.perception.observer import Observation, Observer
from agent_core.perception.readings import ChatScreen
from agent_core.ports import Lease, Ledger, StopGuard
from agent_core.reply.match import begins, is_draft
from agent_core.reply.outcome import Outcome, Result, check_planned
from agent_core.reply.sender import OnSent, ReplySender, Tools, watch
from agent_core.session import GateState, Planned

log = structlog.get_logger(__name__)


class Delivery:
    """Delivers replies of one run into chats of one app."""

    def __init__(
        self,
        observer: Observer,
        profile: AppProfile,
        ledger: Ledger,
        *,
        guard: StopGuard,
        lease: Lease,
        touches: TouchWatch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tools = Tools(observer, profile, ledger, guard, lease, clock, touches)

    async def deliver(self, planned: Planned, gate: GateState, *, on_sent: OnSent, drop_draft: str = "") -> Outcome:
        """Send the next part of ``planned`` into the contact's chat, which must be in front and hold the same newest
        messages.

        ``drop_draft`` is a foreign draft that a person allowed to be cleared. ``on_sent`` is told directly after the
        ledger, before a stop can take effect. The ledger row must be ``planned``.
        """
        tools = self._tools
        seen = await tools.look()
        chat = seen.chat
        refusal = check_planned(chat, gate, planned)
        if chat is None or refusal is not None:
            return refusal or Outcome(Result.NOT_IN_CHAT)
        if is_voice_bar(chat):
            seen = await self.text_input(chat)
            chat, refusal = seen.chat, check_planned(seen.chat, gate, planned)
            if chat is None or refusal is not None:
                return refusal or Outcome(Result.NOT_IN_CHAT)
            if is_voice_bar(chat):
                return Outcome(Result.VOICE_BAR, title=chat.title, frame=seen.frame)
        if chat.draft is None or chat.input_box is None:
            return Outcome(Result.KEYBOARD)
        if chat.draft and not is_draft(chat.draft, planned.part_text, chat.source) and chat.draft != drop_draft:
            return Outcome(Result.FOREIGN_DRAFT, chat.draft, chat.title)
        await tools.lease.check()
        async with tools.device.keyboard() as keyboard:
            return await ReplySender(tools, planned, gate, keyboard, seen, on_sent).run()

    async def text_input(self, chat: ChatScreen) -> Observation:
        """Bring the text input back if a bar to hold and talk is in its place, by one tap; then look."""
        if chat.input_box is None and chat.keyboard_icon is not None:
            await self._tools.lease.check()
            await self._tools.device.tap(chat.keyboard_icon)
            log.info("voice_bar_left", serial=self._tools.device.serial)
        return await self._tools.look()

    async def clear_leftover(self, chat: ChatScreen, text: str) -> bool:
        """Empty the input of the chat in front if it holds ``text`` or its beginning: what a dead run left."""
        ours = bool(chat.draft) and (is_draft(chat.draft or "", text, chat.source) or begins(text, chat.draft or ""))
        if not ours or chat.input_box is None:
            return False
        device = self._tools.device
        async with device.keyboard() as keyboard:
            await self._tools.lease.check()  # taking the keyboard took its time
            await device.tap(chat.input_box.center)
            await keyboard.clear()
        log.info("leftover_cleared", serial=device.serial)
        return True

    async def watch(self, text: str, cluster: Sequence[str], gate: GateState, others: Sequence[str] = ()) -> Outcome:
        """Look until the fate of a text that is on its way is known."""
        return await watch(self._tools, text, cluster, gate, others=others)


def is_voice_bar(chat: ChatScreen) -> bool:
    """Return whether a bar to hold and talk is in the input's place."""
    return chat.input_box is None and chat.keyboard_icon is not None
