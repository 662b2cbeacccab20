"""Messages that are more than a text: videos, files, places, cards, calls."""

from __future__ import annotations

from collections.abc import Callable

from agent_core.devices.virtual.apps.base import GREY, INK
from agent_core.devices.virtual.apps.old.style import ChatStyle
from agent_core.devices.virtual.widgets import GROUP, IMAGE, Canvas, Element, Rect, ellipsize, label, text_width, wrap
from agent_core.devices.virtual.world import Kind, Message, Side

TITLE_SIZE = 40
TITLE_LINE = 56
SMALL = 28
ICON = 110
CARD_WIDTH = 640
TEXT_WIDTH = CARD_WIDTH - ICON - 3 * 28
CALL_SIZE = 42
_FILE_SIZE = "36.5 KB"  # of every file in this world

Size = tuple[int, int]
Draw = Callable[[Message, Rect, ChatStyle, str], list[Element]]


def card_size(message: Message) -> Size:
    """Width and height of a message of ``CARDS``."""
    match message.kind:
        case Kind.VIDEO:
            return (330, 440)
        case Kind.FILE:
            return (CARD_WIDTH, 206)
        case Kind.LOCATION:
            return (CARD_WIDTH, 400)
        case Kind.CARD:
            return (CARD_WIDTH, 246)
        case _:
            return (round(text_width(message.call, CALL_SIZE)) + 140, 100)


def card(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    return CARDS[message.kind](message, box, style, bubble_id)


def _video(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#39424e", 18)
        canvas.polygon([(left, bottom - 90), (left + 120, y + 20), (right, bottom - 90)], "#4d5b66")
        canvas.ring((x - 52, y - 52, x + 52, y + 52), "#ffffff", "#2c343e", 7)
        canvas.polygon([(x - 16, y - 26), (x - 16, y + 26), (x + 30, y)], "#ffffff")

    return [
        Element(box, "", bubble_id, paint=paint, description="视频", kind=IMAGE),
        label(right - 20, bottom - 30, "0:15", SMALL, "#ffffff", anchor="right", id="video_duration"),
    ]


def _file(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    left, top, right, bottom = box
    icon: Rect = (right - 28 - ICON, top + 48, right - 28, top + 48 + ICON)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#ffffff", style.bubble_radius)
        canvas.rect(icon, "#4f8ef7", 10)
        canvas.polygon([(icon[2] - 34, icon[1]), (icon[2], icon[1] + 34), (icon[2] - 34, icon[1] + 34)], "#cfe0ff")

    return [
        Element(box, "", bubble_id, paint=paint, description="文件", kind=GROUP),
        *_lines(message.text, left + 28, top + 28, "file_name"),
        label(left + 28, bottom - 34, _FILE_SIZE, SMALL, GREY, id="file_size"),
    ]


def _location(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    left, top, right, bottom = box
    head = top + 140
    pin = ((left + right) // 2, (head + bottom) // 2)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#dfe8d8", style.bubble_radius)
        canvas.rect((left, top, right, head - 40), "#ffffff", style.bubble_radius)
        canvas.rect((left, top + 60, right, head), "#ffffff")
        for x in range(left + 90, right, 150):
            canvas.rect((x, head, x + 22, bottom), "#f3ecc9")
        canvas.rect((left, pin[1] + 30, right, pin[1] + 56), "#f3ecc9")
        canvas.oval((pin[0] - 30, pin[1] - 50, pin[0] + 30, pin[1] + 10), "#f25643")
        canvas.polygon([(pin[0] - 24, pin[1]), (pin[0] + 24, pin[1]), (pin[0], pin[1] + 44)], "#f25643")

    place, _, address = (message.text or "我的位置").partition("\n")
    return [
        Element(box, "", bubble_id, paint=paint, description="位置", kind=GROUP),
        label(left + 28, top + 48, ellipsize(place, TITLE_SIZE, CARD_WIDTH - 56), TITLE_SIZE, INK, id="location_name"),
        label(left + 28, top + 104, address or "点击查看地图", SMALL, GREY, id="location_address"),
    ]


def _link(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    left, top, right, bottom = box
    thumb: Rect = (right - 28 - ICON, top + 30, right - 28, top + 30 + ICON)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#ffffff", style.bubble_radius)
        canvas.rect(thumb, "#e7b45c", 6)
        canvas.oval((thumb[0] + 24, thumb[1] + 20, thumb[2] - 24, thumb[3] - 28), "#c98a2b")
        canvas.rect((left + 28, bottom - 64, right - 28, bottom - 62), "#ececec")

    return [
        Element(box, "", bubble_id, paint=paint, description="小程序", kind=GROUP),
        *_lines(message.text, left + 28, top + 28, "card_title"),
        label(left + 28, bottom - 32, "小程序", SMALL, GREY, id="card_kind"),
    ]


def _call(message: Message, box: Rect, style: ChatStyle, bubble_id: str) -> list[Element]:
    mine = message.side is Side.ME
    color = style.mine_text if mine else GREY
    x, y = box[0] + 66, (box[1] + box[3]) // 2

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, style.mine if mine else style.theirs, style.bubble_radius)
        canvas.arc((x - 30, y - 12, x + 30, y + 40), 200, 340, color, 12)  # a receiver that is hung up
        canvas.rect((x - 32, y - 2, x - 18, y + 14), color, 4)
        canvas.rect((x + 18, y - 2, x + 32, y + 14), color, 4)
        canvas.text(x + 48, y, message.call, CALL_SIZE, color)

    return [Element(box, message.call, bubble_id, paint=paint)]


def _lines(text: str, x: int, top: int, name: str) -> list[Element]:
    """A title of at most two lines, one node."""
    lines = wrap(text, TITLE_SIZE, TEXT_WIDTH)
    shown = lines if len(lines) <= 2 else (lines[0], ellipsize("".join(lines[1:]), TITLE_SIZE, TEXT_WIDTH))
    shown = tuple(ellipsize(line, TITLE_SIZE, TEXT_WIDTH) for line in shown)

    def paint(canvas: Canvas) -> None:
        for index, line in enumerate(shown):
            canvas.text(x, top + TITLE_LINE * index + TITLE_LINE // 2, line, TITLE_SIZE, INK)

    return [Element((x, top, x + TEXT_WIDTH, top + TITLE_LINE * len(shown)), text, name, paint=paint)]


CARDS: dict[Kind, Draw] = {
    Kind.VIDEO: _video,
    Kind.FILE: _file,
    Kind.LOCATION: _location,
    Kind.CARD: _link,
    Kind.CALL: _call,
}
