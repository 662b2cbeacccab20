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
        state = BubbleState.OK
        if side is Side.ME:
            state = _state(filled, box)
        color = rgb(profile.my_bubble_color if side is Side.ME else profile.their_bubble_color)
        return Shape(side, box, BubbleKind.TEXT, state, cut, color)
    return _pictured(rows, columns, filled, cut=cut)


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
