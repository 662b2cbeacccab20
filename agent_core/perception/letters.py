"""Measures letters as they are drawn: their size, whether a text can be complete, and what only looks like letters."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from PIL import Image

from agent_core.geometry import Box
from agent_core.perception import picture
from agent_core.perception.picture import Color, TextLine
from agent_core.perception.pixels import saturation

FULL, _DIGIT = 0.93, 0.74  # heights of a Chinese character and of a digit, in em
_LEAST_FULL = {1: 0.78, 2: 0.85}  # one or two characters may be lower: 元, 上
_NARROW = frozenset("ijl|I1.,:;!'()[]{}ft ")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LOW = re.compile(r"[^A-Zbdfhklt0-9]|[J,;]")  # without these, a line of Latin letters is only as high as a digit
_LOW_CHINESE = re.compile(r"[一二三日口工土士己已巳丁]")
# Gaps that may be a space, in heights of the letters. If all digits have one width, a 1 has room on both sides, most of
# it on its right.
_LATIN_GAP, _AFTER_NARROW, _BEFORE_NARROW = 0.27, 0.12, 0.04
_WIDE_GAP = 0.245  # a space in bold type; the strokes of a few letters (川, 八) are as far apart, and these stay unsure
_SIGN_GAP, _WIDE_SIGN_GAP = 0.28, 0.9  # beside signs, and beside signs as wide as a Chinese character
_FLAT = frozenset("一二-—–_…·~.,")
_TALLER = 1.12  # than the other characters of its line: an emoji
_COLOURED = 70  # saturation, 0–255
_BLUE = (130, 180)  # of 256 hues: links
_FILL = 0.45  # of its box that a blue emoji fills; a letter of a link fills less
_GLYPH_LEAST = 0.185  # of a bubble's height: no single letter or digit is lower


@dataclass(frozen=True, slots=True)
class Letters:
    """A size of letters (em) in pixels; 0 if unknown.

    most: the letters are no larger than this.
    surely: the size that other texts may be measured by; no emoji makes it larger.
    """

    most: float = 0.0
    surely: float = 0.0


def letters_of(image: Image.Image, line: TextLine, text: str, ground: Color) -> Letters:
    """Return the size of the letters in a line with this ``text``."""
    chinese, plain = _CHINESE.findall(text), text.replace(" ", "")
    if len(chinese) >= 2 or (chinese and len(plain) > 2 and not _LOW_CHINESE.search(plain)):
        wide = line.ink.width / (len(text) - 0.08) if len(chinese) == len(text) else 0.0
        most = max(line.ink.height / _LEAST_FULL.get(len(chinese), FULL), wide)
        return Letters(most, _usual_height(image, line, ground) / FULL if len(chinese) >= 0.6 * len(plain) else 0.0)
    if plain and not chinese and not _LOW.search(plain):
        return Letters(line.ink.height / _DIGIT)
    return Letters()


def _usual_height(image: Image.Image, line: TextLine, ground: Color) -> int:
    """Return the height of the tallest character of a line that is not much taller than most, as an emoji would be."""
    marks = picture.ink(image.crop(line.ink.as_tuple()), ground)
    boxes = [
        marks.crop((left, 0, right, marks.height)).getbbox()
        for left, right in picture.spans(picture.projections(marks)[0])
    ]
    heights = [box[3] - box[1] for box in boxes if box]
    if not heights:
        return 0
    usual = median(sorted(heights)[len(heights) // 3 :])
    return max(height for height in heights if height <= _TALLER * usual)


def is_coloured(crop: Image.Image, ground: Color) -> bool:
    """Tell whether the writing in ``crop`` is coloured, apart from its background: a link or an emoji."""
    marks = picture.ink(crop, ground, 40)
    levels = crop.convert("HSV").split()[1].histogram(marks)
    return sum(levels[_COLOURED:]) > 0.5 * max(1, sum(levels))


def is_emoji(image: Image.Image, line: TextLine, ground: Color) -> bool:
    """Tell whether a line holds nothing but emoji: all of it is coloured, and it is not a link.

    On a coloured background the edges of letters are coloured, too; then the answer is False.
    """
    crop = image.crop(line.ink.as_tuple())
    if saturation(ground) > _COLOURED or not is_coloured(crop, ground):
        return False
    marks = picture.ink(crop, ground, 40)
    columns = picture.spans(picture.projections(marks)[0], gap=max(1, line.ink.height // 8))
    parts = [(crop.crop((a, 0, b, crop.height)), marks.crop((a, 0, b, crop.height))) for a, b in columns]
    return all(is_coloured(part, ground) and not _is_blue_stroke(part, own) for part, own in parts)


def _is_blue_stroke(part: Image.Image, marks: Image.Image) -> bool:
    hues = part.convert("HSV").split()[0].histogram(marks)
    box = marks.getbbox()
    filled = box is not None and sum(hues) > _FILL * (box[2] - box[0]) * (box[3] - box[1])
    return sum(hues[_BLUE[0] : _BLUE[1]]) > 0.8 * sum(hues) and not filled


def is_glyph(image: Image.Image, lines: Sequence[TextLine], text: str, box: Box, ground: Color) -> bool:
    """Tell whether a single letter or digit in a bubble looks like one: a recogniser takes 。 for 0 and / for 1.

    box: the bubble, whose height tells how large letters are.
    """
    glyph = text.strip()
    if len(glyph) != 1 or not glyph.isascii() or not glyph.isalnum() or len(lines) != 1:
        return True
    ink = lines[0].ink
    if ink.height < _GLYPH_LEAST * box.height:
        return False
    if glyph not in "1lI":
        return True
    # A 1 begins with a flag at its left and is upright below.
    marks = picture.ink(image.crop(ink.as_tuple()), ground)
    third = marks.height // 3
    top, middle, foot = (marks.crop((0, y, marks.width, y + third)).getbbox() for y in (0, third, 2 * third))
    if glyph != "1" or top is None or middle is None or foot is None:
        return False
    return top[0] < middle[0] and abs(top[2] - middle[2]) <= max(1, marks.width // 8)


def ems(text: str) -> float:
    """Return the approximate width of a text, in em."""
    return sum(map(_width, text))


def _gap_least(text: str) -> float:
    """Return the narrowest gap that can only be a space, in heights of the letters: signs have room around them."""
    signs = [char for char in text if not char.isalnum() and char not in "()"]  # these are close to the letters
    if not signs:
        return _WIDE_GAP
    return _SIGN_GAP if all(unicodedata.east_asian_width(char) in ("N", "Na") for char in signs) else _WIDE_SIGN_GAP


def _width(char: str) -> float:
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.6 if char == "1" else 0.36
    return 0.85 if char in "mwMW@" else 0.7 if char.isupper() else 0.6


def is_flawed(text: str, image: Image.Image, line: Box) -> bool:
    """Tell whether ``text`` cannot be all that is written in ``line``."""
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
    return width > em * (1.15 * ems(text) + 0.4)


def _unlike(letters: list[str], found: list[tuple[int, int]]) -> bool:
    """Tell whether the same letter occurs in different sizes."""
    first: dict[str, tuple[int, int]] = {}
    for letter, size in zip(letters, found, strict=True):
        other = first.setdefault(letter, size)
        allowed = max(2.0, 0.16 * max(size[1], other[1]))
        if abs(size[0] - other[0]) > allowed or abs(size[1] - other[1]) > allowed:
            return True
    return False


def has_blank_unread(text: str, image: Image.Image, line: Box) -> bool:
    """Tell whether ``line`` seems to contain a space that ``text`` lacks: "1 1" is read as "11"."""
    gaps = picture.gaps(image, line)
    if not text.isascii():
        least = _gap_least(text) * picture.ink_size(image, line)[1]
        return sum(gap > least for gap in gaps) > len(text.split()) - 1
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
