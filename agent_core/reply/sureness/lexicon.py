"""The closed lists of words as one lexicon that cuts texts into words, the longest known word first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from agent_core.reply.sureness.figures import LINK, NO_NUMBER, NUMERALS, UNITS, WORD_VALUES, same_unit
from agent_core.reply.sureness.plain import HAN, word_lists


class Kind(StrEnum):
    """The role of a word in a question. The kinds from the lists have the names of their tables in ``words.toml``."""

    PARTICLE = "particles"
    ASKING = "asking"
    MODALITY = "modality"
    ACTOR = "actors"
    TENSE = "tense"
    AHEAD = "ahead"
    BEHIND = "behind"
    CONTENT = "content"
    NAME = "name"  # in letters of any script other than Han, and links
    FIGURE = "figure"
    SIGN = "sign"


class Word(NamedTuple):
    """A word of a question. ``name`` is the same for all words of one meaning."""

    kind: Kind
    name: str


# The tables that have a name for each line of words.
_NAMED = (Kind.ASKING, Kind.MODALITY, Kind.ACTOR, Kind.TENSE, Kind.AHEAD, Kind.BEHIND)
_UNIT = "|".join(unit if not unit.isascii() else rf"{unit}s?(?![a-z])" for unit in sorted(UNITS, key=len, reverse=True))
_DURATIONS = frozenset("小时 分钟 周 工作日 天 日 时 分 秒 月 个月 年".split())  # noqa: SIM905 - reads best
# How a question asks for a number of these.
_ASKED_BY = {"点": "clock", "号": "date", "元": "price", "码": "size"}


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The known words, and the pattern that cuts a text into words."""

    words: Mapping[str, Word]
    pattern: re.Pattern[str]

    def cut(self, text: str) -> Iterator[tuple[Word, re.Match[str]]]:
        """Yield each word of ``text``, which must be in lower case, and its match."""
        for match in self.pattern.finditer(text):
            yield self._word(match), match

    def _word(self, match: re.Match[str]) -> Word:
        found, kind = match[0], match.lastgroup
        if kind == "known":
            return self.words[found]
        if kind == "counted":
            unit = match["unit"]
            unit = same_unit(unit.removeprefix("个") or unit)
            return Word(Kind.ASKING, "duration" if unit in _DURATIONS else _ASKED_BY.get(unit, f"count {unit}"))
        if kind == "word":
            singular = found.removesuffix("s") if len(found) > 3 else found
            return self.words.get(singular, Word(Kind.NAME, singular))
        return Word(_KINDS[kind or ""], found)


_KINDS = {"link": Kind.NAME, "figure": Kind.FIGURE, "han": Kind.CONTENT, "sign": Kind.SIGN}


@cache
def lexicon() -> Lexicon:
    """Return the lexicon of the word lists. It is built once."""
    lists = word_lists()
    words = dict(_words(lists))
    known = "|".join(_standing_alone(word) for word in sorted(words, key=len, reverse=True))
    longer = "|".join(word for word in words if len(word) > 1 and not word.isascii())
    numbers = "|".join(sorted(WORD_VALUES, key=len, reverse=True))
    whole = NUMERALS.replace("半", "")
    number = rf"(?:百分之)?(?:\d(?:[\d.,:/~-]*\d)?[{whole}]*|[{whole}]+半?|半)"
    pattern = rf"""
        (?P<link>{LINK.pattern})
        |(?P<known>{known})
        |(?P<counted>(?:几|多少)\s*(?P<unit>个?(?:{_UNIT})))
        |(?P<figure>(?!{NO_NUMBER.pattern})(?:[¥$€£]\s*)?{number}\s*(?:%|°|(?!{longer})个?(?:{_UNIT}))?
            |\b(?:{numbers})\b(?:\s+(?:{_UNIT}))?)
        |(?P<word>[^\W\d_{HAN}]+(?:'[^\W\d_{HAN}]+)?)
        |(?P<han>[{HAN}])
        |(?P<sign>[^\w\s']|_)
    """
    return Lexicon(words, re.compile(pattern, re.VERBOSE))


def _words(lists: Mapping[str, Any]) -> Iterator[tuple[str, Word]]:
    for group in lists["same"]["groups"].strip().splitlines():
        first, *_ = written = _split(group)
        yield from ((word, Word(Kind.CONTENT, first)) for word in written)
    yield from ((word, Word(Kind.CONTENT, word)) for word in _split(lists["whole"]["words"]))
    yield from ((word, Word(Kind.PARTICLE, "")) for word in _split(lists["particles"]))
    for kind in _NAMED:
        for name, listed in lists[kind].items():
            yield from ((word, Word(kind, name)) for word in _split(listed))


def _split(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


def _standing_alone(word: str) -> str:
    literal = re.escape(word)
    return rf"\b{literal}\b" if word.isascii() else literal
