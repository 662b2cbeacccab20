"""Help, made from the commands themselves. It only has what the person may use."""

from __future__ import annotations

from bot.channels.chat import commands, manual
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.commands import Command
from bot.channels.chat.texts import Lang, Texts, texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Role

Commands = tuple[tuple[str, str], ...]  # name and description


def summary(words: Texts, name: str, role: Role) -> str:
    """Return one line on the use of a command for this role."""
    return words.get(manual.summary_key(name, role))


def listed(role: Role, lang: Lang, *, plans: bool, groups: bool = False) -> Commands:
    """Return the commands that this role has a use for, as a channel offers them to those who type one."""
    words = texts(lang)
    names = [name for name in commands.usable(role, plans=plans) if not (groups and name in commands.NOT_IN_GROUPS)]
    return tuple((name, summary(words, name, role)) for name in names)


def lines(words: Texts, role: Role, *, plans: bool) -> tuple[Line, ...]:
    """Return a line for each command that is set up, then the features without a command."""
    usable = commands.usable(role, plans=plans)
    listed = [Line(summary(words, name, role), f"/{name}") for name in usable if name != "start"]
    hints = ["plain_viewer", "more"] if role is Role.VIEWER else ["free", "plain", "reply", "more"]
    return (*listed, *(Line(words.get(f"help.{hint}")) for hint in hints))


def welcome(words: Texts, role: Role) -> tuple[Line, ...]:
    """Return one thing to try first, and where to find everything else."""
    first = "access.try" if role.covers(Role.OPERATOR) else "access.try_viewer"
    return tuple(Line(words.get(key)) for key in (first, "access.more"))


async def help_(turn: Turn) -> Said:
    """Handle ``/help`` and ``/help COMMAND``."""
    words, role = turn.texts, turn.actor.role
    asked = turn.rest.strip()
    if not asked:
        return turn.say(Card(words.get("help.title"), lines(words, role, plans=turn.desk.plans.ready)))
    meant = commands.parse("/" + asked.lstrip("/／"))
    if not isinstance(meant, Command):
        nearest = meant.nearest.lstrip("/") if isinstance(meant, commands.Unknown) else ""
        if nearest in commands.usable(role, plans=turn.desk.plans.ready):
            return turn.tell(words.get("help.nearest", command=asked, nearest=f"/help {nearest}"))
        return turn.tell(words.get("help.unknown", command=asked), words.get("help.see"))
    return turn.say(Card(f"/{meant.name}", tuple(_described(words, meant.name, role))))


def _described(words: Texts, name: str, role: Role) -> list[Line]:
    """Return the use of a command, its forms with examples, its Chinese words, and who may use it."""
    may = manual.may(name)
    said = [Line(summary(words, name, role if role in may else may[0]))]
    if role not in may:
        said.append(Line(words.get("help.not_yours", role=words.get(f"role.{role.value}"))))
    forms = [form for form in manual.forms(name, words.lang) if role in may and role.covers(form.least)]
    said += [Line(form.does, form.use) for form in forms]
    examples = [example for form in forms for example in form.examples]
    said += [Line(example, words.get("help.example") if not at else "", "code") for at, example in enumerate(examples)]
    if role in may and (chinese := commands.chinese_of(name)):
        said.append(Line(" ".join(chinese), words.get("help.chinese")))
    roles = words.get("help.between").join(words.get(f"role.{one.value}") for one in may)
    return [*said, Line(roles, words.get("help.least"))]


SUBJECT = Subject(commands={"help": help_})
