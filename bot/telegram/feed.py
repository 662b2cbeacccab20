"""From the event log to the chat: one live card a run, question cards, outcomes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from bot.chat import cards
from bot.chat.cards import Card
from bot.chat.conversation import utc_now
from bot.chat.texts import texts
from bot.desk.port import ChatRef, Desk, EventView, MessageRef, QuestionView, RunStatus, RunView
from bot.telegram import render
from bot.telegram.options import TelegramOptions
from bot.telegram.outbox import Outbox
from bot.telegram.parcel import Parcel
from bot.telegram.updates import CHANNEL
from storage.uncut import whole

log = structlog.get_logger(__name__)

CONSUMER = "telegram"
TRIES = 3
REMEMBERED = 500
QUESTION_EVENTS = {"question", "answered", "closed", "reminder", "escalated"}
FINAL = {status.value for status in RunStatus if status.final}


class DeskRefs:
    """The outbox's names for cards, remembered by the desk."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def get(self, ref: str) -> MessageRef | None:
        kind, _, name = ref.partition(":")
        if kind == "run":
            return await self._desk.card_ref(name)
        return await self._desk.question_ref(name) if kind == "question" else None

    async def set(self, ref: str, message: MessageRef) -> None:
        kind, _, name = ref.partition(":")
        if kind == "run":
            await self._desk.set_card_ref(name, message)
        elif kind == "question":
            await self._desk.set_question_ref(name, message)


@dataclass(slots=True)
class _Seen:
    """What events told of a run that its row does not: the newest thought and picture."""

    thinking: str = ""
    picture: bytes | None = None
    closed: set[str] = field(default_factory=set)  # questions whose cards say what came of them


