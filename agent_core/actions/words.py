"""Actions in words, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.texts import Lang, catalogue

_DEFAULTS: Mapping[str, Any] = {
    "app": "", "element": "", "start": "", "end": "", "text": "", "key": "", "duration": 0.0, "message": "",
    "question": "", "instruction": "", "query": "",
}  # fmt: skip


def in_words(lang: Lang, action: Mapping[str, object]) -> str:
    """Say what an action does: ``Open QQ``. ``action``: its fields, as they are stored."""
    kind = str(action.get("kind", ""))
    pattern = catalogue(lang).get(f"action.{kind}", kind)
    said = pattern.format(**{**_DEFAULTS, **{key: _shown(value) for key, value in action.items()}})
    return said.rstrip(" :：")  # what is asked, noted or told may be without a word


def _shown(value: object) -> object:
    if isinstance(value, list | tuple):
        return f"({', '.join(str(part) for part in value)})"
    return "" if value is None else value
