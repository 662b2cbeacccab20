"""Help, made from the commands themselves: what the person may use, and no more."""

from __future__ import annotations

from bot.chat import commands
from bot.chat.cards import Card, Line
from bot.chat.commands import Command
from bot.chat.texts import Texts
from bot.chat.turn import Said, Subject, Turn
from bot.desk.actors import Role


def lines(words: Texts, role: Role) -> tuple[Line, ...]:
    """A line for each command, then what works without one."""
    listed = [Line(words.get(f"command.{name}"), f"/{name}") for name in commands.usable(role) if name != "start"]
    hints = ["plain", "more"] if role is Role.VIEWER else ["free", "plain", "reply", "more"]
    return (*listed, *(Line(words.get(f"help.{hint}")) for hint in hints))


async def help_(turn: Turn) -> Said:
    """``/help`` or ``/help COMMAND``."""
    words, role = turn.texts, turn.actor.role
    asked = turn.rest.strip()
    if not asked:
        return turn.say(Card(words.get("help.title"), lines(words, role)))
    meant = commands.parse("/" + asked.lstrip("/／"))
    if not isinstance(meant, Command):
        return turn.tell(words.get("help.unknown", command=asked))
    least = commands.LEAST.get(meant.name, Role.VIEWER)
    usage = words.find(f"usage.{meant.name}", words.find(f"{meant.name}.usage", ""))
    described = [
        Line(words.get(f"command.{meant.name}")),
        Line(words.get(f"role.{least.value}"), words.get("help.least")),
        *([Line(usage)] if usage and "{" not in usage else []),
    ]
    return turn.say(Card(f"/{meant.name}", tuple(described)))


SUBJECT = Subject(commands={"help": help_})
