"""Finds commands inside texts for the terminal, to write them as they are typed here and not break them."""

from __future__ import annotations

import re
from functools import cache

from agent_core.texts import load_texts
from bot.app.release import NAME, program

_WORD = "[A-Za-z0-9_]"  # Chinese may follow without a space
_ARGUMENT = (
    rf"--?{_WORD}[A-Za-z0-9_-]*(?:=\S+)?(?: [a-z]{_WORD}*(?= --|$))?|\"[^\"]*\"|'[^']*'|[A-Z][A-Z-]+(?!{_WORD})"
    rf"|[A-Za-z0-9_/:.-]*[0-9/_][A-Za-z0-9_/:.-]*|{_WORD}+\.{_WORD}+|[\u4e00-\u9fff]{{1,6}}"
)
# Other programs' commands: the chat's, adb, and those that install packages and close files.
_OTHERS = (
    r"(?<![A-Za-z0-9_./])/[a-z]+(?![A-Za-z0-9_/.-])(?: [^\s，。；：,;:（）()]+)?"
    r"|\S*python[0-9.]* -m pip install(?: [^\s，。；]+)+"
    r"|(?:adb|apt-get|chmod)(?: [A-Za-z0-9_./:-]*[A-Za-z0-9_/:-]){1,5}"
)


@cache
def _names() -> str:
    """Return all commands, those of two words first, as part of a regular expression."""
    keys = (key.rpartition(".") for key in load_texts("bot.channels.cli.terminal.texts", "en"))
    names = {name for name, _, key in keys if key == "summary"} - {NAME}
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-name.count(" "), name)))


@cache
def _advised() -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_./-]){NAME}(?= (?:(?:{_names()})(?![A-Za-z0-9_-])|--help))")


@cache
def whole_commands() -> str:
    """Return a regular expression, without groups, for a command with its arguments."""
    ours = rf"[A-Za-z0-9_./~-]*{NAME} (?:{_names()}|--help)(?![A-Za-z0-9_-])(?: (?:{_ARGUMENT}))*"
    return rf"(?:{ours}|{_OTHERS}|`[^`]+`)"


def typed(text: str) -> str:
    """Return ``text`` with phonedesk's commands as they are typed here: ``.venv/bin/phonedesk doctor``.

    Only for our own texts, before any values are filled in: people's words stay as they are.
    """
    if NAME not in text or (called := program()) == NAME:
        return text
    written = called.replace("{", "{{").replace("}", "}}")
    return _advised().sub(lambda _: written, text)
