"""Compare texts that came by different ways (typed, from the tree, from OCR, from a model), and know a customer's
message again: by its words, its neighbours and its place after our last bubble.

The same message read from the tree, by OCR or by a model gives the same fingerprint as far as signs, blanks and
look-alikes go; another wording is another fingerprint.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources

from agent_core.perception.kinds import voice_seconds
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Side
from agent_core.texts.clean import DEFAULT_IGNORABLE

# What no font draws, controls that are no blanks, and the place of an object (U+FFFC).
_INVISIBLE = re.compile(rf"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffc{DEFAULT_IGNORABLE}]")
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
_GROUP_COUNTER = re.compile(r"\s*[(（](\d{1,6})[)）]$")


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


class Likeness(StrEnum):
    """How a name that is seen stands to the one that is meant."""

    SAME = "same"  # letter by letter
    ALIKE = "alike"  # nobody sees a difference, but other letters: somebody else may be called so
    OTHER = "other"


def name(text: str, *, drawn: bool = False) -> str:
    """A contact's name as it is compared, letter by letter: NFC, blanks at the ends gone, one blank inside.

    Case stays, and so does every letter that cannot be seen. ``drawn``: the name was read from a picture, which does
    not tell in which width a sign was written; letters and digits are wider if they are wide.
    """
    plain = unicodedata.normalize("NFC", text)
    return _BLANKS.sub(" ", plain.translate(_WIDE_SIGNS) if drawn else plain).strip()


@cache
def _confusables() -> Mapping[int, str]:
    lines = resources.files(__package__).joinpath("confusables.txt").read_text(encoding="utf-8").splitlines()
    codes = [[int(code, 16) for code in line.split()] for line in lines if line and not line.startswith("#")]
    return {letter: "".join(map(chr, like)) for letter, *like in codes}


@lru_cache(maxsize=4096)
def skeleton(text: str) -> str:
    """What a name looks like: two names with one skeleton cannot be told apart by eye (Unicode TR39).

    TR39's own form leaves wide letters apart; here they are as the narrow ones.
    """
    plain = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text))
    alike = unicodedata.normalize("NFKD", plain.translate(_confusables()))
    return _BLANKS.sub(" ", _INVISIBLE.sub("", alike)).strip()


def differences(seen: str, wanted: str) -> str:
    """How a name that is seen differs from the one that is meant, for people: "U+200B ZERO WIDTH SPACE; 1 → l"."""
    left, right = name(wanted), name(seen)
    told = []
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind != "equal":
            pair = (" ".join(map(_letter, part)) for part in (left[a:b], right[c:d]))
            told.append(" → ".join(part or "∅" for part in pair))
    return "; ".join(told)


def _letter(char: str) -> str:
    shown = "" if _INVISIBLE.match(char) or char.isspace() or unicodedata.combining(char) else f"“{char}” "
    return f"{shown}U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


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


def likeness(seen: str, wanted: str, *, group: bool = False, drawn: bool = False) -> Likeness:
    """How a title or a row stands to the contact ``wanted``, whole name.

    A status that stands apart is no part of the name. A counter of members in brackets is ignored for groups only:
    without ``group``, "11(2)" is another name than "11". ``drawn``: as in ``name``, ``seen`` was read from a picture.
    """
    if not name(wanted):
        return Likeness.OTHER
    candidates = {name(seen), without_status(seen)}
    if group:
        candidates |= {_GROUP_COUNTER.sub("", candidate) for candidate in candidates}
    if name(wanted, drawn=drawn) in {name(candidate, drawn=drawn) for candidate in candidates}:
        return Likeness.SAME
    like = skeleton(wanted)
    return Likeness.ALIKE if like in map(skeleton, candidates) else Likeness.OTHER


def same_name(seen: str, wanted: str, *, group: bool = False, drawn: bool = False) -> bool:
    """Whether a title or a row is exactly the contact ``wanted``, letter by letter: see ``likeness``."""
    return likeness(seen, wanted, group=group, drawn=drawn) is Likeness.SAME


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
