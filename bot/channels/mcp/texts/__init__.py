"""What this channel says to models and clients, in both languages. Same keys in each file."""

from __future__ import annotations

from typing import Any

from agent_core.texts import Lang, filled, load_texts


def say(lang: Lang, key: str, **values: Any) -> str:
    """The text of ``key`` with ``values`` filled in. KeyError for an unknown key: a text must not be missing."""
    return filled(load_texts(__name__, lang)[key], values, lang)
