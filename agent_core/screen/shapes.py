"""The messages of a chat page as shapes, told by the colours of the app's profile; nothing is read here."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image, ImageChops

from agent_core.apps.profile import AppProfile
from agent_core.geometry import Box
from agent_core.screen.picture import (
    Color,
    Span,
    common_color,
    mask,
    near,
    projections,
    region_box,
    rgb,
    shares,
    small_copy,
    spans,
)
from agent_core.screen.readings import BubbleKind, BubbleState, Side

_CELL = 0.028  # of a bubble's width: cells that a picture fills and letters do not
_CELLS = 3
_PLAY_PART = 0.36  # of a picture's shorter side


@dataclass(frozen=True, slots=True)
class Shape:
    """One message as it stands on the page, unread. ``cut``: its upper part is out of sight.

    ``words``: of a card (a file, a place, a link …) the part that is written on.
    """

    side: Side
    box: Box
    kind: BubbleKind
    state: BubbleState = BubbleState.OK
    cut: bool = False
    color: Color = (255, 255, 255)
    words: Box | None = None


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
    top = _below_strip(image, region.top, ground)
    area = Box(0, top, image.width, max(top + 1, bottom))
    step, small = small_copy(image.crop(area.as_tuple()))
    free = mask(small, ground)
    if sum(free.histogram()[255:]) < 0.2 * small.width * small.height:
        return Page(area, (), plain=False)
    masks = {
        Side.ME: mask(small, rgb(profile.my_bubble_color)),
        Side.THEM: mask(small, rgb(profile.their_bubble_color)),
    }
    filled = ImageChops.invert(free)
    shapes = []
    for top, end in spans(projections(filled)[1], gap=2, least=4):
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


def _below_strip(image: Image.Image, top: int, ground: Color) -> int:
    """The lower edge of a strip under the title (no network, a notice) that has a ground of its own; else ``top``."""
    y = min(top, image.height - 1)
    lowest = min(image.height - 1, y + image.height // 8)
    while y < lowest and not near(image.getpixel((1, y)), ground):
        y += 1
    return y if y < lowest else top


def _shape(rows: Span, filled: Image.Image, masks: dict[Side, Image.Image], profile: AppProfile) -> Shape | None:
    """The message in one band of the page, in small pixels; None for a line of the app's own."""
    top, end = rows
    width = filled.width
    candidates = [(side, _solid(picture.crop((0, top, width, end)))) for side, picture in masks.items()]
    side, solid = max(candidates, key=lambda item: item[1].width * item[1].height if item[1] else 0)
    cut = top <= 1
    columns = spans(projections(filled.crop((0, top, width, end)))[0], gap=2)
    if solid and solid.width * solid.height >= 0.008 * width * width:
        box = Box(solid.left, solid.top + top, solid.right, solid.bottom + top)
        above = _block_above(filled, box, top)
        if above < box.top - 0.3 * box.height:  # a card of which only a part has a bubble's colour
            return Shape(side, Box(box.left, above, box.right, box.bottom), BubbleKind.OTHER, BubbleState.OK, cut)
        card = _card(rows, box, filled, masks[side], cut=cut)
        if card is not None:
            return card
        state = BubbleState.OK
        if side is Side.ME:
            state = _state(filled, box)
        color = rgb(profile.my_bubble_color if side is Side.ME else profile.their_bubble_color)
        return Shape(side, box, BubbleKind.TEXT, state, cut, color)
    return _pictured(rows, columns, filled, cut=cut)


def _card(rows: Span, box: Box, filled: Image.Image, ground: Image.Image, *, cut: bool) -> Shape | None:
    """The card of which ``box`` is the part in a bubble's colour: a picture is under it or in it. None for a bubble.

    Cards of both sides have one colour: whose they are is told by where they stand.
    """
    side = Side.ME if filled.width - box.right < box.left else Side.THEM
    below = _block_below(filled, box, rows[1])
    words = box
    kind = BubbleKind.LOCATION
    if below <= box.bottom + 0.3 * box.height:
        icon = _icon(ground.crop(box.as_tuple()))
        if icon is None:
            return None
        kind, below = BubbleKind.OTHER, box.bottom
        left, right = box.left + icon[0], box.left + icon[1]
        words = (
            Box(box.left, box.top, left, box.bottom)
            if left - box.left > box.right - right
            else Box(right, box.top, box.right, box.bottom)
        )
    whole = Box(box.left, box.top, box.right, below)
    state = _state(filled, whole) if side is Side.ME else BubbleState.OK
    return Shape(side, whole, kind, state, cut, words=words)


def _block_below(filled: Image.Image, box: Box, end: int) -> int:
    """Where the block really ends whose upper part is ``box``: rows under it that are filled all the way."""
    filled_shares = shares(filled.crop((box.left, box.bottom, box.right, max(box.bottom + 1, end))), rows=True)
    y = box.bottom
    while y < end and filled_shares[y - box.bottom] > 225:
        y += 1
    return y


