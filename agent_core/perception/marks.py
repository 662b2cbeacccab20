"""Marks on a copy of a screenshot where an action went. For cards, the console and the trajectory."""

from __future__ import annotations

import math
from io import BytesIO

from PIL import Image, ImageDraw

from agent_core.actions.types import DoubleTap, LongPress, Swipe, Tap
from agent_core.geometry import Point

_COLOR = "#ff2d55"
_HALO = "#ffffff"
# Rings, the inner one first, in units of ``_unit``, and how far they are open above and below the middle at each side
# (degrees): so that a line of text, and the one below it in a list, stay readable.
RADII = (14, 22)
OPEN = 40


def mark(image: Image.Image, action: object) -> Image.Image:
    """Return ``image`` with the action's place: a ring for a tap, two for a long press, an arrow for a swipe.

    A ring is open at both sides and empty in the middle, so that the tapped words stay readable. The marks are drawn on
    a copy. For actions without a place, and anything else, ``image`` itself is returned.
    """
    if isinstance(action, Swipe):
        return mark_swipe(
            image, Point.from_relative(action.start, image.size), Point.from_relative(action.end, image.size)
        )
    if isinstance(action, Tap | DoubleTap | LongPress):
        point = Point.from_relative(action.element, image.size)
        return mark_tap(image, point, rings=2 if isinstance(action, LongPress) else 1)
    return image


def mark_tap(image: Image.Image, point: Point, *, rings: int) -> Image.Image:
    """Return a copy with ``rings`` rings around ``point`` (pixels)."""
    picture = image.convert("RGB") if image.mode != "RGB" else image.copy()
    draw = ImageDraw.Draw(picture)
    unit = _unit(image)
    for radius in RADII[:rings]:
        for color, width in ((_HALO, unit * 2), (_COLOR, unit)):
            outer = unit * radius + (width - unit) // 2
            box = (point.x - outer, point.y - outer, point.x + outer, point.y + outer)
            for half in (0, 180):
                draw.arc(box, half + OPEN, half + 180 - OPEN, fill=color, width=width)
    return picture


def mark_swipe(image: Image.Image, start: Point, end: Point) -> Image.Image:
    """Return a copy with an arrow from ``start`` to ``end`` (pixels); a swipe that does not move is a long press."""
    if start == end:
        return mark_tap(image, start, rings=2)
    picture = image.convert("RGB") if image.mode != "RGB" else image.copy()
    draw = ImageDraw.Draw(picture)
    unit = _unit(image)
    angle = math.atan2(end.y - start.y, end.x - start.x)
    head = [
        (end.x + unit * 5 * math.cos(angle + turn), end.y + unit * 5 * math.sin(angle + turn))
        for turn in (math.pi * 0.82, -math.pi * 0.82)
    ]
    for color, width in ((_HALO, unit * 2), (_COLOR, unit)):
        draw.line((start.x, start.y, end.x, end.y), fill=color, width=width)
        for x, y in head:
            draw.line((end.x, end.y, x, y), fill=color, width=width)
    dot = unit * 2
    draw.ellipse((start.x - dot, start.y - dot, start.x + dot, start.y + dot), fill=_COLOR, outline=_HALO)
    return picture


def to_jpeg(image: Image.Image, *, longest: int = 1200, quality: int = 70) -> bytes:
    """Return ``image`` as JPEG bytes, reduced so that its longest side is at most ``longest`` pixels.

    Screens look the same at quality 70 as at 80, and are a quarter smaller with their own tables (``optimize``, 3 ms).
    """
    picture = image.convert("RGB") if image.mode != "RGB" else image
    factor = max(1, math.ceil(max(picture.size) / longest))
    if factor > 1:
        picture = picture.reduce(factor)  # whole factors: 3 ms instead of 22 for a phone's screen
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=quality, optimize=True)
    return buffer.getvalue()


def _unit(image: Image.Image) -> int:
    """Return the line width that looks alike on every screen: 8 pixels at a width of 1080."""
    return max(2, round(min(image.size) / 135))
