"""Reading the name in a chat's header, and whether all that stands there was read.

The whole product leans on this name, and a recogniser passes over what it does not know: "11" beside an emoji is
read as "11", and so are "l1" and "1 1". So the letters and the gaps between them are counted and measured, too.
"""

from __future__ import annotations

import itertools
import unicodedata
from dataclasses import dataclass
from hashlib import sha256

from PIL import Image

from agent_core.geometry import Box
from agent_core.screen import picture
from agent_core.screen.compare import normalise
from agent_core.screen.ocr import OcrEngine

CONFIDENCE = 0.85
_LATIN_CONFIDENCE = 0.97  # letters and digits are read with 1.0 or are something else
# Gaps that may be a blank, in heights of the letters. Where all digits are of one width, a 1 has room on both sides,
# most on its right.
_LATIN_GAP, _AFTER_NARROW, _BEFORE_NARROW = 0.27, 0.12, 0.04
_WIDE_GAP, _MIXED_GAP = 0.30, 0.33
_FLAT = frozenset("一二-—–_…·~.,")
_NARROW = frozenset("ijl|I1.,:;!'()[]{}ft ")


@dataclass(frozen=True, slots=True)
class Title:
    """``flawed``: something stands there that was not read, or equal letters do not look equal. ``blank``: a blank may
    stand there that was not read. ``print``: a digest of its pixels."""

    text: str = ""
    confidence: float = 0.0
    flawed: bool = False
    blank: bool = False
    print: str = ""

    @property
    def sure(self) -> bool:
        least = _LATIN_CONFIDENCE if self.text.isascii() else CONFIDENCE
        return bool(self.text) and not (self.flawed or self.blank) and self.confidence >= least


async def read_title(ocr: OcrEngine, image: Image.Image, region: Box) -> Title:
    """The name in ``region``: its first tall line, and the widest part of that."""
    lines = picture.text_lines(image, region)
    if not lines:
        return Title()
    tallest = max(line.height for line in lines)
    line = next(line for line in lines if line.height >= 0.7 * tallest)
    parts = picture.segments(image, line, apart=max(4, round(1.1 * line.height)))
    part = max(parts, key=lambda box: box.width, default=line)
    # Twice, with other margins: a recogniser that guesses says two things.
    wider = Box(max(0, part.left - 14), max(0, part.top - 8), part.right + 14, part.bottom + 8)
    look = sha256(image.crop(part.as_tuple()).tobytes()).hexdigest()[:16]
    first, second = await ocr.recognise_lines([image.crop(box.as_tuple()) for box in (part, wider)])
    if normalise(first.text) != normalise(second.text):
        best = max(first, second, key=lambda read: read.confidence)
        return Title(best.text, min(best.confidence, 0.5), flawed=is_flawed(best.text, image, part), print=look)
    confidence = max(first.confidence, second.confidence)
    flawed, blank = is_flawed(first.text, image, part), has_blank_unread(first.text, image, part)
    return Title(first.text, confidence, flawed, blank, look)


def is_flawed(text: str, image: Image.Image, line: Box) -> bool:
    """Whether ``text`` cannot be all that is written in ``line``."""
    letters = [char for char in text if not char.isspace()]
    if not letters:
        return True
    if text.isascii():
        found = picture.glyphs(image, line)
        if len(found) != len(letters):
            return len(found) > len(letters)  # fewer: some touch
        return _unlike(letters, found)
    width, height = picture.ink_size(image, line)
    if all(char in _FLAT for char in letters):
        return False
    em = height / 0.93
    return width > em * (1.15 * sum(map(_width, text)) + 0.4)


def _unlike(letters: list[str], found: list[tuple[int, int]]) -> bool:
    """Whether two equal letters have different sizes."""
    first: dict[str, tuple[int, int]] = {}
    for letter, size in zip(letters, found, strict=True):
        other = first.setdefault(letter, size)
        allowed = max(2.0, 0.16 * max(size[1], other[1]))
        if abs(size[0] - other[0]) > allowed or abs(size[1] - other[1]) > allowed:
            return True
    return False


def has_blank_unread(text: str, image: Image.Image, line: Box) -> bool:
    """Whether a blank seems to stand in ``line`` that is not in ``text``: "1 1" is read as "11"."""
    gaps = picture.gaps(image, line)
    if not text.isascii():
        if not all(char.isalnum() for char in text):
            return False  # signs have room around them
        least = _MIXED_GAP if any(char.isascii() for char in text) else _WIDE_GAP
        return max(gaps, default=0) > least * picture.ink_size(image, line)[1]
    letters = text.strip()
    places = [index for index, letter in enumerate(letters) if not letter.isspace()]
    if len(gaps) != len(places) - 1:
        return False  # some touch
    height = picture.ink_size(image, line)[1]
    for (left, right), gap in zip(itertools.pairwise(places), gaps, strict=True):
        least = _LATIN_GAP + _AFTER_NARROW * (letters[left] in _NARROW) + _BEFORE_NARROW * (letters[right] in _NARROW)
        if right - left == 1 and gap > least * height:
            return True
    return False


def _width(char: str) -> float:
    """About how wide a character is, in em."""
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.6 if char == "1" else 0.36
    return 0.85 if char in "mwMW@" else 0.7 if char.isupper() else 0.6