class Feed:
    def __init__(
        self, desk: Desk, outbox: Outbox, options: TelegramOptions, *, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._desk = desk
        self._outbox = outbox
        self._options = options
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._over: OrderedDict[str, None] = OrderedDict()  # runs whose outcome is out; their rows may lag behind

    async def run(self) -> None:
        """Follow the log, for ever. What must arrive is in the outbox before its event is confirmed."""
        async for event in self._desk.events(CONSUMER):
            await whole(self._deal_with(event))
            await whole(self._desk.confirm(CONSUMER, event.id))

    async def _deal_with(self, event: EventView) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                await self._show(event)
            except Exception as error:  # one event must not stop the others; logged, nothing is swallowed
                log.exception("telegram_event_failed", event=event.id, kind=event.kind, error=self._options.safe(error))
                await asyncio.sleep(self._options.wait_after(attempt))
            else:
                return

    async def _show(self, event: EventView) -> None:
        run = await self._desk.run(event.run_id)
        if run is None or run.chat is None or run.chat.channel != CHANNEL:
            return
        if run.id in self._over and event.kind != "outcome":
            return  # its row closes after its outcome is out: nothing more is shown, or remembered
        seen = self._seen.setdefault(run.id, _Seen())
        if event.picture is not None:
            seen.picture = event.picture
        if event.kind == "thinking":
            seen.thinking = str(event.data.get("text") or event.data.get("thinking") or "")
        elif event.kind in {"step", "resumed"}:
            seen.thinking = ""
        if event.kind in QUESTION_EVENTS:
            await self._show_question(event, run, seen)
        closes = event.kind == "status" and event.data.get("status") in FINAL
        if event.kind == "outcome" or closes:
            # A run that no agent had in hand (stopped in the line, no phone) ends with its row alone.
            await self._show_outcome(_ended(run, event), run.chat, seen)
        else:
            self._outbox.show(run.chat.chat_id, f"run:{run.id}", lambda: self._draw(run.id))

    async def _show_outcome(self, run: RunView, chat: ChatRef, seen: _Seen) -> None:
        self._over[run.id] = None
        while len(self._over) > REMEMBERED:
            self._over.popitem(last=False)
        card = cards.run_card(run, texts(run.lang), now=self._clock(), thinking=seen.thinking, picture=seen.picture)
        await self._outbox.put(chat.chat_id, _parcel(card, chat), ref=f"run:{run.id}")
        for view in await self._desk.questions_of(run.id):
            if not view.by:  # nobody answers it any more; its row may be closed after this
                await self._put_question(replace(view, open=False), run, None)
        self._seen.pop(run.id, None)

    async def _draw(self, run_id: str) -> Parcel | None:
        """The live card as it is now; None where its run is over (its outcome is in the store)."""
        run = await self._desk.run(run_id)
        if run is None or run.chat is None or run.status.final or run_id in self._over:
            return None
        seen = self._seen.get(run_id, _Seen())
        card = cards.run_card(run, texts(run.lang), now=self._clock(), thinking=seen.thinking, picture=seen.picture)
        return _parcel(card, run.chat)

    async def _show_question(self, event: EventView, run: RunView, seen: _Seen) -> None:
        question_id = str(event.data.get("id" if event.kind == "question" else "question") or "")
        if event.kind == "answered" and question_id in seen.closed:
            return
        view = await self._desk.question(question_id)
        if view is None:
            log.warning("telegram_question_missing", question=question_id, run=run.id)
        elif event.kind == "reminder":
            await self._remind(view, run, int(event.data.get("number") or 0))
        elif event.kind == "escalated":
            await self._escalate(view, run)
        else:
            if not view.open:
                seen.closed.add(question_id)
            await self._put_question(view, run, seen.picture)

    async def _put_question(self, view: QuestionView, run: RunView, picture: bytes | None) -> None:
        """Every card of it: in the run's chat, and wherever else it was shown."""
        places = [("", view.chat or run.chat)]
        places += [(f"@{name}", chat) for name, chat in await self._desk.question_copies(view.id)]
        for name, chat in places:
            if chat is not None and chat.channel == CHANNEL:
                await self._put_card(view, run, chat, name, picture)

    async def _put_card(
        self, view: QuestionView, run: RunView, chat: ChatRef, name: str, picture: bytes | None
    ) -> None:
        card = cards.question_card(view, texts(view.lang), run=run, picture=picture if view.open else None)
        await self._outbox.put(chat.chat_id, _parcel(card, chat), ref=f"question:{view.id}{name}")

    async def _remind(self, view: QuestionView, run: RunView, number: int) -> None:
        """One short message that answers the card; the card itself where it was lost."""
        chat = view.chat or run.chat
        if not view.open or chat is None or chat.channel != CHANNEL:
            return
        shown = await self._desk.question_ref(view.id)
        if shown is None:
            await self._put_card(view, run, chat, "", await self._desk.question_picture(view.id))
            return
        card = cards.reminder_card(view, texts(view.lang), now=self._clock())
        parcel = render.parcel(card, thread_id=chat.thread_id, kind=chat.kind, reply_to=shown.message_id)
        await self._outbox.put(chat.chat_id, parcel, once=f"remind:{view.id}:{number}")

    async def _escalate(self, view: QuestionView, run: RunView) -> None:
        """Show it to those who have not seen it. Their cards are remembered first: an answer closes them, too."""
        if not view.open:
            return
        chats = await self._desk.escalate_question(view.id)
        names = await self._desk.question_copies(view.id)
        picture = await self._desk.question_picture(view.id)
        for name, chat in names:
            if chat in chats and name.startswith("escalated:") and chat.channel == CHANNEL:
                await self._put_card(view, run, chat, f"@{name}", picture)


def _ended(run: RunView, event: EventView) -> RunView:
    """The run with what its outcome says: the event is written before the row is closed."""
    data = event.data
    if run.status.final or data.get("status") not in set(RunStatus):
        return run
    return replace(
        run,
        status=RunStatus(data["status"]),
        message=str(data.get("message") or run.message),
        error_kind=str(data.get("error_kind") or run.error_kind),
        ended_at=run.ended_at or event.created_at,
    )


def _parcel(card: Card, chat: ChatRef) -> Parcel:
    return render.parcel(card, thread_id=chat.thread_id, kind=chat.kind)
