"""A question in a form that can be compared: how it asks, and all of its words in their order.

A text is cut into words by the closed lists of ``words.toml``, the longest known word first. Only particles are left
out. Unknown words therefore count: they are content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, NamedTuple

from agent_core.reply.sureness.figures import LINK, NO_NUMBER, NUMERALS, UNITS, WORD_VALUES, figures, same_unit
from agent_core.reply.sureness.plain import HAN, acknowledges, is_politeness, spaced, word_lists


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
    words = dict(_listed(lists))
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


def _listed(lists: Mapping[str, Any]) -> Iterator[tuple[str, Word]]:
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


# Forms with one meaning, applied in this order.
_SAME_FORM = tuple(
    (re.compile(pattern), form)
    for pattern, form in (
        (r"(?:对不对|(?:对|没错)[吗吧么嘛不])(?=\s|$)|\b(?:correct|right)$", ""),  # only asks to confirm
        (r"(?:行不行|(?<![可进飞银发步流还自])行[吗么嘛不]?|成不成|成[吗不])(?=\s|$)", "可以"),  # "这样退行吗"
        (r"\b我是(?![不没否说想要])", ""),  # "我是会员能退吗"
        # "贵不贵", "可不可以", "有没有" and "包邮不" ask and deny nothing. "发没发货" asks whether it is done.
        (rf"([{HAN}])不(?=\1)", ""),
        (r"有没(?=有)", ""),
        (r"有没(?=\s|$)", "有"),
        (rf"([{HAN}])没(?=\1)", "已经"),
        (r"(?<=\S)[不否](?=\s|$)", "吗"),
        # At the end 没 and 没有 ask, too, about what has happened or exists. "保修卡没有" denies.
        (r"(?<=[了过])没有?(?=\s|$)", "吗"),
        (r"(有[^\s有没]+)没有?(?=\s|$)", r"\1吗"),
        (rf"(?<=[{HAN}])了(?=[吗么嘛吧]?(?:\s|$))", "已经"),
        (r"有(?=多[长宽高厚重大少久])", ""),
        (r"(?<=期)[是有]?多长(?!时)", "多久"),
        (r"(?:大概|大约|一般|通常)(?=(?:需要|要|得)?(?:几|多久|多长时间|多少|什么时候|啥时候|何时))", ""),
        (r"(?:需要|要|得)(?=(?:几|多少)个?(?:天|小时|分钟|周|月|年)|多久|多长时间|多少钱|几块钱)", ""),
        (r"给(?=[退换补赔修开改装])", "可以"),  # "给退吗"
        (r"(?<=\d)比(?=\d)|(?<=[一二三四五六七八九十])比(?=[一二三四五六七八九十])", ":"),
        (r"°c(?![a-z])", "°"),
        (r"(?<![\d$.])(\d[\d.,]*) ?(?:dollars?|usd)\b", r"$\1"),
        (r"^so (?=\w)", ""),
        (r"零下\s*(?=[\d零一二三四五六七八九十])", "-"),
        # The apostrophe has become a blank: "it s", "they ve", "that d".
        (r"\bcan(?:not| t)\b", "can not"),
        (r"\bwon t\b", "will not"),
        (r"(?<=[a-z])n t\b", " not"),
        (r"\b(i|it|you|he|she|we|they|that|what|where|there) (?:s|m|re|ve|ll|d)\b", r"\1"),
        (r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])", " "),  # "iPhone15", "20w"
    )
)
_PARTS = re.compile(r"[，,。；;？?！!~\s]+")
_OPEN = frozenset({Kind.CONTENT, Kind.NAME, Kind.FIGURE, Kind.SIGN})
_ORDERED = _OPEN | {Kind.ACTOR, Kind.AHEAD, Kind.BEHIND}


@dataclass(frozen=True, slots=True)
class Facts:
    """The parts of a question.

    asking, modality, tense: names of these tables in the word lists, wherever the words stand. ``asking`` is empty if
    the text wants yes or no, or asks nothing.
    words: all others except particles, in the order of the text; words of one meaning are the same. A word that applies
    only to its neighbour has the neighbour in its name: "not 退货", "after 付款".
    """

    asking: frozenset[str]
    modality: frozenset[str]
    tense: frozenset[str]
    words: tuple[Word, ...]

    @property
    def open(self) -> tuple[Word, ...]:
        """The words for the subject of the question: content, names, figures and signs."""
        return tuple(word for word in self.words if word.kind in _OPEN)

    @property
    def closed(self) -> tuple[Word, ...]:
        """The words for what is said about it: denials, limits, and the actor."""
        return tuple(word for word in self.words if word.kind not in _OPEN)


@lru_cache(maxsize=4096)
def facts_of(text: str) -> Facts:
    """Split ``text`` into its facts, without greetings and politeness."""
    form = spaced(text)
    for pattern, same in _SAME_FORM:
        form = pattern.sub(same, form)
    found = list(_words(form))
    words = [*_with_neighbours([word for word in found if word.kind in _ORDERED or word.kind is Kind.MODALITY])]
    if _asks_of_more(text):
        words.append(Word(Kind.AHEAD, "and"))
    if acknowledges(text):
        words.append(Word(Kind.AHEAD, "acknowledged"))

    def named(kind: Kind) -> frozenset[str]:
        return frozenset(word.name for word in found if word.kind is kind)

    return Facts(named(Kind.ASKING), named(Kind.MODALITY), named(Kind.TENSE), tuple(words))


def _words(form: str) -> Iterator[Word]:
    """Yield the words of a text without its particles."""
    for run in _runs(form):
        for number, word in enumerate(run):
            if word.kind is Kind.FIGURE:
                yield from (Word(Kind.FIGURE, name) for name in _figures(word.name))
            elif word == (Kind.ASKING, "duration") and any(other.kind is Kind.CONTENT for other in run[number + 1 :]):
                yield Word(Kind.ASKING, "when")  # "多久发货" asks for a moment, "质保多久" for a length of time
            elif word.kind is not Kind.PARTICLE:
                yield word


def _runs(form: str) -> Iterator[list[Word]]:
    """Yield the words between blanks. A phrase may contain a blank."""
    run: list[Word] = []
    end = 0
    for word, match in lexicon().cut(form):
        if " " in form[end : match.start()] and run:
            yield run
            run = []
        run.append(word)
        end = match.end()
    yield run


def _figures(text: str) -> Iterator[str]:
    """Yield each number with its unit: "7 天"."""
    found = [f"{value} {unit if unit in UNITS or not unit.isalpha() else ''}".strip() for value, unit in figures(text)]
    yield from found or [text]


def _with_neighbours(words: list[Word]) -> Iterator[Word]:
    """Yield the words, each that applies only to its neighbour together with it. Modal words are left out."""
    for number, (kind, name) in enumerate(words):
        if kind is Kind.AHEAD:
            neighbour = words[number + 1 : number + 2] or words[number - 1 : number]
        elif kind is Kind.BEHIND:
            neighbour = words[number - 1 : number]
        else:
            neighbour = []
        if kind is not Kind.MODALITY:
            yield Word(kind, " ".join([name, *(word.name for word in neighbour)]))


def _asks_of_more(text: str) -> bool:
    """Tell whether the last words only name something else that is asked about: "能退吗，用过的呢"."""
    *before, last = [part for part in _PARTS.split(text) if part] or [""]
    if not last.endswith("呢") or is_politeness(" ".join(before)):
        return False
    return not any(word.kind is Kind.ASKING for word, _ in lexicon().cut(last))
