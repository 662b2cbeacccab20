"""From a chosen text to a bubble that is seen, once.

``planned → typing → sending → sent | unknown | failed``. The ledger is moved on before each act, so that a restart
knows what may have happened; between Send and the look at its outcome nothing is cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

import structlog
from PIL import ImageChops

from agent_core.apps.profile import AppProfile
from agent_core.delivery.match import begins, our_bubble_after_question, same_cluster, shows_end_of
from agent_core.devices.base import Frame, Key, TextInput
from agent_core.errors import PhonedeskError
from agent_core.geometry import Box
from agent_core.observer import Observation, Observer
from agent_core.ports import Lease, Ledger, LedgerConflict, ReplyState, StopGuard
from agent_core.screen.compare import same_name
from agent_core.screen.readings import BubbleState, ChatScreen
from agent_core.session import GateState, Planned

log = structlog.get_logger(__name__)

OUTCOME_SECONDS = 8.0  # how long a bubble may take to appear
SPINNER_SECONDS = 45.0  # how long it may be on its way
TYPE_TRIES = 2
STEADY_TRIES = 3


class Result(StrEnum):
    SENT = "sent"
    CHANGED = "changed"  # something new stands in the chat; nothing was sent
    NOT_IN_CHAT = "not_in_chat"
    WRONG_CHAT = "wrong_chat"
    UNSURE_CHAT = "unsure_chat"
    FOREIGN_DRAFT = "foreign_draft"
    KEYBOARD = "keyboard"  # the text did not get into the input
    NOT_SENT = "not_sent"  # neither the button nor Enter had an effect; the input is empty again
    RED_MARK = "red_mark"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    result: Result
    detail: str = ""  # a title, a draft, a doubt: data for the message
    frame: Frame | None = None


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observer = observer
        self._device = observer.device
        self._profile = profile
        self._ledger = ledger
        self._guard = guard
        self._lease = lease
        self._clock = clock

    async def deliver(self, planned: Planned, gate: GateState, *, drop_draft: str = "") -> Outcome:
        """Send ``planned.text`` into the contact's chat, which must be in front and hold the same newest messages.

        ``drop_draft`` is a foreign draft that a person allowed to be cleared. The ledger row must be ``planned``.
        """
        seen = await self._see()
        chat = seen.chat
        refusal = check_chat(chat, gate) or self._check_messages(chat, planned)
        if chat is None or refusal is not None:
            return refusal or Outcome(Result.NOT_IN_CHAT, frame=seen.frame)
        if chat.draft and not self._is_ours(chat, planned.text) and chat.draft != drop_draft:
            return Outcome(Result.FOREIGN_DRAFT, chat.draft, seen.frame)
        if chat.input_box is None or chat.send_point is None:
            return Outcome(Result.KEYBOARD, "", seen.frame)
        await self._lease.check()
        await self._ledger.advance(planned.ledger_id, ReplyState.TYPING, expected=[ReplyState.PLANNED])
        return await self._type_and_send(planned, gate, chat.input_box)

    async def clear_leftover(self, chat: ChatScreen, text: str) -> bool:
        """Empty the input of the chat in front if it holds ``text`` or its beginning: what a dead run left."""
        if not chat.draft or not self._is_ours(chat, text) or chat.input_box is None:
            return False
        await self._lease.check()
        await self._device.tap(chat.input_box.center)
        async with self._device.keyboard() as keyboard:
            await keyboard.clear()
        log.info("leftover_cleared", serial=self._device.serial)
        return True

    async def _type_and_send(self, planned: Planned, gate: GateState, input_box: Box) -> Outcome:
        sending = False
        async with self._device.keyboard() as keyboard:
            try:
                seen = await self._type(keyboard, planned.text, input_box)
                if isinstance(seen, Outcome):
                    return await self._back_out(keyboard, planned, seen)
                refusal = check_chat(seen.chat, gate) or self._check_messages(seen.chat, planned)
                if refusal is not None or seen.chat is None or seen.chat.send_point is None:
                    return await self._back_out(keyboard, planned, refusal or Outcome(Result.CHANGED, frame=seen.frame))
                async with self._guard.shielded():
                    await self._lease.check()
                    await self._ledger.advance(planned.ledger_id, ReplyState.SENDING, expected=[ReplyState.TYPING])
                    sending = True
                    await self._device.tap(seen.chat.send_point)
                    return await self._settle(keyboard, planned)
            except BaseException:
                if not sending:
                    await self._give_up_typing(keyboard, planned)
                raise

    async def _type(self, keyboard: TextInput, text: str, input_box: Box) -> Observation | Outcome:
        """Type and read back; the observation on which the input holds the text and nothing moves any more."""
        draft: str | None = ""
        frame: Frame | None = None
        for _ in range(TYPE_TRIES):
            await self._device.tap(input_box.center)
            await self._see_quickly()
            await keyboard.clear()
            await keyboard.type(text)
            for _ in range(STEADY_TRIES):
                seen = await self._see()
                frame = seen.frame
                chat = seen.chat
                if chat is None:
                    return Outcome(Result.NOT_IN_CHAT, frame=frame)
                draft, input_box = chat.draft, chat.input_box or input_box
                if draft is None or not shows_end_of(draft, text, chat.source):
                    break
                if await self._steady(seen):
                    return seen
        return Outcome(Result.KEYBOARD, draft or "", frame)

    async def _settle(self, keyboard: TextInput, planned: Planned) -> Outcome:
        """After Send: look until the bubble stands there, and write down what is seen."""
        outcome = await self._watch(planned)
        if outcome.result is Result.NOT_SENT:
            # The button took no effect: the text is still in the input. Enter is the one other way to send.
            await self._device.key(Key.ENTER)
            outcome = await self._watch(planned)
            if outcome.result is Result.NOT_SENT:
                await keyboard.clear()
        state = {
            Result.SENT: ReplyState.SENT,
            Result.UNKNOWN: ReplyState.UNKNOWN,
        }.get(outcome.result, ReplyState.FAILED)
        await self._ledger.advance(planned.ledger_id, state, expected=[ReplyState.SENDING])
        return outcome

    async def _watch(self, planned: Planned) -> Outcome:
        begun = self._clock()
        until = begun + OUTCOME_SECONDS
        unsent_looks = 0
        while True:
            seen = await self._see()
            chat = seen.chat
            if chat is not None:
                bubble = our_bubble_after_question(chat, planned.cluster, planned.text)
                if bubble is not None and bubble.state is BubbleState.OK:
                    return Outcome(Result.SENT, frame=seen.frame)
                if bubble is not None and bubble.state is BubbleState.FAILED:
                    return Outcome(Result.RED_MARK, frame=seen.frame)
                if bubble is not None:
                    until = begun + SPINNER_SECONDS
                elif self._still_in_input(chat, planned.text):
                    unsent_looks += 1
                    if unsent_looks >= STEADY_TRIES:
                        return Outcome(Result.NOT_SENT, chat.draft or "", seen.frame)
            if self._clock() >= until:
                return Outcome(Result.UNKNOWN, frame=seen.frame)

    def _still_in_input(self, chat: ChatScreen, text: str) -> bool:
        return bool(chat.draft) and shows_end_of(chat.draft or "", text, chat.source)

    async def _back_out(self, keyboard: TextInput, planned: Planned, outcome: Outcome) -> Outcome:
        await self._give_up_typing(keyboard, planned)
        return outcome

    async def _give_up_typing(self, keyboard: TextInput, planned: Planned) -> None:
        """Our own text leaves the input, and the row is planned again: surely nothing was sent."""
        with suppress(PhonedeskError):  # the phone may be gone; the row stays in typing and the next look clears it
            await keyboard.clear()
            with suppress(LedgerConflict):
                await self._ledger.advance(planned.ledger_id, ReplyState.PLANNED, expected=[ReplyState.TYPING])

    async def _steady(self, seen: Observation) -> bool:
        """Directly before Send: title and messages are, pixel by pixel, those that were read."""
        now = await self._device.screenshot()
        chat = seen.chat
        if chat is None or chat.input_box is None or now.size != seen.size:
            return False
        top = round(self._profile.title_region[1] * now.size[1])
        region = (0, top, now.size[0], max(top + 1, chat.input_box.top - 12))
        return ImageChops.difference(now.image.crop(region), seen.frame.image.crop(region)).getbbox() is None

    async def _see(self) -> Observation:
        return await self._observer.observe(self._profile, model_may_read=True)

    async def _see_quickly(self) -> None:
        await self._observer.observe(None, read=False)

    def _is_ours(self, chat: ChatScreen, text: str) -> bool:
        draft = chat.draft or ""
        return begins(text, draft) or shows_end_of(draft, text, chat.source)

    def _check_messages(self, chat: ChatScreen | None, planned: Planned) -> Outcome | None:
        if chat is not None and same_cluster(planned.cluster, chat.question, chat.source):
            return None
        return Outcome(Result.CHANGED)


def check_chat(chat: ChatScreen | None, gate: GateState) -> Outcome | None:
    """None where the chat in front surely is the contact's, by its whole name; else why not."""
    if chat is None:
        return Outcome(Result.NOT_IN_CHAT)
    if gate.chat_confirmed and chat.title == gate.chat_confirmed:
        return None
    if not gate.contact:
        return Outcome(Result.UNSURE_CHAT, chat.title)
    if not chat.sure:
        return Outcome(Result.UNSURE_CHAT, chat.doubt or chat.title)
    if not same_name(chat.title, gate.contact):
        return Outcome(Result.WRONG_CHAT, chat.title)
    return None
