"""The rows of a chat: bubbles of every kind, time separators, notices."""

from __future__ import annotations

from collections.abc import Callable

from agent_core.devices.virtual.apps.base import GREY, INK, avatar
from agent_core.devices.virtual.apps.old.cards import CARDS, card, card_size
from agent_core.devices.virtual.apps.old.style import ChatStyle
from agent_core.devices.virtual.widgets import (
    GROUP,
    IMAGE,
    WIDTH,
    Canvas,
    Element,
    Rect,
    ellipsize,
    label,
    text_width,
    wrap,
)
from agent_core.devices.virtual.world import Chat, ContactKind, Kind, Message, MessageState, Side

TEXT_SIZE = 44
TEXT_LINE = 62
TEXT_WIDTH = 630
PADDING = 34
AVATAR = 100
MARGIN = 26
GAP = 20  # between an avatar and its bubble
QUOTE_SIZE = 34

Row = tuple[int, Callable[[int], list[Element]]]  # its height, and what builds it at a top edge
BUBBLE_ID = "chat_item_content_layout"


def separator(text: str) -> Row:
    return (90, lambda y: [label(WIDTH // 2, y + 48, text, 32, GREY, anchor="middle", id="chat_item_time_stamp")])


def message_row(message: Message, chat: Chat, style: ChatStyle, resend: Callable[[Message], None]) -> Row:
    if message.kind in (Kind.RECALLED, Kind.TIP):
        return (
            84,
            lambda y: [label(WIDTH // 2, y + 42, message.summary, 32, GREY, anchor="middle", id="graybar")],
        )
    width, height = _size(message)
    named = chat.kind is ContactKind.GROUP and message.side is Side.THEM
    head = 48 if named else 0

    def build(y: int) -> list[Element]:
        mine = message.side is Side.ME
        left = MARGIN if not mine else WIDTH - MARGIN - AVATAR
        top = y + 18
        who = "我" if mine else message.sender or chat.name
        found = [avatar((left, top, left + AVATAR, top + AVATAR), who, round_=style.round_avatars)]
        edge = MARGIN + AVATAR + GAP
        if named:
            found.append(label(edge, top + 18, who, 30, GREY, id="chat_item_nick_name"))
        top += head
        box = (
            (WIDTH - edge - width, top, WIDTH - edge, top + height) if mine else (edge, top, edge + width, top + height)
        )
        found += _bubble(message, box, style)
        found += _mark(message, box, resend)
        return found

    return (max(height + head, AVATAR) + 36, build)


def _size(message: Message) -> tuple[int, int]:
    if message.kind in CARDS:
        return card_size(message)
    match message.kind:
        case Kind.IMAGE:
            return (420, 320)
        case Kind.STICKER:
            return (280, 280)
        case Kind.RED_PACKET:
            return (600, 240)
        case Kind.VOICE:
            return (220 + 12 * min(message.seconds, 30), 100)
        case _:
            lines = wrap(message.text, TEXT_SIZE, TEXT_WIDTH)
            width = max(text_width(line, TEXT_SIZE) for line in lines)
            height = len(lines) * TEXT_LINE + 38
            if message.kind is Kind.QUOTE:
                width = max(width, min(TEXT_WIDTH, text_width(message.quoted, QUOTE_SIZE) + 20))
                height += 62
            return (max(round(width) + 2 * PADDING, 100), height)


def _bubble(message: Message, box: Rect, style: ChatStyle) -> list[Element]:
    if message.kind in CARDS:
        return card(message, box, style, BUBBLE_ID)
    match message.kind:
        case Kind.IMAGE:
            return [
                Element(
                    box, "", BUBBLE_ID, paint=lambda canvas: _landscape(canvas, box), description="图片", kind=IMAGE
                )
            ]
        case Kind.STICKER:
            return [
                Element(
                    box, "", BUBBLE_ID, paint=lambda canvas: _sticker(canvas, box), description="动画表情", kind=IMAGE
                )
            ]
        case Kind.RED_PACKET:
            return _red_packet(message, box, style.packet)
        case Kind.VOICE:
            return [_voice(message, box, style)]
        case _:
            return _text(message, box, style)


def _text(message: Message, box: Rect, style: ChatStyle) -> list[Element]:
    mine = message.side is Side.ME
    lines = wrap(message.text, TEXT_SIZE, TEXT_WIDTH)
    quote = 62 if message.kind is Kind.QUOTE else 0

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, style.mine if mine else style.theirs, style.bubble_radius)
        y = box[1] + 19 + quote + TEXT_LINE / 2
        for line in lines:
            canvas.text(box[0] + PADDING, y, line, TEXT_SIZE, style.mine_text if mine else INK)
            y += TEXT_LINE

    found = [Element(box, message.text, BUBBLE_ID, paint=paint)]
    if quote:
        color = "#d9efff" if mine else GREY
        found.append(_quote(message, box, color))
    return found


def _quote(message: Message, box: Rect, color: str) -> Element:
    area = (box[0] + PADDING, box[1] + 22, box[2] - PADDING, box[1] + 72)
    shown = ellipsize(message.quoted, QUOTE_SIZE, area[2] - area[0] - 18)

    def paint(canvas: Canvas) -> None:
        canvas.rect((area[0], area[1] + 2, area[0] + 5, area[3] - 4), color)
        canvas.text(area[0] + 18, (area[1] + area[3]) / 2, shown, QUOTE_SIZE, color)

    return Element(area, message.quoted, "chat_item_quote", paint=paint)


def _voice(message: Message, box: Rect, style: ChatStyle) -> Element:
    mine = message.side is Side.ME
    ink = style.mine_text if mine else INK
    text = f'{message.seconds}"'

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, style.mine if mine else style.theirs, style.bubble_radius)
        y = (box[1] + box[3]) // 2
        turn = 1 if not mine else -1
        x = box[0] + 40 if not mine else box[2] - 40
        for radius in (10, 22, 34):
            span = (-45, 45) if turn > 0 else (135, 225)
            canvas.arc((x - radius, y - radius, x + radius, y + radius), *span, ink, 5)
        canvas.text(x + turn * 60, y, text, 42, ink, "left" if turn > 0 else "right")

    return Element(box, "", BUBBLE_ID, paint=paint, description=f"语音{message.seconds}秒")


def _red_packet(message: Message, box: Rect, name: str) -> list[Element]:
    words = message.text or "恭喜发财，大吉大利"
    left, top = box[0], box[1]

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#f25542", 20)
        canvas.rect((left, box[3] - 72, box[2], box[3]), "#ffffff", 20)
        canvas.rect((left, box[3] - 72, box[2], box[3] - 40), "#ffffff")
        canvas.rect((left + 36, top + 34, left + 110, top + 134), "#d93a2b", 10)
        canvas.oval((left + 54, top + 62, left + 92, top + 100), "#ffd67a")

    return [
        Element(box, "", BUBBLE_ID, paint=paint, description=name, kind=GROUP),
        label(left + 140, top + 84, ellipsize(words, 40, 420), 40, "#ffffff", id="red_packet_words"),
        label(left + 28, box[3] - 36, name, 28, GREY, id="red_packet_kind"),
    ]


def _landscape(canvas: Canvas, box: Rect) -> None:
    """The picture that somebody sent: hills under a sky."""
    left, top, right, bottom = box
    canvas.rect(box, "#a9d3f2", 18)
    canvas.oval((right - 120, top + 40, right - 50, top + 110), "#ffe08a")
    canvas.polygon([(left, bottom - 60), (left + 130, top + 110), (left + 270, bottom - 60)], "#6f9f7c")
    canvas.polygon([(left + 160, bottom - 60), (left + 300, top + 150), (right, bottom - 60)], "#588a67")
    canvas.rect((left, bottom - 70, right, bottom), "#8cc084", 18)
    canvas.rect((left, bottom - 70, right, bottom - 30), "#8cc084")


def _sticker(canvas: Canvas, box: Rect) -> None:
    left, top, right, bottom = box
    canvas.oval((left + 20, top + 20, right - 20, bottom - 20), "#ffd34d")
    x, y = (left + right) // 2, (top + bottom) // 2
    canvas.oval((x - 56, y - 46, x - 26, y - 6), "#5c3b00")
    canvas.oval((x + 26, y - 46, x + 56, y - 6), "#5c3b00")
    canvas.arc((x - 70, y - 60, x + 70, y + 70), 25, 155, "#5c3b00", 10)


def _mark(message: Message, box: Rect, resend: Callable[[Message], None]) -> list[Element]:
    """What stands left of a bubble of ours that has not arrived."""
    y = (box[1] + box[3]) // 2
    place: Rect = (box[0] - 74, y - 24, box[0] - 26, y + 24)
    if message.state is MessageState.FAILED:

        def failed(canvas: Canvas) -> None:
            canvas.oval(place, "#fa5151")
            canvas.rect((place[0] + 21, place[1] + 10, place[0] + 27, place[1] + 29), "#ffffff")
            canvas.rect((place[0] + 21, place[1] + 33, place[0] + 27, place[1] + 39), "#ffffff")

        return [Element(place, "", "chat_item_fail_icon", lambda: resend(message), failed, "发送失败", IMAGE)]
    if message.state is MessageState.SENDING:

        def sending(canvas: Canvas) -> None:
            canvas.arc(place, 0, 359, "#d4d6d9", 6)
            canvas.arc(place, -90, 30, "#8c8f94", 6)

        return [Element(place, "", "chat_item_sending", None, sending, "发送中", "android.widget.ProgressBar")]
    return []
