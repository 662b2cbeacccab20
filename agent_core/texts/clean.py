"""The code points that can be typed and seen: the one rule for texts that leave, and for names that are compared.

Code points that no font draws, or that reorder other letters, would make the typed text differ from the text that
somebody read and approved. Some of them (NUL, half a surrogate pair) cannot be stored or typed at all.
"""

from __future__ import annotations

import re
import unicodedata

# The ranges of Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties.txt), for a character class.
DEFAULT_IGNORABLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    r"\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_NONCHARACTERS = r"\ufdd0-\ufdef" + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(17))
_HIDDEN = (  # controls but tab and newline; halves of surrogate pairs; annotations and the place of an object
    rf"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{DEFAULT_IGNORABLE}\ufff9-\ufffc{_NONCHARACTERS}]"
)
_ESCAPE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # a control sequence of a terminal (ECMA-48): its letters go with it
# How emoji are written (Unicode TS51): keycaps, flags of regions, and signs with selectors and joiners, which are seen.
_SIGN = r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
_EMOJI = (
    r"[0-9#*]\ufe0f\u20e3"
    r"|\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f"
    rf"|{_SIGN}[\ufe0e\ufe0f]?(?:\u200d{_SIGN}[\ufe0e\ufe0f]?)*"
)
_EMOJI_OR_HIDDEN = re.compile(rf"({_EMOJI})|{_ESCAPE}|{_HIDDEN}")
_LINE_END = re.compile(r"\r\n|[\r\u2028\u2029]")
_MOST_MARKS = 30  # on one letter, as in the stream-safe form of UAX15: sorting them takes time by the square


def clean_text(text: str) -> str:
    r"""Return ``text`` as it is typed: in NFC, line ends as "\n", no blanks around it, nothing hidden in it.

    Hidden are controls except newline and tab, terminal sequences, marks of direction, halves of surrogate pairs, and
    characters that no font draws, unless they are part of an emoji.
    """
    return _normal(_seen(_normal(_lines(text)))).strip()


def is_clean(text: str) -> bool:
    """Return whether ``clean_text`` leaves nothing out of ``text`` but blanks around it."""
    lines = _lines(text)
    if _few_marks(lines) != lines:
        return False
    normal = _normal(lines)
    return _seen(normal) == normal


def _lines(text: str) -> str:
    return _LINE_END.sub("\n", text)


def _seen(text: str) -> str:
    return _EMOJI_OR_HIDDEN.sub(lambda found: found[1] or "", text)


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", _few_marks(text))


def _few_marks(text: str) -> str:
    if text.isascii():
        return text
    kept, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)
