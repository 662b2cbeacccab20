"""What people are told of a run whose legs end before their time, again and again, in their language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.texts import Lang, kept_language, say
from storage.tries import MOST_TRIES, GaveUp, LeftAlone


def gave_up(lang: Lang) -> GaveUp:
    """``lang``: where the run's options name none."""

    def told(options: Mapping[str, Any], error: str) -> str:
        spoken = kept_language(options.get("lang"), lang)
        why = error or say(spoken, "run.process_died")
        return say(spoken, "run.gave_up", count=MOST_TRIES, error=why)

    return told


def left_alone(lang: Lang) -> LeftAlone:
    """``lang``: as above."""

    def told(options: Mapping[str, Any]) -> str:
        return say(kept_language(options.get("lang"), lang), "run.left_alone")

    return told
