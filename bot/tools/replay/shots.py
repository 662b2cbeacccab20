"""Draws a picture of a run with its words below, at a given size."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from agent_core.texts.layout import ellipsize, font, is_emoji, is_joiner, text_width, wrap

_STRIP, _TITLE, _WORDS, _EMPTY = "#16202c", "#ffffff", "#c3ccd6", "#000000"
_LINES = 3  # of the model's thinking
_MOST = 400  # characters that are used: no more can be seen
MOST_PIXELS = 40_000_000
NARROWEST = 240  # pixels: a narrower one has no room for words


@dataclass(frozen=True, slots=True)
class StepPicture:
    """A shot.

    picture: an encoded picture.
    title: one line.
    words: a few lines.
    label: names it in a list ("3").
    """

    picture: bytes
    title: str
    words: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """Pixels: the picture's place, and the strip below it. Both sides are even, as films need them."""

    width: int
    picture: int
    strip: int

    @property
    def size(self) -> tuple[int, int]:
        return self.width, self.picture + self.strip


def sanitised(text: str) -> str:
    """Return the text as the font can draw it: one paragraph, no control or direction marks, no emoji."""
    flat = " ".join(text[:_MOST].split())
    return "".join(char for char in flat if unicodedata.category(char)[0] != "C" and not _undrawn(char))


def _undrawn(char: str) -> bool:
    return is_emoji(char) or is_joiner(char)


def opened(picture: bytes, least: tuple[int, int] | None = None) -> Image.Image | None:
    """Return the picture in RGB; None if it is none, or is larger than any screen.

    least: a JPEG may be decoded smaller, but not below this width and height; that is faster.
    """
    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > MOST_PIXELS:
                return None
            if least is not None:
                image.draft("RGB", least)
            return image.convert("RGB")
    except (OSError, ValueError, SyntaxError):
        return None


def _size(picture: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(picture)) as image:  # reads only the header
        return image.size


def layout(pictures: Sequence[bytes], *, width: int, tallest: int = 3000) -> Layout:
    """Return the layout for the most frequent shape; ``width`` is of an upright picture, a wide one gets more."""
    sizes = [_size(picture) for picture in pictures]
    common = max(dict.fromkeys(sizes), key=sizes.count)
    across = max(NARROWEST, round(width * 1.6) if common[0] > common[1] else width)
    high = min(tallest, max(1, round(across * common[1] / common[0])))
    size = _letters(across)
    strip = round(size * 1.35 * (1 + _LINES) + size)
    return Layout(across + across % 2, high + high % 2, strip + strip % 2)


def _letters(width: int) -> int:
    return max(11, round(width / 24))


def framed(image: Image.Image, shot: StepPicture, place: Layout) -> Image.Image:
    """Return the picture, fitted into its place, with the strip below."""
    canvas = Image.new("RGB", place.size, _EMPTY)
    factor = min(place.width / image.width, place.picture / image.height)
    fitted = (max(1, round(image.width * factor)), max(1, round(image.height * factor)))
    scaled = image.resize(fitted, Image.Resampling.LANCZOS if factor > 0.5 else Image.Resampling.BOX)
    canvas.paste(scaled, ((place.width - fitted[0]) // 2, (place.picture - fitted[1]) // 2))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((0, place.picture, place.width, place.picture + place.strip), fill=_STRIP)
    size = _letters(place.width)
    room = place.width - 2 * (size // 2)
    left, top = size // 2, place.picture + size // 2
    draw.text((left, top), ellipsize(sanitised(shot.title), size, room), font=font(size), fill=_TITLE)
    for number, line in enumerate(_lines(shot.words, size, room), start=1):
        draw.text((left, top + round(number * size * 1.35)), line, font=font(size), fill=_WORDS)
    return canvas


def _lines(words: str, size: int, room: int) -> list[str]:
    lines = [*wrap(sanitised(words), size, room)] if words.strip() else []
    if len(lines) <= _LINES:
        return lines
    last = lines[_LINES - 1]
    while last and text_width(last + "…", size) > room:
        last = last[:-1]
    return [*lines[: _LINES - 1], last + "…"]


def jpeg(image: Image.Image, quality: int = 82) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()
