"""Finds what a picture shows before anything is read: lines of text, the input box, marks. Pillow only.

Shapes are searched for on a copy reduced without mixing colours (``small_copy``); boxes that leave this module are in
pixels of the whole picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from PIL import Image, ImageChops, ImageColor

from agent_core.apps.secrets import Region
from agent_core.geometry import Box

Color = tuple[int, int, int]
Span = tuple[int, int]

_TOLERANCE = 6  # levels of a channel: a white bubble and a grey page are 14 apart
_FAINTEST = 24  # the fewest levels by which text stands out
_UNIT = 1080  # lengths below are in pixels of a screen of this width


def rgb(color: str) -> Color:
    """Return ``#rrggbb`` as three levels."""
    red, green, blue = ImageColor.getrgb(color)[:3]
    return red, green, blue


def region_box(region: Region, size: tuple[int, int]) -> Box:
    """Return a profile's region in pixels.

    Its fractions refer to a screen of 20:9. A shorter phone of the same width has headers of the same height, so what
    is measured from the top scales with the width; what lies in the lower half scales with the height.
    """
    width, height = size
    usual = width * 20 / 9 if height >= 1.5 * width else height
    top, bottom = (round(y * (usual if y < 0.5 else height)) for y in (region[1], region[3]))
    return Box(round(region[0] * width), top, round(region[2] * width), bottom)


def near(pixel: object, color: Color, tolerance: int = _TOLERANCE) -> bool:
    return isinstance(pixel, tuple) and all(abs(a - b) <= tolerance for a, b in zip(pixel, color, strict=False))


def mask(image: Image.Image, color: Color, tolerance: int = _TOLERANCE) -> Image.Image:
    """Return a mask: 255 if a pixel of ``image`` is ``color`` within ``tolerance``, else 0."""
    return _far(image, color).point([255 if level <= tolerance else 0 for level in range(256)])


def ink(image: Image.Image, background: Color, tolerance: int = 48) -> Image.Image:
    """Return a mask: 255 if a pixel stands out from ``background``, else 0."""
    return _far(image, background).point([255 if level > tolerance else 0 for level in range(256)])


def _far(image: Image.Image, color: Color) -> Image.Image:
    """Return the greatest difference of any channel from ``color``, pixel by pixel."""
    red, green, blue = ImageChops.difference(image, Image.new("RGB", image.size, color)).split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def spans(flags: Sequence[object], *, gap: int = 0, least: int = 1) -> list[Span]:
    """Return the runs of true values as (start, end).

    Runs at most ``gap`` apart are joined; runs shorter than ``least`` are dropped.
    """
    found: list[Span] = []
    place = 0
    for value, group in groupby(flags, bool):
        length = sum(1 for _ in group)
        if value:
            if found and place - found[-1][1] <= gap:
                found[-1] = (found[-1][0], place + length)
            else:
                found.append((place, place + length))
        place += length
    return [span for span in found if span[1] - span[0] >= least]


def projections(picture: Image.Image) -> tuple[list[int], list[int]]:
    columns, rows = picture.getprojection()
    return list(columns), list(rows)


def shares(picture: Image.Image, *, rows: bool) -> bytes:
    """Return how much of each row (or column) of a mask is set, 0–255."""
    size = (1, picture.height) if rows else (picture.width, 1)
    return picture.resize(size, Image.Resampling.BOX).tobytes()


def common_color(image: Image.Image) -> Color:
    """Return the most common colour of ``image``, measured on a small copy."""
    small = image.resize((min(image.width, 64), min(image.height, 32)), Image.Resampling.NEAREST)
    colors = small.getcolors(64 * 32) or []
    pixel = max(colors, key=lambda item: item[0])[1] if colors else (0, 0, 0)
    return (pixel[0], pixel[1], pixel[2]) if isinstance(pixel, tuple) else (0, 0, 0)


