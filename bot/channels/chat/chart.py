"""The chart of a digest: a bar for each hour or day, in few bytes, with letters that are readable on a phone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from agent_core.texts.layout import ellipsize, font, text_width

WIDTH, HEIGHT = 960, 520  # pixels; an app shows it about 360 wide
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 928, 148, 446
_TITLE, _WORDS = 34, 27
_SMOOTH = 2
_COLOURS = 64
_PAPER, _INK, _FAINT, _GRID = "#ffffff", "#1f2937", "#6b7280", "#e5e7eb"
SERIES = ("#16a34a", "#3b82f6", "#f59e0b")  # questions answered alone, answered by a person, not answered


@dataclass(frozen=True, slots=True)
class Column:
    """A bar of the chart. ``parts``: a value for each series, from the bottom up. ``label``: "" for none."""

    label: str
    parts: tuple[int, ...]


def draw_chart(title: str, legend: Sequence[str], columns: Sequence[Column], *, nothing: str = "") -> bytes:
    """Return the chart as PNG. It takes some tens of milliseconds, so call it in a thread.

    legend: a name for each series. nothing: the text to write if all columns are empty.
    """
    big = Image.new("RGB", (WIDTH * _SMOOTH, HEIGHT * _SMOOTH), _PAPER)
    top = scale(max((sum(column.parts) for column in columns), default=0))
    _bars(ImageDraw.Draw(big), columns, top)
    image = big.reduce(_SMOOTH)
    draw = ImageDraw.Draw(image)
    draw.text((36, 26), ellipsize(title, _TITLE, WIDTH - 72), font=font(_TITLE), fill=_INK)
    _legend(draw, legend)
    for value in (0, top // 2, top):
        words = str(value)
        draw.text(
            (_LEFT - 14 - text_width(words, _WORDS), _height(value, top) - 19), words, font=font(_WORDS), fill=_FAINT
        )
    _labels(draw, columns)
    if nothing and not any(sum(column.parts) for column in columns):
        place = ((_LEFT + _RIGHT - text_width(nothing, _TITLE)) / 2, (_TOP + _BOTTOM) / 2 - 2 * _TITLE)
        draw.text(place, nothing, font=font(_TITLE), fill=_FAINT)
    out = io.BytesIO()
    # Fewer colours take a third of the bytes, and nobody sees a difference.
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()


def scale(most: int) -> int:
    """Return the top of the scale: an even, round number."""
    for step in (2, 4, 6, 10, 20, 30, 40, 50, 60, 80):
        if most <= step:
            return step
    tenth = int(10 ** (len(str(most)) - 2))
    return next(tenth * factor for factor in (10, 12, 16, 20, 30, 40, 50, 60, 80, 100) if most <= tenth * factor)


def _height(value: float, top: int) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * value / top


def _bars(draw: ImageDraw.ImageDraw, columns: Sequence[Column], top: int) -> None:
    for value in (0, top / 2, top):
        y = round(_height(value, top) * _SMOOTH)
        draw.line((_LEFT * _SMOOTH, y, _RIGHT * _SMOOTH, y), fill=_GRID, width=2 * _SMOOTH)
    step = (_RIGHT - _LEFT) / max(1, len(columns))
    width = min(72.0, step * 0.68)
    for number, column in enumerate(columns):
        left = _LEFT + step * number + (step - width) / 2
        below = 0
        for colour, part in zip(SERIES, column.parts, strict=True):
            if part:
                box = (left, _height(below + part, top), left + width - 1, _height(below, top))
                draw.rectangle([round(side * _SMOOTH) for side in box], fill=colour)
            below += part


def _legend(draw: ImageDraw.ImageDraw, legend: Sequence[str]) -> None:
    left = 36.0
    for colour, words in zip(SERIES, legend, strict=True):
        draw.rounded_rectangle((left, 91, left + 22, 113), radius=5, fill=colour)
        draw.text((left + 32, 82), words, font=font(_WORDS), fill=_INK)
        left += 32 + text_width(words, _WORDS) + 34


def _labels(draw: ImageDraw.ImageDraw, columns: Sequence[Column]) -> None:
    step = (_RIGHT - _LEFT) / max(1, len(columns))
    for number, column in enumerate(columns):
        if column.label:
            middle = _LEFT + step * (number + 0.5)
            draw.text(
                (middle - text_width(column.label, _WORDS) / 2, _BOTTOM + 12),
                column.label,
                font=font(_WORDS),
                fill=_FAINT,
            )
