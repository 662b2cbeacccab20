"""The language of this process in the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.texts import Lang
from bot.settings.loading import written_language


@dataclass
class _Spoken:
    lang: Lang | None = None  # None before the settings are read


_spoken = _Spoken()


def speak(lang: Lang | None) -> None:
    """Say everything from now on in this language; None: in the one that the settings name."""
    _spoken.lang = lang


def spoken_language() -> Lang:
    """Return the language to speak, also if the settings cannot be used."""
    return _spoken.lang or written_language()
