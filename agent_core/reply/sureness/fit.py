"""Whether one record answers what a customer wrote: told by code, from all of the customer's words.

A record that was asked for in the very words of its question, or of one of its aliases, fits. Any other, whoever found
or picked it, must pass ``misfit``: nothing that the customer wrote may be missing in the record, and nothing that the
record's question presupposes may be missing in what the customer wrote. The rule knows no subject: what stands in none
of the closed lists counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from agent_core.ports import Record
from agent_core.reply.sureness.facts import Facts, facts_of
from agent_core.reply.sureness.lexicon import Kind, Word
from agent_core.reply.sureness.plain import HAN, is_politeness, spaced, stripped

_RUN = re.compile(rf"[{HAN}]+")
_CLAUSE_END = re.compile(r"[，。；！？,;!?\n]|\.(?=\s|$)")


def asks_for(words: str, record: Record) -> bool:
    """Return whether ``words`` are the record's question or one of its aliases, politeness left aside."""
    form = stripped(words)
    return bool(form) and any(form == stripped(wording) for wording in record.wordings)


def misfit(words: str, record: Record) -> str:
    """Return what keeps ``record`` from being the answer to ``words``, for the log; "" if nothing does."""
    if asks_for(words, record):
        return ""
    asked = facts_of(words)
    if not any(word.kind is not Kind.SIGN for word in asked.open):
        return "it names nothing"
    if not record.wordings:
        return _against_passage(asked, words, record.text)
    wordings = [facts_of(wording) for wording in record.wordings]
    reasons = [_against(asked, wanted, wordings, words, record.text) for wanted in wordings]
    return "" if "" in reasons else reasons[0]


def parts_misfit(words: str, records: Sequence[Record]) -> str:
    """Return what keeps ``records`` together from being the answer to ``words``: each clause must be answered by one.

    "" if nothing does.
    """
    parts = [part for part in _CLAUSE_END.split(words) if not is_politeness(part)]
    for part in parts:
        if all(why := [misfit(part, record) for record in records]):
            return why[0]
    return "" if parts else "it names nothing"


def _against(asked: Facts, wanted: Facts, wordings: Iterable[Facts], words: str, text: str) -> str:
    """Compare with ``wanted``, one of the ``wordings`` of the record's question; ``text`` is its answer."""
    if turned := _turned(asked, wanted):
        return turned
    if not _in_order(wanted.words, asked.words):
        return f"the record presupposes {_list(wanted.words)}, in this order"
    told = facts_of(text)
    own = {word for known in wordings if _agree(asked, known) for word in known.open}
    near = _stretches(words, text) | _pairs(asked.words, told.words)
    left = Counter(asked.words) - Counter(wanted.words)
    rest = [word for word in left if not (word in own or _in_answer(word, told, near))]
    return f"the record does not say {_list(rest)}" if rest else ""


def _agree(asked: Facts, known: Facts) -> bool:
    """Return whether what the two have in common stands in the same order, and they deny and limit the same."""
    return asked.closed == known.closed and _common(asked, known) == _common(known, asked)


def _common(one: Facts, other: Facts) -> list[Word]:
    return [word for word in one.open if word in other.open]


def _turned(asked: Facts, other: Facts) -> str:
    for what, one, two in (
        ("asks", asked.asking, other.asking),
        ("says what may or must be:", asked.modality, other.modality),
        ("is of the time", asked.tense, other.tense),
    ):
        if one != two:
            return f"it {what} {_list(one)}, not {_list(two)}"
    return ""


def _in_order(some: Sequence[Word], words: Sequence[Word]) -> bool:
    """Return whether ``words`` hold all of ``some``, in their order."""
    rest = iter(words)
    return all(word in rest for word in some)


def _in_answer(word: Word, told: Facts, near: Collection[str]) -> bool:
    """Return whether an answer says ``word``. Of a letter or a name only stretches count: one may be there by chance.

    A limit is told with what it limits, "付款后"; a denial or somebody who does something never is.
    """
    if word.kind in (Kind.ACTOR, Kind.AHEAD):
        return False
    if word.kind is Kind.NAME or len(word.name) == 1:
        return word.name in near
    return word in told.words or any(word.name in stretch for stretch in near)


def _stretches(words: str, text: str) -> set[str]:
    """Return the stretches of two letters and more of ``words`` that stand in ``text``, and their letters."""
    found = set()
    for run in _RUN.findall(spaced(words)):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        found |= {part for pair in pairs if pair in text for part in (pair, *pair)}
    return found


def _pairs(words: Sequence[Word], told: Sequence[Word]) -> set[str]:
    """Return the words that have the same neighbour in both."""
    there = set(pairwise(told))
    return {word.name for pair in pairwise(words) if pair in there for word in pair}


# -- passages

# What asks for yes or no. Beside a record's question nothing else needs to be told, beside a passage this.
_ASKS = re.compile(
    rf"[?？]|[吗嘛么](?=\W|\Z)|[不没否](?=\W*\Z)|([{HAN}])[不没]\1|能否|可否|是否|\A\W*(?:can|could|do|does|is|are|will|may)\b",
    re.IGNORECASE,
)
_LEAST = 2  # letters that must be named: one stands in a passage by chance
_LEFT_OUT = frozenset({"may", "will"})  # goes without saying where a shop says how it is: "7天内退货"
# What a passage has to tell if it is asked for: a number with one of these units.
_TELLS = {
    "price": {"元", "$", "€", "£"},
    "duration": {"天", "小时", "分钟", "周", "个月", "年", "工作日", "日", "月", "day", "hour", "month", "year"},
}
_TELLS["when"] = _TELLS["duration"]


def _against_passage(asked: Facts, words: str, text: str) -> str:
    """Compare with a text that has no question. One clause of it must say all that is asked, as it is asked."""
    if not (asked.asking or _ASKS.search(words)):
        return "it asks nothing"
    if sum(len(word.name) for word in asked.open) < _LEAST:
        return "it names next to nothing"
    clauses = [facts_of(clause) for clause in _CLAUSE_END.split(text)]
    return "" if any(_says(clause, asked) for clause in clauses) else "no clause of the passage says all of it"


def _says(clause: Facts, asked: Facts) -> bool:
    denied = [word for word in clause.closed if word.name.startswith(("not ", "none ", "isnt "))]
    return (
        _in_order([_turned_round(word) for word in asked.words], clause.words)
        and all(word in asked.words for word in denied)
        and (asked.modality == clause.modality or (not clause.modality and asked.modality <= _LEFT_OUT))
        and clause.tense == asked.tense
        and all(_tells(clause, asking) for asking in asked.asking)
    )


def _turned_round(word: Word) -> Word:
    """Return what a shop calls it: its "you" is the customer's "I"."""
    return Word(word.kind, {"i": "you", "you": "i"}[word.name]) if word.kind is Kind.ACTOR else word


def _tells(clause: Facts, asking: str) -> bool:
    units = _TELLS.get(asking, {asking.removeprefix("count ")} if asking.startswith("count ") else set())
    return any(word.name.split()[-1] in units for word in clause.words if word.kind is Kind.FIGURE)


def _list(found: Collection[object]) -> str:
    return ", ".join(sorted(word.name if isinstance(word, Word) else str(word) for word in found)) or "nothing"
