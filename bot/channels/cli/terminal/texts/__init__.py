"""The command line's texts: help, and problems with a command line, with the same keys in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from agent_core.texts import Lang, load_texts
from bot.app.release import program
from bot.channels.cli.terminal.commands import typed


def catalogue(lang: Lang) -> Mapping[str, str]:
    """Return all texts of a language by ``command.key``."""
    return _as_typed(lang, program())


@cache
def _as_typed(lang: Lang, _called: str) -> Mapping[str, str]:
    return {key: typed(text) for key, text in load_texts(__name__, lang).items()}
