"""Words for the index: what a text is made of, so that colloquial Chinese finds its entry.

Chinese has no blanks between words, so characters stand alone and in pairs; Latin words and numbers stay whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from agent_core.reply.sureness.plain import HAN, is_han

_RUN = re.compile(rf"[{HAN}]+|[^\W_{HAN}]+")


def normalize(text: str) -> str:
    """NFKC, lower case, every punctuation mark and symbol a blank, blanks single."""
    folded = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(char if char.isalnum() else " " for char in folded).split())


def tokens(text: str) -> list[str]:
    """Characters and pairs of neighbouring characters of Han runs; Latin words and numbers whole. Order is kept."""
    found: list[str] = []
    for run in _RUN.findall(normalize(text)):
        if not is_han(run[0]):
            found.append(run)
            continue
        found.extend(run)
        found.extend(run[index : index + 2] for index in range(len(run) - 1))
    return found


def likeness(one: Collection[str], other: Collection[str]) -> float:
    """Return 0–1: the share of tokens that two texts have in common (Dice); 0 if one has none."""
    first, second = set(one), set(other)
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0
