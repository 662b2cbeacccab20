"""Settles replies that a dead run left in typing or sending: the chat tells their fate before anything else is done."""

from __future__ import annotations

from enum import StrEnum

import structlog

from agent_core.apps.profile import profile_of_package
from agent_core.devices.base import TouchWatch
from agent_core.perception.compare import fold, same_name
from agent_core.perception.observer import Observer
from agent_core.perception.readings import BubbleState, ChatScreen
from agent_core.ports import Lease, Ledger, LedgerRow, ReplyState, StopGuard
from agent_core.reply.hand_over import clear_leftover, is_voice_bar, leave_voice_bar
from agent_core.reply.match import is_draft, our_bubble_after_question
from agent_core.reply.outcome import DeliveryResult
from agent_core.reply.planning import sent_texts
from agent_core.reply.sender import ReplyContext, watch
from agent_core.session import GateState

log = structlog.get_logger(__name__)


class Fate(StrEnum):
    """The fate of an unfinished row's text."""

    SENT = "sent"
    RED_MARK = "red_mark"
    PART_SENT = "part_sent"  # the next part is planned
    NOT_SENT = "not_sent"  # the row is planned again, the input is empty
    UNKNOWN = "unknown"  # only a person can tell


async def clear_in_front(
    observer: Observer, ledger: Ledger, *, lease: Lease, guard: StopGuard, touches: TouchWatch
) -> LedgerRow | None:
    """Empty the input of the chat in front if a run that is over typed a reply into it, for the phone's present owner.

    Returns a row whose text may still be there, so that a touch could send it, or None. Whether a reply that was being
    sent has arrived is left to the next run for this contact.
    """
    device = observer.device
    unfinished = await ledger.unfinished(device.serial)
    app = profile_of_package((await device.window()).package) if unfinished else None
    rows = [row for row in unfinished if app is not None and row.key.app == app.key]
    if app is None or not rows:
        return None
    seen = await observer.observe_closely(app)
    chat = seen.chat
    if chat is None and seen.unread_below is None:
        return None  # a page of the app that is not a chat
    if chat is None or not chat.sure:
        return rows[0]
    leftovers = Leftovers(ReplyContext(observer, app, ledger, guard, lease, touches))
    gate = GateState(app=app.key, contact=chat.title)
    for row in await leftovers.rows(device.serial, chat.title):
        if row.state is ReplyState.TYPING:
            row, _ = await leftovers.settle(row, chat, gate)  # noqa: PLW2901 - as it is now
        if row.state in (ReplyState.TYPING, ReplyState.SENDING):
            return row
    return None


class Leftovers:
    """The unfinished rows that are settled by the chat in front, which must be the row's chat."""

    def __init__(self, context: ReplyContext) -> None:
        self._context = context

    async def rows(self, serial: str, contact: str) -> list[LedgerRow]:
        """Return the contact's unfinished rows."""
        app, unfinished = self._context.profile.key, await self._context.ledger.unfinished(serial)
        return [row for row in unfinished if row.key.app == app and same_name(row.key.contact, contact)]

    async def settle(self, row: LedgerRow, chat: ChatScreen, gate: GateState) -> tuple[LedgerRow, Fate]:
        """Return the row as it is now, and the fate of its text. The lease is checked before the input is touched."""
        row, fate = await self._settle(row, chat, gate)
        log.info("leftover_settled", ledger_id=row.id, fate=fate.value, run_id=row.run_id)
        return row, fate

    async def _settle(self, row: LedgerRow, chat: ChatScreen, gate: GateState) -> tuple[LedgerRow, Fate]:
        if row.state is ReplyState.SENDING:
            seen = await self._seen(row, chat, gate)
            if seen is not None:
                return seen
        chat = await self._with_draft(chat)
        if chat.draft is None and row.state is ReplyState.TYPING:
            return row, Fate.NOT_SENT  # it stays in typing: the next run that sees the input clears it
        cleared = await clear_leftover(self._context, chat, row.part_text)
        if row.state is ReplyState.TYPING:  # typing never sends
            return await self._advance(row, ReplyState.PLANNED), Fate.NOT_SENT
        # A text in the input was not sent, unless it left just now or its bubble appeared late.
        again = await self._context.observer.chat(self._context.profile)
        seen = await self._seen(row, again, gate) if again is not None else None
        if seen is not None:
            return seen
        if cleared and again is not None and again.draft == "":
            return await self._advance(row, ReplyState.PLANNED), Fate.NOT_SENT
        return row, Fate.UNKNOWN

    async def _with_draft(self, chat: ChatScreen) -> ChatScreen:
        """Read the chat again if the content of the input is unknown, or if there is no input."""
        if is_voice_bar(chat):
            again = (await leave_voice_bar(self._context, chat)).chat
        elif chat.draft is not None:
            return chat
        else:
            again = await self._context.observer.chat(self._context.profile)
        return again if again is not None and same_name(again.title, chat.title) else chat

    async def _seen(self, row: LedgerRow, chat: ChatScreen, gate: GateState) -> tuple[LedgerRow, Fate] | None:
        """Return the state of the text's bubble; None if there is none, or the text is still in the input."""
        cluster, text = row.cluster, row.part_text
        if is_draft(chat.draft or "", text, chat.source):
            return None
        others = await self._others(row)
        bubble = our_bubble_after_question(chat, cluster, text, others=others)
        if bubble is None:
            return None
        state = bubble.state
        if state is BubbleState.SENDING:
            outcome = await watch(self._context, text, cluster, gate, others=others)
            if outcome.result is DeliveryResult.UNKNOWN:
                return row, Fate.UNKNOWN
            state = BubbleState.OK if outcome.result is DeliveryResult.SENT else BubbleState.FAILED
        if state is BubbleState.OK and row.part + 1 < len(row.parts):
            return await self._context.ledger.next_part(row.id, part=row.part), Fate.PART_SENT
        if state is BubbleState.OK:
            return await self._advance(row, ReplyState.SENT), Fate.SENT
        return await self._advance(row, ReplyState.FAILED), Fate.RED_MARK

    async def _others(self, row: LedgerRow) -> list[str]:
        """Return the other texts that are known to have been sent below the same messages."""
        recent = await self._context.ledger.recent(row.key.serial, row.key.app, row.key.contact)
        # Equal words that were asked earlier were other messages, which stand above these.
        rest = [other for other in recent if fold(other.question) != fold(row.question)]
        same = [other for other in rest if set(other.cluster) & set(row.cluster)]
        return [*row.parts[: row.part], *(text for other in same for text in sent_texts(other))]

    async def _advance(self, row: LedgerRow, state: ReplyState) -> LedgerRow:
        return await self._context.ledger.advance(row.id, state, expected=[row.state])
