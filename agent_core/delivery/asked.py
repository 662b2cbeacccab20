"""What a customer asks in their newest messages: each question by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.screen.fingerprint import fingerprint
from agent_core.screen.readings import Bubble, BubbleKind, ChatScreen
from agent_core.session import Cluster
from agent_core.texts import Lang, say
from agent_core.wording import asks, query_of, sentences

MOST_IN_A_MESSAGE = 4  # a message that asks more is for one person to read, as one


@dataclass(frozen=True, slots=True)
class Asked:
    """``words`` as the customer wrote them, with what belongs to them; of what cannot be read, its kinds."""

    words: str
    fingerprint: str
    readable: bool = True


def asked_in(chat: ChatScreen, lang: Lang, *, start: int | None = None) -> list[Asked]:
    """The questions of the newest cluster, or of the bubbles from ``start`` on, in order; what cannot be read comes
    last, all of it as one.

    A message that asks nothing ("it is urgent") belongs to the question before it, or to the first one. Where no
    message asks, all that was written is one question. A sticker beside words says nothing.
    """
    start = len(chat.bubbles) - len(chat.question) if start is None else start
    texts, signs = [], []
    for index, bubble in enumerate(chat.bubbles[start:], start=start):
        if bubble.kind is BubbleKind.TEXT and bubble.text.strip():
            texts.append((index, bubble))
        else:
            signs.append((index, bubble))
    found = _questions(chat, texts)
    telling = [(index, b) for index, b in signs if b.kind is not BubbleKind.STICKER] if found else signs
    if telling:
        words = " ".join(shown(bubble, lang) for _, bubble in telling)
        found.append(Asked(words, fingerprint(chat, telling[-1][0]), readable=False))
    return found


def shown(bubble: Bubble, lang: Lang) -> str:
    """A message as a person is told of it: its words, or its kind in brackets."""
    if bubble.kind is BubbleKind.TEXT:
        return bubble.text
    kind = say(lang, f"kind.{bubble.kind.value}")
    return f"[{kind} {bubble.text}]" if bubble.text else f"[{kind}]"


def _questions(chat: ChatScreen, texts: Sequence[tuple[int, Bubble]]) -> list[Asked]:
    found: list[tuple[list[str], str]] = []  # the words of each, and its fingerprint
    before: list[str] = []  # what was said before the first question
    for index, bubble in texts:
        asking = [sentence for sentence in sentences(bubble.text) if asks(sentence)]
        if not asking:
            (found[-1][0] if found else before).append(bubble.text)
            continue
        if len(asking) == 1 or len(asking) > MOST_IN_A_MESSAGE:
            found.append(([bubble.text], fingerprint(chat, index)))
        else:
            found += [(words, fingerprint(chat, index, part=one)) for words, one in _apart(bubble.text)]
    if not found and before:
        return [Asked("\n".join(before), fingerprint(chat, texts[-1][0]))]
    if before:
        found[0][0][:0] = before
    return [Asked("\n".join(words), mark) for words, mark in found]


def _apart(text: str) -> list[tuple[list[str], str]]:
    """Return each question of a message, with what is said before the first one and behind each, and itself."""
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
    """The query for a question where the model gives none that fits: its one sentence that asks most."""
    return next((query for line in words.split("\n") if (query := query_of(line)) and asks(line)), "") or words.strip()


def next_query(cluster: Cluster | None) -> str:
    """The query for the next open question, which the gate asks where the model does not; "" for none."""
    left = cluster.left_readable if cluster else []
    return query_for(left[0].words) if left else ""
