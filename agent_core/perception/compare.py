"""Compares texts that came by different ways, and recognises a customer's message again.

A text may be typed, or come from the tree, OCR or a model. A message is recognised by its words, its neighbours and its
place after our last bubble. Read by any of these ways, the same message gives the same fingerprint as far as
punctuation, spaces and look-alike letters go; other wording gives another fingerprint.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher, get_close_matches
from enum import StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from importlib import resources

from agent_core.perception.kinds import voice_seconds
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Side
from agent_core.texts.clean import DEFAULT_IGNORABLE

# Characters that no font draws, controls that are not spaces, and the placeholder of an object (U+FFFC).
_INVISIBLE = re.compile(rf"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufffc{DEFAULT_IGNORABLE}]")
_BLANKS = re.compile(r"\s+")
# Signs that NFKC keeps apart although people read them as the same.
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
# Signs only: in letters and digits the width distinguishes two names.
_WIDE_SIGNS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if not chr(code).isalnum()}
# Letters that a recogniser confuses. Folding them serves comparison only.
_LOOKALIKES = str.maketrans("oil〇", "0110")
_LETTERS_DIGITS = re.compile(r"[\W_]+")
_REPEATED = re.compile(r"(.)\1+")
_DIGITS = re.compile(r"\d+")
# Only complete statuses: "11 在线客服" is another name, and so is one with brackets around the status.
_SEPARATED_STATUS = re.compile(
    r"[\s·•\-–—|,/]+(?:(?:手机|电脑|平板|ipad|[2345]g|wi-?fi|wlan|无线)?\s?在线|离线|离开|忙碌|隐身|请勿打扰|q我吧"
    r"|(?:对方)?正在输入(?:中)?|听歌中|online|offline|away|busy|typing)"
    r"(?:[\s\-–—]+(?:[2345]g|wi-?fi|wlan|手机|电脑))?[.…。]*$",
    re.IGNORECASE,
)
_GROUP_COUNTER = re.compile(r"\s*[(（](\d{1,6})[)）]$")


class Match(StrEnum):
    EXACT = "exact"
    NEARLY = "nearly"  # the same except for a recogniser's errors
    DIFFERENT = "different"


@lru_cache(maxsize=4096)  # each policy asks for the words of a page again at every step
def normalise(text: str) -> str:
    """Return one form for texts that should count as equal: NFKC, one variant of each sign, no whitespace.

    Case and words stay.
    """
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_SAME_SIGNS))
    # NFKC turns some accents into a space and a mark, which become one sign again without the space.
    return unicodedata.normalize("NFKC", _BLANKS.sub("", plain)).translate(_SAME_SIGNS)


def fold(text: str) -> str:
    """Return the part of a text that a recogniser preserves: letters and digits in lower case, look-alikes folded.

    Of a text that is only signs, one of each run stays: "？？" becomes "?".
    """
    plain = normalise(text).casefold()
    return (_LETTERS_DIGITS.sub("", plain) or _REPEATED.sub(r"\1", plain)).translate(_LOOKALIKES)


def alike(wanted: str, known: Collection[str], *, cutoff: float = 0.6) -> list[str]:
    """Return those of ``known`` that hold ``wanted`` or are held by it, then those that are close to it.

    cutoff: how much of two texts (0–1) has to be the same, as for difflib.
    """
    holding = [one for one in known if len(one) > 1 and (wanted in one or one in wanted)]
    return list(dict.fromkeys([*holding, *get_close_matches(wanted, known, cutoff=cutoff)]))


def compare(left: str, right: str, *, confidence: float = 1.0) -> Match:
    """Return how alike two texts are.

    Digits must be equal, because a misread price is another price. The longer the text and the lower the confidence,
    the more letters may differ.

    confidence: the confidence (0–1) of the less certain text.
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
    """Tell whether ``part`` (a line, for example) occurs in ``whole``, as a recogniser would see it."""
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
    """Tell whether ``whole`` ends with ``tail``, as a recogniser would see it: an input shows the last lines only."""
    a, b = fold(whole), fold(tail)
    return bool(b) and len(b) <= len(a) + 2 and compare(a[-len(b) :], b, confidence=confidence) is not Match.DIFFERENT


