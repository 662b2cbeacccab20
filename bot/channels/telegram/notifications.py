"""Tells chats what the event log says about no run: due digests, outages and recoveries, missed ticks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from bot.channels.chat.cards import Card
from bot.channels.chat.digest import alert_card, digest_card
from bot.channels.chat.schedules import news_card
from bot.channels.chat.texts import texts
from bot.channels.telegram import render
from bot.channels.telegram.outbox import Outbox
from bot.channels.telegram.updates import CHANNEL
from bot.desk.desk import Desk
from bot.desk.digest_views import Addressee
from bot.desk.views import EventView

NEWS = frozenset({"digest", "alert", "schedule"})


class Notifications:
    """Puts notifications into the outbox. ``is_quiet``: whether messages at this time make no sound."""

    def __init__(self, desk: Desk, outbox: Outbox, is_quiet: Callable[[datetime], bool]) -> None:
        self._desk = desk
        self._outbox = outbox
        self._is_quiet = is_quiet

    async def show(self, event: EventView, now: datetime) -> None:
        """Put the event's message into the outbox, once for each chat however often this is called."""
        if event.kind == "digest":
            due = await self._desk.digest.due(event.data)
            if due is not None:
                to, view = due
                await self._put(to, await digest_card(view, texts(to.lang)), event, now)
            return
        if event.kind == "schedule":
            told = await self._desk.schedules.news(event.data)
            if told is not None:
                await self._put(Addressee(told.chat, told.lang), news_card(told, texts(told.lang)), event, now)
            return
        alert = await self._desk.digest.alert(event.data)
        for to in await self._desk.digest.alerted(event.created_at):
            await self._put(to, alert_card(alert, texts(to.lang)), event, now)

    async def _put(self, to: Addressee, card: Card, event: EventView, now: datetime) -> None:
        chat = to.chat
        if chat.channel == CHANNEL:
            outgoing = render.outgoing(card, thread_id=chat.thread_id, kind=chat.kind)
            outgoing = outgoing.model_copy(update={"silent": self._is_quiet(now)})
            await self._outbox.put(chat.chat_id, outgoing, once=f"{event.kind}:{event.id}:{chat.chat_id}")
