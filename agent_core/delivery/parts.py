"""A long answer in parts: cut at the ends of sentences, so that each part is whole and together they are the text."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"[^。！？!?；;\n]*(?:[。！？!?；;\n]+[”’」』）)\"']*|$)")
_CLAUSE = re.compile(r"[^，,、：: ]*(?:[，,、：: ]+|$)")


def in_parts(text: str, most: int) -> list[str]:
    """``text`` in parts of at most ``most`` characters, without blanks at their ends; [] where it is one part.

    Cut after sentences, else after clauses, else where it must be. A text whose parts would not all differ stays whole:
    an answer is known again by its words.
    """
    text = text.strip()
    if len(text) <= most:
        return []
    pieces = [piece for sentence in _cut(_SENTENCE, text) for piece in _small(sentence, most)]
    parts, current = [], ""
    for piece in pieces:
        if current and len((current + piece).strip()) > most:
            parts.append(current.strip())
            current = ""
        current += piece
    parts = [part for part in (*parts, current.strip()) if part]
    return parts if len(set(parts)) == len(parts) > 1 else []


def _cut(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group() for match in pattern.finditer(text) if match.group()]


def _small(sentence: str, most: int) -> list[str]:
    if len(sentence.strip()) <= most:
        return [sentence]
    found = []
    for clause in _cut(_CLAUSE, sentence):
        found += [clause[i : i + most] for i in range(0, len(clause), most)]
    return found
