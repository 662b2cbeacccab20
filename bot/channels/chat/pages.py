"""What the pages of a log share in the chat: the times that are asked for, the way on, and words cut short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bot.channels.chat.cards import Button
from bot.channels.chat.texts import Texts

PAGE = 10
IN_A_ROW = 5  # numbers of entries
MAX_DATA = 64  # bytes of a button's action
ELSEWHERE = "~"  # in a button: what was asked for is too long for it and stands in the message that was replied to

_PERIODS = {
    "today": "today", "今天": "today", "今日": "today",
    "week": "week", "一周": "week", "本周": "week", "这周": "week", "近一周": "week",
    "month": "month", "一个月": "month", "本月": "month", "近一个月": "month",
}  # fmt: skip
_YESTERDAY = {"yesterday", "昨天", "昨日"}
_PERIOD = re.compile(r"\d{1,4}[mhdw]|\d{4}-\d\d-\d\d", re.ASCII)
_DAYS = re.compile(r"(\d{1,4})天")


class Times(NamedTuple):
    """As in ``AnswersAsked``; ``until`` "" where the word names no end."""

    since: str
    until: str = ""


def times_of(word: str) -> Times | None:
    """What a word (in lower case) says of the time that is asked for: ``week``, ``昨天``, ``3天``, ``7d``,
    ``2026-11-01``. None where it is no such word.
    """
    if word in _PERIODS:
        return Times(_PERIODS[word])
    if word in _YESTERDAY:
        return Times("yesterday", "yesterday")
    if found := _DAYS.fullmatch(word):
        return Times(f"{found[1]}d")
    return Times(word) if _PERIOD.fullmatch(word) else None


def numbers(buttons: Sequence[Button]) -> tuple[tuple[Button, ...], ...]:
    """The buttons of a page's entries, in rows."""
    return tuple(tuple(buttons[start : start + IN_A_ROW]) for start in range(0, len(buttons), IN_A_ROW))


def turning(
    log: str, rest: str, words: Texts, *, newer: object = None, older: object = None
) -> tuple[tuple[Button, ...], ...]:
    """The buttons to the page before and after. ``newer`` and ``older``: the first and last number of this page, None
    where there is nothing beyond it. ``rest``: what is asked for, as it was written behind the command ``log``.
    """
    row = []
    if newer is not None:
        row.append(Button(_action(log, f"a{newer}", rest), words.get(f"{log}.newer")))
    if older is not None:
        row.append(Button(_action(log, f"b{older}", rest), words.get(f"{log}.older")))
    return (tuple(row),) if row else ()


def _action(log: str, place: str, rest: str) -> str:
    action = f"{log}:{place}:{rest}"
    return action if len(action.encode()) <= MAX_DATA else f"{log}:{place}:{ELSEWHERE}"
