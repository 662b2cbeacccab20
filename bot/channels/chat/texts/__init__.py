"""Every text for people, one TOML file a language, with the same keys and placeholders in each.

The renderer escapes: the values filled in here are plain text. Errors' advice names commands of the chat;
``bot.channels.chat.command_names`` replaces them by those of the terminal, or of a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from errno import errorcode
from functools import cache
from typing import Any

from agent_core.errors import PhonedeskError
from agent_core.texts import LANGUAGES, Lang, filled, load_texts, sentences, told
from agent_core.texts import catalogue as agent_catalogue
from bot.desk.actors import Role

TERMINAL = "terminal"  # stored as the name of the person at the terminal

__all__ = ["LANGUAGES", "Lang", "Texts", "catalogue", "texts"]


_SAYS_WHERE = ("terminal", "终端")


@cache
def _commands() -> re.Pattern[str]:
    """Return a regular expression for the terminal's commands in a text of ours."""
    keys = (key.rpartition(".") for key in load_texts("bot.channels.cli.terminal.texts", "en"))
    names = {name.partition(" ")[0] for name, _, key in keys if key == "summary"} - {"phonedesk"}
    return re.compile(rf"(?<![A-Za-z0-9_./-])phonedesk (?:{'|'.join(sorted(names))})(?![A-Za-z0-9_-])")


def _names_command(text: str) -> bool:
    return "phonedesk " in text and _commands().search(text) is not None


def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return all texts of a language by ``section.key``, with those of errors from the agent's own texts."""
    theirs = {key: text for key, text in agent_catalogue(lang).items() if key.startswith("errors.")}
    return {**theirs, **load_texts(__name__, lang)}


def _key(name: str) -> str:
    return re.sub("[^a-z]+", "_", name.lower())


class Texts:
    """The texts of one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self._texts = catalogue(lang)

    def get(self, key: str, **values: Any) -> str:
        """Return the text with ``values`` filled in.

        Raises KeyError for an unknown key or a placeholder without a value.
        """
        return filled(self._found(key), values, self.lang)

    def number(self, entry_id: str) -> str:
        """Return the id of a knowledge entry as people are shown it."""
        return f"#{entry_id}"

    def person(self, name: str) -> str:
        """Return the name of the person who did something; the person at the terminal is called so in this language."""
        return self.get("card.terminal") if name == TERMINAL else name

    def operation(self, command: str) -> str:
        """Return in words what the audit log has been told of, such as ``kb import``; a name without words as it is."""
        return self.find(f"operation.{_key(command)}", command)

    def refusal(self, why: str) -> str:
        """Return in words why the audit log says that something was refused."""
        return self.find(f"refused.{_key(why)}", why)

    def find(self, key: str, default: str) -> str:
        """Return the text of a key as it is, or ``default`` if there is none."""
        return self._found(key) if key in self._texts else default

    def _found(self, key: str) -> str:
        return self.typed(self._texts[key])

    def advice(self, text: str) -> str:
        """Return a text of ours that is in no file, such as an error's own words, with its commands for this place."""
        return self.typed(text)

    def error(self, error: PhonedeskError) -> str:
        """Return what happened and what to do about it, in the person's language.

        An error without a text uses the text of its kind. Its own words are English; they are added for English
        readers.
        """
        if f"errors.{error.key}" in agent_catalogue(self.lang):
            said = self.typed(told(error, self.lang))
            return said if "\n" in said else "\n".join(filter(None, (said, self._advice(error.kind))))
        if f"errors.{error.key}" in self._texts:
            values = {name: self._word(value) for name, value in error.values.items()}
            if "by" in values:
                values["by"] = self.person(str(values["by"]))
            return self.get(f"errors.{error.key}", **values)
        kind = error.kind
        while f"error.{kind}" not in self._texts and "." in kind:
            kind = kind.rpartition(".")[0]
        said = self.find(f"error.{kind}", self.get("error.error"))
        more = self.advice(str(error)) if self.lang == "en" else self.find(f"advice.{kind}", "")
        return f"{said}\n{more}" if more else said

    def _advice(self, kind: str) -> str:
        while f"advice.{kind}" not in self._texts and "." in kind:
            kind = kind.rpartition(".")[0]
        return self.find(f"advice.{kind}", "")

    def typed(self, text: str) -> str:
        """Return a text of ours with its commands as they are typed at this place.

        A chat may be read far from the machine: a text that names a command of the terminal says where that is typed.
        """
        if not _names_command(text) or any(word in text for word in _SAYS_WHERE):
            return text
        return sentences([text, self._texts["common.at_machine"]], self.lang)

    def _word(self, value: object) -> object:
        if isinstance(value, PhonedeskError):
            return self.error(value)
        if isinstance(value, Exception):
            code = errorcode.get(value.errno or 0, "") if isinstance(value, OSError) else "content"
            own = value.strerror if isinstance(value, OSError) else ""
            return self.find(f"os.{code}", own or str(value))
        return self.get(f"role.{value.value}") if isinstance(value, Role) else value


@cache
def texts(lang: Lang) -> Texts:
    return Texts(lang)
