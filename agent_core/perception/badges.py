"""Finds avatars and unread marks in the picture of a list. Pillow only.

Nothing here knows the colours of a theme: the background of an avatar is taken from the left edge of its own row. Only
the marks have known colours: QQ paints them #fe4833 and WeChat #fa5151, in light and in dark mode. Proportions: an
avatar is 0.11 to 0.13 of the screen's width, a mark with a number about 0.045, a dot 0.02 to 0.025.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from PIL import Image, ImageChops, ImageDraw

from agent_core.geometry import Box
from agent_core.perception.picture import projections, spans

_STANDS_OUT = 9  # levels of a channel: a grey avatar on a white row, a black one on a dark row
_SMALLEST, _LARGEST = 0.08, 0.17  # an avatar's side, of the screen's width
_LEAST, _HIGHEST, _WIDEST = 0.012, 0.06, 0.11  # a mark's sides, of the screen's width
_WRITTEN = 0.05  # of a mark's inner part: if more of it is not red, a number is written there


@dataclass(frozen=True, slots=True)
class Mark:
    """A red mark.

    number: something is written in it; otherwise it is a dot.
    """

    box: Box
    number: bool


def find_avatars(image: Image.Image, column: int) -> list[Box]:
    """Find the avatars left of the names, from top to bottom.

    Avatars that a header or the bottom bar cuts are left out, because the name beside them is cut as well.

    column: the left edge of the names, in pixels.
    """
    width, height = image.size
    right = max(1, min(width, column - round(0.008 * width)))
    edge = max(2, width // 250)
    ground = image.crop((edge, 0, edge + 1, height)).resize((right, height), Image.Resampling.NEAREST)
    marks = _different(image.crop((0, 0, right, height)), ground)
    found = []
    for top, bottom in spans(projections(marks)[1], gap=round(0.004 * width), least=round(_SMALLEST * width)):
        block = _block(marks, top, bottom)
        if block is not None and _SMALLEST * width <= block.height <= _LARGEST * width:
            found.append(block)
    if not found:
        return []
    left, side = round(median(box.left for box in found)), round(median(box.height for box in found))
    slack = 0.06 * side
    return [
        Box(left, box.top, left + side, box.top + side)
        for box in found
        if abs(box.left - left) <= slack and abs(box.height - side) <= slack
    ]


def round_avatars(image: Image.Image, avatars: Sequence[Box]) -> bool:
    """Tell whether most of these avatars are round: the row shows at their left corners."""
    square = sum(_square(image, box) for box in avatars)
    return square * 2 < len(avatars)


def corner_mark(image: Image.Image, avatar: Box, *, disc: bool) -> Mark | None:
    """Find the mark at the upper right corner of an avatar; None if there is none.

    A mark sticks out of the avatar; red inside it belongs to the avatar's own picture.

    disc: the page's avatars are round, so the corner of the square is outside as well.
    """
    unit, side = image.width, avatar.width
    window = Box(
        avatar.center.x,
        max(0, avatar.top - round(0.35 * side)),
        min(image.width, avatar.right + round(0.55 * side)),
        avatar.top + round(0.55 * side),
    )
    red = _red(image.crop(window.as_tuple()))
    if red.getbbox() is None:
        return None
    round_ = disc and not _square(image, avatar)
    outside = _outside(red, avatar, window, round_=round_, margin=max(2, round(0.0025 * unit)))
    seed = _most_inner(outside)
    if seed is None or _area(outside) < 0.00002 * unit * unit:
        return None
    ImageDraw.floodfill(red, seed, 128)
    blob = red.point([255 if level == 128 else 0 for level in range(256)])
    bounds, filled = blob.getbbox(), 0.45
    if bounds is None:
        return None
    if bounds[0] == 0 or bounds[3] == red.height or not _fits(bounds, unit):
        # The mark merges with a red avatar. Judge by the part that sticks out, which lacks at least a quarter of the
        # mark.
        blob = _outside(blob, avatar, window, round_=round_, margin=max(2, round(0.004 * unit)))
        bounds, filled = blob.getbbox(), 0.25
        if bounds is None or _area(blob) < 0.00006 * unit * unit:
            return None
    if not _fits(bounds, unit) or _area(blob) < filled * (bounds[2] - bounds[0]) * (bounds[3] - bounds[1]):
        return None
    box = _at(bounds, window)
    return Mark(box, _is_written(image, box))


def red_marks(image: Image.Image, area: Box) -> list[Mark]:
    """Find the separate red marks in ``area``, from left to right."""
    area = Box(max(0, area.left), max(0, area.top), min(image.width, area.right), min(image.height, area.bottom))
    if area.width < 4 or area.height < 4:
        return []
    red = _red(image.crop(area.as_tuple()))
    found = []
    for a, b in spans(projections(red)[0], gap=round(0.006 * image.width)):
        rows = spans(projections(red.crop((a, 0, b, red.height)))[1], gap=round(0.006 * image.width))
        bounds = (a, rows[0][0], b, rows[-1][1])
        if _fits(bounds, image.width):
            box = _at(bounds, area)
            found.append(Mark(box, _is_written(image, box)))
    return found


def reds(image: Image.Image, area: Box) -> int:
    """Return the number of pixels in ``area`` that have the red of a mark."""
    area = Box(max(0, area.left), max(0, area.top), min(image.width, area.right), min(image.height, area.bottom))
    return _area(_red(image.crop(area.as_tuple()))) if area.width > 0 and area.height > 0 else 0


def _block(marks: Image.Image, top: int, bottom: int) -> Box | None:
    """Return the square that fills a run of rows; None if it is not a square.

    The height is measured on its left half, because a mark covers only the right corner.
    """
    bounds = marks.crop((0, top, marks.width, bottom)).getbbox()
    if bounds is None:
        return None
    left, half = bounds[0], round(0.45 * (bottom - top))
    inner = marks.crop((left, top, left + half, bottom)).getbbox()
    if inner is None:
        return None
    side = inner[3] - inner[1]
    lower = marks.crop((0, top + inner[1] + side // 2, marks.width, top + inner[3])).getbbox()
    if lower is None or abs(lower[2] - lower[0] - side) > 0.12 * side:
        return None
    return Box(left, top + inner[1], left + side, top + inner[3])


def _outside(marks: Image.Image, avatar: Box, window: Box, *, round_: bool, margin: int) -> Image.Image:
    """Return the part of ``marks``, a mask of ``window``, that lies at least ``margin`` pixels outside the avatar."""
    shape = (
        avatar.left - window.left - margin,
        avatar.top - window.top - margin,
        avatar.right - window.left + margin,
        avatar.bottom - window.top + margin,
    )
    left = marks.copy()
    pen = ImageDraw.Draw(left)
    (pen.ellipse if round_ else pen.rectangle)(shape, fill=0)
    return left


def _square(image: Image.Image, avatar: Box) -> bool:
    """Tell whether both left corners of an avatar are filled, except for a rounding."""
    side = avatar.width
    inset, size = round(0.055 * side), max(2, round(0.03 * side))
    ground = image.getpixel((max(2, image.width // 250), avatar.center.y))
    for top in (avatar.top + inset, avatar.bottom - inset - size):
        patch = image.crop((avatar.left + inset, top, avatar.left + inset + size, top + size))
        plain = Image.new("RGB", patch.size, ground if isinstance(ground, tuple) else (0, 0, 0))
        if _area(_different(patch, plain)) < 0.6 * size * size:
            return False
    return True


def _different(image: Image.Image, ground: Image.Image) -> Image.Image:
    red, green, blue = ImageChops.difference(image, ground).split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    return most.point([255 if level > _STANDS_OUT else 0 for level in range(256)])


def _red(image: Image.Image) -> Image.Image:
    """Return a mask that is 255 where a pixel has the red of a mark or nearly so.

    The rim of a small mark is mixed with the colour behind it.
    """
    red, green, blue = image.split()
    other = ImageChops.lighter(green, blue)
    apart = ImageChops.subtract(red, other).point([255 if level > 130 else 0 for level in range(256)])
    bright = red.point([255 if level > 205 else 0 for level in range(256)])
    return ImageChops.darker(apart, bright)


def _area(marks: Image.Image) -> int:
    return sum(marks.histogram()[1:])


def _most_inner(marks: Image.Image) -> tuple[int, int] | None:
    """Return a set pixel in the middle of the longest run of the row with the most set pixels; None if none is set."""
    bounds = marks.getbbox()
    if bounds is None:
        return None
    data, width = marks.tobytes(), marks.width
    best = max(range(bounds[1], bounds[3]), key=lambda y: data[y * width : (y + 1) * width].count(b"\xff"))
    row = data[best * width : (best + 1) * width]
    run = max(row.split(b"\0"), key=len)
    return row.find(run) + len(run) // 2, best


def _at(bounds: tuple[int, int, int, int], window: Box) -> Box:
    left, top, right, bottom = bounds
    return Box(window.left + left, window.top + top, window.left + right, window.top + bottom)


def _fits(bounds: tuple[int, int, int, int], unit: int) -> bool:
    wide, high = bounds[2] - bounds[0], bounds[3] - bounds[1]
    return _LEAST * unit <= high <= _HIGHEST * unit and 0.75 * high <= wide <= _WIDEST * unit


def _is_written(image: Image.Image, box: Box) -> bool:
    inset = round(0.22 * box.height)
    inner = _red(image.crop((box.left + inset, box.top + inset, box.right - inset, box.bottom - inset)))
    return inner.width > 0 and inner.height > 0 and 1 - _area(inner) / (inner.width * inner.height) > _WRITTEN
