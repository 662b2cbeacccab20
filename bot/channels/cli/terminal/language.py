"""The language of this process in the terminal, and its texts that differ from a chat's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from agent_core.texts import Lang
from bot.app.settings.files import written_language
from bot.channels.chat.command_names import in_terminal
from bot.channels.chat.texts import Texts
from bot.channels.cli.terminal.texts import typed


@dataclass
class _Spoken:
    lang: Lang | None = None  # None before the settings are read


_spoken = _Spoken()


def speak(lang: Lang | None) -> None:
    """Say everything from now on in this language; None: in the language of the settings."""
    _spoken.lang = lang


def spoken_language() -> Lang:
    """Return the language to speak, even if the settings cannot be used."""
    return _spoken.lang or written_language()


class TerminalTexts(Texts):
    """Texts for the terminal: with its commands in place of the chat's, as they are typed here.

    A text that needs other words has the key with ``_in_terminal``. The ids of knowledge entries have no ``#`` in
    front, because in a shell it would begin a comment when they are copied.
    """

    def _found(self, key: str) -> str:
        own = self._texts.get(f"{key}_in_terminal")
        return self.advice(self._texts[key] if own is None else own).replace("#{id}", "{id}")

    def number(self, entry_id: str) -> str:
        return entry_id

    def advice(self, text: str) -> str:
        return self.typed(in_terminal(text))

    def typed(self, text: str) -> str:
        return typed(text)


@cache
def texts(lang: Lang) -> Texts:
    """Return the texts of a language for the terminal."""
    return TerminalTexts(lang)
