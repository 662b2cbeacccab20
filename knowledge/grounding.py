"""Checks that a text composed by a model says only what the records say. Code decides, not a model.

Checked are: every number with its unit, in digits or in words; every link, address and code; words that promise, ask
for money or lead elsewhere; and that the whole text is put together from stretches of the records. Beyond that each
clause must come from one sentence of one record, because the price of one thing is no other thing's price, and must
have the same denials, limits and people: what is denied, allowed or limited there must not be less so here.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from importlib import resources

from agent_core.reply.sureness.facts import Facts, facts_of
from agent_core.reply.sureness.figures import (
    CODE_OF_TWO,
    FIGURE,
    LINK,
    WORD,
    WORD_VALUES,
    codes,
    links,
    unknown_figures,
)
from agent_core.reply.sureness.plain import HAN
from agent_core.texts.clean import is_clean


def _lists() -> tuple[list[str], list[str]]:
    """Return the words that need a record, and the words that need none."""
    lists = tomllib.loads((resources.files("knowledge") / "words.toml").read_text(encoding="utf-8"))
    return lists["risky"].split(), lists["glue"].split()


LONGEST_REPLY = 300  # characters
_COVERED = 0.8  # the share of a reply that has to be in the records
_LONGEST_GAP = 3  # characters, or Latin words, in a row that are not

_MARKDOWN = re.compile(r"\*\*|__|`|~~|^\s{0,3}(?:#+|[-*+>•]|\d+[.)])\s|\]\(|<[a-z/!][^>]*>|^\s*\|", re.M | re.I)
_MARK = re.compile("[，；！？（）：]")
_QUESTION = re.compile(r"[?？]|[吗呢么](?=[\s，。！,.!~]*$)", re.M)
_RISKY, _GLUE = _lists()
_HAN_GLUE = re.compile("|".join(sorted((word for word in _GLUE if not word.isascii()), key=len, reverse=True)))
_LATIN_GLUE = re.compile(rf"\b(?:{'|'.join(word for word in _GLUE if word.isascii())})\b")
_SENTENCE_END = re.compile(r"[。\n;!?]|\.(?=\s|$)")
_CLAUSE_END = re.compile(rf"[。\n;!?]|\.(?=\s|$)|,(?=\s|$|[{HAN}])|(?<=[{HAN}]),")
_NAME = re.compile(rf"[a-z]+(?=\s?[{HAN}])|(?<=[{HAN}])\s?[a-z]+")  # a款, type c线
_CAPITALS = re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![a-z])")


def problems(reply: str, records: Sequence[str]) -> list[str]:
    """Return the faults of ``reply``, as short names; empty if all of it is in ``records`` (their texts)."""
    source = "\n".join(records)
    found: list[str] = []
    if not reply.strip():
        return ["empty"]
    if len(reply) > min(LONGEST_REPLY, sum(map(len, records))):
        found.append("length")
    if not is_clean(reply) or any(unicodedata.category(char) in {"Co", "Cn"} for char in reply):
        found.append("characters")
    if _MARKDOWN.search(reply):
        found.append("markdown")
    said, known = _plain(reply), _plain(source)
    if _QUESTION.search(LINK.sub(" ", said)):
        found.append("question")
    checks = {
        "link": links(said) - links(known),
        "code": (codes(said) - codes(known))
        | {word for word in _CAPITALS.findall(reply) if not _has(known, word.lower())},
        "number": unknown_figures(said, known),
        "risk": {word for word in _RISKY if _has(said, word) and not _has(known, word)},
        "symbol": _symbols(said) - _symbols(known),
    }
    found += [name for name, unknown in checks.items() if unknown]
    if not _covered(said, known):
        found.append("words")
    if not _from_one_sentence_each(said, [_plain(record) for record in records]):
        found.append("clause")
    return found


def _plain(text: str) -> str:
    """Return the text in one form of each character, in lower case.

    A full-width mark ends a link or a number, a plain one may be part of it; so a full-width one gets a space.
    """
    return unicodedata.normalize("NFKC", _MARK.sub(r"\g<0> ", text)).lower()


def _has(text: str, word: str) -> bool:
    return word in text if not word.isascii() else re.search(rf"(?<![a-z]){word}(?![a-z])", text) is not None


def _symbols(text: str) -> set[str]:
    """Return emoji and the like; letters of look-alike scripts are checked as words."""
    return {char for char in text if unicodedata.category(char) in {"So", "Sc", "Sk"}}


# -- clauses


def _from_one_sentence_each(said: str, records: Sequence[str]) -> bool:
    """Tell whether all of each clause, figures, links, codes and words, is in one sentence of one record.

    If the next clause comes from another sentence it has to begin as a clause of that does: in "数据线，39.9元" the
    price would apply to what precedes the comma.
    """
    sentences = [sentence for record in records for sentence in _cut(record, _SENTENCE_END)]
    before: set[int] = set()
    for clause in _cut(said, _CLAUSE_END):
        if not _content(clause):
            continue
        held = {number for number, sentence in enumerate(sentences) if _holds(sentence, clause)}
        if before and not held & before:
            held = {number for number in held if _begins_alike(clause, sentences[number])}
        if not held:
            return False
        before = held & before or held
    return True


def _cut(text: str, ends: re.Pattern[str]) -> list[str]:
    """Split the text at ``ends``, but not inside a link."""
    links = [match.span() for match in LINK.finditer(text)]
    parts, start = [], 0
    for match in ends.finditer(text):
        if not any(begin <= match.start() < end - 1 for begin, end in links):
            parts.append(text[start : match.start()])
            start = match.end()
    return [part for part in (*parts, text[start:]) if part.strip()]


def _content(text: str) -> str:
    """Return the text without spaces, marks and words that need no record."""
    bare = _LATIN_GLUE.sub("", _HAN_GLUE.sub("", text))
    return "".join(char for char in bare if char.isalnum())


def _begins_alike(clause: str, sentence: str) -> bool:
    start = _content(clause)[:2]
    return any(_content(part).startswith(start) for part in _cut(sentence, _CLAUSE_END))


def _holds(sentence: str, clause: str) -> bool:
    if links(clause) - links(sentence) or codes(clause) - codes(sentence) or unknown_figures(clause, sentence):
        return False
    clause, known = LINK.sub(" ", clause), set(WORD.findall(LINK.sub(" ", sentence)))
    if {name.strip() for name in _NAME.findall(clause)} - known:
        return False
    if set(WORD.findall(CODE_OF_TWO.sub(" ", clause))) - known - set(_GLUE) - set(WORD_VALUES):
        return False
    runs = re.findall(rf"[{HAN}]+", _HAN_GLUE.sub(" ", FIGURE.sub(" ", clause)))
    facts = facts_of(clause)
    return any(
        _alike(facts, facts_of(stretch)) and all(all(_han_gaps(run, re.sub(r"\s", "", stretch))) for run in runs)
        for stretch in _stretches(sentence)
    )


def _alike(one: Facts, other: Facts) -> bool:
    """Tell whether two clauses have the same limits and people, and deny, allow and want the same."""
    return (one.closed, one.modality, one.tense) == (other.closed, other.modality, other.tense)


def _stretches(sentence: str) -> Iterable[str]:
    """Yield each group of neighbouring clauses of a sentence: a denial in one of them does not apply to the others."""
    clauses = _cut(sentence, _CLAUSE_END)
    for start in range(len(clauses)):
        for end in range(start + 1, len(clauses) + 1):
            yield ",".join(clauses[start:end])


# -- words


def _covered(said: str, known: str) -> bool:
    """Tell whether the reply is put together from the records: stretches of two or more characters, or whole words."""
    han = [_han_gaps(run, known) for run in re.findall(rf"[{HAN}]+", _HAN_GLUE.sub(" ", FIGURE.sub(" ", said)))]
    words, known_words = WORD.findall(said), set(WORD.findall(known))
    latin = [word in known_words or word in _GLUE for word in words]
    strange = re.findall(rf"[^\W\d_a-zà-ÿ{HAN}]", said)
    if any(char not in known for char in strange):  # another script
        return False
    marks = [covered for run in han for covered in run]
    if not any(marks) and known_words.isdisjoint(set(words) - set(_GLUE)):  # nothing but politeness
        return False
    return all(_mostly(part) for part in (marks, latin)) and all(_short_gaps(run) for run in [*han, latin])


def _mostly(marks: Sequence[bool]) -> bool:
    return not marks or sum(marks) / len(marks) >= _COVERED


def _short_gaps(marks: Sequence[bool]) -> bool:
    gap = 0
    for mark in marks:
        gap = 0 if mark else gap + 1
        if gap > _LONGEST_GAP:
            return False
    return True


def _han_gaps(run: str, known: str) -> list[bool]:
    """Return for each character whether it is in a stretch of two or more that the records have."""
    marks = [False] * len(run)
    for index in range(len(run) - 1):
        if run[index : index + 2] in known:
            marks[index] = marks[index + 1] = True
    if len(run) == 1:
        marks[0] = run in known
    return marks
