"""Messages other than texts: pictures, voice, files, links, calls and other kinds that chat apps know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from agent_core.texts.layout import ellipsize, text_width, wrap
from simulator.phone.apps.bubbles import Bubble, ground, ink
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import GROUP, IMAGE, Canvas, Element, Rect, label
from simulator.phone.world import Kind, Message, Side

CARD_WIDTH = 700
TITLE_SIZE = 45
TITLE_LINE = 60
SMALL = 31
_ICON = 112

Draw = Callable[[Sheet, Message], Bubble]


def media(sheet: Sheet, message: Message) -> Bubble:
    return _KINDS[message.kind](sheet, message)


def _plain(
    sheet: Sheet,
    message: Message,
    size: tuple[int, int],
    draw: Callable[[Canvas, Rect, int], None],
    *,
    name: str,
    words: str,
) -> Bubble:
    """Return a picture without a bubble, with round corners."""
    width, height = size
    radius = 24 if sheet.look.app == "qq" else 10

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)
        return [
            Element(
                box,
                "",
                name,
                paint=lambda canvas: draw(canvas, box, radius),
                description=words,
                kind=IMAGE,
                about=message,
            )
        ]

    return Bubble(width, height, build)


def _image(sheet: Sheet, message: Message) -> Bubble:
    size, draw = (500, 375), _landscape
    if message.paper:
        size, draw = (430, 760), partial(_lines_on_paper, message.text.split("\n")) if message.text else _order
    return _plain(sheet, message, message.size or size, draw, name=sheet.look.ids.picture, words="图片")


def _sticker(sheet: Sheet, message: Message) -> Bubble:
    return _plain(sheet, message, (300, 300), _laughing, name=sheet.look.ids.sticker, words="动画表情")


def _video(sheet: Sheet, message: Message) -> Bubble:
    return _plain(sheet, message, (340, 480), _film, name=sheet.look.ids.picture, words="视频")


def _landscape(canvas: Canvas, box: Rect, radius: int) -> None:
    left, top, right, bottom = box
    canvas.blend(box, "#8fc4ee", "#8cc084", radius)
    wide, high = right - left, bottom - top
    foot, sun = bottom - high * 70 // 375, high * 80 // 375
    canvas.oval((right - sun * 7 // 4, top + sun // 2, right - sun * 3 // 4, top + sun * 3 // 2), "#ffe08a")
    peaks = ((0, 150, 130, 320, "#6f9f7c"), (190, 360, 170, 500, "#588a67"))
    for start, peak, up, end, color in peaks:
        places = ((start, foot), (peak, top + high * up // 375), (end, foot))
        canvas.polygon([(left + wide * x // 500, y) for x, y in places], color)


def _order(canvas: Canvas, box: Rect, radius: int) -> None:
    """Draw a screenshot of an order: white, with small dark text."""
    left, top, right, bottom = box
    canvas.rect(box, "#ffffff", radius)
    canvas.text((left + right) / 2, top + 46, "订单详情", 28, "#222222", "middle")
    canvas.rect((left, top + 80, right, top + 82), "#eeeeee")
    canvas.rect((left + 24, top + 110, left + 124, top + 210), "#d9e4ef", 8)
    canvas.rect((left + 46, top + 136, left + 102, top + 196), "#8aa6c1", 6)
    rows = ("陶瓷杯 白色", "×1   ￥39.90")
    for index, row in enumerate(rows):
        canvas.text(left + 144, top + 132 + index * 46, row, 24, "#333333")
    lines = (
        ("订单编号", "20261122 8841 0037"),
        ("下单时间", "2026-11-20 14:03"),
        ("付款方式", "在线支付"),
        ("运费", "￥0.00"),
        ("实付款", "￥39.90"),
        ("物流", "已揽收"),
    )
    for index, (name, value) in enumerate(lines):
        y = top + 270 + index * 62
        canvas.text(left + 24, y, name, 22, "#999999")
        canvas.text(right - 24, y, value, 22, "#333333", "right")
    canvas.rect((left + 24, bottom - 92, right - 24, bottom - 32), "#f5f5f5", 30)
    canvas.text((left + right) / 2, bottom - 62, "再来一单", 24, "#e8541e", "middle")


def _lines_on_paper(lines: Sequence[str], canvas: Canvas, box: Rect, radius: int) -> None:
    """Draw a screenshot that was cut to a few lines of small text."""
    left, top, right, bottom = box
    canvas.rect(box, "#ffffff", radius)
    step = (bottom - top) / len(lines)
    size = min(32, round(step / 2.4))
    for index, line in enumerate(lines):
        canvas.text(left + 22, top + step * (index + 0.5), ellipsize(line, size, right - left - 44), size, "#333333")


def _laughing(canvas: Canvas, box: Rect, radius: int) -> None:
    left, top, right, bottom = box
    canvas.oval((left + 20, top + 20, right - 20, bottom - 20), "#ffd34d")
    x, y = (left + right) // 2, (top + bottom) // 2
    canvas.oval((x - 56, y - 46, x - 26, y - 6), "#5c3b00")
    canvas.oval((x + 26, y - 46, x + 56, y - 6), "#5c3b00")
    canvas.arc((x - 70, y - 60, x + 70, y + 70), 25, 155, "#5c3b00", 10)


def _film(canvas: Canvas, box: Rect, radius: int) -> None:
    left, top, right, bottom = box
    x, y = (left + right) // 2, (top + bottom) // 2
    canvas.blend(box, "#39424e", "#68786f", radius)
    canvas.ring((x - 52, y - 52, x + 52, y + 52), "#ffffff", "#2c343e", 7)
    canvas.polygon([(x - 16, y - 26), (x - 16, y + 26), (x + 30, y)], "#ffffff")
    canvas.text(right - 22, bottom - 32, "0:15", 30, "#ffffff", "right")


def _voice(sheet: Sheet, message: Message) -> Bubble:
    geometry = sheet.look.geometry
    height = geometry.line + 2 * geometry.pad_y
    width = 270 + 9 * min(message.seconds, 30)
    draw = _bars if sheet.look.app == "qq" else _waves
    said = f'{message.seconds}"'

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side)
            draw(canvas, sheet, box, message)

        words = f"语音{message.seconds}秒" if sheet.look.app == "wechat" else ""
        return [Element(box, said, sheet.look.ids.voice, paint=paint, description=words, about=message)]

    return Bubble(width, height, build)


def _bars(canvas: Canvas, sheet: Sheet, box: Rect, message: Message) -> None:
    """Draw QQ's form: a play triangle in a disc, bars, the length."""
    mine, color = message.side is Side.ME, ink(sheet, message.side)
    y, x = (box[1] + box[3]) // 2, box[0] + 56
    disc = sheet.look.colors.mine_quote if mine else sheet.look.colors.theirs_quote
    canvas.oval((x - 30, y - 30, x + 30, y + 30), disc)
    canvas.polygon([(x - 9, y - 14), (x - 9, y + 14), (x + 15, y)], color)
    end = box[2] - 30 - round(text_width(f'{message.seconds}"', 42)) - 20
    for index, left in enumerate(range(x + 50, end, 14)):
        half = (8, 16, 24, 13, 20, 10)[index % 6]
        canvas.rect((left, y - half, left + 5, y + half), color)
    canvas.text(box[2] - 30, y, f'{message.seconds}"', 42, color, "right")


