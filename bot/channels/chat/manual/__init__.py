"""The help of each command: its forms, who may use them, and in each language what they do, with examples.

``LANG.toml`` holds for each form ``<form>_use`` (how it is written), ``<form>_does`` and ``<form>_examples`` (one a
line), in a section of the command's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agent_core.texts import load_texts
from bot.channels.chat import commands
from bot.channels.chat.texts import Lang
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
