"""Our words about a file, in the language of whoever imports it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from agent_core.texts import Lang, load_texts

_TEXTS = "knowledge.importing.texts"


class ImportMessage(str):
    """A text by its key in ``texts``; as a string it is the English one. ``values`` may be such texts, too."""

    __slots__ = ("_key", "_values")
    _key: str
    _values: Mapping[str, Any]

    def __new__(cls, key: str, **values: object) -> Self:
        made = super().__new__(cls, load_texts(_TEXTS, "en")[f"said.{key}"].format(**values))
        made._key, made._values = key, values
        return made

    def in_language(self, lang: Lang) -> str:
        values = {name: in_language(value, lang) for name, value in self._values.items()}
        return load_texts(_TEXTS, lang)[f"said.{self._key}"].format(**values)


class SaidTogether(str):
    """Several texts, one after the other."""

    __slots__ = ("_parts",)
    _parts: Sequence[str]

    def __new__(cls, parts: Sequence[str]) -> Self:
        made = super().__new__(cls, "; ".join(parts))
        made._parts = tuple(parts)
        return made

    def in_language(self, lang: Lang) -> str:
        return ("；" if lang == "zh" else "; ").join(in_language(part, lang) for part in self._parts)


def in_language(value: object, lang: Lang) -> Any:
    """Return a text in this language; anything else unchanged."""
    return value.in_language(lang) if isinstance(value, ImportMessage | SaidTogether) else value
