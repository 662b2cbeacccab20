"""The console in the chat: a link that logs a person in."""

from __future__ import annotations

from urllib.parse import urlsplit

from agent_core.proxies import is_loopback
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.texts import Texts
from bot.channels.chat.turn import Said, Subject, Turn


async def console(turn: Turn) -> Said:
    """Handle ``/console``."""
    words = turn.texts
    if turn.chat.kind != "private":
        return turn.tell(words.get("console.private_only"))
    link = await turn.desk.console.link(turn.actor)
    lines = (Line(link, "", "secret"), Line(words.get("console.hint")), *reach_lines(words, link))
    return turn.say(Card(words.get("console.title"), lines))


def reach_lines(words: Texts, link: str) -> tuple[Line, ...]:
    """Return the setting to change if a link opens only on the machine that phonedesk runs on."""
    return (Line(words.get("console.here_only")),) if is_loopback(urlsplit(link).hostname or "") else ()


SUBJECT = Subject(commands={"console": console})
