"""Is this bubble that text? Comparisons that delivery rests on, by code, with room for what OCR gets wrong."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.screen.compare import Match, compare, fold
from agent_core.screen.readings import Bubble, ChatScreen, Side, Source

OCR_CONFIDENCE = 0.9


def _confidence(source: Source) -> float:
    return 1.0 if source is Source.TREE else OCR_CONFIDENCE


def same_text(seen: str, wanted: str, source: Source) -> bool:
    """Whether what was read is the text: exactly from the tree, nearly from a picture."""
    match = compare(seen, wanted, confidence=_confidence(source))
    return match is Match.EXACT or (source is not Source.TREE and match is Match.NEARLY)


def shows_end_of(seen: str, wanted: str, source: Source) -> bool:
    """Whether ``seen`` is ``wanted`` or, in an input that shows its last lines only, a good part of its end."""
    if same_text(seen, wanted, source):
        return True
    part, whole = fold(seen), fold(wanted)
    if len(part) < 12 or len(part) >= len(whole):
        return False
    return same_text(part, whole[-len(part) :], source)


def begins(wanted: str, seen: str) -> bool:
    """Whether ``seen`` is the beginning of ``wanted``: what typing that was cut off leaves behind."""
    part = fold(seen)
    return bool(part) and fold(wanted).startswith(part)


def is_bubble_of(bubble: Bubble, text: str, source: Source) -> bool:
    """Whether this is our bubble with the text; one that runs out of the screen at the top shows its end."""
    return bubble.side is Side.ME and shows_end_of(bubble.text, text, source)


def same_cluster(before: Sequence[str], now: Sequence[Bubble], source: Source) -> bool:
    """Whether the newest messages are still those of ``before``; the keyboard may have pushed the upper ones away."""
    if not now or len(now) > len(before):
        return False
    (first_old, first_new), *others = zip(before[len(before) - len(now) :], now, strict=True)
    # Both were read: where either came from a picture, a recogniser's error is not a new message.
    return shows_end_of(first_new.text, first_old, source) and all(
        same_text(new.text, old, source) for old, new in others
    )


def our_bubble_after_question(chat: ChatScreen, cluster: Sequence[str], text: str) -> Bubble | None:
    """Our bubble with ``text`` below the customer's newest message; an older equal answer does not count."""
    asked_at = None
    for index, bubble in enumerate(chat.bubbles):
        if bubble.side is Side.THEM and cluster and shows_end_of(bubble.text, cluster[-1], chat.source):
            asked_at = index
    # A long answer pushes the question out of sight; then only the newest bubble is surely new.
    below = chat.bubbles[-1:] if asked_at is None else chat.bubbles[asked_at + 1 :]
    return next((b for b in reversed(below) if is_bubble_of(b, text, chat.source)), None)
