"""Finds the messages of a chat page as shapes. Colours are learnt from the page; nothing is read here.

A page is a stack of bands with its background between them. A band with an avatar is a message, and the avatar tells
whose. Inside it, a part with one flat colour is a bubble, and one without is a picture. A band without an avatar is a
line of the app (a time, a tip), a part of the message above (a quotation below it, the words of a voice message), or in
doubt. Anything in a band that belongs to none of its parts is a doubt, too: it may hide a message, or be one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from PIL import Image, ImageChops

from agent_core.apps.profile import AppProfile
from agent_core.geometry import Box
from agent_core.perception.layout import PAGE_EDGE, Ground, ground, margins
from agent_core.perception.picture import rgb
from agent_core.perception.pixels import (
    Color,
    Grid,
    Mask,
    Pixels,
    Span,
    block,
    common_colors,
    far,
    mode,
    pieces,
    saturation,
    spans,
)
from agent_core.perception.readings import BubbleState, DoubtKind, Side

# Lengths are fractions of the screen's width.
_AVATAR = (0.07, 0.15)  # its size
_AVATAR_ZONE = 0.175  # its place, from either edge
_BUBBLE_LEAST = (0.05, 0.04)  # width and height
_OFF_GROUND = 6  # levels by which something stands out from the page
_FILLED = 0.25  # of its box that a bubble's background covers, beside its words and a quotation
_CHORD = 0.7  # of its width that a bubble has near its ends; a circle has 0.6
_MARK = (0.018, 0.085)  # a red mark, a spinner, a download arrow
_LINE = 0.10  # greatest height of a line of the app
_PLAY_PART = 0.36  # of a picture's shorter side
_REMNANT = 0.05
_STRIP = (0.06, 0.2)  # heights of a strip that an app keeps under the header
_NEAR = 0.035  # greatest distance of a message's parts below it
_AROUND = 0.014  # around a bubble: its shadow, the ornaments of a skin
_NAME = 0.05  # height of a nickname
_QUOTE_ROOM = 0.3  # from a bubble's upper edge: a quotation ends above this, however long the message is


class MessageShape(StrEnum):
    """The look of a shape before it is read."""

    BUBBLE = "bubble"  # one flat background
    PICTURE = "picture"  # no flat background
    PACKET = "packet"  # a red or orange background: money


@dataclass(frozen=True, slots=True)
class Shape:
    """One message as it is on the page, unread; boxes in pixels of the picture.

    cut: its upper part is out of sight.
    open: its lower part is out of sight, behind the input bar.
    color: its background.
    quote: its quotation, on a background of its own.
    transcript: words below a voice message.
    named: a group's nickname is above it.
    tail: it has a tip that points at the avatar.
    sure: False if it is uncertain whose message it is.
    doubt: what is not understood about it.
    """

    side: Side
    box: Box
    form: MessageShape
    state: BubbleState = BubbleState.OK
    cut: bool = False
    open: bool = False
    color: Color = (255, 255, 255)
    quote: Box | None = None
    quote_color: Color = (255, 255, 255)
    transcript: Box | None = None
    named: bool = False
    tail: bool = False
    sure: bool = True
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class PageShapes:
    """The messages part of a chat page. ``plain`` is False on a wallpaper; shapes there are found by colour alone.

    remnant: the lower edge of an older message is visible under the header.
    lines: the app's own lines in the middle of the page, unread: times, tips, calls.
    """

    box: Box
    shapes: tuple[Shape, ...]
    ground: Ground
    doubts: tuple[DoubtKind, ...] = ()
    remnant: bool = False
    lines: tuple[Box, ...] = ()

    @property
    def plain(self) -> bool:
        return self.ground.plain


@dataclass(frozen=True, slots=True)
class _Band:
    """A stretch of rows with something on them; all in pixels of the small copy."""

    top: int
    bottom: int
    left_avatar: Box | None
    right_avatar: Box | None
    content: Span | None  # columns between the avatars

    @property
    def height(self) -> int:
        return self.bottom - self.top


def page_of(grid: Grid, profile: AppProfile, *, top: int, bottom: int) -> PageShapes:
    """Return the messages between the header's lower edge and the input bar's upper edge (pixels of the picture)."""
    seen = ground(grid, top, bottom)
    if seen.plain:
        top = _below_strip(grid, seen, top, bottom)
    area = Box(0, top, grid.image.width, max(top + 1, bottom))
    rows = (top // grid.step, max(top // grid.step + 1, bottom // grid.step))
    if not seen.plain:
        return PageShapes(area, tuple(_by_colour(grid, profile, rows)), seen, (DoubtKind.WALLPAPER,))
    filled = far(grid.pixels[rows[0] : rows[1]], seen.color) > _OFF_GROUND
    edge = max(2, round(PAGE_EDGE * grid.width))
    filled[:, :edge] = filled[:, -edge:] = False
    reading = _Reading(grid, filled, rows, seen, [], [], [])
    bands = [_band(filled, span, grid.width) for span in spans(filled.sum(axis=1) >= 2, gap=1, least=3)]
    columns = _avatar_columns(bands)
    for band in bands:
        parts = _parted(filled, band, columns, grid.width)
        for part in parts:
            reading.take(part)
        if len(parts) > 1:
            reading.doubt(band, DoubtKind.UNKNOWN_PART)  # whatever joined them
    found = tuple(_sided(reading.shapes, profile, grid.image.width))
    # Anything wholly above our newest message says nothing about what is asked now.
    answered = max((shape.box.top for shape in found if shape.sure and shape.side is Side.ME), default=0)
    doubts = dict.fromkeys(doubt for row, doubt in reading.doubts if row * grid.step > answered)
    return PageShapes(area, found, seen, tuple(doubts), reading.remnant, tuple(reading.lines))


def _below_strip(grid: Grid, seen: Ground, top: int, bottom: int) -> int:
    """Return the row at which the page begins, below a full-width strip under the header such as "no network"."""
    sides = margins(grid, top, bottom)
    other = spans((far(sides, seen.color) > _OFF_GROUND).any(axis=1), gap=0, least=2)
    if not other or other[0][0] > sides.shape[1] // 2:  # the header ends with a line of its own
        return top
    high = other[0][1]
    return top + high * grid.step if _STRIP[0] * grid.width < high < _STRIP[1] * grid.width else top


def _band(filled: Mask, rows: Span, width: int) -> _Band:
    """Return the band of these rows with its avatars."""
    part = filled[rows[0] : rows[1]]
    zone = round(_AVATAR_ZONE * width)
    left = _avatar(part[:, :zone], 0, rows[0], width)
    right = _avatar(part[:, -zone:], width - zone, rows[0], width)
    from_ = left.right if left else 0
    to = right.left if right else width
    columns = spans(part[:, from_:to].any(axis=0), gap=2, least=2)
    content = (from_ + columns[0][0], from_ + columns[-1][1]) if columns else None
    return _Band(rows[0], rows[1], left, right, content)


def _avatar_columns(bands: Sequence[_Band]) -> list[Span]:
    """Return the columns of a page's avatars, one span for each side that has any."""
    sides = ([band.left_avatar for band in bands], [band.right_avatar for band in bands])
    known = [sorted((box.left, box.right) for box in boxes if box) for boxes in sides]
    return [spans_[len(spans_) // 2] for spans_ in known if spans_]


def _parted(filled: Mask, band: _Band, columns: Sequence[Span], width: int) -> list[_Band]:
    """Split a band above each avatar in it, because what covers the page may join two messages into one band."""
    if band.height < 1.5 * _AVATAR[0] * width:
        return [band]
    tops = []
    for left, right in columns:
        least, most = 0.75 * (right - left), 1.3 * (right - left)
        rows = spans(filled[band.top : band.bottom, left:right].any(axis=1), gap=3, least=2)
        for top, bottom in rows:
            wide = int(filled[band.top + top : band.top + bottom, left:right].any(axis=0).sum())
            if least <= bottom - top <= most and wide >= least:
                tops.append(band.top + top)
    cuts = [band.top]
    for top in sorted(tops):
        if top - cuts[-1] > _NEAR * width:
            cuts.append(top - 1)
    if len(cuts) == 1:
        return [band]
    return [_band(filled, rows, width) for rows in zip(cuts, [*cuts[1:], band.bottom], strict=True)]


def _avatar(part: Mask, left: int, top: int, width: int) -> Box | None:
    """Return the block of an avatar's size at the upper end of a band, without a bubble's tail that touches it."""
    least, most = _AVATAR[0] * width, _AVATAR[1] * width
    upper = part[: round(0.13 * width)]
    full = spans(upper.sum(axis=0) >= 0.45 * min(upper.shape[0], least), gap=1, least=2)
    for start, end in [*full, *spans(part.any(axis=0), gap=1, least=2)]:
        # A bubble reaches into the zone if it touches the zone's inner edge.
        inner = end >= part.shape[1] if left == 0 else start <= 0
        if inner or not 0.85 * least <= end - start <= most:
            continue
        rows = spans(part[:, start:end].any(axis=1), gap=3, least=2)
        if not rows:
            continue
        first = rows[0]
        for more in rows[1:]:
            if more[1] - first[0] <= most:
                first = (first[0], more[1])
        high = first[1] - first[0]
        # The page's upper edge may cut the avatar.
        if (0.75 * (end - start) <= high <= 1.3 * (end - start)) or (top <= 1 and first[0] == 0 and high < end - start):
            return Box(left + start, top + first[0], left + end, top + first[1])
    return None


@dataclass(slots=True)
class _Reading:
    """The findings in the bands up to now."""

    grid: Grid
    filled: Mask
    rows: Span  # of the area in the small copy
    seen: Ground
    shapes: list[Shape]
    doubts: list[tuple[int, DoubtKind]]  # with the row of the small copy above which they do not reach
    lines: list[Box]
    remnant: bool = False  # the last pixels of a message that scrolled away under the header

    @property
    def width(self) -> int:
        return self.grid.width

    def take(self, band: _Band) -> None:
        """Add the band to the shapes, or its unclear parts to the doubts."""
        bare = band.left_avatar is None and band.right_avatar is None
        if bare and band.top <= 1 and band.height < _REMNANT * self.width:
            self.remnant = True
            return
        if band.content is None:
            if (band.left_avatar or band.right_avatar) and not _cut_by(band, self.rows):
                self.doubt(band, DoubtKind.LONE_AVATAR)
            return
        top = self.rows[0]
        placed = Box(band.content[0], band.top + top, band.content[1], band.bottom + top)
        found = _bubble(self.grid, self.filled, band, placed, self.seen)
        if band.left_avatar is None and band.right_avatar is None:
            self._take_alone(band, placed, found)
        elif found is not None:
            self._add(band, found[0], found[1], MessageShape.PACKET if _is_red(found[1]) else MessageShape.BUBBLE)
        else:
            content = _content(self.filled, band, Box(placed.left, band.top, placed.right, band.bottom))
            if content is None:
                self.doubt(band, DoubtKind.UNKNOWN_PART)
                return
            box = Box(content.left, content.top + top, content.right, content.bottom + top)
            self._add(band, box, _dominant(self.grid, box), MessageShape.PICTURE)

    def doubt(self, band: _Band, doubt: DoubtKind) -> None:
        self.doubts.append((band.bottom + self.rows[0], doubt))

    def _account(self, band: _Band, *known: Box) -> None:
        """Add a doubt if a band holds more than its avatars and the boxes in ``known``, in pixels of the small copy.

        Small marks beside a message are ignored, and so is the line of a nickname above it.
        """
        top, around = self.rows[0], round(_AROUND * self.width)
        rest = self.filled[band.top : band.bottom].copy()
        avatars = [box for box in (band.left_avatar, band.right_avatar) if box]
        for box, above in [*((box, 0) for box in avatars), *((box, top) for box in known)]:
            rows = slice(max(0, box.top - above - band.top - around), box.bottom - above - band.top + around)
            rest[rows, max(0, box.left - around) : box.right + around] = False
        least = _MARK[1] * self.width
        first = min(box.top for box in known) - top - band.top
        for start, end in spans(rest.any(axis=1), gap=1, least=2):
            if band.left_avatar and end <= first and end - start <= _NAME * self.width:
                continue
            if any(max(box.width, box.height) > least for box, _ in pieces(rest[start:end], gap=2, least=2)):
                self.doubt(band, DoubtKind.UNKNOWN_PART)
                return

    def _take_alone(self, band: _Band, placed: Box, found: tuple[Box, Color] | None) -> None:
        """Add a band without an avatar: a line of the app, a part of the message above, or a doubt."""
        if found is None:
            if _is_line(placed, self.width):
                self.lines.append(self.grid.full(placed))
            else:
                self.doubt(band, DoubtKind.UNKNOWN_PART)
            return
        box, color = found
        if _is_strip(box, band, self.shapes, self.width):
            self.remnant = True  # something pinned; it may hide the upper part of a message
        elif _joined(self.shapes, self.grid.full(box), color, self.seen, self.grid):
            self._account(band, box)
        elif _is_tip(box, color, self.seen, self.width):
            self.lines.append(self.grid.full(box))
            self._account(band, box)
        else:
            self._add(band, box, color, MessageShape.PACKET if _is_red(color) else MessageShape.BUBBLE)

    def _add(self, band: _Band, box: Box, color: Color, form: MessageShape) -> None:
        both = band.left_avatar is not None and band.right_avatar is not None
        alone = band.left_avatar is None and band.right_avatar is None
        shape = Shape(
            Side.THEM if band.left_avatar else Side.ME,
            self.grid.full(box),
            form,
            cut=band.top <= 1,
            open=band.bottom >= self.filled.shape[0] - 1,
            color=color,
            named=band.left_avatar is not None
            and form is MessageShape.BUBBLE
            and _has_name(self.filled, band, box, self.rows),
            tail=form is MessageShape.BUBBLE and _has_tail(self.grid, band, box, color),
            sure=not alone and not both,
            doubt=DoubtKind.TWO_AVATARS if both else "",
        )
        shape = _with_parts(self.grid, self.filled, band, self.rows, shape, self.seen)
        self.shapes.append(shape)
        self._account(band, box, *([self.grid.small(shape.quote)] if shape.quote else []))


def _cut_by(band: _Band, rows: Span) -> bool:
    """Tell whether an edge of the page cuts the band, so that the message of an avatar may be out of sight."""
    return band.top <= 1 or band.bottom >= rows[1] - rows[0] - 1


def _content(filled: Mask, band: _Band, inner: Box) -> Box | None:
    """Return the content between the avatars without the small marks beside it."""
    part = filled[inner.top : inner.bottom, inner.left : inner.right]
    boxes = [box for box, _ in pieces(part, gap=3, least=3)]
    if not boxes:
        return None
    main = max(boxes, key=lambda box: box.width * box.height)
    rows = spans(part[main.top : main.bottom, main.left : main.right].any(axis=1), gap=1)
    if band.left_avatar and len(rows) > 1 and rows[0][1] - rows[0][0] <= _NAME * filled.shape[1]:
        main = replace(main, top=main.top + rows[1][0])  # below a nickname
        boxes = [replace(b, top=max(b.top, main.top)) for b in boxes if b.bottom > main.top]
    near = [b for b in boxes if b.height > 0.3 * main.height]
    left, right = min(b.left for b in near), max(b.right for b in near)
    top, bottom = min(b.top for b in near), max(b.bottom for b in near)
    return Box(inner.left + left, inner.top + top, inner.left + right, inner.top + bottom)


def _bubble(grid: Grid, filled: Mask, band: _Band, placed: Box, seen: Ground) -> tuple[Box, Color] | None:
    """Return the largest block of one flat colour in a band, in pixels of the small copy, and its colour."""
    width = grid.width
    pixels = grid.crop(placed)
    best: tuple[float, Box, Color] | None = None
    for color, share in common_colors(pixels, most=5, apart=5):
        if share < 0.04 or _close(color, seen.color):
            continue
        # Colours bleed in a compressed picture; a background close to the page's colour bleeds little.
        mask = far(pixels, color) <= min(14, max(4, _off(color, seen.color) // 3))
        box = block(mask)
        if box is None or box.width < _BUBBLE_LEAST[0] * width or box.height < _BUBBLE_LEAST[1] * width:
            continue
        box = _with_hole(mask, box)
        own = mask[box.top : box.bottom, box.left : box.right]
        fill = float(own.mean())
        area = box.width * box.height
        end = filled.shape[0] - 1
        if fill < _FILLED or not _framed(own, cut=band.top <= 1, open_=band.bottom >= end):
            continue
        if _is_round(far(pixels[box.top : box.bottom, box.left : box.right], seen.color) > _OFF_GROUND):
            continue  # a sticker
        if best is None or area > best[0]:
            best = (area, box, color)
    if best is None:
        return None
    _, box, color = best
    color = _frame_color(pixels[box.top : box.bottom, box.left : box.right], color)
    placed_box = Box(placed.left + box.left, placed.top + box.top, placed.left + box.right, placed.top + box.bottom)
    return None if _is_part(filled, band, placed_box, placed.top - band.top) else (placed_box, color)


def _is_round(own: Mask) -> bool:
    """Tell whether a block is as narrow near its top and bottom as a circle; a bubble's corners take less."""
    row = max(1, round(0.08 * own.shape[0]))
    ends = (own[row : row + 2], own[-row - 2 : -row])
    return all(float(end.mean()) < _CHORD for end in ends)


def _with_hole(mask: Mask, box: Box) -> Box:
    """Return the box of a bubble that includes a quotation in the page's colour, which leaves only the sides."""
    left = mask[:, box.left + 1 : box.left + 4].all(axis=1)
    right = mask[:, box.right - 4 : box.right - 1].all(axis=1)
    whole = next(
        (span for span in spans(left & right, gap=2) if span[0] <= (box.top + box.bottom) // 2 < span[1]), None
    )
    return Box(box.left, min(box.top, whole[0]), box.right, max(box.bottom, whole[1])) if whole else box


def _is_part(filled: Mask, band: _Band, box: Box, offset: int) -> bool:
    """Tell whether a flat block is part of a picture: no background is free around it.

    A nickname above a bubble is letters; a mark beside it is small.
    """
    left, right = band.content or (box.left, box.right)
    top, bottom = box.top - offset, box.bottom - offset
    least = 0.035 * filled.shape[1]
    around = (
        filled[band.top : max(band.top, top - 1), left:right],
        filled[bottom + 1 : band.bottom, left:right],
        filled[top:bottom, left : max(left, box.left - 1)],
        filled[top:bottom, box.right + 1 : right],
    )
    return any(min(part.shape) > least and float(part.mean()) > 0.6 for part in around)


def _framed(own: Mask, *, cut: bool = False, open_: bool = False) -> bool:
    """Tell whether a background reaches all four edges of its box except for round corners: letters never touch them.

    cut, open_: its upper or lower edge is out of sight.
    """
    high, wide = own.shape
    corner_x, corner_y = max(1, wide // 5), max(1, high // 4)
    columns, rows = own[corner_y : high - corner_y], own[:, corner_x : wide - corner_x]
    sides = [columns[:, :4].mean(axis=0), columns[:, -4:].mean(axis=0)]
    if not cut:
        sides.append(rows[:4].mean(axis=1))
    if not open_:
        sides.append(rows[-4:].mean(axis=1))
    return all(side.size and float(side.max()) > 0.85 for side in sides)


def _frame_color(pixels: Pixels, color: Color) -> Color:
    """Return the colour of a bubble at its sides, which hold neither words nor a quotation."""
    third = max(1, pixels.shape[0] // 3)
    sides = np.concatenate((pixels[third : 2 * third + 1, 1:5], pixels[third : 2 * third + 1, -5:-1]), axis=1)
    found, share = mode(sides, tolerance=4)
    return found if share > 0.6 and _off(found, color) < 40 else color


def _off(one: Color, other: Color) -> int:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _close(one: Color, other: Color) -> bool:
    return _off(one, other) <= _OFF_GROUND


def _dominant(grid: Grid, box: Box) -> Color:
    colors = common_colors(grid.crop(box), most=1)
    return colors[0][0] if colors else (0, 0, 0)


def _is_red(color: Color) -> bool:
    red, green, blue = color
    return red > 190 and 50 < green < 190 and blue < 130 and red - blue > 90


def _is_line(box: Box, width: int) -> bool:
    """Tell whether a band without a background is a line of the app: small letters in the middle of the page."""
    middle = abs((box.left + box.right) - width) < 0.12 * width
    return middle and box.height <= _LINE * width and box.left > 0.04 * width


def _is_tip(box: Box, color: Color, seen: Ground, width: int) -> bool:
    """Tell whether a block without an avatar is a tip of the app: pale, low, in the middle."""
    pale = _off(color, seen.color) < 60 and saturation(color) < 25
    middle = abs((box.left + box.right) - width) < 0.06 * width
    return pale and middle and box.height < 0.085 * width and box.width < 0.8 * width


def _is_strip(box: Box, band: _Band, shapes: Sequence[Shape], width: int) -> bool:
    """Tell whether a block is a strip that the app keeps under the header: a notice, something pinned."""
    whole = box.width > 0.9 * width
    return not shapes and whole and band.top < 0.05 * width and _STRIP[0] * width < box.height < _STRIP[1] * width


def _joined(shapes: list[Shape], box: Box, color: Color, seen: Ground, grid: Grid) -> bool:
    """Tell whether a block without an avatar belongs to the message above it, and if so add it there."""
    if not shapes:
        return False
    last, width = shapes[-1], grid.image.width
    lower = max([last.box.bottom, *(part.bottom for part in (last.quote, last.transcript) if part)])
    if box.top - lower > _NEAR * width or not last.sure:
        return False
    aligned = (
        abs(box.left - last.box.left) < 0.03 * width
        if last.side is Side.THEM
        else abs(box.right - last.box.right) < 0.03 * width
    )
    if not aligned:
        return False
    if _close(color, last.color):
        shapes[-1] = replace(last, transcript=box)
        return True
    if _off(color, seen.color) < 45 and saturation(color) < 25:
        shapes[-1] = replace(last, quote=box, quote_color=color)
        return True
    return False


def _has_name(filled: Mask, band: _Band, box: Box, rows: Span) -> bool:
    """Tell whether a line of small letters is above a bubble: a group's nickname."""
    above = filled[band.top : max(band.top, box.top - rows[0] - 1), box.left : min(filled.shape[1], box.left + 60)]
    letters = bool(above.sum() > 12) and float(above.mean()) < 0.55
    return letters and 0.018 * filled.shape[1] <= above.shape[0] <= 0.075 * filled.shape[1]


def _has_tail(grid: Grid, band: _Band, box: Box, color: Color) -> bool:
    """Tell whether a narrow tip in a bubble's colour sticks out of it towards the avatar."""
    part = grid.crop(
        Box(box.right + 1, box.top, box.right + 4, box.bottom)
        if band.right_avatar
        else Box(box.left - 4, box.top, box.left - 1, box.bottom)
    )
    own = (far(part, color) <= 12).any(axis=1)
    return bool(2 <= own.sum() <= 0.08 * grid.width)


def _with_parts(grid: Grid, filled: Mask, band: _Band, rows: Span, shape: Shape, seen: Ground) -> Shape:
    """Return the shape with its state, and with a quotation in its upper part or in the band below it."""
    box = grid.small(shape.box)
    if shape.side is Side.ME and shape.sure:
        shape = replace(shape, state=_state(grid, filled, rows, box))
    if shape.form is not MessageShape.BUBBLE:
        return shape
    upper_part = replace(box, bottom=min(box.bottom, box.top + round(_QUOTE_ROOM * grid.width)))
    inner = _inner_block(grid, upper_part, shape.color)
    if inner is None and upper_part != box:
        inner = _inner_block(grid, box, shape.color)
    if inner is not None:
        part, color = inner
        upper = part.top - box.top < 0.07 * grid.width and part.bottom < box.bottom - 0.03 * grid.width
        if upper:
            return replace(shape, quote=grid.full(part), quote_color=color)
        return replace(shape, doubt=DoubtKind.OWN_GROUND)
    below = Box(box.left, box.bottom + 1, box.right, band.bottom + rows[0])
    if below.height > 0.03 * grid.width:
        found = _bubble(grid, filled, replace(band, top=below.top - rows[0]), below, seen)
        if found is not None and not _close(found[1], shape.color) and saturation(found[1]) < 25:
            return replace(shape, quote=grid.full(found[0]), quote_color=found[1])
    return shape


def _inner_block(grid: Grid, box: Box, color: Color) -> tuple[Box, Color] | None:
    """Return a wide block of another flat colour inside a bubble: a quotation, a piece of code."""
    if box.height < 0.10 * grid.width:
        return None
    pixels = grid.crop(box)
    for other, share in common_colors(pixels, most=4, apart=4):
        if share < 0.08 or _off(other, color) < 5:
            continue
        mask = far(pixels, other) <= 3
        found = block(mask)
        if found is None or found.width < 0.45 * box.width or found.height < 0.035 * grid.width:
            continue
        own = mask[found.top : found.bottom, found.left : found.right]
        inset = min(found.left, box.width - found.right)
        if float(own.mean()) > 0.5 and inset >= 2 and _framed(own):
            return Box(
                box.left + found.left, box.top + found.top, box.left + found.right, box.top + found.bottom
            ), other
    return None


def _state(grid: Grid, filled: Mask, rows: Span, box: Box) -> BubbleState:
    """Return FAILED if a red mark is left of our bubble, SENDING if another small mark is, else OK."""
    width = grid.width
    top, bottom = max(0, box.top - rows[0]), box.bottom - rows[0]
    strip = filled[top:bottom, : max(1, box.left - 1)]
    least, most = _MARK[0] * width, _MARK[1] * width
    state = BubbleState.OK
    for piece, _ in pieces(strip, gap=2, least=2):
        if piece.left < box.left - 0.16 * width or not (least <= piece.width <= most and least <= piece.height <= most):
            continue
        colors = grid.crop(Box(piece.left, box.top + piece.top, piece.right, box.top + piece.bottom))
        reds = (colors[..., 0] > 190) & (colors[..., 1] < 115) & (colors[..., 2] < 125)
        state = BubbleState.FAILED if float(reds.mean()) > 0.2 else BubbleState.SENDING
    return state


# The side of a message without an avatar


def _sided(shapes: Sequence[Shape], profile: AppProfile, width: int) -> list[Shape]:
    """Set the sides of shapes without an avatar, by colour, else by the nearer edge."""
    learnt = {
        side: [s.color for s in shapes if s.sure and s.form is MessageShape.BUBBLE and s.side is side] for side in Side
    }
    ours, theirs = learnt[Side.ME], learnt[Side.THEM]
    ours = ours or [rgb(color) for color in profile.my_bubble_colors]
    theirs = theirs or [rgb(color) for color in profile.their_bubble_colors]
    found = []
    for shape in shapes:
        if shape.sure or shape.doubt:
            found.append(shape)
            continue
        mine = any(_close(shape.color, color) for color in ours)
        other = any(_close(shape.color, color) for color in theirs)
        if mine or other:
            side = Side.ME if mine else Side.THEM
        else:
            side = Side.ME if width - shape.box.right < shape.box.left else Side.THEM
        # The header hides the avatar of a message that it cuts; its colour belongs to one side's messages only.
        cut = shape.cut and mine is not other
        found.append(replace(shape, side=side, sure=cut, doubt="" if cut else DoubtKind.NO_AVATAR))
    return found


# A page with a picture behind it


def _by_colour(grid: Grid, profile: AppProfile, rows: Span) -> list[Shape]:
    """Return bubbles on a wallpaper: blocks of the colours that the app is known to use."""
    width = grid.width
    area = grid.pixels[rows[0] : rows[1]]
    known = [(Side.ME, rgb(c)) for c in profile.my_bubble_colors] + [
        (Side.THEM, rgb(c)) for c in profile.their_bubble_colors
    ]
    found: list[Shape] = []
    for side, color in known:
        mask = far(area, color) <= 4
        for span in spans(mask.sum(axis=1) >= 0.06 * width, gap=2, least=round(_BUBBLE_LEAST[1] * width)):
            box = block(mask[span[0] : span[1]])
            if box is None or box.width < _BUBBLE_LEAST[0] * width or box.height < _BUBBLE_LEAST[1] * width:
                continue
            own = mask[span[0] + box.top : span[0] + box.bottom, box.left : box.right]
            if float(own.mean()) < _FILLED or not _framed(own):
                continue
            top = rows[0] + span[0]
            whole = grid.full(Box(box.left, top + box.top, box.right, top + box.bottom))
            if not any(whole.intersects(other.box) for other in found):
                found.append(
                    Shape(side, whole, MessageShape.BUBBLE, color=color, sure=False, doubt=DoubtKind.NO_AVATAR)
                )
    return sorted(found, key=lambda shape: shape.box.top)


def plays(image: Image.Image, box: Box) -> bool:
    """Tell whether a white play mark is in the middle of a picture, with nothing as white around it."""
    inner, outer = (
        _white(image.crop(_middle(box, part).as_tuple())) for part in (_PLAY_PART, min(1.0, 1.7 * _PLAY_PART))
    )
    return 0.06 < inner[0] / inner[1] < 0.7 and outer[0] - inner[0] < 0.02 * outer[1]


def _middle(box: Box, part: float) -> Box:
    half = max(2, round(part * min(box.width, box.height) / 2))
    return Box(box.center.x - half, box.center.y - half, box.center.x + half, box.center.y + half)


def _white(crop: Image.Image) -> tuple[int, int]:
    """Return the number of white pixels, and of all pixels."""
    levels = ImageChops.darker(ImageChops.darker(*crop.split()[:2]), crop.split()[2]).histogram()
    return sum(levels[236:]), crop.width * crop.height
