"""The shared parts of the pages of a log in the chat: the times of a filter, and the buttons to entries and other
pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bot.channels.chat.cards import Button
from bot.channels.chat.texts import Texts

PAGE = 10
IN_A_ROW = 5  # numbers of entries
MAX_DATA = 64  # bytes of a button's action
ELSEWHERE = "~"  # in a button: the filter is too long for it, and is in the message that was replied to

_PERIODS = {
    "today": "today", "今天": "today", "今日": "today",
    "week": "week", "一周": "week", "本周": "week", "这周": "week", "近一周": "week",
    "month": "month", "一个月": "month", "本月": "month", "近一个月": "month",
}  # fmt: skip
_YESTERDAY = {"yesterday", "昨天", "昨日"}
_PERIOD = re.compile(r"\d{1,4}[mhdw]|\d{4}-\d\d-\d\d", re.ASCII)
_DAYS = re.compile(r"(\d{1,4})天")


class Times(NamedTuple):
    """Times as in ``AnswersAsked``. ``until``: "" if the word names no end."""

    since: str
    until: str = ""


def times_of(word: str) -> Times | None:
    """Read a lower-case word as a time (``week``, ``昨天``, ``3天``, ``7d``, ``2026-11-01``); None if it is not a
    time.
    """
    if word in _PERIODS:
        return Times(_PERIODS[word])
    if word in _YESTERDAY:
        return Times("yesterday", "yesterday")
    if found := _DAYS.fullmatch(word):
        return Times(f"{found[1]}d")
    return Times(word) if _PERIOD.fullmatch(word) else None


def numbers(buttons: Sequence[Button]) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons of a page's entries in rows."""
    return tuple(tuple(buttons[start : start + IN_A_ROW]) for start in range(0, len(buttons), IN_A_ROW))


def turning(
    log: str, rest: str, words: Texts, *, newer: object = None, older: object = None
) -> tuple[tuple[Button, ...], ...]:
    """Return the buttons to the newer and the older page.

    newer, older: the first and the last number of this page; None if there is nothing beyond it.
    rest: the filter, as it was written after the command ``log``.
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
