"""Somebody who sends files to a chat, and taps what comes back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Attached, Incoming, Outgoing, Person, Said
from bot.channels.telegram import render
from bot.desk.actors import Actor, BadRequest, ChatRef, MessageRef
from tests.support.talker import shown

PRIVATE = ChatRef("telegram", "1")


class Drawer:
    """Documents by their ids, as a channel has them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []

    async def fetch(self, file: Attached, at_most: int) -> bytes:
        self.fetched.append(file.id)
        if file.id not in self.files:
            raise BadRequest("The file is gone.")
        return self.files[file.id]


@dataclass
class Sender:
    """Somebody in front of a chat; ``last`` is what the bot said last, with its buttons."""

    conversation: Conversation
    actor: Actor
    drawer: Drawer
    lang: str = "zh"
    chat: ChatRef = PRIVATE
    last: Outgoing | None = None
    toast: str = ""
    answered: Incoming | None = None  # what ``last`` replies to
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def say(self, text: str, document: Attached | None = None) -> str:
        number = str(next(self.numbers))
        person = Person(self.actor.user_id, self.actor.name, self.lang)
        said = Incoming("text", person, self.chat, f"k{number}", text, message_id=number, document=document)
        return await self.hear(said)

    async def send(self, name: str, data: bytes, caption: str = "") -> str:
        file = Attached(f"F{next(self.numbers)}", name, len(data))
        self.drawer.files[file.id] = data
        return await self.say(caption, file)

    async def tap(self, label: str) -> str:
        """The button whose label contains this, under what was said last."""
        assert self.last is not None
        buttons = [button for row in self.last.card.buttons for button in row]
        action = next(button.action for button in buttons if label in button.label)
        return await self.press(action)

    async def press(self, action: str) -> str:
        person = Person(self.actor.user_id, self.actor.name, self.lang)
        asked = self.answered
        tapped = Incoming(
            "button",
            person,
            self.chat,
            f"k{next(self.numbers)}",
            action=action,
            message_id="900",
            reply_to=MessageRef(self.chat, "900"),
            subject=asked.text if asked else "",
            document=asked.document if asked else None,
        )
        return await self.hear(tapped)

    async def hear(self, incoming: Incoming) -> str:
        said: Said = await self.conversation.handle(incoming)
        self.toast = said.toast
        if said.messages:
            self.last = said.messages[-1]
            if self.last.replaces is None:
                self.answered = incoming
            render.outgoing(self.last.card)  # within a channel's limits
        return shown(said)
