"""The console's own texts, one TOML file a language. What cards say is in the chat's texts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agent_core.texts import Lang, filled, load_texts
from bot.channels.chat.command_names import COMMAND
from bot.channels.chat.texts import Texts

_PAGES = {  # where the console shows what a command of the chat shows
    "answers": "answers",
    "ask": "questions",
    "contacts": "contacts",
    "devices": "overview",
    "history": "history",
    "kb": "knowledge",
    "people": "people",
    "run": "overview",
    "schedule": "schedules",
    "status": "overview",
    "watch": "schedules",
}


class ConsoleTexts(Texts):
    """Texts for the console: they name its pages in place of the chat's commands."""

    def __init__(self, lang: Lang) -> None:
        super().__init__(lang)
        self._own = load_texts(__name__, lang)

    def own(self, key: str, **values: Any) -> str:
        """Return a text of the console with ``values`` filled in. KeyError for an unknown key."""
        return filled(super().typed(self._own[key]), values, self.lang)

    def find_own(self, key: str, default: str) -> str:
        """Return a text of the console as it is, or ``default`` if there is none."""
        return self._own.get(key, default)

    def typed(self, text: str) -> str:
        return super().typed(re.sub(COMMAND, self._page, text))

    def _page(self, found: re.Match[str]) -> str:
        page = _PAGES.get(found[1])
        return self._own["nav.quoted"].format(page=self._own[f"nav.{page}"]) if page else found[0]


@cache
def console_texts(lang: Lang) -> ConsoleTexts:
    """Return the texts of a language for the console."""
    return ConsoleTexts(lang)
