"""Knowing a customer's message again: by its words, its neighbours and its place after our last bubble.

The same message read from the tree, by OCR or by a model gives the same fingerprint as far as signs, blanks and
look-alikes go; another wording is another fingerprint.
"""

from __future__ import annotations

from hashlib import sha256

from agent_core.perception.compare import Match, fold
from agent_core.perception.kinds import voice_seconds
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Side

NEIGHBOURS = 4


def fingerprint(chat: ChatScreen, index: int | None = None, *, part: str = "") -> str:
    """``words-place-neighbours`` of the newest cluster, or of ``chat.bubbles[index]`` alone.

    ``part``: one sentence of that bubble, where each sentence is known by itself.

    ``words`` is of the message itself, ``place`` of our last bubble above it and the count of bubbles since,
    ``neighbours`` one short part for each of up to four bubbles above, the nearest first, joined by ``.``. All hex;
    "" where there is no message. LookupError where ``index`` is outside.
    """
    if index is None:
        end = len(chat.bubbles)
        start = end - len(chat.question)
    else:
        start = index % len(chat.bubbles) if chat.bubbles else 0
        end = start + 1
        chat.bubbles[index]  # an index outside is the caller's error
    message = chat.bubbles[start:end]
    if not message:
        return ""
    above = chat.bubbles[:start]
    place = next((i for i, bubble in enumerate(reversed(above)) if bubble.side is Side.ME), None)
    ours = "" if place is None else f"{place}:{_words(above[-1 - place])}"
    parts = [_digest(_words(bubble), 6) for bubble in reversed(above[-NEIGHBOURS:])]
    words = f"{Side.THEM}|{fold(part)}" if part else "\n".join(map(_words, message))
    return "-".join((_digest(words, 24), _digest(ours, 8), ".".join(parts)))


def same_message(left: str, right: str) -> Match:
    """EXACT: the same message. NEARLY: the same words, and what both know of the place agrees; a person may decide.

    A page that is scrolled a little, or made shorter by the keyboard, shows fewer neighbours: that is NEARLY. The same
    words elsewhere are DIFFERENT: asked again.
    """
    if left == right:
        return Match.EXACT
    a, b = left.split("-"), right.split("-")
    if len(a) != 3 or len(b) != 3 or a[0] != b[0]:
        return Match.DIFFERENT
    near, far = (part[2].split(".") if part[2] else [] for part in (a, b))
    common = min(len(near), len(far))
    return Match.NEARLY if near[:common] == far[:common] else Match.DIFFERENT


def _words(bubble: Bubble) -> str:
    """What every source sees alike of a bubble: its words, a voice message's seconds, or that it is a picture."""
    match bubble.kind:
        case BubbleKind.TEXT:
            what = fold(bubble.text)
        case BubbleKind.VOICE:
            seconds = voice_seconds(bubble.text) if bubble.seconds is None else bubble.seconds
            what = f"voice {'' if seconds is None else seconds}"
        case BubbleKind.RED_PACKET:
            what = "red packet"
        case _:
            what = "picture"
    return f"{bubble.side}|{what}"


def _digest(text: str, length: int) -> str:
    return sha256(text.encode()).hexdigest()[:length]
