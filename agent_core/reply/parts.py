"""A long answer in parts: cut at the ends of sentences, so that each part is whole and together they are the text."""

from __future__ import annotations

import re
import unicodedata

_JOINER = "\u200d"
_FLAG_LETTERS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))  # two of them are a flag
_BELONGS_BEFORE = frozenset({"Mn", "Mc", "Me", "Cf", "Sk"})
_LONGEST_EMOJI = 16  # code points: a family of four with its skin tones has eleven
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
    return [piece for clause in _cut(_CLAUSE, sentence) for piece in _letters(clause, most)]


def _letters(clause: str, most: int) -> list[str]:
    """``clause`` in pieces of at most ``most`` characters, none of which begins or ends inside a letter or an emoji."""
    found, start = [], 0
    while len(clause) - start > most:
        ends = range(start + most, max(start, start + most - _LONGEST_EMOJI), -1)
        end = next((end for end in ends if _is_between(clause, end)), start + most)
        found.append(clause[start:end])
        start = end
    return [*found, clause[start:]]


def _is_between(text: str, at: int) -> bool:
    """Whether what stands there begins a letter or an emoji: no accent, selector, joiner or skin tone, nor joined."""
    flag = text[at - 1] in _FLAG_LETTERS and text[at] in _FLAG_LETTERS
    return unicodedata.category(text[at]) not in _BELONGS_BEFORE and text[at - 1] != _JOINER and not flag
