"""The customer's words: their questions, and the patterns of greetings, questions and fault reports.

By code, so that the result is the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.perception.compare import fingerprint, fold
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen
from agent_core.reply.sureness.plain import is_politeness, without_politeness
from agent_core.session import Cluster
from agent_core.texts import Lang, say

MOST_IN_A_MESSAGE = 4  # a message with more questions is read by a person, as one question
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


@dataclass(frozen=True, slots=True)
class CustomerQuestion:
    """One question of a customer.

    words: as the customer wrote them, with the remarks that belong to them; the kinds of messages that cannot be read.
    whole: the customer's own words are all that belongs to it. A quotation, or a picture beside the words, may change
    what is asked, and no program reads it.
    """

    words: str
    fingerprint: str
    readable: bool = True
    whole: bool = True


def asked_in(chat: ChatScreen, lang: Lang, *, start: int | None = None) -> list[CustomerQuestion]:
    """Return the questions of the newest cluster, or of the bubbles from ``start`` on, in order.

    A message that asks nothing ("it is urgent") or is not a text belongs to the question before it, or else to the
    first one. If no message asks, all of them are one question. A sticker beside words is ignored.
    """
    start = len(chat.bubbles) - len(chat.question) if start is None else start
    numbered = list(enumerate(chat.bubbles))[start:]
    texts = [(index, bubble) for index, bubble in numbered if _is_text(bubble)]
    if texts:
        said = [(index, bubble) for index, bubble in numbered if bubble.kind is not BubbleKind.STICKER]
        return _questions(chat, said, lang)
    if not numbered:
        return []
    words = " ".join(shown(bubble, lang) for _, bubble in numbered)
    stickers = all(bubble.kind is BubbleKind.STICKER for _, bubble in numbered)
    return [CustomerQuestion(words, fingerprint(chat, numbered[-1][0]), readable=False, whole=stickers)]


def _is_text(bubble: Bubble) -> bool:
    return bubble.kind is BubbleKind.TEXT and bool(bubble.text.strip())


def shown(bubble: Bubble, lang: Lang) -> str:
    """Return a message as people are shown it: its words and what they quote, or its kind in brackets."""
    if bubble.kind is BubbleKind.TEXT:
        quoted = " ".join(bubble.quoted.split())
        return f"{bubble.text}\n[{say(lang, 'kind.quote')} {quoted}]" if quoted else bubble.text
    kind = say(lang, f"kind.{bubble.kind.value}")
    return f"[{kind} {bubble.text}]" if bubble.text else f"[{kind}]"


def _questions(chat: ChatScreen, said: Sequence[tuple[int, Bubble]], lang: Lang) -> list[CustomerQuestion]:
    """Return the questions of messages of which at least one is text."""
    found: list[tuple[list[str], str]] = []  # the words of each question, and its fingerprint
    before: list[str] = []  # what was said before the first question
    beside: set[str] = set()  # everything that is not the customer's own words
    for index, bubble in said:
        text = shown(bubble, lang)
        if not _is_text(bubble) or bubble.quoted:
            beside.add(text)
        asking = [sentence for sentence in sentences(bubble.text) if asks(sentence)] if _is_text(bubble) else []
        if not asking:
            (found[-1][0] if found else before).append(text)
        elif len(asking) == 1 or len(asking) > MOST_IN_A_MESSAGE or bubble.quoted:
            found.append(([text], fingerprint(chat, index)))
        else:
            found += [(words, fingerprint(chat, index, part=one)) for words, one in _apart(bubble.text)]
    if not found:
        found, before = [(before, fingerprint(chat, next(i for i, b in reversed(said) if _is_text(b))))], []
    found[0][0][:0] = before
    return [CustomerQuestion("\n".join(words), mark, whole=beside.isdisjoint(words)) for words, mark in found]


def _apart(text: str) -> list[tuple[list[str], str]]:
    """Return each question of a message with the sentences that belong to it, and the question's own sentence.

    Sentences before the first question belong to it; later ones belong to the question before them.
    """
    found: list[tuple[list[str], str]] = []
    before: list[str] = []
    for sentence in sentences(text):
        if asks(sentence):
            found.append(([*before, sentence], sentence))
            before = []
        else:
            (found[-1][0] if found else before).append(sentence)
    return found


def query_for(words: str) -> str:
    """Return the query for a question if the model gives no fitting one: a sentence that asks, or all its words."""
    return next((query for line in words.split("\n") if (query := query_of(line)) and asks(line)), "") or words.strip()


def next_query(cluster: Cluster | None) -> str:
    """Return the query for the next open question, which the gate uses if the model gives none; "" if none is open."""
    left = cluster.left_readable if cluster else []
    return query_for(left[0].words) if left else ""


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
