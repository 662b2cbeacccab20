"""Reduces a screen to flat areas and blocks, without anything that a person wrote or showed.

Only parts stay that are flat over an area that no stroke of a letter covers, and those that the caller names as icons.
So a word that OCR did not find does not stay either. Needs NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agent_core.geometry import Box
from agent_core.perception.pixels import Color, Mask, Pixels, far, greatest, mode, spans

# Lengths are fractions of the screen's width.
_FLAT = 0.02  # the side of a flat square; a bold stroke of the largest letters is half as wide
_LEVEL = 0.15  # the length of a row of one colour: a line between parts, the rim of a bar
_UPRIGHT = 0.1  # the height of a column of one colour: the gap between two keys; no letter is as high
_THIN = 0.021  # remains of corners and rims are smaller; they disappear without a block
_WORD = 0.022  # between the letters of a line
_HIGH = 0.1  # the greatest height of a line of letters
_DENSE = 0.3  # of its box that something higher covers; the rim of a bubble or a card covers less
_CELL = 1 / 14  # of a mosaic
_STEP = 2  # levels between neighbours of one colour
_INK = 6  # levels by which anything stands out
_SPREAD = 48  # levels by which cells differ from a picture's mean


@dataclass(frozen=True, slots=True)
class Area:
    """A part with a known background: a bubble, a quotation, an input; in pixels."""

    box: Box
    color: Color


def bare(image: Image.Image, areas: Sequence[Area], icons: Sequence[Box]) -> Image.Image:
    """Return ``image`` with its flat areas, its ``icons``, and one block for each line of anything else.

    areas: backgrounds that letters may hide, so that nothing of them is flat; later ones lie on earlier ones.
    """
    pixels = np.asarray(image.convert("RGB")).astype(np.int16)
    width = pixels.shape[1]
    filled = _filled(pixels, _flat(pixels))
    for area in areas:
        _fill(filled, pixels, area)
    ink = greatest(np.abs(pixels - filled)) > _INK
    for box in icons:
        ink[box.top : box.bottom, box.left : box.right] = False
    blocks = _lines(ink, width)
    inside = [box for box in blocks if any(area.box.contains(box.center) for area in areas)]
    for box in blocks:
        if box not in inside:
            _block(filled, pixels, ink, box)
    for area in areas:
        _fill(filled, pixels, area)
    for box in inside:
        _block(filled, pixels, ink, box)
    for box in icons:
        part = pixels[box.top : box.bottom, box.left : box.right]
        filled[box.top : box.bottom, box.left : box.right] = part
    return Image.fromarray(filled.astype(np.uint8), "RGB")


def mosaic(image: Image.Image, box: Box, chance: random.Random) -> None:
    """Replace a box by cells of random colours around its mean colour: nothing else of the picture remains."""
    cell = max(8, round(_CELL * image.width))
    size = (max(2, min(12, round(box.width / cell))), max(2, min(24, round(box.height / cell))))
    mean = mean_color(image, box)
    small = Image.new("RGB", size)
    for y in range(size[1]):
        for x in range(size[0]):
            red, green, blue = (min(255, max(0, level + chance.randint(-_SPREAD, _SPREAD))) for level in mean)
            small.putpixel((x, y), (red, green, blue))
    image.paste(small.resize((box.width, box.height), Image.Resampling.NEAREST), (box.left, box.top))


def mean_color(image: Image.Image, box: Box) -> Color:
    """Return the mean colour of a box."""
    pixel = image.crop(box.as_tuple()).resize((1, 1), Image.Resampling.BOX).getpixel((0, 0))
    return (int(pixel[0]), int(pixel[1]), int(pixel[2])) if isinstance(pixel, tuple) else (0, 0, 0)


def clusters(mask: Mask, box: Box, depth: int = 0) -> Iterator[Box]:
    """Split the contents of ``mask`` at empty rows and columns, alternately; yield the parts."""
    part = mask[box.top : box.bottom, box.left : box.right]
    rows = spans(part.any(axis=1), gap=2)
    columns = spans(part.any(axis=0), gap=2)
    if not rows or not columns:
        return
    whole = len(rows) == 1 and len(columns) == 1
    if whole or depth > 12:
        yield Box(box.left + columns[0][0], box.top + rows[0][0], box.left + columns[-1][1], box.top + rows[-1][1])
        return
    for start, end in rows:
        for left, right in spans(part[start:end].any(axis=0), gap=2):
            inner = Box(box.left + left, box.top + start, box.left + right, box.top + end)
            yield from clusters(mask, inner, depth + 1)


def _flat(pixels: Pixels) -> Mask:
    """Return a mask of the pixels that belong to a flat square, or to a long row or column of one colour."""
    height, width = pixels.shape[:2]
    across = np.zeros((height, width), dtype=bool)  # a step to the next pixel of the row
    across[:, :-1] = greatest(np.abs(pixels[:, 1:] - pixels[:, :-1])) > _STEP
    down = np.zeros((height, width), dtype=bool)
    down[:-1] = greatest(np.abs(pixels[1:] - pixels[:-1])) > _STEP
    side, level, high = (max(4, round(part * width)) for part in (_FLAT, _LEVEL, _UPRIGHT))
    return _covered(~(across | down), side, side) | _covered(~across, 1, level) | _covered(~down, high, 1)


def _covered(good: Mask, high: int, wide: int) -> Mask:
    """Return a mask of the pixels that lie in a window of ``high`` × ``wide`` pixels that are all good."""
    height, width = good.shape
    if height < high or width < wide:
        return np.zeros_like(good)
    bad = _sums(~good)
    whole = (bad[high:, wide:] - bad[:-high, wide:] - bad[high:, :-wide] + bad[:-high, :-wide]) == 0
    found = _sums(whole)
    rows, columns = np.arange(height), np.arange(width)
    top, bottom = np.clip(rows - high + 1, 0, None), np.clip(rows + 1, None, whole.shape[0])
    left, right = np.clip(columns - wide + 1, 0, None), np.clip(columns + 1, None, whole.shape[1])
    upper, lower = found[top], found[bottom]
    return (lower[:, right] - upper[:, right] - lower[:, left] + upper[:, left]) > 0


def _sums(mask: Mask) -> NDArray[np.int32]:
    sums = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), dtype=np.int32)
    sums[1:, 1:] = mask.astype(np.int32).cumsum(axis=0).cumsum(axis=1)
    return sums


def _filled(pixels: Pixels, flat: Mask) -> Pixels:
    """Return the picture with non-flat pixels replaced by the nearest flat pixel of their row or column."""
    height, width = flat.shape
    if not flat.any():
        return np.broadcast_to(np.array(mode(pixels)[0], dtype=np.int16), pixels.shape).copy()
    rows, columns = np.indices((height, width), dtype=np.int32)
    far_off = np.int32(4 * (height + width))
    best = np.where(flat, np.int32(0), far_off)
    from_row, from_column = rows.copy(), columns.copy()

    def nearer(place: NDArray[np.int32], own: NDArray[np.int32], along_row: bool) -> None:
        known = (place >= 0) & (place < far_off)
        away = np.where(known, np.abs(place - own), far_off)
        closer = away < best
        best[closer] = away[closer]
        target = from_column if along_row else from_row
        other = from_row if along_row else from_column
        target[closer] = place[closer]
        other[closer] = (rows if along_row else columns)[closer]

    nearer(np.maximum.accumulate(np.where(flat, columns, -1), axis=1), columns, True)
    nearer(np.minimum.accumulate(np.where(flat, columns, far_off)[:, ::-1], axis=1)[:, ::-1], columns, True)
    nearer(np.maximum.accumulate(np.where(flat, rows, -1), axis=0), rows, False)
    nearer(np.minimum.accumulate(np.where(flat, rows, far_off)[::-1], axis=0)[::-1], rows, False)
    filled = pixels[from_row, from_column]
    filled[best >= far_off] = mode(pixels[flat].reshape(1, -1, 3))[0]
    return filled


def _block(filled: Pixels, pixels: Pixels, ink: Mask, box: Box) -> None:
    """Paint a box in the most common colour of its contents."""
    own = ink[box.top : box.bottom, box.left : box.right]
    color, _ = mode(pixels[box.top : box.bottom, box.left : box.right][own].reshape(1, -1, 3), tolerance=24)
    filled[box.top : box.bottom, box.left : box.right] = color


def _fill(filled: Pixels, pixels: Pixels, area: Area) -> None:
    """Fill each row of an area with its background, from its first to its last pixel; the corners stay."""
    box = area.box
    part = pixels[box.top : box.bottom, box.left : box.right]
    same = far(part, area.color) <= _INK
    seen = np.logical_or.accumulate(same, axis=1) & np.logical_or.accumulate(same[:, ::-1], axis=1)[:, ::-1]
    filled[box.top : box.bottom, box.left : box.right][seen] = area.color


def _lines(ink: Mask, width: int) -> list[Box]:
    """Return the boxes of parts as thick as a letter; those of one line together, so that no letter shows its width.

    Larger parts have separate boxes; a rim has none.
    """
    least, high = max(2, round(_THIN * width)), round(_HIGH * width)
    low = least // 3
    lines: list[Box] = []
    large = []
    for box in clusters(ink, Box(0, 0, ink.shape[1], ink.shape[0])):
        if max(box.width, box.height) < least or min(box.width, box.height) < low:
            continue
        if box.height > high or box.width > 2 * high:
            dense = float(ink[box.top : box.bottom, box.left : box.right].mean()) >= _DENSE
            large += [box] if dense else []
            continue
        row = next((i for i, one in enumerate(lines) if _in_line(one, box, round(_WORD * width), high)), None)
        if row is None:
            lines.append(box)
        else:
            lines[row] = _around(lines[row], box)
    return large + [box for box in lines if min(box.width, box.height) >= least]


def _in_line(one: Box, other: Box, gap: int, high: int) -> bool:
    level = min(one.bottom, other.bottom) - max(one.top, other.top)
    beside = max(one.left, other.left) - min(one.right, other.right) <= gap
    return level > 0 and beside and _around(one, other).height <= high


def _around(one: Box, other: Box) -> Box:
    return Box(
        min(one.left, other.left),
        min(one.top, other.top),
        max(one.right, other.right),
        max(one.bottom, other.bottom),
    )
