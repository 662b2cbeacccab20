"""A chat page: title bar, bubbles, input bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from agent_core.devices.virtual.apps.base import (
    BANNER,
    INK,
    PALE,
    STATUS_BAR,
    TITLE_BAR,
    Host,
    back_arrow,
    banner,
    clock_text,
    page,
)
from agent_core.devices.virtual.apps.fields import send_button, text_box
from agent_core.devices.virtual.apps.messages import ChatView
from agent_core.devices.virtual.apps.old import bubbles
from agent_core.devices.virtual.apps.old.style import ChatStyle
from agent_core.devices.virtual.widgets import (
    IMAGE,
    WIDTH,
    Canvas,
    Element,
    Handler,
    Rect,
    TextField,
    background,
    ellipsize,
    label,
    text_width,
    wrap,
)
from agent_core.devices.virtual.world import Chat, Message

INPUT_SIZE = 42
INPUT_LINE = 56
INPUT_LEFT, INPUT_RIGHT = 28, 872
INPUT_LINES = 4  # the box grows so far, then shows the last lines
ICON_ROW = 90
SEPARATOR_AFTER = timedelta(minutes=5)
TITLE_WIDTH = 690


@dataclass(frozen=True, slots=True)
class ChatHandlers:
    back: Handler
    send: Handler
    resend: Callable[[Message], None]
    tool: Callable[[str], None]  # a tap on an icon under the input


def input_lines(field: TextField) -> tuple[str, ...]:
    return wrap(field.text, INPUT_SIZE, INPUT_RIGHT - INPUT_LEFT - 64)


def bar_top(host: Host, field: TextField) -> int:
    """Where the input bar begins."""
    rows = min(len(input_lines(field)), INPUT_LINES)
    return host.bottom - ICON_ROW - 110 - (rows - 1) * INPUT_LINE


def chat_page(
    host: Host, chat: Chat, field: TextField, style: ChatStyle, view: ChatView, handlers: ChatHandlers
) -> list[Element]:
    """The page, bottom layer first. ``view.scroll`` is brought within what there is."""
    top = bar_top(host, field)
    upper = TITLE_BAR + (BANNER if host.faults.banner else 0)
    window: Rect = (0, upper, WIDTH, top)
    found = [page(host, style.page)]
    found += _messages(host, chat, style, view, handlers, window)
    found += _chat_title(chat, style, handlers)
    if host.faults.banner:
        found += banner(TITLE_BAR)
    found += _input_bar(host, field, style, handlers, top)
    return found


def _messages(
    host: Host, chat: Chat, style: ChatStyle, view: ChatView, handlers: ChatHandlers, window: Rect
) -> list[Element]:
    rows: list[tuple[int, Callable[[int], list[Element]]]] = []
    previous: Message | None = None
    for message in chat.messages[-80:]:
        if previous is None or message.time - previous.time > SEPARATOR_AFTER:
            rows.append(bubbles.separator(clock_text(message.time, host.now())))
        rows.append(bubbles.message_row(message, chat, style, handlers.resend))
        previous = message
    total = sum(height for height, _ in rows) + 30
    room = window[3] - window[1]
    view.scroll = max(0, min(view.scroll, total - room))
    y = window[1] + 10 if total <= room else window[3] - total + 10 + view.scroll
    found: list[Element] = []
    for height, build in rows:
        if y + height > window[1] and y < window[3]:
            for element in build(y):
                element.clip = window
                found.append(element)
        y += height
    return found


def _chat_title(chat: Chat, style: ChatStyle, handlers: ChatHandlers) -> list[Element]:
    shown = ellipsize(chat.title, 48, TITLE_WIDTH)
    width = round(text_width(shown, 48))
    left = 150 if not style.title_centered else (130 + 864 - width) // 2

    def paint(canvas: Canvas) -> None:
        canvas.text(left, 158, shown, 48, INK, bold=True)

    def phone(canvas: Canvas) -> None:
        canvas.text(926, 156, "☏", 58, INK, "middle")

    def menu(canvas: Canvas) -> None:
        for y in (138, 158, 178):
            canvas.line([(1000, y), (1044, y)], INK, 6)

    return [
        background((0, 0, WIDTH, TITLE_BAR), style.bar),
        background((0, TITLE_BAR - 2, WIDTH, TITLE_BAR), style.line),
        back_arrow(handlers.back),
        # The node has the whole title, as a TextView that draws … does.
        Element((left, 122, left + max(width, 1), 194), chat.title, "title", paint=paint),
        Element(
            (880, 110, 972, 206), "", "ivTitleBtnCall", lambda: handlers.tool("语音通话"), phone, "语音通话", IMAGE
        ),
        Element(
            (980, 110, 1064, 206), "", "ivTitleBtnRight", lambda: handlers.tool("聊天设置"), menu, "聊天设置", IMAGE
        ),
    ]


def _input_bar(host: Host, field: TextField, style: ChatStyle, handlers: ChatHandlers, top: int) -> list[Element]:
    icons_top = host.bottom - ICON_ROW
    box: Rect = (INPUT_LEFT, top + 10, INPUT_RIGHT, icons_top - 8)
    found = [
        background((0, top, WIDTH, host.height), style.input_bar),
        background((0, top, WIDTH, top + 2), style.line),
        text_box(host, field, box, INPUT_SIZE, INPUT_LINE, id_="input", radius=22),
        send_button((892, icons_top - 96, 1052, icons_top - 12), field, style.send, handlers.send),
    ]
    names = style.tools
    step = WIDTH // len(names)
    for index, name in enumerate(names):
        middle = index * step + step // 2
        found.append(_tool(name, middle, icons_top + ICON_ROW // 2, handlers.tool))
    return found


_ICON = "#5a5f66"


def _tool(name: str, x: int, y: int, tap: Callable[[str], None]) -> Element:
    box: Rect = (x - 60, y - 42, x + 60, y + 42)

    def paint(canvas: Canvas) -> None:
        if name == "问AI":
            canvas.rect((x - 56, y - 30, x + 56, y + 30), "#7a5cff", 30)
            canvas.text(x, y, name, 32, "#ffffff", "middle")
        else:
            _ICONS[name](canvas, x, y)

    text = name if name == "问AI" else ""
    return Element(box, text, "tool_icon", lambda: tap(name), paint, name, IMAGE)


def _mic(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect((x - 12, y - 30, x + 12, y + 10), _ICON, 12)
    canvas.arc((x - 24, y - 22, x + 24, y + 22), 0, 180, _ICON, 5)
    canvas.line([(x, y + 20), (x, y + 32)], _ICON, 5)


def _photo(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect((x - 30, y - 26, x + 30, y + 26), _ICON, 8)
    canvas.rect((x - 25, y - 21, x + 25, y + 21), "#f5f6f8", 5)
    canvas.polygon([(x - 22, y + 18), (x - 4, y - 6), (x + 8, y + 8), (x + 14, y + 2), (x + 22, y + 18)], _ICON)


def _camera(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect((x - 14, y - 30, x + 14, y - 10), _ICON, 6)
    canvas.rect((x - 32, y - 22, x + 32, y + 26), _ICON, 10)
    canvas.ring((x - 16, y - 14, x + 16, y + 18), "#f5f6f8", _ICON, 5)


def _packet(canvas: Canvas, x: int, y: int) -> None:
    canvas.rect((x - 24, y - 30, x + 24, y + 30), _ICON, 8)
    canvas.oval((x - 11, y - 15, x + 11, y + 7), "#f5f6f8")


def _smile(canvas: Canvas, x: int, y: int) -> None:
    canvas.ring((x - 30, y - 30, x + 30, y + 30), _ICON, "#f5f6f8", 5)
    canvas.oval((x - 14, y - 13, x - 6, y - 3), _ICON)
    canvas.oval((x + 6, y - 13, x + 14, y - 3), _ICON)
    canvas.arc((x - 16, y - 12, x + 16, y + 18), 20, 160, _ICON, 5)


def _plus(canvas: Canvas, x: int, y: int) -> None:
    canvas.ring((x - 30, y - 30, x + 30, y + 30), _ICON, "#f5f6f8", 5)
    canvas.line([(x - 15, y), (x + 15, y)], _ICON, 5)
    canvas.line([(x, y - 15), (x, y + 15)], _ICON, 5)


_ICONS: dict[str, Callable[[Canvas, int, int], None]] = {
    "语音": _mic,
    "图片": _photo,
    "拍摄": _camera,
    "红包": _packet,
    "表情": _smile,
    "更多": _plus,
}


def page_label(text: str) -> Element:
    """The grey line of an empty page."""
    return label(WIDTH // 2, STATUS_BAR + 600, text, 40, PALE, anchor="middle")
