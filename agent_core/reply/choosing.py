"""Decides by code which text is sent without a person: it must answer all of a customer's own words.

A query only finds candidates. Even if the provider is sure of one by its score, or a model picks it, it is sent only if
``misfit`` finds no reason against it, no other candidate gives a different answer as surely, and nothing in it was
hidden.

A record whose question, or one of its aliases, is exactly what was asked fits. Any other record, whoever found or
picked it, must pass ``misfit``: the record may lack nothing that the customer wrote, and the customer's words may lack
nothing that the record's question presupposes. The rule knows no subject: every word outside of the closed lists
(``agent_core.reply.sureness``) counts.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

import structlog

from agent_core.ports import Chooser, Chosen, Record
from agent_core.reply.sureness.facts import Facts, Kind, Word, facts_of
from agent_core.reply.sureness.plain import HAN, is_politeness, spaced, stripped
from agent_core.texts.clean import is_clean

log = structlog.get_logger(__name__)

_RUN = re.compile(rf"[{HAN}]+")
_CLAUSE_END = re.compile(r"[，。；！？,;!?\n]|\.(?=\s|$)")


async def decide(chooser: Chooser | None, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
    """Return the answer to ``words``, all that the customer wrote of one question, or None if a person must decide.

    ``chooser`` is asked only if neither the words themselves nor the provider's score decide.
    """
    chosen = await _decided(chooser, words, query, records)
    if chosen is None:
        return None
    if not is_clean(chosen.text) or any(record.unclean for record in (chosen.record, *chosen.sources)):
        log.info("record_is_not_clean", record=chosen.record.id)
        return None
    return chosen


async def _decided(chooser: Chooser | None, words: str, query: str, records: Sequence[Record]) -> Chosen | None:
    records = [record for record in records if record.text.strip()]
    asked = [record for record in records if asks_for(words, record)]
    if asked:
        return _whole(asked[0]) if len(_texts(asked)) == 1 else None
    # In threads: analysing long texts of a service would block the event loop for too long.
    sure = sure_record(records)
    if sure is not None and await asyncio.to_thread(_only_answer, words, sure, records):
        return _whole(sure)
    picked = await chooser.choose(words, query, records) if chooser is not None and records else None
    if picked is None:
        return None
    if picked.composed:
        return picked if await asyncio.to_thread(_composed_fits, words, picked) else None
    return picked if await asyncio.to_thread(_only_answer, words, picked.record, records) else None


def sure_record(records: Sequence[Record]) -> Record | None:
    """Return the best record if the provider is sure of it, else None.

    Without scores the order is all that is known. Then the result is None, too, if sure records have different texts.
    """
    best = next((record for record in records[:1] if record.sure and record.text.strip()), None)
    if best is None or best.score is not None:
        return best
    unscored = [record for record in records if record.sure and record.score is None]
    return best if len(_texts(unscored)) == 1 else None


def _only_answer(words: str, record: Record, records: Sequence[Record]) -> bool:
    """Tell whether ``record`` answers ``words`` and no other candidate that answers them has a different text."""
    if why := misfit(words, record):
        log.info("record_does_not_fit", record=record.id, why=why)
        return False
    rivals = [other for other in records if other.text.strip() != record.text.strip() and not misfit(words, other)]
    if rivals:
        log.info("records_contradict", records=[record.id, *(other.id for other in rivals)])
    return not rivals


def _composed_fits(words: str, chosen: Chosen) -> bool:
    """Tell whether the records of a composed reply answer all that the customer asks."""
    why = parts_misfit(words, chosen.sources)
    if why:
        log.info("composed_reply_does_not_fit", record=chosen.record.id, why=why)
    return not why


def _whole(record: Record) -> Chosen:
    return Chosen(record.text.strip(), record)


def _texts(records: Sequence[Record]) -> set[str]:
    return {record.text.strip() for record in records}


def asks_for(words: str, record: Record) -> bool:
    """Tell whether ``words`` are the record's question or one of its aliases, apart from politeness."""
    form = stripped(words)
    return bool(form) and any(form == stripped(wording) for wording in record.wordings)


def misfit(words: str, record: Record) -> str:
    """Return the reason, for the log, why ``record`` does not answer ``words``; "" if it does."""
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
    """Return the reason why ``records`` together do not answer ``words``; "" if they do.

    Each clause must be answered by one of them.
    """
    parts = [part for part in _CLAUSE_END.split(words) if not is_politeness(part)]
    for part in parts:
        if all(why := [misfit(part, record) for record in records]):
            return why[0]
    return "" if parts else "it names nothing"


def _against(asked: Facts, wanted: Facts, wordings: Iterable[Facts], words: str, text: str) -> str:
    """Return the reason why a record does not fit, compared with one wording of its question; "" if it fits.

    wanted: that wording, one of ``wordings``.
    text: the record's answer.
    """
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
    """Tell whether both deny and limit the same, and their common words have the same order."""
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
    """Tell whether ``words`` contain all of ``some`` in their order."""
    rest = iter(words)
    return all(word in rest for word in some)


def _in_answer(word: Word, told: Facts, near: Collection[str]) -> bool:
    """Tell whether an answer says ``word``. A single letter or a name must be in ``near``: it may be there by chance.

    A limit counts with the word that it limits, "付款后". A denial, or who does something, never counts.
    """
    if word.kind in (Kind.ACTOR, Kind.AHEAD):
        return False
    if word.kind is Kind.NAME or len(word.name) == 1:
        return word.name in near
    return word in told.words or any(word.name in stretch for stretch in near)


def _stretches(words: str, text: str) -> set[str]:
    """Return the pairs of letters of ``words`` that ``text`` contains, and the letters of these pairs."""
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

# Marks of a yes-or-no question. A record's question makes them unnecessary; for a passage they are required.
_ASKS = re.compile(
    rf"[?？]|[吗嘛么](?=\W|\Z)|[不没否](?=\W*\Z)|([{HAN}])[不没]\1|能否|可否|是否|\A\W*(?:can|could|do|does|is|are|will|may)\b",
    re.IGNORECASE,
)
_LEAST = 2  # letters that must be named: a single one may be in a passage by chance
_LEFT_OUT = frozenset({"may", "will"})  # implied if a shop states its rules: "7天内退货"
# A passage must contain a number with one of these units if the question asks for it.
_TELLS = {
    "price": {"元", "$", "€", "£"},
    "duration": {"天", "小时", "分钟", "周", "个月", "年", "工作日", "日", "月", "day", "hour", "month", "year"},
}
_TELLS["when"] = _TELLS["duration"]


def _against_passage(asked: Facts, words: str, text: str) -> str:
    """Return the reason why a text without a question does not fit; "" if it does.

    One clause must say all that is asked, in the way it is asked.
    """
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
    """Return the word from the shop's side: its "you" is the customer's "I"."""
    return Word(word.kind, {"i": "you", "you": "i"}[word.name]) if word.kind is Kind.ACTOR else word


def _tells(clause: Facts, asking: str) -> bool:
    units = _TELLS.get(asking, {asking.removeprefix("count ")} if asking.startswith("count ") else set())
    return any(word.name.split()[-1] in units for word in clause.words if word.kind is Kind.FIGURE)


def _list(found: Collection[object]) -> str:
    return ", ".join(sorted(word.name if isinstance(word, Word) else str(word) for word in found)) or "nothing"
