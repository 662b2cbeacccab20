"""Fonts with Chinese characters, and the width and number of lines of a text that is drawn in them.

Sizes and widths share a unit: pixels for a drawn picture, the virtual phone's page units for a page layout.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib import resources
from io import BytesIO

from PIL import ImageFont

_handwriting: ContextVar[bool] = ContextVar("handwriting", default=False)


@contextmanager
def handwriting(on: bool) -> Iterator[None]:
    """Lay out and draw everything inside in the hand-written font, if ``on``."""
    token = _handwriting.set(on)
    try:
        yield
    finally:
        _handwriting.reset(token)


def in_handwriting() -> bool:
    """Return whether the hand-written font is in use here."""
    return _handwriting.get()


@lru_cache(2)
def _font_data(hand: bool) -> bytes:
    name = "Handwriting-Subset.ttf" if hand else "NotoSansSC-Subset.otf"
    return resources.files("agent_core").joinpath("fonts", name).read_bytes()


@lru_cache(64)
def font(size: int, hand: bool = False) -> ImageFont.FreeTypeFont:
    """Return a font in ``size`` pixels; each size is loaded once."""
    # The basic layout is several times quicker than Raqm, and Chinese needs no shaping.
    return ImageFont.truetype(BytesIO(_font_data(hand)), size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(4096)
def handwritten(char: str) -> bool:
    """Return whether the hand-written font has this character."""
    face = font(24, hand=True)
    return char == " " or bytes(face.getmask(char)) != bytes(face.getmask("\uffff"))


def font_of(char: str, size: int, hand: bool) -> ImageFont.FreeTypeFont:
    """Return the font that ``char`` is drawn in: the hand-written one if ``hand`` is asked for and it has it."""
    return font(size, hand and handwritten(char))


_SYMBOLS = "★☆☎☏♀♂♡♥♪♫✓"  # the characters of the emoji blocks that the font has


def is_emoji(char: str) -> bool:
    """Return whether ``char`` is an emoji, which the font does not have: they are drawn as shapes."""
    return char > "\uffff" or ("\u2600" <= char <= "\u27bf" and char not in _SYMBOLS)


def is_joiner(char: str) -> bool:
    """Return whether ``char`` belongs to the emoji before it and takes no room."""
    return char in "\u200d\ufe0e\ufe0f" or 0x1F3FB <= ord(char) <= 0x1F3FF


@lru_cache(8192)
def advance(char: str, size: int, hand: bool) -> float:
    """Return the distance to the next character, in pixels."""
    if is_joiner(char):
        return 0.0
    return size * 1.2 if is_emoji(char) else font_of(char, size, hand).getlength(char)


def text_width(text: str, size: int) -> float:
    """Return the width of one line of ``text`` in the font in use, in pixels for a ``size`` in pixels."""
    hand = _handwriting.get()
    return sum(advance(char, size, hand) for char in text)


# Punctuation that may not begin a line, as Chinese typesetting has it.
_NOT_FIRST = "，。！？；：、）》」』】…,.!?;:)”’"


def wrap(text: str, size: int, width: int) -> tuple[str, ...]:
    """Break ``text`` into lines of at most ``width``, at least one; ``\\n`` begins a new one."""
    return _wrap(text, size, width, _handwriting.get())


@lru_cache(512)
def _wrap(text: str, size: int, width: int, hand: bool) -> tuple[str, ...]:
    """Break the text; ``hand`` is only part of the cache's key, because widths depend on the font in use."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, used = "", 0.0
        for unit in _units(paragraph, size, width):
            step = text_width(unit, size)
            if line and used + step > width and not (unit in _NOT_FIRST and used + step <= width + size):
                lines.append(line)
                line, used = "", 0.0
                unit = unit.lstrip(" ")  # noqa: PLW2901 - a blank at the break takes no room
                step = text_width(unit, size)
            line += unit
            used += step
        lines.append(line)
    return tuple(lines)


def _units(text: str, size: int, width: int) -> list[str]:
    """Return the units that may not be broken: Latin words that fit a line, else single characters."""
    units: list[str] = []
    word = ""
    for char in text:
        if char.isascii() and not char.isspace():
            word += char
            continue
        units += [word] if text_width(word, size) <= width else list(word)
        word = ""
        units.append(char)
    units += [word] if text_width(word, size) <= width else list(word)
    return [unit for unit in units if unit]


def ellipsize(text: str, size: int, width: int) -> str:
    """Return ``text`` on one line, cut off with … if it is wider than ``width``."""
    text = text.replace("\n", " ")
    if text_width(text, size) <= width:
        return text
    room = width - text_width("…", size)
    kept = ""
    for char in text:
        room -= text_width(char, size)
        if room < 0:
            break
        kept += char
    return kept + "…"
