"""``/help``, and the help of each command: its forms, who may use them, and in each language what they do.

``LANG.toml`` holds for each form ``<form>_use`` (how it is written), ``<form>_does`` and ``<form>_examples`` (one a
line), in a section of the command's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_core.texts import load_texts
from bot.channels.chat import commands
from bot.channels.chat.cards import Card, Line
from bot.channels.chat.commands import Command
from bot.channels.chat.texts import Lang, Texts, texts
from bot.channels.chat.turn import Said, Subject, Turn
from bot.desk.actors import Role

VIEWER, OPERATOR, OWNER = Role.VIEWER, Role.OPERATOR, Role.OWNER
# The least role for each form, if it is not that of the whole command. The desk decides on each call.
FORMS: Mapping[str, Mapping[str, Role]] = {
    "start": {"code": VIEWER},
    "run": {"task": OPERATOR, "phone": OPERATOR, "rules": OPERATOR},
    "plan": {"task": OPERATOR, "phone": OPERATOR},
    "sweep": {"all": OPERATOR, "some": OPERATOR},
    "stop": {"own": OPERATOR, "one": OPERATOR},
    "hold": {"own": OPERATOR, "one": OPERATOR},
    "resume": {"own": OPERATOR, "one": OPERATOR},
    "ask": {"open": VIEWER},
    "status": {"all": VIEWER},
    "devices": {"all": VIEWER, "learn": OWNER, "connect": OWNER, "pair": OWNER, "name": OWNER, "setup": OWNER},
    "screen": {"photo": VIEWER, "file": VIEWER, "read": VIEWER},
    "history": {"runs": VIEWER, "one": VIEWER},
    "replay": {"run": VIEWER},
    "digest": {"look": VIEWER, "switch": OPERATOR},
    "schedule": {"list": VIEWER, "add": OWNER, "edit": OWNER, "run": OPERATOR, "change": OWNER},
    "watch": {"list": VIEWER, "add": OWNER},
    "kb": {
        "search": VIEWER,
        "stats": VIEWER,
        "add": OPERATOR,
        "pending": OPERATOR,
        "edit": OWNER,
        "approve": OWNER,
        "delete": OWNER,
        "files": OWNER,
    },
    "answers": {"list": VIEWER, "unanswered": VIEWER},
    "contacts": {"list": OPERATOR, "add": OWNER, "remove": OWNER},
    "people": {"list": OWNER, "role": OWNER, "limit": OWNER, "remove": OWNER, "audit": OWNER},
    "invite": {"one": OWNER, "console": OWNER, "limited": OWNER},
    "console": {"link": VIEWER},
    "settings": {"lang": VIEWER, "thinking": VIEWER},
    "whoami": {"me": VIEWER},
    "help": {"all": VIEWER, "one": VIEWER},
}


@dataclass(frozen=True, slots=True)
class CommandForm:
    """A form of a command. ``use``: how it is written; ``examples`` are whole messages."""

    name: str
    least: Role
    use: str
    does: str
    examples: tuple[str, ...]


def forms(command: str, lang: Lang) -> tuple[CommandForm, ...]:
    """Return the forms of a command in a language."""
    said = load_texts(__name__, lang)
    return tuple(
        CommandForm(
            name,
            least,
            said[f"{command}.{name}_use"],
            said[f"{command}.{name}_does"],
            tuple(said[f"{command}.{name}_examples"].split("\n")),
        )
        for name, least in FORMS.get(command, {}).items()
    )


def summary_key(command: str, role: Role) -> str:
    """Return the key of the one-line summary of a command, as far as this role may use it."""
    if command in LOOKED_AT and not all(role.covers(least) for least in FORMS[command].values()):
        some = "viewer" if role is VIEWER and f"{command}_viewer" in NARROWER else "some"
        return f"command.{command}_{some}"
    return f"command.{command}"


LOOKED_AT = frozenset({"devices", "schedule", "watch", "kb", "contacts", "digest"})  # of which not every one may do all
NARROWER = frozenset({"kb_viewer", "schedule_viewer"})


def may(command: str) -> tuple[Role, ...]:
    """Return the roles that have a use for a command at all."""
    return tuple(role for role in Role if role.covers(commands.LEAST.get(command, VIEWER)))


Commands = tuple[tuple[str, str], ...]  # name and description


def summary(words: Texts, name: str, role: Role) -> str:
    """Return one line on the use of a command for this role."""
    return words.get(summary_key(name, role))


def listed(role: Role, lang: Lang, *, plans: bool, groups: bool = False) -> Commands:
    """Return the commands that this role has a use for, as a channel offers them to those who type one."""
    words = texts(lang)
    names = [name for name in commands.usable(role, plans=plans) if not (groups and name in commands.NOT_IN_GROUPS)]
    return tuple((name, summary(words, name, role)) for name in names)


def help_lines(words: Texts, role: Role, *, plans: bool) -> tuple[Line, ...]:
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
        return turn.say(Card(words.get("help.title"), help_lines(words, role, plans=turn.desk.plans.ready)))
    meant = commands.parse("/" + asked.lstrip("/／"))
    if not isinstance(meant, Command):
        nearest = meant.nearest.lstrip("/") if isinstance(meant, commands.Unknown) else ""
        if nearest in commands.usable(role, plans=turn.desk.plans.ready):
            return turn.tell(words.get("help.nearest", command=asked, nearest=f"/help {nearest}"))
        return turn.tell(words.get("help.unknown", command=asked), words.get("help.see"))
    return turn.say(Card(f"/{meant.name}", tuple(_described(words, meant.name, role))))


def _described(words: Texts, name: str, role: Role) -> list[Line]:
    """Return the use of a command, its forms with examples, its Chinese words, and who may use it."""
    roles = may(name)
    said = [Line(summary(words, name, role if role in roles else roles[0]))]
    if role not in roles:
        said.append(Line(words.get("help.not_yours", role=words.get(f"role.{role.value}"))))
    own = [form for form in forms(name, words.lang) if role in roles and role.covers(form.least)]
    said += [Line(form.does, form.use) for form in own]
    examples = [example for form in own for example in form.examples]
    said += [Line(example, words.get("help.example") if not at else "", "code") for at, example in enumerate(examples)]
    if role in roles and (chinese := commands.chinese_of(name)):
        said.append(Line(" ".join(chinese), words.get("help.chinese")))
    said_roles = words.get("help.between").join(words.get(f"role.{one.value}") for one in roles)
    return [*said, Line(said_roles, words.get("help.least"))]


SUBJECT = Subject(commands={"help": help_})
