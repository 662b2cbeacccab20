"""The bar below the messages: the input, its icons, and the control that sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_core.texts.layout import text_width, wrap
from simulator.phone.apps.base import Host
from simulator.phone.apps.looks import Bar, Look
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import BUTTON, EDIT, IMAGE, WIDTH, Canvas, Element, Handler, Rect, TextField, background

INPUT_SIZE = 45
INPUT_LINE = 58
INPUT_LINES = 5  # the box grows so far, then shows the last lines
_PAD = 26  # between the input's edge and its text


@dataclass(frozen=True, slots=True)
class _Shape:
    """The measures of a bar: the space ``above`` and ``below`` the input, and its ``left`` and ``right`` edges."""

    above: int
    height: int
    below: int
    left: int
    right: int
    typed_right: int  # after typing, if Send takes the place of something


_SHAPES = {
    Bar.CLASSIC: _Shape(22, 102, 172, 53, 836, 836),
    Bar.PLAIN: _Shape(27, 114, 33, 157, 819, 775),
    Bar.WECHAT: _Shape(24, 106, 28, 130, 842, 790),
}


@dataclass(frozen=True, slots=True)
class BarHandlers:
    send: Handler
    tool: Callable[[str], None]
    talk: Callable[[bool], None]  # change to the bar to hold and talk, or back


def _typed(field: TextField) -> bool:
    return bool(field.text.strip())


def _right(look: Look, field: TextField) -> int:
    shape = _SHAPES[look.bar]
    return shape.typed_right if _typed(field) and not look.enter_sends else shape.right


def _rows(sheet: Sheet, field: TextField, talking: bool) -> int:
    if talking:
        return 1
    width = _right(sheet.look, field) - _SHAPES[sheet.look.bar].left - 2 * _PAD
    return min(INPUT_LINES, len(wrap(field.text, sheet.size(INPUT_SIZE), width)))


def bar_top(host: Host, sheet: Sheet, field: TextField, talking: bool) -> int:
    shape = _SHAPES[sheet.look.bar]
    grown = (_rows(sheet, field, talking) - 1) * sheet.size(INPUT_LINE)
    return host.bottom - shape.below - shape.height - shape.above - grown


def bar(host: Host, sheet: Sheet, field: TextField, talking: bool, handlers: BarHandlers) -> list[Element]:
    look, colors = sheet.look, sheet.look.colors
    shape = _SHAPES[look.bar]
    top = bar_top(host, sheet, field, talking)
    right = shape.right if talking else _right(look, field)
    box: Rect = (shape.left, top + shape.above, right, host.bottom - shape.below)
    found = [
        background((0, top, WIDTH, host.height), colors.bar),
        background((0, top, WIDTH, top + 2), colors.line),
        _talk_button(sheet, box) if talking else _input(host, sheet, field, box),
    ]
    y = box[3] - shape.height // 2
    match look.bar:
        case Bar.CLASSIC:
            send: Rect = (896, y - shape.height // 2, 1022, y + shape.height // 2)
            found.append(_send(sheet, send, _typed(field), handlers.send))
            for index, (name, draw) in enumerate(_CLASSIC):
                found.append(_icon(sheet, name, draw, 115 + index * 212, box[3] + 84, handlers.tool))
        case Bar.PLAIN:
            found.append(_icon(sheet, "语音", _microphone, 74, y, handlers.tool))
            found += _ending(sheet, field, y, handlers, (890, 998), (845, (905, y - 44, 1049, y + 44)))
        case Bar.WECHAT:
            shown = TextField() if talking else field
            found += _ending(sheet, shown, y, handlers, (907, 1015), (855, (918, y - 42, 1056, y + 42)))
            found.append(_change(sheet, talking, y, handlers.talk))
            if look.mic_in_input and not talking and not _typed(field):
                found.append(_icon(sheet, "语音输入", _small_microphone, box[2] - 48, y, handlers.tool))
    return found


def _ending(
    sheet: Sheet,
    field: TextField,
    y: int,
    handlers: BarHandlers,
    icons: tuple[int, int],
    typed: tuple[int, Rect],
) -> list[Element]:
    """Return face and ＋ at the places ``icons``; after typing, face and Send at ``typed``, unless Enter sends."""
    if _typed(field) and not sheet.look.enter_sends:
        face, box = typed
        return [_icon(sheet, "表情", _face, face, y, handlers.tool), _send(sheet, box, True, handlers.send)]
    return [
        _icon(sheet, "表情", _face, icons[0], y, handlers.tool),
        _icon(sheet, "更多功能", _plus, icons[1], y, handlers.tool, sheet.look.ids.plus),
    ]


def _input(host: Host, sheet: Sheet, field: TextField, box: Rect) -> Element:
    """Return the rounded input with its last lines and, if it is focused, the cursor."""
    focused = host.focus is field
    colors = sheet.look.colors
    size, line = sheet.size(INPUT_SIZE), sheet.size(INPUT_LINE)
    lines = wrap(field.text, size, box[2] - box[0] - 2 * _PAD)[-INPUT_LINES:]
    radius = 10 if sheet.look.app == "wechat" else 24

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.input, radius)
        y = (box[1] + box[3]) / 2 - (len(lines) - 1) * line / 2
        for row in lines:
            canvas.rich(box[0] + _PAD, y, ((row, colors.ink),), size)
            y += line
        if focused:
            x = box[0] + _PAD + 2 + round(text_width(lines[-1], size))
            middle = round(y - line)
            canvas.rect((x, middle - size * 6 // 10, x + 4, middle + size * 6 // 10), colors.accent)

    return Element(box, field.text, sheet.look.ids.input, lambda: host.focus_on(field), paint, "", EDIT, focused)


def _talk_button(sheet: Sheet, box: Rect) -> Element:
    colors = sheet.look.colors

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.input, 10)
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, "按住 说话", sheet.size(44), colors.ink, "middle")

    return Element(box, "按住 说话", "bq8", None, paint, "按住说话", BUTTON, blocks=True)


def _send(sheet: Sheet, box: Rect, lit: bool, tap: Handler) -> Element:
    colors = sheet.look.colors
    radius = 24 if sheet.look.app == "qq" else 10

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.send if lit else colors.send_dimmed, radius)
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, "发送", sheet.size(40), "#ffffff", "middle")

    return Element(box, "发送", sheet.look.ids.send, tap, paint, kind=BUTTON)


Draw = Callable[[Canvas, int, int, str, str], None]  # at a place, in a colour, on a ground


def _icon(
    sheet: Sheet, name: str, draw: Draw, x: int, y: int, tap: Callable[[str], None], id_: str = "tool_icon"
) -> Element:
    colors = sheet.look.colors
    box: Rect = (x - 48, y - 48, x + 48, y + 48)
    return Element(
        box, "", id_, lambda: tap(name), lambda canvas: draw(canvas, x, y, colors.icon, colors.bar), name, IMAGE
    )


def _change(sheet: Sheet, talking: bool, y: int, talk: Callable[[bool], None]) -> Element:
    """Return WeChat's round icon at the left: sound waves, or a keyboard that brings the input back."""
    colors, x = sheet.look.colors, 65
    draw = _keyboard if talking else _waves
    words = "切换到键盘" if talking else "切换到按住说话"
    return Element(
        (x - 52, y - 52, x + 52, y + 52),
        "",
        "bjy",
        lambda: talk(not talking),
        lambda canvas: draw(canvas, x, y, colors.icon, colors.bar),
        words,
        IMAGE,
    )