def _tolerance(length: int, confidence: float) -> int:
    """Return how many characters may differ: none in short words, 4 % of a long text, more at low confidence."""
    return int(length * (0.04 + 0.3 * max(0.0, min(0.4, 0.97 - confidence)))) if length >= 6 else 0


def distance(left: str, right: str, limit: int) -> int:
    """Return the edit distance, or ``limit + 1`` as soon as it exceeds ``limit``."""
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
    """The likeness of a name on the screen to the wanted name."""

    SAME = "same"  # letter by letter
    ALIKE = "alike"  # looks the same but has other letters: this may be somebody else's name
    OTHER = "other"


def name(text: str, *, drawn: bool = False) -> str:
    """Return a contact's name in the form for comparing letter by letter: NFC, stripped, single spaces inside.

    Case stays, and so does every letter that cannot be seen.

    drawn: the name was read from a picture, which does not show whether a sign was written wide or narrow; letters and
    digits do look wider if they are wide.
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
    """Return the skeleton of a name: two names with one skeleton cannot be told apart by eye (Unicode TR39).

    Unlike TR39's own form, this one turns wide letters into narrow ones.
    """
    plain = unicodedata.normalize("NFKD", _INVISIBLE.sub("", text))
    alike = unicodedata.normalize("NFKD", plain.translate(_confusables()))
    return _BLANKS.sub(" ", _INVISIBLE.sub("", alike)).strip()


def differences(seen: str, wanted: str) -> str:
    """Describe how a name on the screen differs from the wanted one: "U+200B ZERO WIDTH SPACE; 1 → l"."""
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
    """Return a title without a status that is separate from the name ("11 手机在线", "11\\n对方正在输入…")."""
    first = next((line for line in title.splitlines() if line.strip()), "")
    return name(_SEPARATED_STATUS.sub("", first)) or name(first)


def tells_status(title: str) -> bool:
    """Tell whether the line of the name contains a possible status; it may also be part of the name."""
    first = next((line for line in title.splitlines() if line.strip()), "")
    return without_status(title) != name(first)


def counts_members(title: str) -> bool:
    """Tell whether a title ends with a member count, as a group's does: "11(3)"."""
    return _GROUP_COUNTER.search(name(title)) is not None


def without_count(title: str) -> str:
    """Return a group's title without its member count: "11(3)" becomes "11"."""
    plain = name(title)
    return _GROUP_COUNTER.sub("", plain) or plain


def likeness(seen: str, wanted: str, *, group: bool = False, drawn: bool = False) -> Likeness:
    """Compare a title or the name in a row with the contact ``wanted``, the whole name.

    A status that is separate from the name is ignored.

    group: ignore a member count in brackets; otherwise "11(2)" is another name than "11".
    drawn: ``seen`` was read from a picture, as in ``name``.
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
    """Tell whether a title or a row's name is exactly the contact ``wanted``, letter by letter: see ``likeness``."""
    return likeness(seen, wanted, group=group, drawn=drawn) is Likeness.SAME


NEIGHBOURS = 4


def fingerprint(chat: ChatScreen, index: int | None = None, *, part: str = "") -> str:
    """Return ``words-place-neighbours`` of the newest cluster, or of ``chat.bubbles[index]`` alone.

    ``words`` stands for the message itself, ``place`` for our last bubble above it and the number of bubbles since,
    ``neighbours`` has a short part for each of up to four bubbles above, the nearest first, joined by ``.``. All are
    hex digits. The result is "" if there is no message. Raises LookupError if ``index`` is outside the page.

    part: one sentence of that bubble, if each sentence gets its own fingerprint.
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
    """Compare two fingerprints: EXACT is the same message; NEARLY may be, and a person may decide.

    NEARLY means that the words are the same and the neighbours that both know agree: a page that was scrolled a little,
    or made shorter by the keyboard, shows fewer neighbours. The same words elsewhere are DIFFERENT: they are a new
    question.
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
    """Return whose a bubble is, with the part that every source sees alike: words, a voice's length, or its kind."""
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