def _waves(canvas: Canvas, sheet: Sheet, box: Rect, message: Message) -> None:
    """Draw WeChat's form: waves on the side of the avatar, the length beside them."""
    mine, color = message.side is Side.ME, ink(sheet, message.side)
    y = (box[1] + box[3]) // 2
    x = box[2] - 36 if mine else box[0] + 36
    span = (135, 225) if mine else (-45, 45)
    for radius in (6, 17, 28):
        canvas.arc((x - radius, y - radius, x + radius, y + radius), *span, color, 5)
    canvas.text(x + (-44 if mine else 44), y, f'{message.seconds}"', 42, color, "right" if mine else "left")


def _call(sheet: Sheet, message: Message) -> Bubble:
    geometry = sheet.look.geometry
    size = sheet.size(geometry.text_size)
    width = round(text_width(message.call, size)) + 2 * geometry.pad_x + 64
    height = sheet.size(geometry.line) + 2 * geometry.pad_y
    after = sheet.look.app == "wechat" and message.side is Side.ME  # the receiver is behind the words

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            color = ink(sheet, message.side)
            y = (box[1] + box[3]) // 2
            ground(canvas, sheet, box, message.side)
            _receiver(canvas, box[2] - geometry.pad_x - 24 if after else box[0] + geometry.pad_x + 24, y, color)
            canvas.rich(box[0] + geometry.pad_x + (0 if after else 64), y, ((message.call, color),), size)

        return [Element(box, message.call, sheet.look.ids.call, paint=paint, about=message)]

    return Bubble(width, height, build)


