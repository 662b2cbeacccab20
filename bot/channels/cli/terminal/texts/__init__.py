"""The command line's texts: help, and problems with a command line, with the same keys in both languages.

Commands inside any text for the terminal are found here, to write them as they are typed and not to break them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from agent_core.texts import Lang, load_texts
from bot.app.release import NAME, program


def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return all texts of a language by ``command.key``."""
    return _as_typed(lang, program())


@cache
def _as_typed(lang: Lang, _called: str) -> Mapping[str, str]:
    return {key: typed(text) for key, text in load_texts(__name__, lang).items()}


# Commands inside texts ------------------------------------------------------------------------------------------------

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