# Lines of text


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line of text: the box of its ink, and the slightly wider box for a recogniser."""

    ink: Box
    box: Box


def text_lines(image: Image.Image, box: Box, background: Color | None, *, width: int | None = None) -> list[Box]:
    """Return the boxes of the lines of text in ``box``, from the top, a little wider than their ink.

    The round corners of the box are left out.

    background: the colour behind the text (None: the most common colour).
    width: the screen's width, if ``image`` is a crop.
    """
    return [line.box for line in lines_of(image, box, background, width=width)]


def lines_of(
    image: Image.Image, box: Box, background: Color | None = None, *, width: int | None = None
) -> list[TextLine]:
    """Find the lines as ``text_lines`` does, and return each with the box of its ink."""
    unit = (width or image.width) / _UNIT
    inset = max(1, round(10 * unit))
    if box.width <= 4 * inset or box.height <= 2 * inset:
        inset = 0
    area = Box(box.left + inset, box.top, box.right - inset, box.bottom)
    crop = image.crop(area.as_tuple())
    ground = background or common_color(crop)
    strongest = _strongest(crop, ground)
    if strongest < _FAINTEST:
        return []
    marks = ink(crop, ground, min(48, strongest * 2 // 5))  # the words on a disabled button are faint
    rows = _lines(spans(projections(marks)[1], gap=max(1, round(2 * unit))), crop.height, unit)
    lines = []
    for top, bottom in rows:
        columns = spans(projections(marks.crop((0, top, crop.width, bottom)))[0])
        if not columns:
            continue
        # A single 一 or … needs a line's height around it, and a whole letter's if it is one stroke.
        usual = 46 if bottom - top < 12 * unit else 34
        tall = max(0, round(usual * unit) - (bottom - top)) // 2
        aside, above = round(10 * unit), round(7 * unit) + tall
        own = Box(area.left + columns[0][0], area.top + top, area.left + columns[-1][1], area.top + bottom)
        wider = Box(
            max(box.left, own.left - aside),
            max(box.top, own.top - above),
            min(box.right, own.right + aside),
            min(box.bottom, own.bottom + above),
        )
        lines.append(TextLine(own, wider))
    return lines


def _lines(rows: list[Span], height: int, unit: float) -> list[Span]:
    """Turn rows of ink into lines: drop corners and specks, join the parts of 二 or ：."""
    inside = [(a, b) for a, b in rows if a > 2 and b < height - 2] or rows
    if not inside:
        return []
    usual = max(*(b - a for a, b in inside), round(30 * unit))
    joined: list[Span] = []
    for a, b in inside:
        if joined and b - joined[-1][0] <= usual * 1.1 and min(b - a, joined[-1][1] - joined[-1][0]) < usual * 0.55:
            joined[-1] = (joined[-1][0], b)
        else:
            joined.append((a, b))
    return [(a, b) for a, b in joined if b - a >= max(2, 4 * unit)]


def contrast(image: Image.Image, box: Box, background: Color) -> int:
    """Return how much the strongest pixel in ``box`` stands out from ``background``, 0–255."""
    return _strongest(image.crop(box.as_tuple()), background)


def _strongest(crop: Image.Image, background: Color) -> int:
    most = _far(crop, background).getextrema()[1]
    return int(most) if isinstance(most, int | float) else 0


def without_colors(image: Image.Image, ground: Color) -> Image.Image:
    """Return ``image`` with everything coloured (a cursor, selection handles) painted over; grey and black stay."""
    _, saturation, _ = image.convert("HSV").split()
    colored = saturation.point([255 if level > 40 else 0 for level in range(256)])
    picture = image.copy()
    picture.paste(ground, (0, 0), colored)
    return picture


def glyphs(image: Image.Image, line: Box) -> list[tuple[int, int]]:
    """Return (width, height) of each separate shape in a line, from the left: single Latin letters and digits."""
    crop = image.crop(line.as_tuple())
    marks = ink(crop, common_color(crop), 90)
    found = []
    for a, b in spans(projections(marks)[0]):
        rows = spans(projections(marks.crop((a, 0, b, crop.height)))[1])
        found.append((b - a, rows[-1][1] - rows[0][0]))
    return found


def gaps(image: Image.Image, line: Box) -> list[int]:
    """Return the widths of the gaps between separate shapes in a line (as ``glyphs`` counts them), from the left."""
    crop = image.crop(line.as_tuple())
    found = spans(projections(ink(crop, common_color(crop), 90))[0])
    return [right[0] - left[1] for left, right in pairwise(found)]


def ink_size(image: Image.Image, line: Box) -> tuple[int, int]:
    """Return (width, height) of all that is written in a line; (0, 0) if nothing is."""
    crop = image.crop(line.as_tuple())
    box = ink(crop, common_color(crop), 90).getbbox()
    return (box[2] - box[0], box[3] - box[1]) if box else (0, 0)


# The input box


def light_boxes(image: Image.Image, color: Color, *, top: int) -> list[Box]:
    """Return wide boxes of ``color`` below ``top`` that could be an input box, from top to bottom."""
    step, small = small_copy(image)
    marks = mask(small, color)
    width, height = small.size
    data = marks.tobytes()
    runs = [_longest(data[y * width : (y + 1) * width]) for y in range(height)]
    found: list[Box] = []
    y = top // step
    while y < height:
        left, right = runs[y]
        if not 0.4 * width <= right - left <= 0.94 * width:
            y += 1
            continue
        ahead = [run for run in runs[y : y + 16] if run[0] <= left and run[1] >= right]
        left, right = min(run[0] for run in ahead), max(run[1] for run in ahead)
        bottom = _down(data, width, height, y, (left, right))
        while bottom < height and runs[bottom][1] - runs[bottom][0] >= 0.4 * width and runs[bottom][0] >= left - 1:
            bottom += 1
        if bottom - y >= 60 / _UNIT * width and right - left <= 0.94 * width:
            found.append(Box(left * step, y * step, right * step, bottom * step))
        y = max(bottom, y + 1)
    return found


def _down(data: bytes, width: int, height: int, top: int, sides: Span) -> int:
    """Return the row at which a box ends: there neither of its sides has its colour any more."""
    y, corner = top, 16
    left, right = sides[0] + 1, sides[1] - 2
    while y < height and (y - top < corner or data[y * width + left] or data[y * width + right]):
        if y - top < corner and not any(data[y * width + left : y * width + right]):
            break
        y += 1
    return y


def _longest(row: bytes) -> Span:
    """Return the longest run of set pixels in a row."""
    best = max(row.split(b"\0"), key=len)
    start = row.find(best) if best else 0
    return start, start + len(best)


def small_copy(image: Image.Image) -> tuple[int, Image.Image]:
    """Return (step, a copy with every step-th pixel of every step-th row)."""
    step = max(1, image.width // 360)
    return step, image.resize((image.width // step, image.height // step), Image.Resampling.NEAREST)


def card_over(image: Image.Image) -> bool:
    """Tell whether a dialog's card covers the middle of the screen: a wide, centred box of one colour."""
    width, height = image.size
    middle = (round(0.25 * width), round(0.35 * height), round(0.75 * width), round(0.65 * height))
    boxes = light_boxes(image, common_color(image.crop(middle)), top=round(0.15 * height))
    return any(
        box.left > 0.02 * width
        and abs(box.left - (width - box.right)) < 0.03 * width
        and box.height > 0.06 * height
        and box.top < 0.65 * height
        for box in boxes
    )


def has_ink(image: Image.Image, box: Box) -> bool:
    """Tell whether anything is written in ``box``: it contains both light and dark pixels."""
    crop = image.crop(box.as_tuple()).convert("L")
    if not crop.width or not crop.height:
        return False
    low, high = crop.getextrema()
    return isinstance(low, int | float) and isinstance(high, int | float) and high - low >= 60
