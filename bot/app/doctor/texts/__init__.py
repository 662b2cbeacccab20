"""The doctor's texts, one TOML file a language, with the same keys and placeholders in each.

A section is a check: ``title``, and a text for each possible finding, with its advice in ``…_advice``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.errors import PhonedeskError
from agent_core.texts import fault, filled, load_texts
from bot.channels.chat.texts import Lang
from bot.channels.cli.terminal.texts import typed


def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return all texts of a language by ``section.key``."""
    return load_texts(__name__, lang)


class DoctorTexts:
    """The texts of one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self._texts = catalogue(lang)

    def get(self, key: str, values: Mapping[str, Any] | None = None) -> str:
        """Return the text with ``values`` filled in.

        Raises KeyError for an unknown key or a placeholder without a value.
        """
        words = {name: self._word(value) for name, value in (values or {}).items()}
        return filled(typed(self._texts[key]), words, self.lang)

    def _word(self, value: object) -> object:
        """Return a value in this language: an error as its message, several errors by the names of their subjects."""
        if isinstance(value, PhonedeskError):
            return fault(value, self.lang)
        if isinstance(value, dict):
            return " · ".join(f"{name}: {self._word(one)}" for name, one in value.items())
        return value

    def advice_of(self, kind: str) -> str:
        """Return the advice for an error of this kind (``agent_core.errors``), or of the kind above it; "" for none."""
        while kind and f"kind.{kind}" not in self._texts:
            kind = kind.rpartition(".")[0]
        return typed(self._texts[f"kind.{kind}"]) if kind else ""
