"""A member of the team in front of a private chat, at a desk over a real database."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot.channels.chat.cards import Button
from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Person, Said
from bot.desk.actors import Actor, ChatRef, MessageRef, Role
from bot.desk.people import new_code
from storage.people import People
from tests.support.shop import Shop
from tests.support.talker import shown


@dataclass
class Member:
    """A paired person in front of a private chat. ``said`` is the last thing that came back."""

    shop: Shop
    actor: Actor
    said: Said = field(default_factory=Said)
    number: int = 0

    @property
    def chat(self) -> ChatRef:
        return ChatRef("telegram", self.actor.user_id)

    async def hear(self, **incoming: Any) -> str:
        self.number += 1
        person = Person(self.actor.user_id, self.actor.name, "zh")
        key = incoming.pop("key", f"{self.actor.user_id}-{self.number}")
        conversation = Conversation(self.shop.desk, clock=self.shop.clock)
        self.said = await conversation.handle(Incoming(person=person, chat=self.chat, key=key, **incoming))
        return shown(self.said)

    async def say(self, text: str) -> str:
        return await self.hear(kind="text", text=text, message_id="5")

    async def tap(self, action: str, **more: Any) -> str:
        assert len(action.encode()) <= 64
        return await self.hear(kind="button", action=action, reply_to=MessageRef(self.chat, "77"), **more)

    @property
    def buttons(self) -> list[Button]:
        return [button for message in self.said.messages for row in message.card.buttons for button in row]

    def action(self, label: str) -> str:
        return next(button.action for button in self.buttons if label in button.label)


async def member(shop: Shop, role: Role, name: str = "") -> Member:
    code = await new_code(shop.db, role, created_by="test")
    number = str(await People(shop.db).count() + 1)
    return Member(shop, await shop.desk.people.pair("telegram", number, name or role.value, "zh", code))
