"""Secrets that were read on a screen, found again wherever they are written: in an observation, in what was said.

Pure text: where a secret stands on a screen is known in ``agent_core.perception.redaction``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

COVER = "▒▒▒"  # in the place of a text that nobody may see
SHORTEST = 4  # characters of a figure: a shorter one may be a coordinate or a count
LONG = 6  # characters of words without a figure

# No rule covers plain words for what they say, and the keys of a request are such words.
_PLAIN = re.compile(r"[A-Za-z_ ]*")
_TOKEN = re.compile(rf"[A-Za-z0-9_]{{{SHORTEST},}}")
_DIGITS = re.compile(r"(?<![A-Za-z0-9])[0-9](?:[ \-·.,]?[0-9]){3,}(?![A-Za-z0-9])")
_NO_DIGIT = re.compile(r"[^0-9]")


@dataclass(frozen=True, slots=True)
class Secrets:
    """``figures``: single codes and numbers, these without what stands between their digits; ``texts``: whole texts."""

    figures: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.figures or self.texts)

    def __or__(self, other: Secrets) -> Secrets:
        return Secrets(self.figures | other.figures, self.texts | other.texts)


def secrets_in(texts: Iterable[str]) -> Secrets:
    """What is covered where such texts are secret: each as a whole, and the figures in it."""
    texts = list(texts)
    whole = {text for text in texts if _known_again(text)}
    return Secrets(figures_in(texts).figures, frozenset(whole | {_escaped(text) for text in whole}))


def figures_in(texts: Iterable[str]) -> Secrets:
    """The figures in the texts, without the words around them."""
    figures: set[str] = set()
    for text in texts:
        figures |= {token for token in _TOKEN.findall(text) if not _PLAIN.fullmatch(token)}
        figures |= {_NO_DIGIT.sub("", found) for found in _DIGITS.findall(text)}
    return Secrets(frozenset(figures))


def _known_again(text: str) -> bool:
    if _PLAIN.fullmatch(text):
        return False
    return len(text) >= (SHORTEST if any(char.isdigit() for char in text) else LONG)


def _escaped(text: str) -> str:
    """As it is written in JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def covered_text(text: str, secrets: Secrets) -> str:
    """``text`` without the secrets, also as they are written in JSON."""
    for secret in sorted((secret for secret in secrets.texts if secret in text), key=len, reverse=True):
        text = text.replace(secret, COVER)
    if secrets.figures:
        text = _DIGITS.sub(lambda found: _unless(_NO_DIGIT.sub("", found[0]), found[0], secrets), text)
        text = _TOKEN.sub(lambda found: _unless(found[0], found[0], secrets), text)
    return text


def _unless(figure: str, written: str, secrets: Secrets) -> str:
    return COVER if figure in secrets.figures else written