def _receiver(canvas: Canvas, x: int, y: int, color: str) -> None:
    canvas.arc((x - 26, y - 10, x + 26, y + 34), 200, 340, color, 10)
    canvas.rect((x - 28, y - 2, x - 15, y + 12), color, 4)
    canvas.rect((x + 15, y - 2, x + 28, y + 12), color, 4)


def _lines(sheet: Sheet, text: str, width: int, rows: int) -> list[str]:
    """Return a title's lines, the last one cut off with … if there are more than ``rows``."""
    size = sheet.size(TITLE_SIZE)
    lines = list(wrap(text, size, width))
    if len(lines) > rows:
        lines = [*lines[: rows - 1], ellipsize("".join(lines[rows - 1 :]), size, width)]
    return lines


def _title(sheet: Sheet, lines: list[str], text: str, place: tuple[int, int], name: str) -> Element:
    x, top = place
    size, line = sheet.size(TITLE_SIZE), sheet.size(TITLE_LINE)

    def paint(canvas: Canvas) -> None:
        for index, shown in enumerate(lines):
            canvas.rich(x, top + line * index + line / 2, ((shown, sheet.look.colors.ink),), size)

    width = round(max(text_width(shown, size) for shown in lines))
    return Element((x, top, x + max(1, width), top + line * len(lines)), text, name, paint=paint)


def _file(sheet: Sheet, message: Message) -> Bubble:
    """Return a white card with the name, the size below it in grey, and an icon at the right; QQ's arrow loads it."""
    lines = _lines(sheet, message.text, CARD_WIDTH - _ICON - 120, 2)
    line = sheet.size(TITLE_LINE)
    height = max(_ICON + 70, len(lines) * line + 74 + sheet.size(SMALL))
    colors = sheet.look.colors
    detail = message.detail or "36.5KB"

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + CARD_WIDTH, top + height)
        icon: Rect = (box[2] - 44 - _ICON, top + 34, box[2] - 44, top + 34 + _ICON + 14)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side, color=colors.card)
            _sheet_of_paper(canvas, icon)

        found = [
            Element(box, "", sheet.look.ids.file, paint=paint, kind=GROUP, about=message),
            _title(sheet, lines, message.text, (left + 36, top + 30), sheet.look.ids.file_name),
            label(
                left + 36, box[3] - 30 - sheet.size(SMALL) // 2, detail, sheet.size(SMALL), colors.grey, id="file_size"
            ),
        ]
        if sheet.look.app == "qq" and message.side is Side.THEM:
            found.append(_download(sheet, (box[2] + 16, box[3] - 58)))
        return found

    return Bubble(CARD_WIDTH, height, build)


def _sheet_of_paper(canvas: Canvas, box: Rect) -> None:
    left, top, right, bottom = box
    canvas.rect(box, "#dcdfe4", 10)
    canvas.rect((left + 2, top + 2, right - 2, bottom - 2), "#fafafb", 9)
    canvas.polygon([(right - 26, top), (right, top), (right, top + 26)], "#dcdfe4")
    for row, end in ((44, 34), (60, 18), (76, 34)):
        canvas.rect((left + 32, top + row - 4, right - end, top + row + 4), "#a9afb9", 4)


def _download(sheet: Sheet, place: tuple[int, int]) -> Element:
    left, top = place
    x, y = left + 28, top + 28

    def paint(canvas: Canvas) -> None:
        canvas.oval((left, top, left + 56, top + 56), sheet.look.colors.card)
        canvas.line([(x, y - 13), (x, y + 12)], sheet.look.colors.ink, 5)
        canvas.line([(x - 10, y + 2), (x, y + 12), (x + 10, y + 2)], sheet.look.colors.ink, 5)

    return Element((left, top, left + 56, top + 56), "", "file_download", None, paint, "下载", IMAGE)


