"""Is this bubble that text? Comparisons that delivery rests on, by code, with room for what OCR gets wrong."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.perception.compare import Match, compare, ends_with, fold
from agent_core.perception.readings import Bubble, ChatScreen, Side, Source
from agent_core.texts.wording import shared

OCR_CONFIDENCE = 0.9
LEAST_OF_BUBBLE = 12  # letters of its end that tell whose text a bubble is
LEAST_MISREAD = 0.3  # of a question's letter pairs: what shares so much may be the question, read badly
LEAST_OF_DRAFT = 40  # an input grows first; it hides the beginning of long texts only


def same_text(seen: str, wanted: str, source: Source) -> bool:
    """Whether what was read is the text: exactly from the tree, nearly from a picture."""
    if source is Source.TREE:
        return compare(seen, wanted) is Match.EXACT
    return compare(seen, wanted, confidence=OCR_CONFIDENCE) is not Match.DIFFERENT


def shows_end_of(seen: str, wanted: str, source: Source, *, least: int = LEAST_OF_BUBBLE) -> bool:
    """Whether ``seen`` is ``wanted`` or, in a picture that has its last lines only, an end of ``least`` letters."""
    if same_text(seen, wanted, source):
        return True
    if source is Source.TREE:
        return False  # a node holds the whole text, whatever of it is in sight
    return least <= len(fold(seen)) < len(fold(wanted)) and ends_with(wanted, seen, confidence=OCR_CONFIDENCE)


def is_draft(draft: str, text: str, source: Source) -> bool:
    """Whether the input holds ``text``, all of it."""
    return bool(draft) and shows_end_of(draft, text, source, least=LEAST_OF_DRAFT)


def begins(wanted: str, seen: str) -> bool:
    """Whether ``seen`` is the beginning of ``wanted``: what typing that was cut off leaves behind."""
    part = fold(seen)
    return bool(part) and fold(wanted).startswith(part)


def is_bubble_of(bubble: Bubble, text: str, chat: ChatScreen) -> bool:
    """Whether this is our bubble with the text; the topmost one may run out of the screen and show its end."""
    if bubble.side is not Side.ME:
        return False
    if bubble is chat.bubbles[0]:
        return shows_end_of(bubble.text, text, chat.source)
    return same_text(bubble.text, text, chat.source)


def same_cluster(before: Sequence[str], read_by: str, chat: ChatScreen, ours: Sequence[str] = ()) -> bool:
    """Whether the newest messages are still those of ``before``, with exactly ``ours`` (our texts) below them.

    The keyboard, or a long text of ours, may have pushed the upper ones away. ``read_by`` is the source that ``before``
    came from: where either is a picture, a recogniser's error is not a new message.
    """
    above = _above(ours, chat)
    if above is None:
        return False
    now: list[Bubble] = []
    while above and above[-1].side is Side.THEM:
        now.insert(0, above.pop())
    if not now:
        return bool(ours) and not above  # they are pushed out; else they were taken back
    if len(now) > len(before):
        return False
    if len(now) < len(before) and above:
        return False  # our own bubble is in sight above them: nothing was pushed away, one was recalled
    source = chat.source if read_by in {chat.source.value, ""} else Source.OCR
    (first_old, first_new), *others = zip(before[len(before) - len(now) :], now, strict=True)
    alike = same_text if above else shows_end_of
    return alike(first_new.text, first_old, source) and all(same_text(new.text, old, source) for old, new in others)


def _above(ours: Sequence[str], chat: ChatScreen) -> list[Bubble] | None:
    """The bubbles above ``ours``, which must be the newest ones; None where they are not. Some may be out of sight."""
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
    """Our bubble with ``text`` below the customer's newest message; an older equal answer does not count.

    ``no_older``: there was none before Send, so that it counts wherever it stands: the customer may have asked the same
    words again meanwhile, and then it stands above the newest of them. ``others``: what else of ours was sent below
    that message. Each of them that can be taken for ``text``, in a picture, accounts for one bubble.
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
    """Whether what could be the end of ``text`` is one of the others as a whole."""
    if same_text(bubble.text, text, chat.source):
        return False
    return any(same_text(bubble.text, other, chat.source) for other in others)


def _below_unseen(chat: ChatScreen, cluster: Sequence[str]) -> Sequence[Bubble]:
    """What surely stands below a question that a long answer pushed out of sight: our newest bubble.

    If something was written below that, only where the input is empty and no part of it can be the question, misread.
    """
    mine = next((i for i in reversed(range(len(chat.bubbles))) if chat.bubbles[i].side is Side.ME), None)
    if mine is None:
        return ()
    after = chat.bubbles[mine + 1 :]
    misread = any(shared(asked, bubble.text) >= LEAST_MISREAD for asked in cluster for bubble in after)
    return () if after and (chat.draft != "" or misread) else chat.bubbles[mine:]
