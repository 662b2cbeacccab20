"""Every text for people, one TOML file a language, with the same keys and placeholders in each.

Escaping is the renderer's: what is filled in here is plain text.
"""

from __future__ import annotations

from collections.abc import Mapping
from errno import errorcode
from functools import cache
from typing import Any

from agent_core.errors import PhonedeskError
from agent_core.texts import LANGUAGES, Lang, filled, load_texts, told
from agent_core.texts import catalogue as agent_catalogue
from bot.desk.actors import Role

TERMINAL = "terminal"  # what is stored as the name of whoever sits there

__all__ = ["LANGUAGES", "Lang", "Texts", "catalogue", "texts"]


def catalogue(lang: Lang) -> Mapping[str, str]:
    """All texts of a language by ``section.key``, with those of errors that the agent's own texts hold."""
    theirs = {key: text for key, text in agent_catalogue(lang).items() if key.startswith("errors.")}
    return {**theirs, **load_texts(__name__, lang)}


class Texts:
    """The texts of one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self._texts = catalogue(lang)

    def get(self, key: str, **values: Any) -> str:
        """The text with ``values`` filled in. KeyError for an unknown key or a placeholder without a value."""
        return filled(self._found(key), values, self.lang)

    def number(self, entry_id: str) -> str:
        """Return the id of a knowledge entry as people are shown it."""
        return f"#{entry_id}"

    def person(self, name: str) -> str:
        """Return the name of whoever did something; who sits at the terminal is called so in this language."""
        return self.get("card.terminal") if name == TERMINAL else name

    def find(self, key: str, default: str) -> str:
        """The text of a key that may not be there, as it stands."""
        return self._found(key) if key in self._texts else default

    def _found(self, key: str) -> str:
        return self._texts[key]

    def advice(self, text: str) -> str:
        """Return a text of ours that is in no file, such as an error's own words, with its commands for this place."""
        return text

    def error(self, error: PhonedeskError) -> str:
        """Tell what happened and what to do about it, in the person's language.

        An error that has no text says what its kind is; its own words are English: they are added for who reads that.
        """
        if f"errors.{error.key}" in agent_catalogue(self.lang):
            said = told(error, self.lang)
            return said if "\n" in said else "\n".join(filter(None, (said, self._advice(error.kind))))
        if f"errors.{error.key}" in self._texts:
            return self.get(f"errors.{error.key}", **{name: self._word(value) for name, value in error.values.items()})
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
        """Return what a run or a question says of itself, with its commands as they are typed at this place."""
        return text

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
