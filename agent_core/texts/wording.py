"""The patterns of customers' words: greetings, questions, fault reports.

By code, so that the result is the same each time.
"""

from __future__ import annotations

import re

from agent_core.perception.compare import fold
from agent_core.reply.sureness.plain import is_politeness, without_politeness

_SENTENCE = re.compile(r"[^。！？!?\n;；]+[。！？!?;；]*")
_ASKS = re.compile(
    r"[?？]|怎么|怎样|如何|为什么|为啥|什么|啥|吗|呢|哪|几|多久|多少|能不能|可不可以|可以|是否|有没有|谁|"
    r"\b(?:how|what|why|when|where|which|who|can|could|does|do you|is there)\b",
    re.IGNORECASE,
)
_FAULT = re.compile(
    r"坏|不能|不了|没反应|打不开|没收到|没到|少发|漏|破|裂|退|换|报错|失败|不亮|故障|broken|refund", re.IGNORECASE
)
_LEAST_SHARED = 0.6  # the share of a query's letter pairs that must be in the customer's words


def asks(text: str) -> bool:
    """Tell whether something is asked or reported as broken. A greeting asks nothing, whatever its punctuation."""
    rest = without_politeness(text)
    return bool(_ASKS.search(rest) or _FAULT.search(rest))


def sentences(text: str) -> list[str]:
    """Return the sentences of a text as written, without those that are only polite."""
    found = [match.group().strip() for match in _SENTENCE.finditer(text)]
    return [sentence for sentence in found if not is_politeness(sentence)]


def query_of(text: str) -> str:
    """Return a customer's words as a query: the sentence that asks most, without politeness; "" if none asks."""
    best, most = "", 0
    for sentence in sentences(text):
        score = 1 + 4 * len(_ASKS.findall(sentence)) + 3 * len(_FAULT.findall(sentence))
        if score > most:
            best, most = sentence, score
    return without_politeness(best)


def shared(query: str, words: str) -> float:
    """Return how much of ``query`` is in ``words`` (0–1), by pairs of letters, as a recogniser would see them."""
    asked, said = _pairs(query), _pairs(words)
    return len(asked & said) / len(asked) if asked else 0.0


def comes_from(query: str, words: str) -> bool:
    """Tell whether ``query`` is made of the customer's ``words``, shortened perhaps, and not of something else."""
    return shared(query, words) >= _LEAST_SHARED


def _pairs(text: str) -> set[str]:
    folded = fold(text)
    return {folded[i : i + 2] for i in range(len(folded) - 1)} or ({folded} if folded else set())
