"""The header of a chat page: back arrow, unread pill, name, signs, count, status line, buttons."""

from __future__ import annotations

from agent_core.texts.layout import ellipsize, text_width
from simulator.phone.apps.looks import Colors
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import IMAGE, WIDTH, Canvas, Element, Handler, Rect, background, label
from simulator.phone.world import Chat, ContactKind, Sign

ARROW_END = 70  # how far the back arrow reaches
NAME_LEFT = 104  # of QQ's name, if there is no pill
PILL_LEFT = 84
STATUS_SIZE = 27
STRIP = 112  # the height of the pinned notice

_SIGN = 44  # the width of a sign


def header(sheet: Sheet, chat: Chat, unread: int, back: Handler, tool: Handler) -> list[Element]:
    """Return the header. ``unread``: messages that wait in other chats. ``tool`` opens the chat's own page."""
    look, colors = sheet.look, sheet.look.colors
    bottom = look.geometry.header
    found = [
        background((0, 0, WIDTH, bottom), colors.header),
        background((0, bottom - 2, WIDTH, bottom), colors.line),
        _arrow(sheet, unread, back),
    ]
    name_left = NAME_LEFT
    if unread:
        pill = _pill(sheet, unread)
        found.append(pill)
        name_left = pill.box[2] + 20
    found += _centered(sheet, chat) if look.title_centered else _left(sheet, chat, name_left)
    found.append(_menu(sheet, chat, tool))
    return found


def _arrow(sheet: Sheet, unread: int, back: Handler) -> Element:
    y = sheet.look.geometry.title_y
    words = f"返回消息未读{unread}" if unread and sheet.look.app == "qq" else "返回"

    def paint(canvas: Canvas) -> None:
        canvas.line([(ARROW_END - 3, y - 27), (ARROW_END - 28, y), (ARROW_END - 3, y + 27)], sheet.look.colors.ink, 5)

    return Element((0, y - 66, ARROW_END + 10, y + 66), "", sheet.look.ids.back, back, paint, words, IMAGE)


def _pill(sheet: Sheet, unread: int) -> Element:
    """Return the grey block with the count of unread messages elsewhere; one digit makes a disc."""
    text = str(unread) if unread < 100 else "99+"
    size, y = 36, sheet.look.geometry.title_y
    width = 68 if unread < 10 else round(text_width(text, size)) + 60
    box: Rect = (PILL_LEFT, y - 34, PILL_LEFT + width, y + 34)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, sheet.look.colors.pill, 34)
        canvas.text((box[0] + box[2]) / 2, y, text, size, sheet.look.colors.ink, "middle")

    return Element(box, paint=paint, listed=False)


