"""What the command line says of itself: help, and what is wrong with a command line. Same keys in both languages."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.texts import Lang, load_texts


def catalogue(lang: Lang) -> Mapping[str, str]:
    """All texts of a language by ``command.key``."""
    return load_texts(__name__, lang)