def _card(sheet: Sheet, message: Message) -> Bubble:
    """Return a link: the title, a grey description with a thumbnail beside it, and a line below with its source."""
    colors, small = sheet.look.colors, sheet.size(34)
    width = CARD_WIDTH + 40
    lines = _lines(sheet, message.text, width - 72, 2)
    said = wrap(message.detail, small, width - 72 - _ICON - 30) if message.detail else ()
    shown = [*said[:2], ellipsize("".join(said[2:]), small, width - 72 - _ICON - 30)] if len(said) > 2 else [*said]
    body = max(_ICON, len(shown) * sheet.size(46))
    head = 28 + len(lines) * sheet.size(TITLE_LINE) + 8
    height = head + body + 28 + 64

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)
        thumb: Rect = (box[2] - 36 - _ICON, top + head, box[2] - 36, top + head + _ICON)
        foot = box[3] - 32

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side, color=colors.card)
            canvas.blend(thumb, "#1b2a4a", "#4f7ad9", 6)
            canvas.oval((thumb[0] + 30, thumb[1] + 26, thumb[2] - 34, thumb[3] - 34), "#f3c14b")
            for index, row in enumerate(shown):
                canvas.rich(left + 36, top + head + 24 + index * sheet.size(46), ((row, colors.grey),), small)
            canvas.rect((left + 36, box[3] - 66, box[2] - 36, box[3] - 65), colors.line)
            canvas.oval((left + 36, foot - 14, left + 64, foot + 14), "#3a7bf0")

        return [
            Element(box, "", sheet.look.ids.card, paint=paint, kind=GROUP, about=message),
            _title(sheet, lines, message.text, (left + 36, top + 28), "card_title"),
            label(left + 78, foot, message.footer or "小程序", 28, colors.grey, id="card_kind"),
        ]

    return Bubble(width, height, build)


def _location(sheet: Sheet, message: Message) -> Bubble:
    colors = sheet.look.colors
    width, height = CARD_WIDTH, 400
    place, _, address = (message.text or "我的位置").partition("\n")

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            right, bottom, head = box[2], box[3], top + 140
            ground(canvas, sheet, box, message.side, color=colors.card)
            canvas.rect((left, head, right, bottom), "#dfe8d8", 10)
            for x in range(left + 90, right - 22, 150):
                canvas.rect((x, head, x + 22, bottom), "#f3ecc9")
            y = (head + bottom) // 2
            canvas.rect((left, y + 30, right, y + 56), "#f3ecc9")
            middle = (left + right) // 2
            canvas.oval((middle - 30, y - 50, middle + 30, y + 10), "#f25643")
            canvas.polygon([(middle - 24, y), (middle + 24, y), (middle, y + 44)], "#f25643")

        shown = ellipsize(place, sheet.size(TITLE_SIZE), width - 72)
        return [
            Element(box, "", "location", paint=paint, description="位置", kind=GROUP, about=message),
            label(left + 36, top + 50, shown, sheet.size(TITLE_SIZE), colors.ink, id="location_name"),
            label(left + 36, top + 106, address or "点击查看地图", SMALL, colors.grey, id="location_address"),
        ]

    return Bubble(width, height, build)


def _red_packet(sheet: Sheet, message: Message) -> Bubble:
    width, height = 660, 250
    kind = "微信红包" if sheet.look.app == "wechat" else "QQ红包"
    color = "#fa9d3b" if sheet.look.app == "wechat" else "#f25542"

    def build(left: int, top: int) -> list[Element]:
        box: Rect = (left, top, left + width, top + height)

        def paint(canvas: Canvas) -> None:
            ground(canvas, sheet, box, message.side, color=color)
            canvas.rect((left + 36, top + 36, left + 116, top + 140), "#d93a2b", 10)
            canvas.oval((left + 56, top + 66, left + 96, top + 106), "#ffd67a")
            canvas.rect((left + 30, box[3] - 68, box[2] - 30, box[3] - 66), "#ffffff")

        words = ellipsize(message.text or "恭喜发财，大吉大利", 44, width - 190)
        return [
            Element(box, "", "red_packet", paint=paint, description=kind, kind=GROUP, about=message),
            label(left + 146, top + 88, words, 44, "#ffffff", id="red_packet_words"),
            label(left + 34, box[3] - 34, kind, 28, "#ffffff", id="red_packet_kind"),
        ]

    return Bubble(width, height, build)


_KINDS: dict[Kind, Draw] = {
    Kind.IMAGE: _image,
    Kind.STICKER: _sticker,
    Kind.VIDEO: _video,
    Kind.VOICE: _voice,
    Kind.CALL: _call,
    Kind.FILE: _file,
    Kind.CARD: _card,
    Kind.LOCATION: _location,
    Kind.RED_PACKET: _red_packet,
}