def _circle(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    canvas.ring((x - 36, y - 36, x + 36, y + 36), ink, ground, 5)


def _waves(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    _circle(canvas, x, y, ink, ground)
    for radius in (6, 14, 22):
        canvas.arc((x - 12 - radius, y - radius, x - 12 + radius, y + radius), -48, 48, ink, 5)


def _keyboard(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    _circle(canvas, x, y, ink, ground)
    for row in (-12, -2):
        for column in (-16, -5, 6, 17):
            canvas.rect((x + column - 3, y + row - 3, x + column + 4, y + row + 4), ink)
    canvas.rect((x - 12, y + 8, x + 13, y + 13), ink)


def _face(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    _circle(canvas, x, y, ink, ground)
    canvas.oval((x - 16, y - 14, x - 8, y - 6), ink)
    canvas.oval((x + 8, y - 14, x + 16, y - 6), ink)
    canvas.arc((x - 19, y - 18, x + 19, y + 20), 15, 165, ink, 5)


def _plus(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    _circle(canvas, x, y, ink, ground)
    canvas.rect((x - 17, y - 2, x + 17, y + 3), ink)
    canvas.rect((x - 2, y - 17, x + 3, y + 17), ink)


def _microphone(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    canvas.rect((x - 13, y - 33, x + 13, y + 12), ink, 13)
    canvas.rect((x - 8, y - 28, x + 8, y + 7), ground, 8)
    canvas.arc((x - 24, y - 20, x + 24, y + 24), 0, 180, ink, 5)
    canvas.rect((x - 2, y + 23, x + 3, y + 35), ink)


def _small_microphone(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    canvas.rect((x - 9, y - 24, x + 9, y + 8), "#8c8c8c", 9)
    canvas.arc((x - 17, y - 14, x + 17, y + 18), 0, 180, "#8c8c8c", 4)
    canvas.rect((x - 2, y + 17, x + 2, y + 26), "#8c8c8c")


def _picture(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    canvas.rect((x - 33, y - 29, x + 33, y + 29), ink, 10)
    canvas.rect((x - 28, y - 24, x + 28, y + 24), ground, 6)
    canvas.line([(x - 26, y + 18), (x - 6, y - 8), (x + 8, y + 8), (x + 16, y), (x + 26, y + 14)], ink, 5)


def _camera(canvas: Canvas, x: int, y: int, ink: str, ground: str) -> None:
    canvas.rect((x - 14, y - 32, x + 14, y - 12), ink, 6)
    canvas.rect((x - 34, y - 24, x + 34, y + 28), ink, 10)
    canvas.rect((x - 29, y - 19, x + 29, y + 23), ground, 7)
    canvas.ring((x - 15, y - 12, x + 15, y + 18), ink, ground, 5)


_CLASSIC: tuple[tuple[str, Draw], ...] = (
    ("语音", _microphone),
    ("图片", _picture),
    ("拍摄", _camera),
    ("表情", _face),
    ("更多功能", _plus),
)
