"""What a picture shows before anything is read: bubbles, lines of text, the input box. Pillow only.

Shapes are looked for on a copy made small without mixing colours (``_small``); boxes that leave this module are in
pixels of the whole picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from PIL import Image, ImageChops, ImageColor

from agent_core.apps.profile import AppProfile, Region
from agent_core.geometry import Box
from agent_core.screen.readings import BubbleKind, BubbleState, Side

Color = tuple[int, int, int]
Span = tuple[int, int]

_TOLERANCE = 6  # levels a channel: a white bubble and a grey page are 14 apart
_FAINTEST = 24  # levels by which text stands out at the least
_UNIT = 1080  # lengths below are in pixels of a screen of this width


def rgb(color: str) -> Color:
    """``#rrggbb`` as three levels."""
    red, green, blue = ImageColor.getrgb(color)[:3]
    return red, green, blue


def region_box(region: Region, size: tuple[int, int]) -> Box:
    """A profile's region (fractions) in pixels."""
    width, height = size
    return Box(round(region[0] * width), round(region[1] * height), round(region[2] * width), round(region[3] * height))


def near(pixel: object, color: Color, tolerance: int = _TOLERANCE) -> bool:
    return isinstance(pixel, tuple) and all(abs(a - b) <= tolerance for a, b in zip(pixel, color, strict=False))


def mask(image: Image.Image, color: Color, tolerance: int = _TOLERANCE) -> Image.Image:
    """255 where a pixel of ``image`` is ``color`` within ``tolerance``, else 0."""
    return _far(image, color).point([255 if level <= tolerance else 0 for level in range(256)])


def ink(image: Image.Image, background: Color, tolerance: int = 48) -> Image.Image:
    """255 where a pixel stands out from ``background``, else 0."""
    return _far(image, background).point([255 if level > tolerance else 0 for level in range(256)])


def _far(image: Image.Image, color: Color) -> Image.Image:
    """The greatest difference of a channel, pixel by pixel."""
    red, green, blue = ImageChops.difference(image, Image.new("RGB", image.size, color)).split()
    return ImageChops.lighter(ImageChops.lighter(red, green), blue)


def spans(flags: Sequence[object], *, gap: int = 0, least: int = 1) -> list[Span]:
    """The runs of true values as (start, end); runs at most ``gap`` apart are one, shorter than ``least`` is none."""
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


def _projections(picture: Image.Image) -> tuple[list[int], list[int]]:
    columns, rows = picture.getprojection()
    return list(columns), list(rows)


def _shares(picture: Image.Image, *, rows: bool) -> bytes:
    """How much of each row (or column) of a mask is set, 0–255."""
    size = (1, picture.height) if rows else (picture.width, 1)
    return picture.resize(size, Image.Resampling.BOX).tobytes()


def common_color(image: Image.Image) -> Color:
    """The commonest colour of ``image``, looked for on a small copy."""
    small = image.resize((min(image.width, 64), min(image.height, 32)), Image.Resampling.NEAREST)
    colors = small.getcolors(64 * 32) or []
    pixel = max(colors, key=lambda item: item[0])[1] if colors else (0, 0, 0)
    return (pixel[0], pixel[1], pixel[2]) if isinstance(pixel, tuple) else (0, 0, 0)


# Lines of text


