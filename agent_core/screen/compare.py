"""Comparing texts that came by different ways: typed, from the tree, from OCR, from a model."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\ufffc]")
_BLANKS = re.compile(r"\s+")
# What NFKC leaves apart although a person reads the same.
_SAME_SIGNS = str.maketrans(
    {
        **dict.fromkeys("“”„「」『』《》", '"'),
        **dict.fromkeys("‘’`´", "'"),
        **dict.fromkeys("—–−‐‑", "-"),
        **dict.fromkeys("•・", "·"),
        **dict.fromkeys("【〔", "["),
        **dict.fromkeys("】〕", "]"),
        "。": ".",
        "、": ",",
        "～": "~",
    }
)
# Signs alone: in letters and digits the width tells two names apart.
_WIDE_SIGNS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if not chr(code).isalnum()}
# Letters that a recogniser takes for one another. Folding them is for comparing only.
_LOOKALIKES = str.maketrans("oil〇", "0110")
_LETTERS_DIGITS = re.compile(r"[\W_]+")
_REPEATED = re.compile(r"(.)\1+")
_DIGITS = re.compile(r"\d+")
# Whole statuses alone: "11 在线客服" is another name, and so is one with brackets around what follows.
_SEPARATED_STATUS = re.compile(
    r"[\s·•\-–—|,/]+(?:(?:手机|电脑|平板|ipad|[2345]g|wi-?fi|wlan|无线)?\s?在线|离线|离开|忙碌|隐身|请勿打扰|q我吧"
    r"|(?:对方)?正在输入(?:中)?|听歌中|online|offline|away|busy|typing)"
    r"(?:[\s\-–—]+(?:[2345]g|wi-?fi|wlan|手机|电脑))?[.…。]*$",
    re.IGNORECASE,
)
_GROUP_COUNTER = re.compile(r"\s*\((\d{1,6})\)$")


class Match(StrEnum):
    EXACT = "exact"
    NEARLY = "nearly"  # the same but for what a recogniser gets wrong
    DIFFERENT = "different"


def normalise(text: str) -> str:
    """One form for texts that are meant to be equal: NFKC, one kind of each sign, no blanks, no line breaks.

    Case and words stay.
    """
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_SAME_SIGNS))
    # Some accents become a blank and a mark by NFKC, which is one sign again without the blank.
    return unicodedata.normalize("NFKC", _BLANKS.sub("", plain)).translate(_SAME_SIGNS)


def fold(text: str) -> str:
    """What stays of a text under a recogniser: letters and digits, small, look-alikes folded.

    Of signs alone one each stays: "？？" is "?".
    """
    plain = normalise(text).casefold()
    return (_LETTERS_DIGITS.sub("", plain) or _REPEATED.sub(r"\1", plain)).translate(_LOOKALIKES)


def compare(left: str, right: str, *, confidence: float = 1.0) -> Match:
    """How alike two texts are. ``confidence`` (0–1) is that of the less certain one.

    Digits must be equal (a price read wrongly is another price); letters may differ the more, the longer the text and
    the lower the confidence.
    """
    if normalise(left) == normalise(right):
        return Match.EXACT
    a, b = fold(left), fold(right)
    if a == b:
        return Match.NEARLY
    if _DIGITS.findall(a) != _DIGITS.findall(b):
        return Match.DIFFERENT
    allowed = _tolerance(max(len(a), len(b)), confidence)
    return Match.NEARLY if allowed and distance(a, b, allowed) <= allowed else Match.DIFFERENT


def contains(whole: str, part: str, *, confidence: float = 1.0) -> bool:
    """Whether ``part`` (a line of it, say) stands in ``whole``, as a recogniser would see it."""
    a, b = fold(whole), fold(part)
    if b in a or not any(char.isalnum() for char in b):
        return True
    allowed = _tolerance(len(b), confidence)
    if not allowed or len(b) > len(a) + allowed:
        return False
    return any(
        distance(a[i : i + len(b)], b, allowed) <= allowed and _DIGITS.findall(a[i : i + len(b)]) == _DIGITS.findall(b)
        for i in range(max(1, len(a) - len(b) + 1))
    )


def ends_with(whole: str, tail: str, *, confidence: float = 1.0) -> bool:
    """Whether ``tail`` is the end of ``whole``, as a recogniser would see it: an input shows the last lines only."""
    a, b = fold(whole), fold(tail)
    return bool(b) and len(b) <= len(a) + 2 and compare(a[-len(b) :], b, confidence=confidence) is not Match.DIFFERENT


def _tolerance(length: int, confidence: float) -> int:
    """Signs that may differ: none in short words, 4 % of a long text, more where the recogniser was not certain."""
    return int(length * (0.04 + 0.3 * max(0.0, min(0.4, 0.97 - confidence)))) if length >= 6 else 0


def distance(left: str, right: str, limit: int) -> int:
    """Edit distance, or ``limit + 1`` as soon as it is more than ``limit``."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
        if min(row) > limit:
            return limit + 1
    return row[-1]


def name(text: str) -> str:
    """A contact's name as it is compared: NFC, blanks at the ends gone, one blank inside, signs in one width.

    Case stays, and so does the width of letters and digits: somebody who calls themselves "１１" is not "11".
    """
    plain = unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).translate(_WIDE_SIGNS)
    return _BLANKS.sub(" ", plain).strip()


def without_status(title: str) -> str:
    """A title without the status that stands apart from the name ("11 手机在线", "11\\n对方正在输入…")."""
    first = next((line for line in title.splitlines() if line.strip()), "")
    return name(_SEPARATED_STATUS.sub("", first)) or name(first)


def tells_status(title: str) -> bool:
    """Whether what may be a status stands in the line of the name: it may as well be a part of the name."""
    first = next((line for line in title.splitlines() if line.strip()), "")
    return without_status(title) != name(first)


def counts_members(title: str) -> bool:
    """Whether a title ends as a group's does, with the count of its members: "11(3)"."""
    return _GROUP_COUNTER.search(name(title)) is not None


def without_count(title: str) -> str:
    """A group's title without the count of its members: "11(3)" is "11"."""
    plain = name(title)
    return _GROUP_COUNTER.sub("", plain) or plain


def same_name(seen: str, wanted: str, *, group: bool = False) -> bool:
    """Whether a title or a row is exactly the contact ``wanted``, whole name.

    A status that stands apart is no part of the name. A counter of members in brackets is ignored for groups only:
    without ``group``, "11(2)" is another name than "11". Look-alikes are never folded here.
    """
    target = name(wanted)
    if not target:
        return False
    candidates = {name(seen), without_status(seen)}
    if group:
        candidates |= {_GROUP_COUNTER.sub("", candidate) for candidate in candidates}
    return target in candidates
