"""One attempt to send one reply: type, read back, check a last time, send, and observe the outcome."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from agent_core.apps.learnt import LearntApp, SendsBy, version_of
from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Device, Frame, Key, TextInput, TouchWatch, WindowKind
from agent_core.errors import DeviceError, DeviceOffline, LeaseLost, PhonedeskError, ScreenOff
from agent_core.geometry import Box, Point
from agent_core.perception.observer import Observation, Observer, changed_width, is_same_but_for_a_cursor
from agent_core.perception.readings import BubbleState, ChatScreen, SendState
from agent_core.policies.right_chat import is_contacts
from agent_core.ports import Lease, Ledger, LedgerConflict, ReplyState, StopGuard
from agent_core.reply.match import is_bubble_of, is_draft, our_bubble_after_question
from agent_core.reply.outcome import DeliveryResult, Outcome, check_planned
from agent_core.session import GateState, Planned

log = structlog.get_logger(__name__)

OUTCOME_SECONDS = 8.0  # how long a bubble may take to appear
SPINNER_SECONDS = 45.0  # how long it may be on its way
UNSENT_SECONDS = 1.2  # how long the text may remain in the input after Send
UNSENT_LOOKS = 3
CLEARED_SECONDS = 0.6  # how long to look for a bubble after an unsent text was cleared
UNLOCK_SECONDS = 20.0  # how long to wait for a phone that was locked meanwhile, in order to remove our text
UNLOCK_LOOKS = 0.5
FRESH_SECONDS = 5.0  # how old the lease check may be at Send; a picture takes well under a second
TYPE_TRIES = 3  # an Android phone has three ways to type
STEADY_TRIES = 3

# The ledger's state after the outcome is observed. What certainly was not sent may be sent by another run.
STATES = {
    DeliveryResult.SENT: ReplyState.SENT,
    DeliveryResult.UNKNOWN: ReplyState.UNKNOWN,
    DeliveryResult.RED_MARK: ReplyState.FAILED,
    DeliveryResult.NOT_SENT: ReplyState.PLANNED,
    DeliveryResult.CHANGED: ReplyState.PLANNED,
}

OnSent = Callable[[Planned, Frame | None], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What every part of a reply uses: the phone and its app, the ledger, and who may act."""

    observer: Observer
    profile: AppProfile
    ledger: Ledger
    guard: StopGuard
    lease: Lease
    touches: TouchWatch

    @property
    def device(self) -> Device:
        return self.observer.device

    async def look(self) -> Observation:
        """Return a new observation, without scrolling."""
        return await self.observer.observe(self.profile, model_may_read=True)


