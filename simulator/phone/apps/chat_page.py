"""A chat page: header, messages, bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent_core.texts.layout import text_width
from simulator.phone.apps.bar import BarHandlers, bar, bar_top
from simulator.phone.apps.base import BANNER, Host, banner, page
from simulator.phone.apps.header import STRIP, header, strip
from simulator.phone.apps.messages import ChatView, messages
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import WIDTH, Canvas, Element, Handler, Rect, TextField
from simulator.phone.world import Chat, Message


@dataclass(frozen=True, slots=True)
class ChatHandlers:
    back: Handler
    resend: Callable[[Message], None]
    unpin: Handler
    bar: BarHandlers


def chat_page(
    host: Host,
    sheet: Sheet,
    chat: Chat,
    field: TextField,
    view: ChatView,
    *,
    unread: int,
    talking: bool,
    handlers: ChatHandlers,
) -> list[Element]:
    """Return the page, bottom layer first.

    ``unread``: messages in other chats; ``talking``: the bar to hold and talk.
    """
    upper = sheet.look.geometry.header
    pinned = bool(chat.strip)
    window: Rect = (
        0,
        upper + (BANNER if host.faults.banner else 0) + (STRIP if pinned else 0),
        WIDTH,
        bar_top(host, sheet, field, talking),
    )
    found = [page(host, sheet.look.colors.page)]
    if sheet.look.wallpaper:
        found.append(_wallpaper(host))
    found += messages(sheet, chat, host.now(), view, window, handlers.resend)
    if chat.chip:
        found.append(_chip(sheet, chat.chip, window))
    found += header(sheet, chat, unread, handlers.back, lambda: handlers.bar.tool("聊天设置"))
    if pinned:
        found += strip(sheet, chat.strip, handlers.unpin)
    if host.faults.banner:
        found += banner(upper + (STRIP if pinned else 0))
    found += bar(host, sheet, field, talking, handlers.bar)
    return found


def _chip(sheet: Sheet, text: str, window: Rect) -> Element:
    """Return the pill at the right edge that leads to messages out of sight; it lies over the page."""
    size = sheet.size(34)
    left = WIDTH - round(text_width(text, size)) - 70
    top = window[1] + 36 if text.startswith("↑") else window[3] - 120
    box: Rect = (left, top, WIDTH + 50, top + 84)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, sheet.look.colors.card, 42)
        canvas.text(left + 40, top + 42, text, size, sheet.look.colors.accent)

    return Element((left, top, WIDTH, top + 84), text, "chip", paint=paint)


def _wallpaper(host: Host) -> Element:
    """Return a picture behind the messages: an evening by the sea."""
    box: Rect = (0, 0, WIDTH, host.height)

    def draw(canvas: Canvas) -> None:
        middle = host.height * 3 // 5
        canvas.blend((0, 0, WIDTH, middle), "#8fb8e8", "#f7d9c4", 0)
        canvas.oval((620, middle - 420, 820, middle - 220), "#fff1d0")
        canvas.polygon([(0, middle), (260, middle - 240), (560, middle)], "#7f93ad")
        canvas.polygon([(300, middle), (640, middle - 150), (WIDTH, middle)], "#94a7bd")
        canvas.blend((0, middle, WIDTH, host.height), "#6f9fc0", "#2f5f86", 0)
        for index in range(12):
            y = middle + 40 + index * 70
            canvas.rect((90 + index * 67 % 500, y, 330 + index * 97 % 700, y + 6), "#9cc2d9", 3)

    return Element(box, paint=lambda canvas: canvas.stamp("wallpaper", box, lambda: draw(canvas)), listed=False)
