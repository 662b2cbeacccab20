"""Describes a problem with a command line in the person's language.

Typer describes it in English, mostly in complete sentences: these are recognised by their wording.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent_core.texts import Listed, filled
from bot.channels.chat.texts import Lang
from bot.channels.cli.terminal.texts import catalogue

# The wording of Typer 0.29 and of pydantic, which checks its values. The first match counts.
_WORDING = {
    "no_option_did": "No such option: {name} (Possible options: {names})",
    "no_option": "No such option: {name}",
    "no_command_did": "No such command {name}. Did you mean {names}?",
    "no_command": "No such command {name}.",
    "no_command_at_all": "Missing command.",
    "missing_choice": "Missing {kind} {name}. Choose from:{names}",
    "missing": "Missing {kind} {name}.",
    "extra": "Got unexpected extra argument(s) ({names})",
    "no_value": "Option {name} does not take a value.",
    "needs_one": "Option {name} requires an argument.",
    "invalid_for": "Invalid value for {name}: {why}",
    "invalid": "Invalid value: {why}",
    "not_integer": "Input should be a valid integer{more}",
    "not_number": "Input should be a valid number{more}",
    "too_small": "Input should be greater than or equal to {least}",
    "too_large": "Input should be less than or equal to {most}",
    "not_one_of": "Value error, {value} is not one of {names}.",
    "file_missing": "{kind} {name} does not exist.",
    "is_folder": "{kind} {name} is a directory.",
    "unreadable": "{kind} {name} is not readable.",
}
# Words that people type for commands that have another name here.
_EXPECTED = (
    ({"kb list", "kb ls", "kb lst", "kb show", "kb all"}, ("kb search", "kb export")),
    ({"history", "log", "logs", "runs", "tasks", "jobs"}, ("replay", "answers")),
    ({"start", "up", "server", "bot"}, ("serve",)),
    ({"setup", "configure", "install"}, ("init",)),
    ({"ask", "question"}, ("questions",)),
)
_HOLE = re.compile(r"\\{(\w+)\\}")
_FORMS = {key: re.compile(_HOLE.sub(r"(?P<\1>.*?)", re.escape(text)), re.DOTALL) for key, text in _WORDING.items()}


def said(message: str, lang: Lang) -> str:
    """Return the library's ``message`` in the person's language; an unknown one unchanged."""
    key, values = _recognised(message)
    return filled(catalogue(lang)[f"wrong.{key}"], _values(values, lang), lang) if key else message


def is_like_none(message: str) -> bool:
    """Tell whether the message is about an unknown command or option without a similar known one."""
    return _recognised(message)[0] in {"no_command", "no_option"}


def meant(message: str, above: str) -> tuple[str, ...]:
    """Return the commands that do what an unknown command is expected to do; usually none.

    above: the words of the group in which it was looked up, "" for the outermost.
    """
    key, found = _recognised(message)
    name = f"{above} {found.get('name', '').strip(chr(39))}".strip()
    return next((commands for names, commands in _EXPECTED if name in names), ()) if "no_command" in key else ()


def is_missing(message: str) -> bool:
    """Tell whether the message is about a missing argument or option."""
    return _recognised(message)[0] == "missing"


def _recognised(message: str) -> tuple[str, dict[str, str]]:
    """Return the key of the wording and the values in its placeholders; "" if none matches."""
    for key, form in _FORMS.items():
        if found := form.fullmatch(message):
            return key, found.groupdict()
    return "", {}


def _values(found: Mapping[str, str], lang: Lang) -> dict[str, str]:
    values = {name: " ".join(value.split()) for name, value in found.items()}
    if "names" in values:
        values["names"] = Listed(re.split(r", *(?:or )?", values["names"]))
    return values | ({"why": said(found["why"], lang)} if "why" in found else {})
