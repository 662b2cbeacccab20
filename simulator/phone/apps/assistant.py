"""The page of a chat app's built-in AI: whatever is written there reaches no customer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.texts.layout import text_width, wrap
from simulator.phone.apps.base import INK, TITLE_BAR, page, title_bar
from simulator.phone.apps.fields import send_button, text_box
from simulator.phone.widgets import WIDTH, Canvas, Element, Handler, Rect, background
from simulator.phone.world import Side

if TYPE_CHECKING:
    from simulator.phone.apps.chat_app import ChatApp


def ai_page(app: ChatApp) -> list[Element]:
    """Return the conversation with the AI, and its input."""
    host = app.host
    found = [page(host, "#f4f2ff"), *title_bar("智能助理", "#f4f2ff", back=lambda: _leave(app))]
    y = TITLE_BAR + 40
    for side, text in [(Side.THEM, "你好，我是智能助理，有什么可以帮你？"), *app.ai_lines][-7:]:
        lines = wrap(text, 42, 700)
        width = round(max(text_width(line, 42) for line in lines)) + 60
        height = 60 * len(lines) + 36
        left = 40 if side is Side.THEM else WIDTH - 40 - width
        found.append(_ai_bubble((left, y, left + width, y + height), text, lines, side))
        y += height + 36
    top = host.bottom - 130
    found += [
        background((0, top, WIDTH, host.height), "#ffffff"),
        text_box(
            host,
            app.ai,
            (28, top + 18, 868, top + 112),
            42,
            56,
            id_="ai_input",
            radius=22,
            hint="有问题尽管问我",
            color="#f2f3f5",
        ),
        send_button((892, top + 22, 1052, top + 108), app.ai, "#6a4cff", lambda: _act(app.ai.action)),
    ]
    return found


def _act(handler: Handler | None) -> None:
    if handler:
        handler()


def _ai_bubble(box: Rect, text: str, lines: tuple[str, ...], side: Side) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#ffffff" if side is Side.THEM else "#6a4cff", 24)
        for index, line in enumerate(lines):
            color = INK if side is Side.THEM else "#ffffff"
            canvas.text(box[0] + 30, box[1] + 18 + 60 * index + 30, line, 42, color)

    return Element(box, text, "ai_message", paint=paint)


def _leave(app: ChatApp) -> None:
    app.back()
