"""Somebody in front of a chat, and what they read there."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from bot.channels.chat.conversation import Conversation
from bot.channels.chat.turn import Incoming, Person, Said
from bot.desk.actors import ChatRef, MessageRef
from bot.desk.desk import Desk


@dataclass
class Talker:
    """Somebody in front of a chat."""

    conversation: Conversation
    person: Person
    chat: ChatRef
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    async def say(self, text: str, *, key: str = "", reply_to: MessageRef | None = None) -> str:
        """All that comes back, as lines."""
        number = next(self.numbers)
        kind = "reply" if reply_to else "text"
        incoming = Incoming(
            kind,  # type: ignore[arg-type]  # one of its two literals
            self.person,
            self.chat,
            key or f"{self.person.user_id}-{number}",
            text,
            message_id=str(number),
            reply_to=reply_to,
        )
        return shown(await self.conversation.handle(incoming))

    async def tap(self, action: str, *, subject: str = "", message: str = "77") -> str:
        on = MessageRef(self.chat, message)
        key = f"{self.person.user_id}-{next(self.numbers)}"
        incoming = Incoming("button", self.person, self.chat, key, action=action, reply_to=on, subject=subject)
        return shown(await self.conversation.handle(incoming))


def shown(said: Said) -> str:
    lines = [f"({said.toast})"] if said.toast else []
    for message in said.messages:
        card = message.card
        lines.append(card.title)
        lines += [f"{line.label}: {line.text}" if line.label else line.text for line in card.lines]
        lines += [f"[{button.label}]" for row in card.buttons for button in row]
        lines += ["<picture>"] if card.picture else []
    return "\n".join(lines)


def talker(desk: Desk, user_id: str, name: str, lang: str = "zh", *, group: bool = False) -> Talker:
    """Return somebody in a private chat, or in a group."""
    chat = ChatRef("telegram", "-100", "7", "group") if group else ChatRef("telegram", user_id)
    return Talker(Conversation(desk, bot_name="desk_bot"), Person(user_id, name, lang), chat)