def _left(sheet: Sheet, chat: Chat, left: int) -> list[Element]:
    """Return QQ's form: the name after the arrow, the count in a separate node, the status line below."""
    look, colors = sheet.look, sheet.look.colors
    size = sheet.size(look.geometry.title_size)
    y = look.geometry.title_y - (18 if chat.status else 0)
    count = f"({chat.members})" if chat.kind is ContactKind.GROUP else ""
    room = 870 - left - len(chat.signs) * (_SIGN + 16) - round(text_width(count, size))
    found = [_name(sheet, chat.name, ellipsize(chat.name, size, room), left, y)]
    x = found[0].box[2]
    if count:
        box: Rect = (x, y - size * 6 // 10, x + round(text_width(count, size)), y + size * 6 // 10)
        found.append(
            Element(
                box,
                count,
                look.ids.count,
                paint=lambda canvas: canvas.text(box[0], y, count, size, colors.ink),
                description=str(chat.members),
            )
        )
        x = box[2]
    found += _signs(sheet, chat.signs, x, y)
    if chat.status:
        found += _status(sheet, chat.status, left)
    return found


def _status(sheet: Sheet, text: str, left: int) -> list[Element]:
    """Return the line under the name; a contact who is online has a green dot."""
    size, y = sheet.size(STATUS_SIZE), sheet.look.geometry.title_y + 36
    online = text.startswith("在线")
    found = []
    if online:
        dot: Rect = (left + 2, y - 9, left + 20, y + 9)
        found.append(Element(dot, paint=lambda canvas: canvas.oval(dot, "#23d983"), listed=False))
    x = left + (28 if online else 0)
    found.append(label(x, y, text, size, sheet.look.colors.ink, id=sheet.look.ids.status))
    return found


def _centered(sheet: Sheet, chat: Chat) -> list[Element]:
    """Return WeChat's form: the whole title in the middle, tags and signs after it."""
    size = sheet.size(sheet.look.geometry.title_size)
    room = 620 - len(chat.signs) * (_SIGN + 16)
    count = f"({chat.members})" if chat.kind is ContactKind.GROUP else ""
    shown = ellipsize(chat.name, size, room - round(text_width(count, size))) + count
    width = round(text_width(shown, size))
    y = sheet.look.geometry.title_y
    name = _name(sheet, chat.title, shown, (WIDTH - width) // 2, y, bold=True)
    return [name, *_signs(sheet, chat.signs, name.box[2], y)]


def _name(sheet: Sheet, text: str, shown: str, left: int, y: int, *, bold: bool = False) -> Element:
    """Return the name. Its node has the whole name, as a TextView that draws … does."""
    size = sheet.size(sheet.look.geometry.title_size)
    color = sheet.look.colors.ink
    box: Rect = (left, y - size * 6 // 10, left + max(1, round(text_width(shown, size))), y + size * 6 // 10)

    def paint(canvas: Canvas) -> None:
        canvas.rich(left, y, ((shown, color),), size, bold=bold)

    return Element(box, text, sheet.look.ids.title, paint=paint)


def _signs(sheet: Sheet, signs: tuple[Sign, ...], left: int, y: int) -> list[Element]:
    found = []
    for sign in signs:
        left += 16
        box: Rect = (left, y - 24, left + _SIGN + (6 if sign is Sign.AI else 0), y + 24)
        found.append(_sign(sheet, sign, box))
        left = box[2]
    return found


def _sign(sheet: Sheet, sign: Sign, box: Rect) -> Element:
    colors = sheet.look.colors
    return Element(
        box,
        paint=lambda canvas: _SIGNS[sign](canvas, (box[0] + box[2]) // 2, (box[1] + box[3]) // 2, colors),
        listed=False,
    )


def _robot(canvas: Canvas, x: int, y: int, colors: Colors) -> None:
    canvas.rect((x - 19, y - 9, x + 19, y + 18), "#3c8ef3", 12)
    canvas.rect((x - 14, y - 4, x + 14, y + 13), colors.header, 8)
    canvas.line([(x, y - 18), (x, y - 8)], "#3c8ef3", 5)
    canvas.oval((x - 9, y + 1, x - 3, y + 8), "#3c8ef3")
    canvas.oval((x + 3, y + 1, x + 9, y + 8), "#3c8ef3")


def _ear(canvas: Canvas, x: int, y: int, colors: Colors) -> None:
    canvas.arc((x - 13, y - 18, x + 13, y + 8), 150, 400, colors.grey, 4)
    canvas.arc((x - 6, y - 10, x + 6, y + 4), 170, 380, colors.grey, 3)
    canvas.line([(x - 11, y + 2), (x - 6, y + 16), (x + 2, y + 16), (x + 9, y + 4)], colors.grey, 4)


def _bell(canvas: Canvas, x: int, y: int, colors: Colors) -> None:
    canvas.arc((x - 13, y - 17, x + 13, y + 9), 180, 360, colors.grey, 4)
    canvas.line([(x - 11, y - 4), (x - 13, y + 10), (x + 13, y + 10), (x + 11, y - 4)], colors.grey, 4)
    canvas.line([(x - 5, y + 16), (x + 5, y + 16)], colors.grey, 4)
    canvas.line([(x - 17, y - 17), (x + 17, y + 17)], colors.grey, 4)


def _fire(canvas: Canvas, x: int, y: int, colors: Colors) -> None:
    canvas.oval((x - 15, y - 6, x + 15, y + 20), "#ff7a2f")
    canvas.polygon([(x - 14, y + 4), (x - 2, y - 22), (x + 6, y - 8), (x + 10, y - 12), (x + 15, y + 6)], "#ff7a2f")
    canvas.oval((x - 8, y + 3, x + 8, y + 19), "#ffd54a")


def _ai(canvas: Canvas, x: int, y: int, colors: Colors) -> None:
    canvas.rect((x - 25, y - 18, x + 25, y + 18), colors.grey, 6)
    canvas.text(x, y, "AI", 30, colors.header, "middle")


_SIGNS = {Sign.ROBOT: _robot, Sign.EAR: _ear, Sign.BELL: _bell, Sign.FIRE: _fire, Sign.AI: _ai}


def _menu(sheet: Sheet, chat: Chat, tool: Handler) -> Element:
    """Return QQ's three lines, or WeChat's three dots."""
    y, ink = sheet.look.geometry.title_y, sheet.look.colors.ink

    def paint(canvas: Canvas) -> None:
        if sheet.look.app == "wechat":
            for x in (988, 1010, 1032):
                canvas.oval((x - 5, y - 5, x + 5, y + 5), ink)
        else:
            for line in (y - 17, y, y + 17):
                canvas.line([(981, line), (1029, line)], ink, 5)

    words = "聊天信息" if sheet.look.app == "wechat" else "聊天设置"
    return Element((950, y - 60, WIDTH, y + 60), "", "ivTitleBtnRight", tool, paint, words, IMAGE)


def strip(sheet: Sheet, text: str, remove: Handler) -> list[Element]:
    """Return WeChat's notice that is pinned under a group's header."""
    top = sheet.look.geometry.header
    colors = sheet.look.colors
    box: Rect = (28, top + 8, WIDTH - 28, top + STRIP - 8)
    y, size = (box[1] + box[3]) // 2, sheet.size(38)
    shown = ellipsize(text, size, 700)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.card, 16)
        canvas.oval((68, y - 18, 104, y + 18), "#fa9d3b")
        canvas.rich(136, y, ((shown, colors.ink),), size)

    return [
        background((0, top, WIDTH, top + STRIP), colors.header),
        Element(box, paint=paint, listed=False, blocks=True),
        Element((136, y - 26, 136 + round(text_width(shown, size)), y + 26), text, "pinned"),
        label(1010, y, "移除", size, colors.mine_link, anchor="right", id="pinned_remove", tap=remove),
    ]
