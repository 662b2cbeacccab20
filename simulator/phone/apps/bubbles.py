"""The drawing of a message beside its avatar: texts, and quotations of other texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from agent_core.texts.layout import ellipsize, text_width, wrap
from simulator.phone.apps.sheet import Runs, Sheet, lines_width, paint_lines, rich_lines, time_text
from simulator.phone.widgets import Canvas, Element, Rect
from simulator.phone.world import Chat, Kind, Message, Side

QUOTE_SIZE = 36
_QUOTE_PAD = 20


@dataclass(frozen=True, slots=True)
class Bubble:
    """The size of a message's drawing, and the function that builds it at a left and an upper edge."""

    width: int
    height: int
    build: Callable[[int, int], list[Element]]


def ground(canvas: Canvas, sheet: Sheet, box: Rect, side: Side, *, color: str = "", tail: bool = True) -> None:
    """Draw the bubble itself, with its tail."""
    look, geometry = sheet.look, sheet.look.geometry
    mine = side is Side.ME
    if mine and look.skin and not color:
        _skin(canvas, box, geometry.radius)
        return
    color = color or (look.colors.mine if mine else look.colors.theirs)
    canvas.rect(box, color, geometry.radius)
    if geometry.tail and tail:
        y = box[1] + geometry.avatar // 2
        edge, tip = (box[2], box[2] + geometry.tail) if mine else (box[0], box[0] - geometry.tail)
        canvas.polygon([(edge, y - 14), (tip, y), (edge, y + 14)], color)


def _skin(canvas: Canvas, box: Rect, radius: int) -> None:
    """Draw a bubble skin: a border, a ground that changes from one colour to another, ornaments at its corners."""
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


def text(sheet: Sheet, message: Message, chat: Chat, now: datetime) -> Bubble:
    """Return a text. Its quotation is inside it at the top in QQ, and below it in WeChat."""
    if message.kind is not Kind.QUOTE:
        return _text(sheet, message)
    who = message.quoted_sender or (chat.name if message.side is Side.ME else "我")
    return _quoting(sheet, message, who, now) if sheet.look.app == "qq" else _quoting_below(sheet, message, who)


def with_transcript(sheet: Sheet, message: Message, voice: Bubble) -> Bubble:
    """Return a voice message with its words in a second bubble below it."""
    said = replace(message, kind=Kind.TEXT, text=message.transcript)
    below = _text(sheet, said, tail=False)

    def build(left: int, top: int) -> list[Element]:
        right = left + max(voice.width, below.width)
        mine = message.side is Side.ME
        transcript = below.build(right - below.width if mine else left, top + voice.height + 14)
        for element in transcript:
            element.about = None
        return [*voice.build(right - voice.width if mine else left, top), *transcript]

    return Bubble(max(voice.width, below.width), voice.height + 14 + below.height, build)


def _quoting(sheet: Sheet, message: Message, who: str, now: datetime) -> Bubble:
    """Return QQ's form: a separate ground inside the bubble, with nickname and time above at most two lines."""
    geometry, colors = sheet.look.geometry, sheet.look.colors
    mine = message.side is Side.ME
    small, step = sheet.size(QUOTE_SIZE), sheet.size(50)
    color = ink(sheet, message.side)
    rows = _shortened(message.quoted, small, geometry.text_width - 2 * _QUOTE_PAD, 2)
    head = f"{who} {time_text(message.time, now)}"
    needed = max(text_width(row, small) for row in (*rows, head + "　　"))
    body = _text(sheet, message)
    inner = min(geometry.text_width, round(needed) + 2 * _QUOTE_PAD)
    width = max(body.width, inner + 2 * geometry.pad_x)
    quote_height = (len(rows) + 1) * step + 28

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + body.height + quote_height)
        area: Rect = (
            left + geometry.pad_x,
            top + geometry.pad_y,
            box[2] - geometry.pad_x,
            top + geometry.pad_y + quote_height - 14,
        )
        lines = _lines(sheet, message)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side)
            paint_lines(
                canvas,
                area[0],
                area[3] + 14,
                lines,
                sheet.size(geometry.text_size),
                sheet.size(geometry.line),
            )

        def quoted(canvas: Canvas) -> None:
            canvas.rect(area, colors.mine_quote if mine else colors.theirs_quote, 12)
            faint = color if mine else colors.grey
            for index, row in enumerate((head, *rows)):
                y = area[1] + 7 + step * index + step / 2
                canvas.rich(area[0] + _QUOTE_PAD, y, ((row, faint),), small)
            x, y = area[2] - 34, area[1] + 32
            canvas.line([(x - 10, y - 12), (x + 10, y - 12)], faint, 3)
            canvas.line([(x - 8, y + 2), (x, y - 7), (x + 8, y + 2)], faint, 3)

        return [
            Element(box, message.text, sheet.look.ids.text, paint=paint, about=message),
            Element(area, f"{head}\n{message.quoted}", sheet.look.ids.quote, paint=quoted),
        ]

    return Bubble(width, body.height + quote_height, build)


def _quoting_below(sheet: Sheet, message: Message, who: str) -> Bubble:
    """Return WeChat's form: a separate grey box under the bubble."""
    geometry, colors = sheet.look.geometry, sheet.look.colors
    body = _text(sheet, message)
    small, step = sheet.size(QUOTE_SIZE), sheet.size(48)
    whole = f"{who}：{message.quoted}"
    rows = _shortened(whole, small, geometry.text_width, 2)
    width = round(max(text_width(row, small) for row in rows)) + 2 * _QUOTE_PAD
    height = len(rows) * step + 20
    mine = message.side is Side.ME

    def build(left: int, top: int) -> list[Element]:
        right = left + max(body.width, width)
        x, y = right - width if mine else left, top + body.height + 12
        area: Rect = (x, y, x + width, y + height)

        def paint(canvas: Canvas) -> None:
            canvas.rect(area, colors.mine_quote if mine else colors.theirs_quote, 10)
            for index, row in enumerate(rows):
                place = y + 10 + step * index + step / 2
                canvas.rich(x + _QUOTE_PAD, place, ((row, colors.quote_ink),), small)

        return [
            *body.build(right - body.width if mine else left, top),
            Element(area, whole, sheet.look.ids.quote, paint=paint),
        ]

    return Bubble(max(body.width, width), body.height + 12 + height, build)


def _shortened(words: str, size: int, width: int, rows: int) -> list[str]:
    lines = list(wrap(words.replace("\n", " "), size, width))
    if len(lines) > rows:
        lines = [*lines[: rows - 1], ellipsize("".join(lines[rows - 1 :]), size, width)]
    return lines


def _lines(sheet: Sheet, message: Message) -> tuple[Runs, ...]:
    colors = sheet.look.colors
    link = colors.mine_link if message.side is Side.ME else colors.theirs_link
    size = sheet.size(sheet.look.geometry.text_size)
    return rich_lines(message.text, size, sheet.look.geometry.text_width, ink(sheet, message.side), link)


def _text(sheet: Sheet, message: Message, *, tail: bool = True) -> Bubble:
    geometry = sheet.look.geometry
    size, line = sheet.size(geometry.text_size), sheet.size(geometry.line)
    lines = _lines(sheet, message)
    width = max(lines_width(lines, size) + 2 * geometry.pad_x, 96)
    height = len(lines) * line + 2 * geometry.pad_y

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side, tail=tail)
            paint_lines(canvas, left + geometry.pad_x, top + geometry.pad_y, lines, size, line)

        return [Element(box, message.text, sheet.look.ids.text, paint=paint, about=message)]

    return Bubble(width, height, build)
