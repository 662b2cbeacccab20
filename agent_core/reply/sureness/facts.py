"""A question in a form that can be compared: how it asks, and all of its words in their order.

Only particles (``words.toml``) are left out. Unknown words therefore count: they are content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from agent_core.reply.sureness.figures import UNITS, figures
from agent_core.reply.sureness.lexicon import Kind, Word, lexicon
from agent_core.reply.sureness.plain import HAN, acknowledges, is_politeness, spaced

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
