"""Lengths as Telegram counts them, in UTF-16 units, and cuts that never go through what is shown as one character."""

from __future__ import annotations

import unicodedata

CUT = "…"
_JOINER = "\u200d"
_LONGEST = 64  # characters that may be one; more is not looked through


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, limit: int) -> str:
    """The text within ``limit`` units, with an ellipsis where something was left out. Never half a character."""
    if units(text) <= limit:
        return text
    if limit <= 0:
        return ""
    return text[: _end(text, limit - units(CUT))].rstrip() + CUT


def split(text: str, limit: int) -> tuple[str, str]:
    """What fits into ``limit`` units (at least one character), and the rest; between lines, sentences or words where
    there are some in the second half of it."""
    if units(text) <= limit:
        return text, ""
    end = max(1, _end(text, limit))
    for mark in ("\n", "。", "！", "？", ". ", "! ", "? ", "；", "，", " "):
        at = text.rfind(mark, end // 2, end)
        if at > 0:
            end = at + len(mark)
            break
    return text[:end].rstrip(), text[end:].lstrip()


def _end(text: str, limit: int) -> int:
    """How many characters fit into ``limit`` units, none of them torn from what it belongs to."""
    end = len(text.encode("utf-16-le", "surrogatepass")[: 2 * max(0, limit)].decode("utf-16-le", "ignore"))
    for back in range(min(_LONGEST, end)):
        if not _joined(text, end - back):
            return end - back
    return end


def _joined(text: str, at: int) -> bool:
    """Whether the characters before and behind this place are shown as one: accents, skin, families, flags."""
    if not 0 < at < len(text):
        return False
    before, behind = text[at - 1], text[at]
    if _JOINER in (before, behind) or unicodedata.category(behind) in {"Mn", "Me", "Mc"}:
        return True
    if "\U0001f3fb" <= behind <= "\U0001f3ff" or "\U000e0020" <= behind <= "\U000e007f":
        return True
    if not (_of_a_flag(before) and _of_a_flag(behind)):
        return False
    first = at - 1
    while first > 0 and _of_a_flag(text[first - 1]):
        first -= 1
    return (at - first) % 2 == 1


def _of_a_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
