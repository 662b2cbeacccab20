"""Tells whether two customers ask nearly the same, so that a person can answer both with one text."""

from __future__ import annotations

from agent_core.reply.sureness.facts import facts_of
from agent_core.reply.sureness.lexicon import Kind
from agent_core.reply.sureness.plain import is_han, spaced, stripped
from knowledge.entries import likeness, tokens

# Share of common tokens. In the sample shop no two wordings of different entries reach it.
ALIKE = 0.8


def alike(one: str, other: str) -> bool:
    """Tell whether the words of two customers mean the same, or differ in a few words that do not matter."""
    first, second = stripped(one), stripped(other)
    if not first or not second:
        return False
    if first == second:
        return True
    if _telling(one) != _telling(other):
        return False
    return likeness(tokens(spaced(one)), tokens(spaced(other))) >= ALIKE


def _telling(text: str) -> tuple[object, ...]:
    """Return everything of a question but its plain words: how it asks, denials and limits, numbers and signs.

    In Chinese, a word in other letters is a name, which is not plain.
    """
    facts = facts_of(text)
    plain = {Kind.CONTENT} if any(map(is_han, text)) else {Kind.CONTENT, Kind.NAME}
    return facts.asking, facts.modality, facts.tense, [word for word in facts.words if word.kind not in plain]