class ReplySender:
    """The sender of a planned row while it holds the keyboard. ``seen`` is the observation that allowed it."""

    def __init__(
        self,
        context: ReplyContext,
        planned: Planned,
        gate: GateState,
        keyboard: TextInput,
        seen: Observation,
        on_sent: OnSent,
    ) -> None:
        self._context = context
        self._planned = planned
        self._gate = gate
        self._keyboard = keyboard
        self._seen = seen  # the newest observation
        # No keyboard hides the upper half of this first observation, so whatever appears later is new.
        self._no_older = not seen.keyboard_up and not _stands(planned.part_text, seen.chat)
        self._on_sent = on_sent
        self._state = ReplyState.PLANNED

    async def run(self) -> Outcome:
        """Type and send the text, and return the outcome. A refusal or an error before Send removes the text again."""
        context, sending = self._context, False
        await self._advance(ReplyState.TYPING)
        try:
            refusal = await self._type()
            way = await self._way() if refusal is None else None
            if refusal is None and way is None:  # Send may appear late
                refusal = await self._look() or (None if self._typed else self._mistyped())
                way = await self._way()
            if refusal is not None:
                await self._back_out()
                return refusal
            if way is None:
                # The text stays there, because a person may send it by hand; then a bubble shows it.
                await self._advance(ReplyState.SENDING)
                return self._no_send()
            async with context.guard.shielded():
                # The ledger comes first because it may wait for its file: only the act itself follows the last picture.
                await self._advance(ReplyState.SENDING)
                refusal = await self._last_look(way)
                if refusal is not None:
                    await self._back_out()
                    return refusal
                sending = True
                await self._send(way)
                return await self._settle(way)
        except BaseException as error:
            if not sending and not isinstance(error, DeviceOffline):
                await self._back_out(patient=isinstance(error, PhonedeskError))
            raise

    # -- before Send ---------------------------------------------------------------------------------------------

    async def _type(self) -> Outcome | None:
        """Type until the text is read back from the input; return None then, else the reason."""
        for _ in range(TYPE_TRIES):
            refusal = await self._focus_and_empty()
            if refusal is not None:
                return refusal
            await self._context.lease.check()
            await self._keyboard.type(self._planned.part_text)
            refusal = await self._look()
            if refusal is not None:
                return refusal
            await self._keyboard.confirm(arrived=self._typed)
            if self._typed:
                return None
        return self._mistyped()

    @property
    def _typed(self) -> bool:
        chat = self._seen.chat
        return chat is not None and is_draft(chat.draft or "", self._planned.part_text, chat.source)

    def _mistyped(self) -> Outcome:
        chat = self._seen.chat
        return Outcome(DeliveryResult.KEYBOARD, (chat.draft or "") if chat else "")

    async def _focus_and_empty(self) -> Outcome | None:
        """Focus and empty the input; return a refusal if the chat is no longer the contact's or has changed.

        Typing relies on an observation after the last touch. A touch changes the screen, which reveals a source that
        lags behind even if it agreed before. Somebody may also have left the chat.
        """
        chat = self._seen.chat
        if chat is None or chat.input_box is None:
            return Outcome(DeliveryResult.NOT_IN_CHAT)
        drafts = [chat.draft]
        await self._context.lease.check()
        await self._context.device.tap(chat.input_box.center)
        refusal = await self._look()
        if refusal is not None:
            return refusal
        drafts.append(self._seen.chat.draft if self._seen.chat else None)
        await self._context.lease.check()
        await self._keyboard.clear()
        if not any(drafts):
            return None  # there was nothing to clear
        # In a picture the input shows only its last lines; any earlier ones become visible now or never.
        refusal = await self._look()
        left = self._seen.chat.draft if self._seen.chat else None
        return refusal or (Outcome(DeliveryResult.KEYBOARD, left or "") if left != "" else None)

    async def _way(self) -> SendsBy | None:
        """Return the control that sends the typed text, or None if none is known.

        It is the button if one is visible, else the control that a person chose or that was learnt for this phone.
        """
        if send_button(self._seen.chat) is not None:
            return "button"
        if self._planned.send_by:
            return self._planned.send_by
        learnt = await self._learnt()
        return None if learnt is None or learnt.sends_by == "button" else learnt.sends_by

    async def _learnt(self) -> LearntApp | None:
        version = await version_of(self._context.device, self._context.profile)
        if not version:
            return None
        return await self._context.ledger.learnt(self._context.device.serial, self._context.profile.key, version)

    async def _learn(self, way: SendsBy) -> None:
        """Store for this phone the control that a person chose and that was then seen to send."""
        version = await version_of(self._context.device, self._context.profile)
        if not version:
            return
        known = await self._learnt() or LearntApp(self._context.profile.key, version)
        await self._context.ledger.learn(self._context.device.serial, replace(known, sends_by=way))
        log.info("sends_by_learnt", app=known.app, version=version, sends_by=way)

    def _no_send(self) -> Outcome:
        chat = self._seen.chat
        return Outcome(DeliveryResult.NO_SEND, title=chat.title if chat else "", frame=self._seen.frame)

    async def _send(self, way: SendsBy) -> None:
        button = send_button(self._seen.chat)
        match way:
            case "button" if button is not None:
                await self._keyboard.tap(button)
            case "keyboard_key":
                await self._keyboard.send_action()
            case _:
                await self._keyboard.key(Key.ENTER)

    async def _last_look(self, way: SendsBy) -> Outcome | None:
        """Return None if nothing has moved since the chat was read and ``way`` still sends; else the reason."""
        for looks in range(STEADY_TRIES):
            refusal = await self._look() if looks else None
            if refusal is not None:
                return refusal
            chat = self._seen.chat
            if chat is None or not self._typed:
                return self._mistyped()
            if (send_button(chat) is not None) is not (way == "button"):
                continue
            asked_at = time.monotonic()
            await self._context.lease.check()
            # If the process was suspended, the picture and the lease check are old.
            if await self._steady(chat) and time.monotonic() - asked_at <= FRESH_SECONDS:
                return Outcome(DeliveryResult.TOUCHED) if self._context.touches.touched else None
        return Outcome(DeliveryResult.CHANGED)

    async def _look(self) -> Outcome | None:
        self._seen = await self._context.look()
        return check_planned(self._seen.chat, self._gate, self._planned)

    async def _steady(self, chat: ChatScreen) -> bool:
        """Tell, directly before Send, whether the page is pixel by pixel as it was read.

        Compared are the title, the question, the button and the input, except for a blinking cursor.
        """
        now, then = await self._context.device.screenshot(), self._seen.frame
        if chat.input_box is None or now.size != then.size:
            return False
        tops = [bubble.box.top for bubble in chat.question if bubble.box is not None]
        top = min(tops, default=round(self._context.profile.messages_region[1] * now.size[1]))
        messages = Box(0, top, now.size[0], max(top + 1, chat.input_box.top - 12))
        button = send_button(chat)
        return (
            same_title(self._seen, now, self._context.profile)
            and is_same_but_for_a_cursor(now, then, chat.input_box)
            and _same(now, then, messages)
            and (button is None or _same(now, then, Box(button.x - 8, button.y - 8, button.x + 8, button.y + 8)))
        )

    async def _back_out(self, *, patient: bool = True) -> None:
        """Remove our text from the input and plan the row again, because certainly nothing was sent.

        patient: wait a while for a phone that is locked.

        If that is impossible (phone gone or taken, another chat in front, the focus lost) the row stays as it is, and
        the next run that sees the chat clears it.
        """
        with suppress(PhonedeskError, LedgerConflict):
            await self._context.lease.check()
            if self._state is ReplyState.SENDING:  # nothing was tapped: typing never sends
                await self._advance(ReplyState.TYPING)
            if patient and not await self._is_open():
                return
            if self._seen.chat is None or not is_contacts(self._seen.chat, self._gate):
                return
            await self._context.lease.check()
            await self._keyboard.clear()
            left = await self._context.observer.chat(self._context.profile)  # the focus may have moved elsewhere
            if left is not None and left.draft == "" and is_contacts(left, self._gate):
                await self._advance(ReplyState.PLANNED)

    async def _is_open(self) -> bool:
        """Wait until the phone is unlocked; False if it stays locked.

        If it was locked, the chat is read again and the input focused.
        """
        context, waited = self._context, False
        until = time.monotonic() + UNLOCK_SECONDS
        while True:
            look = await context.device.look()
            if look.screen.awake and look.window.kind is not WindowKind.LOCK:
                break
            if time.monotonic() >= until:
                return False
            waited = True
            await asyncio.sleep(UNLOCK_LOOKS)
        if not waited:
            return True
        self._seen = await context.look()
        chat = self._seen.chat
        if chat is not None and chat.input_box is not None and is_contacts(chat, self._gate):
            await context.lease.check()
            await context.device.tap(chat.input_box.center)
        return True

    # -- after Send ----------------------------------------------------------------------------------------------

    async def _settle(self, way: SendsBy) -> Outcome:
        """Watch for the bubble, and record the outcome."""
        outcome, changed = await self._watch(), None
        if outcome.result is DeliveryResult.NOT_SENT and way != "button":
            return self._no_send()  # sending: the text is typed, and a person decides
        if outcome.result is DeliveryResult.NOT_SENT:
            # The button had no effect: the text is still in the input. Enter is the only other way to send.
            refusal = await self._look()
            if refusal is not None and refusal.result is not DeliveryResult.CHANGED:
                return refusal  # sending: the next run that looks sees whether it is gone, and clears it
            if refusal is None:
                await self._context.lease.check()
                await self._keyboard.key(Key.ENTER)
                outcome = await self._watch()
            else:
                changed = refusal  # it is taken out again
        if outcome.result is DeliveryResult.NOT_SENT:
            await self._context.lease.check()
            await self._keyboard.clear()
            late = await self._watch(CLEARED_SECONDS)  # it may have been sent just now
            outcome = outcome if late.result is DeliveryResult.UNKNOWN else late
            if outcome.result is DeliveryResult.NOT_SENT and not await self._is_empty():
                return outcome  # sending: the text may still be there, and the next run that sees the chat clears it
            if outcome.result is DeliveryResult.NOT_SENT and changed is not None:
                outcome = changed
        state = STATES[outcome.result]
        if state is ReplyState.SENT and self._planned.part + 1 < len(self._planned.parts):
            await self._context.ledger.next_part(self._planned.ledger_id, part=self._planned.part)
        else:
            await self._advance(state)
        if outcome.result is DeliveryResult.SENT:
            await self._on_sent(self._planned, outcome.frame)
            if self._planned.send_by and self._planned.send_by == way:
                await self._learn(way)
        return outcome

    async def _is_empty(self) -> bool:
        """Tell whether the contact's input is seen to be empty."""
        chat, _ = await _glance(self._context)
        return chat is not None and chat.draft == "" and is_contacts(chat, self._gate)

    async def _watch(self, seconds: float = OUTCOME_SECONDS) -> Outcome:
        planned = self._planned
        return await watch(
            self._context,
            planned.part_text,
            planned.cluster,
            self._gate,
            seconds,
            no_older=self._no_older,
            others=planned.ours,
        )

    async def _advance(self, state: ReplyState) -> None:
        await self._context.ledger.advance(self._planned.ledger_id, state, expected=[self._state])
        self._state = state


