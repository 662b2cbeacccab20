"""Whether one record answers what a customer wrote: told by code, from all of the customer's words.

A record that was asked for in the very words of its question, or of one of its aliases, fits. Any other, whoever found
or picked it, must pass ``misfit``: nothing that the customer wrote may be missing in the record, and nothing that the
record's question presupposes may be missing in what the customer wrote. The rule knows no subject: what stands in none
of the closed lists counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from agent_core.ports import Record
from agent_core.sureness.facts import Facts, facts_of, limit_words
from agent_core.sureness.plain import HAN, spaced, stripped

_RUN = re.compile(rf"[{HAN}]+")


def asks_for(words: str, record: Record) -> bool:
    """Return whether ``words`` are the record's question or one of its aliases, politeness left aside."""
    form = stripped(words)
    return bool(form) and any(form == stripped(wording) for wording in record.wordings)


def misfit(words: str, record: Record) -> str:
    """Return what keeps ``record`` from being the answer to ``words``, for the log; "" if nothing does."""
    if asks_for(words, record):
        return ""
    asked, told = facts_of(words), facts_of(record.text)
    if not record.wordings:
        return _left_over(asked, told, words, record.text) or _denied(asked, told)
    wordings = [facts_of(wording) for wording in record.wordings]
    own = frozenset(word for wanted in wordings if wanted.denied == asked.denied for word in wanted.content)
    return min((_against(asked, wanted, told, words, record.text, own) for wanted in wordings), key=len)


def _against(asked: Facts, wanted: Facts, told: Facts, words: str, text: str, own: frozenset[str]) -> str:
    """Compare with one wording of the record's question.

    ``told`` is what its answer ``text`` says, ``own`` the words of all its wordings.
    """
    if asked.asking != wanted.asking:
        return f"it asks {_list(asked.asking)}, not {_list(wanted.asking)}"
    if asked.denied != wanted.denied:
        return f"it denies {_list(asked.denied)}, not {_list(wanted.denied)}"
    limits = asked.limits ^ wanted.limits
    if limits - {name for name in limits if name in asked.limits and _limit_in(name, words, text)}:
        return f"it is limited by {_list(asked.limits)}, not {_list(wanted.limits)}"
    if (asked.directed or wanted.directed) and _common(asked, wanted) != _common(wanted, asked):
        return "what is named stands in another order"
    if not (asked.content or asked.names or asked.figures):
        return "it names nothing"
    presupposed = [
        *(set(wanted.figures) - set(asked.figures)),
        *(set(wanted.names) - set(asked.names)),
        *(wanted.signs - asked.signs),
        *(set(wanted.content) - set(asked.content)),
    ]
    if presupposed:
        return f"the record presupposes {_list(presupposed)}"
    if [one for one in asked.figures if one in wanted.figures] != [
        one for one in wanted.figures if one in asked.figures
    ]:
        return "the numbers stand in another order"
    return _left_over(asked, told, words, text, wanted=wanted, own=own)


def _left_over(
    asked: Facts,
    told: Facts,
    words: str,
    text: str,
    *,
    wanted: Facts | None = None,
    own: frozenset[str] = frozenset(),
) -> str:
    """Return what the customer wrote and neither the record's question nor its answer holds."""
    known = [told] if wanted is None else [wanted, told]
    rest = [
        *(set(asked.figures) - {one for facts in known for one in facts.figures}),
        *(set(asked.names) - {one for facts in known for one in facts.names}),
        *(asked.signs - {one for facts in known for one in facts.signs}),
    ]
    near = _stretches(words, text)
    rest += [word for word in asked.content if word not in own and not _in_answer(word, told, near)]
    return f"the record does not say {_list(rest)}" if rest else ""


def _in_answer(word: str, told: Facts, near: str) -> bool:
    """Return whether an answer says ``word``. Of single letters only stretches count: one may stand there by chance."""
    return word in near if len(word) == 1 else word in told.content or word in near


def _stretches(words: str, text: str) -> str:
    """Return the stretches of two letters and more of ``words`` that stand in ``text``."""
    found = []
    for run in _RUN.findall(spaced(words)):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        found += [pair for pair in pairs if pair in text]
    return " ".join(found)


def _limit_in(name: str, words: str, text: str) -> bool:
    """Return whether the answer limits the very same: "付款后" in both."""
    asked = spaced(words)
    found = [match for called, match in limit_words().found(asked) if called == name]
    return bool(found) and all(match.start() and asked[match.start() - 1 : match.end()] in text for match in found)


def _denied(asked: Facts, told: Facts) -> str:
    rest = set(asked.denied) - set(told.denied)
    return f"it denies {_list(rest)}" if rest else ""


def _common(one: Facts, other: Facts) -> list[str]:
    return [word for word in one.content if word in other.content]


def _list(found: Collection[object]) -> str:
    return ", ".join(sorted(str(one) for one in found)) or "nothing"
