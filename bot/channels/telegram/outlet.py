"""Shows cards in Telegram: draws them, and puts them into the outbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from bot.channels.chat.cards import Card
from bot.channels.chat.outlet import LiveCard
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.channels.telegram import render
from bot.channels.telegram.drafts import Drafts
from bot.channels.telegram.options import TelegramOptions
from bot.channels.telegram.outbox import Outbox
from bot.channels.telegram.outgoing import OutgoingMessage, Topic
from bot.channels.telegram.request import is_away
from bot.channels.telegram.updates import CHANNEL
from bot.desk.actors import ChatRef
from bot.desk.views import RunView


class TelegramOutlet:
    """``bot.channels.chat.outlet.CardOutlet`` over the outbox."""

    channel = CHANNEL

    def __init__(self, outbox: Outbox, options: TelegramOptions, drafts: Drafts, clock: Callable[[], datetime]) -> None:
        self._outbox = outbox
        self._options = options
        self._drafts = drafts
        self._clock = clock

    async def put(
        self, message: Outgoing, *, run: RunView | None = None, urgent: bool = False, soundless: bool = False
    ) -> None:
        chat, topic = message.chat, topic_of(run) if run is not None else None
        if message.changes and not await self._outbox.shows(chat.chat_id, message.shows):
            return
        drawn = render.outgoing(
            message.card, thread_id=chat.thread_id, kind=chat.kind, reply_to=message.reply_to, topic=topic
        )
        drawn = self._hushed(drawn, urgent=urgent, soundless=soundless)
        await self._outbox.put(chat.chat_id, drawn, ref=message.shows, once="" if message.shows else message.once)

    def show_live(self, chat: ChatRef, run_id: str, draw: Callable[[str], Awaitable[LiveCard | None]]) -> None:
        async def drawn(chat_id: str) -> OutgoingMessage | None:
            live = await draw(chat_id)
            if live is None or live.run.chat is None:
                return None
            place = live.run.chat
            message = render.outgoing(
                live.card, thread_id=place.thread_id, kind=place.kind, topic=topic_of(live.run), in_one=True
            )
            return self._hushed(message, soundless=live.run.watch)

        self._outbox.show(chat.chat_id, f"run:{run_id}", drawn)

    def _hushed(self, message: OutgoingMessage, *, soundless: bool, urgent: bool = False) -> OutgoingMessage:
        """Return the message, without a sound if it is to make none, or if it is not urgent and the hours are quiet."""
        silent = soundless or (not urgent and self._options.is_quiet(self._clock()))
        return message.model_copy(update={"silent": True}) if silent else message

    def think(self, run_id: str, chat: ChatRef, text: str) -> bool:
        return self._drafts.think(run_id, chat, text)

    def thought_over(self, run_id: str) -> None:
        self._drafts.over(run_id)

    def shows_all(self, card: Card, *, captioned: bool) -> bool:
        return render.fits(card, captioned=captioned)

    def is_away(self, error: Exception) -> bool:
        return is_away(error)

    def wait_after(self, failures: int) -> float:
        return self._options.wait_after(failures)

    def safe(self, error: object) -> str:
        return self._options.safe(error)


def topic_of(run: RunView) -> Topic | None:
    """Return the phone whose topic a run is shown in; None while it has no phone."""
    if not run.serial:
        return None
    return Topic(serial=run.serial, name=run.phone or run.serial, receipt=texts(run.lang).get("topics.receipt"))
