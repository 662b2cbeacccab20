"""Finds the parts of a chat page by their shapes: header, messages, input bar, keyboard. Nothing is read here.

No colour of a theme is assumed. An input is a wide flat box in the lower part of the screen with outlined icons or a
Send button beside it in its bar; a header begins with the back arrow; the background of a page is what shows at its
very edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from agent_core.geometry import Box
from agent_core.perception.pixels import Color, Grid, Mask, Pixels, far, greatest, mode, pieces, spans

# Lengths are fractions of the screen's width.
_FIELD_TOP = 0.30  # of the screen's height: no input begins above
_FIELD_WIDTH = (0.30, 0.945)
_FIELD_LEAST = 0.045  # height
_FLAT = 3  # levels between neighbours of one colour
_ICON = (0.03, 0.125)  # an icon's size
_SOLID = 0.62  # of its box that a filled shape covers; an outlined icon covers a third
_BAR_INK = 12  # levels by which an icon stands out from its bar
_ARROW_HEIGHT, _ARROW_WIDTH = (0.031, 0.075), (0.012, 0.062)
_ARROW_LEFT, _ARROW_RIGHT = 0.018, 0.105
_HEADER_DOWN, _HEADER_UP = 0.36, 0.09  # the status bar is above, if the picture shows it
_ARROW_ROOM = 0.009  # free space right of an arrow: letters are closer
PAGE_EDGE = 0.012  # no part of a message is this close to the screen's edge


@dataclass(frozen=True, slots=True)
class Field:
    """An input box in pixels of the picture, with what is beside it in its bar.

    buttons: filled shapes right of the box, which may be Send.
    icons: outlined shapes on both sides, from left to right.
    top, bottom: the rows between which its bar lies.
    """

    box: Box
    color: Color
    bar: Color
    top: int
    bottom: int
    icons: tuple[Box, ...]
    buttons: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a page, in pixels of the picture.

    arrow: leads back.
    line: the line of the name, from the arrow to the right edge.
    bottom: the row in which the header ends.
    """

    arrow: Box
    line: Box
    bottom: int
    ground: Color


@dataclass(frozen=True, slots=True)
class Ground:
    """The background colour of a page between header and input. ``plain`` is False if it is a picture."""

    color: Color
    plain: bool


# The input


def fields(grid: Grid) -> list[Field]:
    """Return the boxes that may be a chat's input, the lowest first."""
    found = []
    for box, color in reversed(_flat_boxes(grid)):
        field = _with_bar(grid, box, color)
        if field is not None:
            found.append(field)
    if not any(field.icons for field in found):
        by_icons = _bar_by_icons(grid)
        if by_icons is not None:
            found.insert(0, by_icons)
    return found


def input_top(image: Image.Image) -> int | None:
    """Return the top edge of a chat's input in pixels, if the picture may show one; nothing is read."""
    found = fields(Grid.of(image))
    return found[0].box.top if found else None


