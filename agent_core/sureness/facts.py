"""What a question is about: its numbers, names, signs, denials, limits, ways of asking, and all its other words.

Every word of a text falls into one of these, or into a closed list of words that change nothing (``words.toml``). What
is not known therefore counts: it is content.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from agent_core.sureness.figures import FIGURE, LINK, NO_NUMBER, UNITS, WORD_VALUES, figures, links
from agent_core.sureness.plain import HAN, is_politeness, spaced, word_lists

_JOINT = re.compile(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])")  # "iPhone15", "20w"
_LETTERS = re.compile(rf"[^\W\d_{HAN}]+")  # of any script but Han
_SIGN = re.compile(r"[^\w\s]|_")
# A number with what it counts.
_COUNTED = re.compile(
    rf"(?!{NO_NUMBER.pattern}){FIGURE.pattern}\s*(?:个?(?:{'|'.join(sorted(UNITS, key=len, reverse=True))})(?![a-z]))?"
)
# "能不能", "贵不贵": a question, no denial. So is a 不 or 没 at the end: "包邮不", "发了没有".
_EITHER = re.compile(rf"([{HAN}])[不没]\1|(?<=\S)(?:没有|[不没否])(?=\s|$)")
_DENIED_AT_END = re.compile(r"([不没]有?)[吗嘛么]")  # "没有吗" denies: its particle becomes a word that is kept
_DENIAL = re.compile(
    r"不(?!仅|但|过|锈钢|同|干胶|好意思|客气)|没有?|无(?!论|线|人机)|未(?!来)|勿|别(?!的|人)(?<![级特区个性])|非(?!常)|禁止|拒绝|莫"
)
_ENGLISH_DENIAL = re.compile(r"\b(?:no|not|never|none|cannot|without|\w+n't)\b")
_DONE = re.compile(rf"(?<=[{HAN}])了(?=\s|$)")  # of "发货了吗", without its particle
_PARTS = re.compile(r"[，,。；;？?！!~\s]+")
_RUN = re.compile(rf"[{HAN}]+")
# What stands before one of these is another thing than what stands behind it.
_DIRECTED = frozenset("换改比从转变代")


@dataclass(frozen=True, slots=True)
class Facts:
    """A question, taken apart.

    figures: numbers with their units, in the order of the text. names: words in the letters of any other script than
    Han, and links. signs: what is neither letter nor punctuation. denied: the word that each denial denies. limits:
    names of ``[limits]`` in the word list. asking: names of ``[asking]``; empty for a question that wants yes or no, or
    for none. content: all other words, those of one meaning as one, in the order of the text.
    """

    figures: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    signs: frozenset[str]
    denied: tuple[str, ...]
    limits: frozenset[str]
    asking: frozenset[str]
    content: tuple[str, ...]

    @property
    def directed(self) -> bool:
        """Whether the order of what is named changes the question: A for B is not B for A."""
        return any(char in _DIRECTED for word in self.content for char in word)


@lru_cache(maxsize=4096)
def facts_of(text: str) -> Facts:
    """Take ``text`` apart. Greetings and politeness are left out."""
    rest = _JOINT.sub(" ", spaced(_DENIED_AT_END.sub(r"\1这", text)))
    found = tuple((value, unit if unit in UNITS or not unit.isalpha() else "") for value, unit in figures(rest))
    names = sorted(links(rest))
    rest = LINK.sub(" ", rest)
    limits, rest = _named(rest, limit_words())
    limits |= {"done"} if _DONE.search(rest) else set()
    limits |= {"and"} if _asks_of_more(text) else set()
    asking, rest = _named(rest, _asking())
    rest = _EITHER.sub(" ", _confirming().sub(" ", rest))
    denied = tuple(sorted(_denied(rest)))
    rest = _DENIAL.sub(" ", _ENGLISH_DENIAL.sub(" ", rest))
    signs = frozenset(_SIGN.findall(rest)) - {"'"}
    rest = _COUNTED.sub(" ", rest)
    names += [word for word in map(_singular, _LETTERS.findall(rest)) if word not in _words().english]
    return Facts(found, tuple(names), signs, denied, limits, asking, tuple(_content(rest)))


def _asks_of_more(text: str) -> bool:
    """Return whether the last words only name something else that is asked about: "能退吗，用过的呢"."""
    *before, last = [part for part in _PARTS.split(text) if part] or [""]
    return last.endswith("呢") and not _asking().pattern.search(last) and not is_politeness(" ".join(before))


def _singular(word: str) -> str:
    words = _words()
    if word in words.english:
        return word
    return words.same.get(word) or (word.removesuffix("s") if len(word) > 3 else word)


def _named(text: str, words: NamedWords) -> tuple[frozenset[str], str]:
    """Return the names of the words that stand in ``text``, and the text without them."""
    return frozenset(name for name, _ in words.found(text)), words.pattern.sub(" ", text)


def _denied(text: str) -> list[str]:
    """Return for each denial the word behind it, or before it if nothing is."""
    found = ["not"] if _ENGLISH_DENIAL.search(text) else []
    for run in _RUN.findall(_COUNTED.sub(" ", text)):
        parts = _DENIAL.split(run)
        for before, behind in itertools.pairwise(parts):
            words = list(_content(behind))[:1] or list(_content(before))[-1:]
            found += words or ["不"]
    return found


def _content(text: str) -> list[str]:
    """Return the words of Han text that matter, those of one meaning as one; what is in no list, letter by letter."""
    words = _words()
    found = []
    for run in _RUN.findall(text):
        for match in words.pattern.finditer(run):
            word = match[0]
            if word not in words.function:
                found.append(words.same.get(word, word))
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """The closed lists. same: the word that stands for each of its meaning. english: what says nothing, and numbers."""

    same: Mapping[str, str]
    function: frozenset[str]
    english: frozenset[str]
    pattern: re.Pattern[str]


@cache
def _words() -> _Words:
    data = word_lists()
    groups = [line.split() for line in data["same"]["groups"].strip().splitlines()]
    same = {word: group[0] for group in groups for word in group}
    function = frozenset(data["function"]["words"].split())
    english = frozenset([*data["function"]["english"].split(), *WORD_VALUES])
    known = sorted({*same, *function}, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, known)) + r"|.")
    return _Words(same, function, english, pattern)


@dataclass(frozen=True, slots=True)
class NamedWords:
    """A table of the word lists: what each word is called, and a pattern that finds the longest of them."""

    names: Mapping[str, str]
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, table: str) -> NamedWords:
        lists: Mapping[str, str] = word_lists()[table]
        names = {word.replace("_", " "): name for name, text in lists.items() for word in text.split()}
        return cls(names, _any(names))

    def found(self, text: str) -> list[tuple[str, re.Match[str]]]:
        """Return the words in ``text``, each with its name."""
        return [(self.names[match[0]], match) for match in self.pattern.finditer(text)]


@cache
def limit_words() -> NamedWords:
    """Return the words that say when something is true."""
    return NamedWords.of("limits")


@cache
def _asking() -> NamedWords:
    return NamedWords.of("asking")


@cache
def _confirming() -> re.Pattern[str]:
    return _any(word_lists()["function"]["confirming"].split())


def _any(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of ``words``, the longest first; those in Latin letters stand alone."""
    literals = [re.escape(word) for word in sorted(words, key=len, reverse=True)]
    return re.compile("|".join(rf"\b{literal}\b" if literal.isascii() else literal for literal in literals))
