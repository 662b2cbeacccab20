"""The texts of ``phonedesk init``, one TOML file a language, with the same keys and placeholders in each."""

from __future__ import annotations

from typing import Any

from agent_core.texts import Lang, filled, load_texts
from bot.channels.cli.terminal.texts import typed


class SetupTexts:
    """The texts of one language."""

    def __init__(self, lang: Lang) -> None:
        self._lang: Lang = lang
        self._texts = load_texts(__name__, lang)

    def get(self, key: str, **values: Any) -> str:
        """Return the text with ``values`` filled in. Raises KeyError for an unknown key or a missing value."""
        return filled(typed(self._texts[key]), values, self._lang)