def _bar_by_icons(grid: Grid) -> Field | None:
    """Find an input without a box, as in WeChat 6: one icon at the left end of a bar and two at its right."""
    width, height = grid.width, grid.height
    edge = max(2, round(PAGE_EDGE * width))
    lowest = grid.pixels[round(0.55 * height) :]
    bar, _ = mode(lowest[-max(1, round(0.02 * width)) :, :], tolerance=5)
    same = (far(lowest[:, :edge], bar).max(axis=1) <= 6) & (far(lowest[:, -edge:], bar).max(axis=1) <= 6)
    off = np.flatnonzero(~same)
    top = (int(off[-1]) + 1 if len(off) else 0) + round(0.55 * height)
    if not 0.09 * width <= height - top <= 0.4 * width:
        return None
    ink = far(grid.pixels[top:], bar) > 2 * _BAR_INK
    left = [(box, own) for box, own in pieces(ink[:, : round(0.16 * width)], gap=2, least=3)]
    start = round(0.70 * width)
    right = [(box, own) for box, own in pieces(ink[:, start:], gap=2, least=3)]
    icons = [
        Box(b.left, top + b.top, b.right, top + b.bottom) for b, own in left if _neighbour(own, b, width) == "icon"
    ]
    ends = [
        Box(start + b.left, top + b.top, start + b.right, top + b.bottom)
        for b, own in right
        if _neighbour(own, b, width) == "icon"
    ]
    if len(icons) != 1 or len(ends) < 2:
        return None
    middle = (icons[0].top + icons[0].bottom) // 2
    if any(abs((icon.top + icon.bottom) // 2 - middle) > 0.03 * width for icon in ends):
        return None
    half = round(0.05 * width)
    box = Box(icons[0].right + 2, max(top, middle - half), ends[0].left - 2, min(height, middle + half))
    whole = grid.full
    return Field(whole(box), bar, bar, top * grid.step, grid.image.height, tuple(map(whole, (*icons, *ends))), ())


def _flat_boxes(grid: Grid) -> list[tuple[Box, Color]]:
    """Return wide boxes of one colour in the lower part of the screen, from the top, in pixels of the small copy."""
    width = grid.width
    top = round(_FIELD_TOP * grid.height)
    area = grid.pixels[top:]
    runs = _longest_runs(area, width)
    boxes: list[tuple[Box, Color]] = []
    y = 0
    while y < len(runs):
        run = runs[y]
        if run is None:
            y += 1
            continue
        color = _color_at(area, y, run)
        end, run = _down(area, runs, y, run, color)
        if end - y >= _FIELD_LEAST * width:
            boxes.append((Box(run[0], top + y, run[1], top + end), color))
        y = max(end, y + 1)
    return boxes


def _longest_runs(area: Pixels, width: int) -> list[tuple[int, int] | None]:
    """Return each row's longest run of one colour, if it is as wide as an input and touches neither edge."""
    broken = np.ones(area.shape[:2], dtype=bool)  # whether a new run begins at a pixel
    broken[:, 1:] = greatest(np.abs(area[:, 1:] - area[:, :-1])) > _FLAT
    places = np.arange(area.shape[1], dtype=np.int32)
    begins = np.maximum.accumulate(np.where(broken, places, 0), axis=1)
    lengths = places - begins + 1
    ends = lengths.argmax(axis=1)
    rows = np.arange(len(area))
    lefts, rights = begins[rows, ends], ends + 1
    wide = (rights - lefts >= _FIELD_WIDTH[0] * width) & (rights - lefts <= _FIELD_WIDTH[1] * width)
    inside = (lefts > 0.005 * width) & (rights < 0.995 * width)
    return [
        (left, right) if good else None
        for left, right, good in zip(lefts.tolist(), rights.tolist(), (wide & inside).tolist(), strict=True)
    ]


def _color_at(area: Pixels, y: int, run: tuple[int, int]) -> Color:
    pixel = area[y, (run[0] + run[1]) // 2]
    return int(pixel[0]), int(pixel[1]), int(pixel[2])


def _down(
    area: Pixels, runs: Sequence[tuple[int, int] | None], y: int, run: tuple[int, int], color: Color
) -> tuple[int, tuple[int, int]]:
    """Return the row below a box that begins in row ``y``, and its full width.

    Rows with letters are bridged along its left edge.
    """
    width = area.shape[1]
    corner, last, broken = y + round(0.04 * width), y, 0
    left, right = _extent(area[y], run, color)
    for row in range(y, len(runs)):
        now = runs[row]
        if now is not None and _near(_color_at(area, row, now), color):
            one, other = _extent(area[row], now, color)
            fits = abs(one - left) <= 3 and abs(other - right) <= 3
            if fits or (row <= corner and one <= left and other >= right):
                left, right = min(left, one), max(right, other)
                last, broken = row + 1, 0
                continue
        if (far(area[row, left + 2 : left + 6], color) > 6).any():
            break
        broken += 1
        if broken > 0.14 * width:
            break
    # The rows in which the round corners, or an icon inside, leave no long run.
    while last < len(runs) and (far(area[last, left + 2 : left + 6], color) <= 4).all():
        last += 1
    return last, (left, right)


def _extent(row: Pixels, run: tuple[int, int], color: Color) -> tuple[int, int]:
    """Return the part of a run that really has the colour: soft edges between two pale colours hide in a run."""
    start, end = run
    while start < end and not _near(row[start], color, 4):
        start += 1
    while end > start and not _near(row[end - 1], color, 4):
        end -= 1
    return start, end


def _near(one: Pixels | Color, other: Color, tolerance: int = 5) -> bool:
    return all(abs(int(a) - b) <= tolerance for a, b in zip(one, other, strict=True))


def _with_bar(grid: Grid, box: Box, color: Color) -> Field | None:
    """Return the field with its neighbours; None if they do not make it an input bar. ``box`` is in the small copy."""
    width = grid.width
    middle = (box.top + box.bottom) // 2
    tall = min(box.height, round(0.13 * width))
    # In an input that has grown, icons are in the lowest line.
    rows = (box.bottom - tall, box.bottom)
    beside = [
        Box(max(0, box.left - 4), rows[0], box.left - 1, rows[1]),
        Box(box.right + 1, rows[0], box.right + 4, rows[1]),
    ]
    bar, share = mode(np.concatenate([grid.crop(strip).reshape(-1, 3) for strip in beside]), tolerance=5)
    if share < 0.5 or _near(bar, color, 3):
        return None
    if box.bottom > grid.height - 2 or middle < _FIELD_TOP * grid.height:
        return None
    icons: list[Box] = []
    buttons: list[Box] = []
    for left, right in ((0, box.left - 1), (box.right + 1, width)):
        strip = far(grid.crop(Box(left, rows[0], right, rows[1])), bar) > _BAR_INK
        for piece, own in pieces(strip, gap=2, least=3):
            placed = Box(left + piece.left, rows[0] + piece.top, left + piece.right, rows[0] + piece.bottom)
            kind = _neighbour(own, placed, width)
            if kind == "icon":
                icons.append(placed)
            elif kind == "button" and left:
                buttons.append(placed)
            elif kind != "speck":
                return None  # an avatar or a key: this is a bubble, or the bar of a keyboard
    if not buttons and not any(icon.left >= box.right for icon in icons):
        return None
    top, bottom = _bar_rows(grid, box, bar)
    whole = grid.full
    return Field(
        whole(box),
        color,
        bar,
        top * grid.step,
        bottom * grid.step,
        tuple(whole(icon) for icon in icons),
        tuple(whole(button) for button in buttons),
    )


def _neighbour(own: Mask, box: Box, width: int) -> str:
    size = max(box.width, box.height)
    if size < 0.02 * width:
        return "speck"
    fill = float(own.mean())
    least, most = _ICON[0] * width, _ICON[1] * width
    if fill < _SOLID and least <= size <= most and box.width < 2.2 * box.height:
        return "icon"
    if (
        fill >= _SOLID
        and 0.09 * width <= box.width <= 0.26 * width
        and 1.15 * box.height <= box.width <= 4.5 * box.height
    ):
        return "button"
    return "other"


def _bar_rows(grid: Grid, box: Box, bar: Color) -> tuple[int, int]:
    """Return the first and the end row of the bar around a field: its colour shows at both edges of the screen."""
    edge = round(PAGE_EDGE * grid.width) or 1
    left, right = far(grid.pixels[:, :edge], bar), far(grid.pixels[:, -edge:], bar)
    same = (np.minimum(left.min(axis=1), right.min(axis=1)) <= 4).tolist()
    top, bottom = box.top, box.bottom
    while top > box.top - 0.09 * grid.width and top > 0 and same[top - 1]:
        top -= 1
    if top <= box.top - 0.09 * grid.width:  # the bar has the page's colour: a margin as below the field
        top = box.top - round(0.02 * grid.width)
    while bottom < grid.height and same[bottom]:
        bottom += 1
    return top, bottom


# The header


def header(grid: Grid) -> Header | None:
    """Return the header of a page with a back arrow at its upper left; None if there is none."""
    width = grid.width
    below = round(_HEADER_UP * width)
    arrow = _arrow(grid, below) or _arrow(grid, 0)
    if arrow is None:
        return None
    middle = (arrow.top + arrow.bottom) // 2
    ground, _ = mode(grid.pixels[max(0, middle - round(0.05 * width)) : middle + round(0.05 * width)], tolerance=6)
    line = Box(
        arrow.right + max(2, round(0.006 * width)), middle - round(0.075 * width), width, middle + round(0.085 * width)
    )
    end = _header_end(grid, middle, ground)
    return Header(
        grid.full(arrow),
        grid.full(Box(line.left, max(0, line.top), width, min(line.bottom, end))),
        end * grid.step,
        ground,
    )


def _arrow(grid: Grid, top: int) -> Box | None:
    """Return the first arrow at the left edge below ``top``, all in pixels of the small copy."""
    width = grid.width
    left, right = round(_ARROW_LEFT * width), round(_ARROW_RIGHT * width)
    strip = grid.pixels[top : round(_HEADER_DOWN * width)]
    for rows in spans(_rough(strip[:, left:right]), gap=1, least=3):
        part = strip[rows[0] : rows[1], left:right]
        mask = far(part, _edge_color(part)) > 60
        first = next(pieces(mask, gap=1, least=2), None)
        if first is None:
            continue
        box, own = first
        tall = _ARROW_HEIGHT[0] * width <= box.height <= _ARROW_HEIGHT[1] * width
        wide = _ARROW_WIDTH[0] * width <= box.width <= _ARROW_WIDTH[1] * width
        room = mask[box.top : box.bottom, box.right : box.right + max(3, round(_ARROW_ROOM * width))]
        if tall and wide and float(own.mean()) < 0.6 and _points_left(own) and not room.any():
            return Box(left + box.left, top + rows[0] + box.top, left + box.right, top + rows[0] + box.bottom)
    return None


def _rough(part: Pixels) -> Mask:
    """Return a mask of the rows in which something stands out from the row's left edge."""
    edge = part[:, :1]
    rough: Mask = greatest(np.abs(part - edge)).max(axis=1) > 40
    return rough


def _edge_color(part: Pixels) -> Color:
    pixel = np.median(part[:, 0], axis=0)
    return int(pixel[0]), int(pixel[1]), int(pixel[2])


def _points_left(own: Mask) -> bool:
    """Tell whether a shape is a chevron or an arrow: its leftmost pixels are at half its height.

    In that row there is one stroke, with nothing right of it but a shaft that continues it.
    """
    middle_row = own[own.shape[0] // 2]
    strokes = spans(middle_row)
    if len(strokes) != 1 or not (strokes[0][1] <= 0.67 * len(middle_row) or strokes[0][0] <= 0.25 * len(middle_row)):
        return False
    columns = max(1, own.shape[1] // 4)
    rows = np.flatnonzero(own[:, :columns].any(axis=1))
    if not len(rows):
        return False
    middle = float(rows.mean()) / own.shape[0]
    spread = (rows[-1] - rows[0] + 1) / own.shape[0]
    ends = np.atleast_1d(own[:, -max(1, own.shape[1] // 3) :].any(axis=1))
    return (
        0.33 <= middle <= 0.67
        and spread <= 0.62
        and bool(ends[: own.shape[0] // 2].any() and ends[own.shape[0] // 2 :].any())
    )


def _header_end(grid: Grid, middle: int, ground: Color) -> int:
    """Return the row in which the header ends.

    This is the row in which its colour ends at the screen's left edge, else a usual height.
    """
    width = grid.width
    edge = grid.pixels[:, : max(2, round(PAGE_EDGE * width))]
    from_, to = middle + round(0.045 * width), middle + round(0.105 * width)
    for y in range(from_, min(to, grid.height)):
        if (far(edge[y], ground) > 2).all():
            return y
    return middle + round(0.062 * width)


# The page


def ground(grid: Grid, top: int, bottom: int) -> Ground:
    """Return the background of the messages between two rows (pixels of the picture)."""
    color, share = mode(margins(grid, top, bottom), tolerance=5)
    return Ground(color, share >= 0.8)


def margins(grid: Grid, top: int, bottom: int) -> Pixels:
    """Return the columns at both page edges between two rows (pixels of the picture); no message reaches them."""
    edge = max(2, round(PAGE_EDGE * grid.width))
    rows = grid.pixels[top // grid.step : max(top // grid.step + 1, bottom // grid.step)]
    return np.concatenate((rows[:, :edge], rows[:, -edge:]), axis=1)


def keyboard_top(grid: Grid, field: Field) -> int | None:
    """Return the row (pixels of the picture) at which a keyboard or panel begins below the input, or None."""
    below = grid.image.height - field.bottom
    return field.bottom if below > 0.12 * grid.image.height else None
