"""Text comparisons that delivery relies on, by code, with tolerance for errors of text recognition."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.perception.compare import Match, compare, ends_with, fold
from agent_core.perception.readings import Bubble, ChatScreen, Side, Source
from agent_core.reply.asked import shared

OCR_CONFIDENCE = 0.9
LEAST_OF_BUBBLE = 12  # letters at its end that identify a bubble's text
LEAST_MISREAD = 0.3  # of a question's letter pairs: a text that shares as many may be the question, misread
LEAST_OF_DRAFT = 40  # a draft may hide its beginning only if it is longer, because an input grows first


def same_text(seen: str, wanted: str, source: Source) -> bool:
    """Tell whether the text that was read is ``wanted``: exactly from the tree, nearly from a picture."""
    if source is Source.TREE:
        return compare(seen, wanted) is Match.EXACT
    return compare(seen, wanted, confidence=OCR_CONFIDENCE) is not Match.DIFFERENT


def shows_end_of(seen: str, wanted: str, source: Source, *, least: int = LEAST_OF_BUBBLE) -> bool:
    """Tell whether ``seen`` is ``wanted`` or, in a picture that shows its last lines only, at least its end.

    least: the number of letters that such an end must have.
    """
    if same_text(seen, wanted, source):
        return True
    if source is Source.TREE:
        return False  # a node holds the whole text, even if only a part is visible
    return least <= len(fold(seen)) < len(fold(wanted)) and ends_with(wanted, seen, confidence=OCR_CONFIDENCE)


def is_draft(draft: str, text: str, source: Source) -> bool:
    """Tell whether the input holds the whole ``text``."""
    return bool(draft) and shows_end_of(draft, text, source, least=LEAST_OF_DRAFT)


def begins(wanted: str, seen: str) -> bool:
    """Tell whether ``seen`` is the beginning of ``wanted``, as interrupted typing leaves it."""
    part = fold(seen)
    return bool(part) and fold(wanted).startswith(part)


def is_bubble_of(bubble: Bubble, text: str, chat: ChatScreen) -> bool:
    """Tell whether this is our bubble with the text. The topmost one may be cut off and show only its end."""
    if bubble.side is not Side.ME:
        return False
    if bubble is chat.bubbles[0]:
        return shows_end_of(bubble.text, text, chat.source)
    return same_text(bubble.text, text, chat.source)


def same_cluster(before: Sequence[str], read_by: str, chat: ChatScreen, ours: Sequence[str] = ()) -> bool:
    """Tell whether the newest messages are still ``before``, with exactly our texts ``ours`` below them.

    The keyboard or a long text of ours may have pushed the upper ones out of sight. ``read_by`` is the source of
    ``before``: if either source is a picture, a recognition error does not count as a new message.
    """
    above = _above(ours, chat)
    if above is None:
        return False
    now: list[Bubble] = []
    while above and above[-1].side is Side.THEM:
        now.insert(0, above.pop())
    if not now:
        return bool(ours) and not above  # pushed out of sight if ours are shown; otherwise taken back
    if len(now) > len(before):
        return False
    if len(now) < len(before) and above:
        return False  # our own bubble is in sight above them, so nothing was pushed away: one was recalled
    source = chat.source if read_by in {chat.source.value, ""} else Source.OCR
    (first_old, first_new), *others = zip(before[len(before) - len(now) :], now, strict=True)
    alike = same_text if above else shows_end_of
    return alike(first_new.text, first_old, source) and all(same_text(new.text, old, source) for old, new in others)


def _above(ours: Sequence[str], chat: ChatScreen) -> list[Bubble] | None:
    """Return the bubbles above ``ours``; None if ``ours`` are not the newest. Some may be out of sight."""
    bubbles = list(chat.bubbles)
    for text in reversed(ours):
        if not bubbles:
            return [] if chat.bubbles else None
        if not is_bubble_of(bubbles.pop(), text, chat):
            return None
    return bubbles


def our_bubble_after_question(
    chat: ChatScreen, cluster: Sequence[str], text: str, *, no_older: bool = False, others: Sequence[str] = ()
) -> Bubble | None:
    """Return our bubble with ``text`` below the customer's newest message. An older equal answer does not count.

    no_older: no equal bubble existed before Send, so it counts anywhere. The customer may have repeated the question
    meanwhile; then the bubble stands above their newest message.
    others: our other texts below that message. Each that may be taken for ``text``, in a picture, accounts for one
    bubble.

    Returns None if there is no such bubble.
    """
    if no_older:
        return next((b for b in reversed(chat.bubbles) if is_bubble_of(b, text, chat)), None)
    asked_at = None
    for index, bubble in enumerate(chat.bubbles):
        if bubble.side is Side.THEM and cluster and shows_end_of(bubble.text, cluster[-1], chat.source):
            asked_at = index
    below = _below_unseen(chat, cluster) if asked_at is None else chat.bubbles[asked_at + 1 :]
    found = [
        bubble for bubble in below if is_bubble_of(bubble, text, chat) and not _is_other(bubble, text, chat, others)
    ]
    accounted = sum(same_text(other, text, chat.source) for other in others)
    return found[-1] if len(found) > accounted else None


def _is_other(bubble: Bubble, text: str, chat: ChatScreen, others: Sequence[str]) -> bool:
    """Tell whether a bubble that may be the end of ``text`` is one of the other texts as a whole."""
    if same_text(bubble.text, text, chat.source):
        return False
    return any(same_text(bubble.text, other, chat.source) for other in others)


def _below_unseen(chat: ChatScreen, cluster: Sequence[str]) -> Sequence[Bubble]:
    """Return our newest bubble and those after it, if a long answer pushed the question out of sight above them.

    If something was written below the bubble, this holds only if the input is empty and nothing there may be the
    question, misread; otherwise nothing is returned.
    """
    mine = next((i for i in reversed(range(len(chat.bubbles))) if chat.bubbles[i].side is Side.ME), None)
    if mine is None:
        return ()
    after = chat.bubbles[mine + 1 :]
    misread = any(shared(asked, bubble.text) >= LEAST_MISREAD for asked in cluster for bubble in after)
    return () if after and (chat.draft != "" or misread) else chat.bubbles[mine:]
