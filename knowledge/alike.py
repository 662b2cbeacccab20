"""Whether two customers ask nearly the same thing, so that a person is offered to answer both with one text."""

from __future__ import annotations

import re

from agent_core.sureness.plain import stripped
from knowledge.tokens import likeness, tokens

# Share of common tokens. In the sample shop no two wordings of different entries reach it.
ALIKE = 0.8
_HAN = re.compile(r"[\u3400-\u9fff]")
_FOREIGN = re.compile(r"[^\u3400-\u9fff]+")
_WITH_DIGIT = re.compile(r"\S*\d\S*")


def alike(one: str, other: str) -> bool:
    """Return whether the words of two customers mean the same, or share nearly all tokens and every number and name."""
    first, second = stripped(one), stripped(other)
    if not first or not second:
        return False
    return first == second or (_telling(one) == _telling(other) and likeness(tokens(one), tokens(other)) >= ALIKE)


def _telling(text: str) -> list[str]:
    """Return what changes a question by one letter: in Chinese what is not Chinese, elsewhere what holds a digit."""
    form = stripped(text)
    return _FOREIGN.findall(form) if _HAN.search(form) else _WITH_DIGIT.findall(text.casefold())
