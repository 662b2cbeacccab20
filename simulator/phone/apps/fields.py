"""A plain input and a plain Send button, for pages other than chats."""

from __future__ import annotations

from agent_core.texts.layout import text_width, wrap
from simulator.phone.apps.base import INK, PALE, Host
from simulator.phone.widgets import BUTTON, EDIT, Canvas, Element, Handler, Rect, TextField


def text_box(
    host: Host,
    field: TextField,
    box: Rect,
    size: int,
    line: int,
    *,
    id_: str,
    radius: int,
    hint: str = "",
    color: str = "#ffffff",
    ink: str = INK,
) -> Element:
    """Return a white rounded input with its last lines and, if it is focused, the cursor."""
    focused = host.focus is field
    room = max(1, (box[3] - box[1] - 24) // line)
    lines = wrap(field.text, size, box[2] - box[0] - 64)[-room:]

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, color, radius)
        y = (box[1] + box[3]) / 2 - (len(lines) - 1) * line / 2
        if not field.text and hint:
            canvas.text(box[0] + 32, y, hint, size, PALE)
        for row in lines:
            canvas.text(box[0] + 32, y, row, size, ink)
            y += line
        if focused:
            x = box[0] + 34 + round(text_width(lines[-1], size))
            middle = round(y - line)
            canvas.rect((x, middle - size * 6 // 10, x + 4, middle + size * 6 // 10), "#0099ff")

    return Element(box, field.text, id_, lambda: host.focus_on(field), paint, hint, EDIT, focused)


def send_button(box: Rect, field: TextField, color: str, tap: Handler) -> Element:
    lit = bool(field.text.strip())

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, color if lit else "#d0d3d8", 20)
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, "发送", 40, "#ffffff", "middle")

    return Element(box, "发送", "send_btn", tap, paint, kind=BUTTON)
