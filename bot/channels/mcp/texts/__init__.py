"""This channel's texts for models and clients, in both languages, with the same keys in each file."""

from __future__ import annotations

from typing import Any

from agent_core.texts import Lang, filled, load_texts


def say(lang: Lang, key: str, **values: Any) -> str:
    """Return the text of ``key`` with ``values`` filled in. Raises KeyError for an unknown key."""
    return filled(load_texts(__name__, lang)[key], values, lang)