async def watch(
    context: ReplyContext,
    text: str,
    cluster: Sequence[str],
    gate: GateState,
    seconds: float = OUTCOME_SECONDS,
    *,
    no_older: bool = False,
    others: Sequence[str] = (),
) -> Outcome:
    """Watch until our bubble with ``text`` is below ``cluster``, and return the delivery's result.

    That is SENT, RED_MARK or NOT_SENT, or UNKNOWN after ``seconds``. A text that is still in the input was not sent,
    even if a bubble looks like it.

    no_older: no bubble of ours had this text before it was sent.
    others: our other texts below ``cluster``.
    """
    begun = time.monotonic()
    until, unsent = begun + seconds, 0
    while True:
        chat, frame = await _glance(context)
        waiting = False
        if chat is not None and is_contacts(chat, gate):
            bubble = our_bubble_after_question(chat, cluster, text, no_older=no_older, others=others)
            if is_draft(chat.draft or "", text, chat.source):
                unsent, waiting = unsent + 1, True
                if unsent >= UNSENT_LOOKS and time.monotonic() - begun >= UNSENT_SECONDS:
                    return Outcome(DeliveryResult.NOT_SENT, chat.draft or "", chat.title, frame)
            elif bubble is not None and bubble.state is not BubbleState.SENDING:
                result = DeliveryResult.SENT if bubble.state is BubbleState.OK else DeliveryResult.RED_MARK
                return Outcome(result, title=chat.title, frame=frame)
            elif bubble is not None:
                until = begun + SPINNER_SECONDS
        # A text that is seen in the input has a known fate, however long a few observations take on a slow machine.
        if time.monotonic() >= until and not waiting:
            return Outcome(DeliveryResult.UNKNOWN, frame=frame)


