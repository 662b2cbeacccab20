"""Tells chats what the event log says about no run: due digests, outages and recoveries, missed ticks."""

from __future__ import annotations

from bot.channels.chat.cards import Card
from bot.channels.chat.digest import alert_card, digest_card
from bot.channels.chat.outlet import CardOutlet
from bot.channels.chat.schedules import news_card
from bot.channels.chat.texts import texts
from bot.channels.chat.turn import Outgoing
from bot.desk.desk import Desk
from bot.desk.digest_views import Addressee
from bot.desk.views import EventView

NEWS = frozenset({"digest", "alert", "schedule"})


class Notifications:
    """Shows notifications in the chats of one channel."""

    def __init__(self, desk: Desk, outlet: CardOutlet) -> None:
        self._desk = desk
        self._outlet = outlet

    async def show(self, event: EventView) -> None:
        """Show the event's message, once for each chat however often this is called."""
        if event.kind == "digest":
            due = await self._desk.digest.due(event.data)
            if due is not None:
                to, view = due
                await self._put(to, await digest_card(view, texts(to.lang)), event)
            return
        if event.kind == "schedule":
            told = await self._desk.schedules.news(event.data)
            if told is not None:
                await self._put(Addressee(told.chat, told.lang), news_card(told, texts(told.lang)), event)
            return
        alert = await self._desk.digest.alert(event.data)
        for to in await self._desk.digest.alerted(event.created_at):
            await self._put(to, alert_card(alert, texts(to.lang)), event)

    async def _put(self, to: Addressee, card: Card, event: EventView) -> None:
        if to.chat.channel == self._outlet.channel:
            await self._outlet.put(Outgoing(card, to.chat, once=f"{event.kind}:{event.id}:{to.chat.chat_id}"))