def text_lines(image: Image.Image, box: Box, background: Color | None = None, *, width: int | None = None) -> list[Box]:
    """The boxes of the lines of text in ``box``, from the top, a little wider than their ink, for a recogniser.

    ``background`` is what the text stands on (the commonest colour where None). Round corners of the box are left out.
    ``width`` is the screen's where ``image`` is a crop.
    """
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
    marks = ink(crop, ground, min(48, strongest * 2 // 5))  # an unlit button's words are faint
    rows = _lines(spans(_projections(marks)[1], gap=max(1, round(2 * unit))), crop.height, unit)
    lines = []
    for top, bottom in rows:
        columns = spans(_projections(marks.crop((0, top, crop.width, bottom)))[0])
        if not columns:
            continue
        tall = max(0, round(34 * unit) - (bottom - top)) // 2  # a lone 一 or … wants a line's height around it
        aside, above = round(10 * unit), round(7 * unit) + tall
        lines.append(
            Box(
                max(box.left, area.left + columns[0][0] - aside),
                max(box.top, area.top + top - above),
                min(box.right, area.left + columns[-1][1] + aside),
                min(box.bottom, area.top + bottom + above),
            )
        )
    return lines


def _lines(rows: list[Span], height: int, unit: float) -> list[Span]:
    """Rows of ink as lines: corners and specks out, the parts of 二 or ： together."""
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
    """How far the strongest pixel in ``box`` stands out from ``background``, 0–255."""
    return _strongest(image.crop(box.as_tuple()), background)


def _strongest(crop: Image.Image, background: Color) -> int:
    most = _far(crop, background).getextrema()[1]
    return int(most) if isinstance(most, int | float) else 0


def without_colors(image: Image.Image, ground: Color) -> Image.Image:
    """``image`` with all that is coloured (a cursor, selection handles) painted over; grey and black text stays."""
    _, saturation, _ = image.convert("HSV").split()
    colored = saturation.point([255 if level > 40 else 0 for level in range(256)])
    picture = image.copy()
    picture.paste(ground, (0, 0), colored)
    return picture


def segments(image: Image.Image, line: Box, *, apart: int) -> list[Box]:
    """The parts of one line that stand at least ``apart`` pixels from one another."""
    crop = image.crop(line.as_tuple())
    columns = spans(_projections(ink(crop, common_color(crop)))[0], gap=apart)
    margin = max(2, round(10 * image.width / _UNIT))
    return [
        Box(max(line.left, line.left + a - margin), line.top, min(line.right, line.left + b + margin), line.bottom)
        for a, b in columns
    ]


# The input box


def light_boxes(image: Image.Image, color: Color, *, top: int) -> list[Box]:
    """Wide boxes of ``color`` below ``top`` that could be an input box, from the top to the bottom."""
    step, small = _small(image)
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
    """The row at which a box ends: where neither of its sides is of its colour any more."""
    y, corner = top, 16
    left, right = sides[0] + 1, sides[1] - 2
    while y < height and (y - top < corner or data[y * width + left] or data[y * width + right]):
        if y - top < corner and not any(data[y * width + left : y * width + right]):
            break
        y += 1
    return y


def _longest(row: bytes) -> Span:
    """The longest run of set pixels of a row."""
    best = max(row.split(b"\0"), key=len)
    start = row.find(best) if best else 0
    return start, start + len(best)


def _small(image: Image.Image) -> tuple[int, Image.Image]:
    """(step, a copy with each step-th pixel of each step-th row)."""
    step = max(1, image.width // 360)
    return step, image.resize((image.width // step, image.height // step), Image.Resampling.NEAREST)


def beside(image: Image.Image, box: Box) -> list[Box]:
    """What stands right of ``box`` in its rows: buttons, from the left."""
    area = Box(box.right + 2, box.top, image.width, box.bottom)
    if area.width < 8:
        return []
    crop = image.crop(area.as_tuple())
    background = image.getpixel((image.width - 2, max(0, box.top - 2)))
    ground = (
        (int(background[0]), int(background[1]), int(background[2]))
        if isinstance(background, tuple)
        else common_color(crop)
    )
    marks = ink(crop, ground, 10)
    unit = image.width / _UNIT
    found = []
    for a, b in spans(_projections(marks)[0], gap=round(14 * unit), least=max(2, round(24 * unit))):
        rows = spans(_projections(marks.crop((a, 0, b, crop.height)))[1])
        found.append(Box(area.left + a, area.top + rows[0][0], area.left + b, area.top + rows[-1][1]))
    return found


def likely_field(image: Image.Image, color: Color) -> Box | None:
    """The light box that stands where a chat's input does and has buttons beside it; nothing is read."""
    for box in light_boxes(image, color, top=round(0.35 * image.height)):
        if box.width >= 0.5 * image.width and box.left <= 0.2 * image.width and beside(image, box):
            return box
    return None


# Lists


def avatar_left_of(image: Image.Image, name: Box, row: Box) -> bool:
    """Whether a block as large as an avatar stands left of a name, in its row."""
    area = Box(0, max(0, row.top), max(1, name.left - 4), min(image.height, row.bottom))
    if area.height < 8:
        return False
    crop = image.crop(area.as_tuple())
    columns, _ = _projections(ink(crop, common_color(image.crop((0, area.top, image.width, area.bottom)))))
    least = 0.07 * image.width
    return any(least <= b - a <= 2.6 * least for a, b in spans(columns, gap=2))


def red_marks(image: Image.Image, area: Box) -> list[Box]:
    """Round red marks (unread counts and dots) in ``area``, from the left."""
    area = Box(max(0, area.left), max(0, area.top), min(image.width, area.right), min(image.height, area.bottom))
    if area.width < 4 or area.height < 4:
        return []
    red, green, blue = image.crop(area.as_tuple()).split()
    low = ImageChops.lighter(green, blue).point([255 if level < 130 else 0 for level in range(256)])
    marks = ImageChops.darker(low, red.point([255 if level > 220 else 0 for level in range(256)]))
    found = []
    least, most = 0.014 * image.width, 0.1 * image.width
    for a, b in spans(_projections(marks)[0], gap=6):
        rows = spans(_projections(marks.crop((a, 0, b, marks.height)))[1], gap=6)
        top, bottom = rows[0][0], rows[-1][1]
        if least <= b - a <= most and least <= bottom - top <= 0.06 * image.width:
            found.append(Box(area.left + a, area.top + top, area.left + b, area.top + bottom))
    return found


# Messages


@dataclass(frozen=True, slots=True)
class Shape:
    """One message as it stands on the page, unread. ``cut``: its upper part is out of sight."""

    side: Side
    box: Box
    kind: BubbleKind
    state: BubbleState = BubbleState.OK
    cut: bool = False
    color: Color = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class Page:
    """The messages part of a chat page. ``plain`` is False where its ground is not the profile's page colour."""

    box: Box
    shapes: tuple[Shape, ...]
    plain: bool


def page(image: Image.Image, profile: AppProfile, *, bottom: int) -> Page:
    """The messages between the profile's upper edge and ``bottom`` (the input's upper edge, pixels)."""
    ground = rgb(profile.page_color)
    region = region_box(profile.messages_region, image.size)
    bottom = _above_footer(image, bottom, ground)
    area = Box(0, region.top, image.width, max(region.top + 1, bottom))
    step, small = _small(image.crop(area.as_tuple()))
    free = mask(small, ground)
    if sum(free.histogram()[255:]) < 0.2 * small.width * small.height:
        return Page(area, (), plain=False)
    masks = {
        Side.ME: mask(small, rgb(profile.my_bubble_color)),
        Side.THEM: mask(small, rgb(profile.their_bubble_color)),
    }
    filled = ImageChops.invert(free)
    shapes = []
    for top, end in spans(_projections(filled)[1], gap=2, least=4):
        shape = _shape((top, end), filled, masks, profile)
        if shape:
            shapes.append(_placed(shape, area, step, image))
    return Page(area, tuple(shapes), plain=True)


def _above_footer(image: Image.Image, bottom: int, ground: Color) -> int:
    """The upper edge of the bar that the input stands in, which may have a ground of its own."""
    y = max(0, min(bottom, image.height) - 1)
    lowest = y - image.height // 8
    while y > max(0, lowest) and not near(image.getpixel((1, y)), ground):
        y -= 1
    return y if y > max(0, lowest) else bottom


def _shape(rows: Span, filled: Image.Image, masks: dict[Side, Image.Image], profile: AppProfile) -> Shape | None:
    """The message in one band of the page, in small pixels; None for a line of the app's own."""
    top, end = rows
    width = filled.width
    candidates = [(side, _solid(picture.crop((0, top, width, end)))) for side, picture in masks.items()]
    side, solid = max(candidates, key=lambda item: item[1].width * item[1].height if item[1] else 0)
    cut = top <= 1
    columns = spans(_projections(filled.crop((0, top, width, end)))[0], gap=2)
    if solid and solid.width * solid.height >= 0.008 * width * width:
        box = Box(solid.left, solid.top + top, solid.right, solid.bottom + top)
        above = _block_above(filled, box, top)
        if above < box.top - 0.3 * box.height:  # a card of which only a part has a bubble's colour
            return Shape(side, Box(box.left, above, box.right, box.bottom), BubbleKind.OTHER, BubbleState.OK, cut)
        state = BubbleState.OK
        if side is Side.ME:
            state = _state(filled, box)
        color = rgb(profile.my_bubble_color if side is Side.ME else profile.their_bubble_color)
        return Shape(side, box, BubbleKind.TEXT, state, cut, color)
    return _pictured(rows, columns, filled, cut=cut)


def _block_above(filled: Image.Image, box: Box, top: int) -> int:
    """Where the block really begins whose lower part is ``box``: rows over it that are filled all the way."""
    shares = _shares(filled.crop((box.left, top, box.right, max(top + 1, box.top))), rows=True)
    y = box.top
    while y > top and shares[y - 1 - top] > 225:
        y -= 1
    return y


def _solid(band: Image.Image) -> Box | None:
    """The largest block of set pixels in a band: the bubble, without its text and without an avatar's specks."""
    best: Box | None = None
    for left, right in spans([share > 56 for share in _shares(band, rows=False)], gap=2, least=14):
        part = band.crop((left, 0, right, band.height))
        lines = spans([share > 40 for share in _shares(part, rows=True)], gap=18)
        if not lines:
            continue
        top, bottom = lines[0][0], lines[-1][1]
        box = Box(left, top, right, bottom)
        if best is None or box.width * box.height > best.width * best.height:
            best = box
    return best


def _state(filled: Image.Image, box: Box) -> BubbleState:
    """SENDING where something small stands left of our bubble; whether it is red is seen later, in colours."""
    strip = filled.crop((0, box.top, max(1, box.left - 1), box.bottom))
    found = strip.getbbox()
    if not found:
        return BubbleState.OK
    wide, high = found[2] - found[0], found[3] - found[1]
    limit = 0.09 * filled.width
    return BubbleState.SENDING if 4 <= wide <= limit and 4 <= high <= limit else BubbleState.OK


def _pictured(rows: Span, columns: list[Span], filled: Image.Image, *, cut: bool) -> Shape | None:
    """A message without a bubble of the profile's colours (a picture, a sticker, a red packet): told by its avatar."""
    width = filled.width
    edge, size = 0.16 * width, (0.06 * width, 0.16 * width)
    left = [c for c in columns if c[1] <= edge and size[0] <= c[1] - c[0] <= size[1]]
    right = [c for c in columns if c[0] >= width - edge and size[0] <= c[1] - c[0] <= size[1]]
    if bool(left) == bool(right):
        return None
    rest = [c for c in columns if c not in (left or right)]
    if not rest or rows[1] - rows[0] < 12:
        return None
    span = (rest[0][0], rest[-1][1])
    inner = spans(_projections(filled.crop((span[0], rows[0], span[1], rows[1])))[1])
    box = Box(span[0], rows[0] + inner[0][0], span[1], rows[0] + inner[-1][1])
    return Shape(Side.THEM if left else Side.ME, box, BubbleKind.OTHER, BubbleState.OK, cut)


def _placed(shape: Shape, area: Box, step: int, image: Image.Image) -> Shape:
    """The shape in pixels of the picture, its colours looked at."""
    small = shape.box
    box = Box(small.left * step, area.top + small.top * step, small.right * step, area.top + small.bottom * step)
    state, kind, color = shape.state, shape.kind, shape.color
    if state is BubbleState.SENDING and _is_red(image.crop((0, box.top, max(1, box.left - step), box.bottom))):
        state = BubbleState.FAILED
    if kind is BubbleKind.OTHER:
        color = common_color(image.crop(box.as_tuple()))
        red, green, blue = color
        if red > 190 and 50 < green < 190 and blue < 130 and red - blue > 90 and box.width > 1.6 * box.height:
            kind = BubbleKind.RED_PACKET
        elif box.width <= 0.28 * image.width and box.height <= 0.28 * image.width:
            kind = BubbleKind.STICKER
        else:
            kind = BubbleKind.IMAGE
    return Shape(shape.side, box, kind, state, shape.cut, color)


def _is_red(crop: Image.Image) -> bool:
    """Whether a good part of what stands out in ``crop`` is red."""
    small = crop.resize((max(1, crop.width // 3), max(1, crop.height // 3)), Image.Resampling.NEAREST)
    reds = sum(
        count
        for count, pixel in small.getcolors(small.width * small.height) or []
        if isinstance(pixel, tuple) and pixel[0] > 200 and pixel[1] < 110 and pixel[2] < 120
    )
    return reds >= 20


def has_ink(image: Image.Image, box: Box) -> bool:
    """Whether anything is written in ``box``: light and dark stand in it."""
    crop = image.crop(box.as_tuple()).convert("L")
    if not crop.width or not crop.height:
        return False
    low, high = crop.getextrema()
    return isinstance(low, int | float) and isinstance(high, int | float) and high - low >= 60