async def _glance(context: ReplyContext) -> tuple[ChatScreen | None, Frame | None]:
    """Observe the chat. Return None for both if that fails: the next picture may show the outcome."""
    try:
        seen = await context.look()
    except (DeviceOffline, ScreenOff, LeaseLost):
        raise
    except DeviceError as error:
        log.info("look_failed", serial=context.device.serial, kind=error.kind)
        return None, None
    return seen.chat, seen.frame


def same_title(seen: Observation, now: Frame, profile: AppProfile) -> bool:
    """Tell whether the name in the header is, pixel by pixel, the name that was seen."""
    if now.size != seen.size:
        return False
    width, height = now.size
    if seen.chat is not None and seen.chat.title_box is not None:
        # The name, with room for one more letter. The line below it comes and goes, and so does the count before it.
        name = seen.chat.title_box
        return _same(now, seen.frame, replace(name, right=min(width, name.right + name.height)))
    left, top, right, bottom = profile.title_region
    box = Box(round(left * width), round(top * height), round(right * width), round(bottom * height))
    return _same(now, seen.frame, box)


def send_button(chat: ChatScreen | None) -> Point | None:
    """Return the place of Send on the page, or None. A Send key of the keyboard does not count."""
    if chat is None or chat.send_state not in (SendState.ON, SendState.DIMMED):
        return None
    return chat.send_point


def _stands(text: str, chat: ChatScreen | None) -> bool:
    """Tell whether a bubble of ours with ``text`` is in sight."""
    return chat is not None and any(is_bubble_of(bubble, text, chat) for bubble in chat.bubbles)


def _same(now: Frame, then: Frame, box: Box) -> bool:
    return changed_width(now, then, box) == 0