def _icon(ground: Image.Image) -> Span | None:
    """From where to where a picture stands in a bubble, across; ``ground`` is the mask of the bubble's own colour.

    Letters leave ground between their strokes; a picture leaves none.
    """
    cell = max(2, round(_CELL * ground.width))
    if min(ground.size) < (_CELLS + 2) * cell:
        return None
    inner = ground.crop((cell, cell, ground.width - cell, ground.height - cell))  # without the round corners
    full = ImageChops.invert(inner).reduce(cell).point([255 if level > 235 else 0 for level in range(256)])
    least = 255 * _CELLS // full.height  # so many cells of a column
    blocks = spans([share >= least for share in shares(full, rows=False)], least=_CELLS)
    if not blocks:
        return None
    left, right = max(blocks, key=lambda block: block[1] - block[0])
    return (left + 1) * cell, (right + 1) * cell


def _block_above(filled: Image.Image, box: Box, top: int) -> int:
    """Where the block really begins whose lower part is ``box``: rows over it that are filled all the way."""
    filled_shares = shares(filled.crop((box.left, top, box.right, max(top + 1, box.top))), rows=True)
    y = box.top
    while y > top and filled_shares[y - 1 - top] > 225:
        y -= 1
    return y


def _solid(band: Image.Image) -> Box | None:
    """The largest block of set pixels in a band: the bubble, without its text and without an avatar's specks."""
    best: Box | None = None
    for left, right in spans([share > 56 for share in shares(band, rows=False)], gap=2, least=14):
        part = band.crop((left, 0, right, band.height))
        lines = spans([share > 40 for share in shares(part, rows=True)], gap=18)
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
    inner = spans(projections(filled.crop((span[0], rows[0], span[1], rows[1])))[1])
    box = Box(span[0], rows[0] + inner[0][0], span[1], rows[0] + inner[-1][1])
    return Shape(Side.THEM if left else Side.ME, box, BubbleKind.OTHER, BubbleState.OK, cut)


def _placed(shape: Shape, area: Box, step: int, image: Image.Image) -> Shape:
    """The shape in pixels of the picture, its colours looked at."""
    small = shape.box
    box = Box(small.left * step, area.top + small.top * step, small.right * step, area.top + small.bottom * step)
    state, kind, color = shape.state, shape.kind, shape.color
    words = shape.words
    if words is not None:
        words = Box(words.left * step, area.top + words.top * step, words.right * step, area.top + words.bottom * step)
    if state is BubbleState.SENDING and _is_red(image.crop((0, box.top, max(1, box.left - step), box.bottom))):
        state = BubbleState.FAILED
    if kind is BubbleKind.OTHER and words is None:
        color = common_color(image.crop(box.as_tuple()))
        red, green, blue = color
        if red > 190 and 50 < green < 190 and blue < 130 and red - blue > 90 and box.width > 1.6 * box.height:
            kind = BubbleKind.RED_PACKET
        elif box.width <= 0.28 * image.width and box.height <= 0.28 * image.width:
            kind = BubbleKind.STICKER
        else:
            kind = BubbleKind.VIDEO if _plays(image, box) else BubbleKind.IMAGE
    return Shape(shape.side, box, kind, state, shape.cut, color, words)


def _plays(image: Image.Image, box: Box) -> bool:
    """Whether the white mark of a film stands in the middle of a picture, and nothing as white around it."""
    inner, outer = (
        _white(image.crop(_middle(box, part).as_tuple())) for part in (_PLAY_PART, min(1.0, 1.7 * _PLAY_PART))
    )
    return 0.06 < inner[0] / inner[1] < 0.7 and outer[0] - inner[0] < 0.02 * outer[1]


def _middle(box: Box, part: float) -> Box:
    half = max(2, round(part * min(box.width, box.height) / 2))
    return Box(box.center.x - half, box.center.y - half, box.center.x + half, box.center.y + half)


def _white(crop: Image.Image) -> tuple[int, int]:
    """How many pixels are white, of how many."""
    levels = ImageChops.darker(ImageChops.darker(*crop.split()[:2]), crop.split()[2]).histogram()
    return sum(levels[236:]), crop.width * crop.height


def _is_red(crop: Image.Image) -> bool:
    """Whether a good part of what stands out in ``crop`` is red."""
    small = crop.resize((max(1, crop.width // 3), max(1, crop.height // 3)), Image.Resampling.NEAREST)
    reds = sum(
        count
        for count, pixel in small.getcolors(small.width * small.height) or []
        if isinstance(pixel, tuple) and pixel[0] > 200 and pixel[1] < 110 and pixel[2] < 120
    )
    return reds >= 20
