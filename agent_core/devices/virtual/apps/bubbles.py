"""What a message looks like beside its avatar: texts, and quotations of other texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_core.devices.virtual.apps.sheet import Sheet, lines_width, paint_lines, rich_lines
from agent_core.devices.virtual.widgets import Canvas, Element, Rect
from agent_core.devices.virtual.world import Chat, Message, Side


@dataclass(frozen=True, slots=True)
class Bubble:
    """The size of what is drawn for a message, and what builds it at a left and an upper edge."""

    width: int
    height: int
    build: Callable[[int, int], list[Element]]


def bubble(sheet: Sheet, message: Message, chat: Chat) -> Bubble:
    return _text(sheet, message)


def ground(canvas: Canvas, sheet: Sheet, box: Rect, side: Side, *, color: str = "") -> None:
    """The bubble itself, with its tail."""
    look, geometry = sheet.look, sheet.look.geometry
    mine = side is Side.ME
    if mine and look.skin and not color:
        _skin(canvas, box, geometry.radius)
        return
    color = color or (look.colors.mine if mine else look.colors.theirs)
    canvas.rect(box, color, geometry.radius)
    if geometry.tail:
        y = box[1] + geometry.avatar // 2
        edge, tip = (box[2], box[2] + geometry.tail) if mine else (box[0], box[0] - geometry.tail)
        canvas.polygon([(edge, y - 14), (tip, y), (edge, y + 14)], color)


def _skin(canvas: Canvas, box: Rect, radius: int) -> None:
    """A bubble skin: a border, a ground that goes over from one colour to another, ornaments at its corners."""
    canvas.blend(box, "#ff8fb4", "#ffb3cd", radius + 8)
    canvas.blend((box[0] + 5, box[1] + 5, box[2] - 5, box[3] - 5), "#ffe3ec", "#ffd0e0", radius + 4)
    for x, y, size, color in (
        (box[0] + 8, box[1] - 10, 22, "#ffffff"),
        (box[0] + 26, box[1] - 6, 14, "#fff2b8"),
        (box[2] - 34, box[3] - 14, 26, "#ff6f9f"),
        (box[2] - 48, box[3] - 8, 14, "#ffffff"),
    ):
        canvas.oval((x, y, x + size, y + size), color)


def ink(sheet: Sheet, side: Side) -> str:
    return sheet.look.colors.mine_ink if side is Side.ME else sheet.look.colors.ink


def _text(sheet: Sheet, message: Message) -> Bubble:
    geometry, colors = sheet.look.geometry, sheet.look.colors
    mine = message.side is Side.ME
    size, line = sheet.size(geometry.text_size), sheet.size(geometry.line)
    link = colors.mine_link if mine else colors.theirs_link
    lines = rich_lines(message.text, size, geometry.text_width, ink(sheet, message.side), link)
    width = max(lines_width(lines, size) + 2 * geometry.pad_x, 96)
    height = len(lines) * line + 2 * geometry.pad_y

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side)
            paint_lines(canvas, left + geometry.pad_x, top + geometry.pad_y, lines, size, line)

        return [Element(box, message.text, sheet.look.ids.text, paint=paint, about=message)]

    return Bubble(width, height, build)
