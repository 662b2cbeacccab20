"""The console in the chat: a link that logs a person in."""

from __future__ import annotations

from bot.channels.chat.cards import Card, Line
from bot.channels.chat.turn import Said, Subject, Turn


async def console(turn: Turn) -> Said:
    """Handle ``/console``."""
    words = turn.texts
    if turn.chat.kind != "private":
        return turn.tell(words.get("console.private_only"))
    link = await turn.desk.console.link(turn.actor)
    return turn.say(Card(words.get("console.title"), (Line(link, "", "code"), Line(words.get("console.hint")))))


SUBJECT = Subject(commands={"console": console})
