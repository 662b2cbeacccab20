"""The pages of a chat app around its chats: the list, contacts, the search."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agent_core.texts.layout import ellipsize, text_width
from simulator.phone.apps.avatars import avatar
from simulator.phone.apps.base import BANNER, banner, page, short_time
from simulator.phone.apps.fields import text_box
from simulator.phone.apps.looks import Look
from simulator.phone.apps.sheet import Sheet
from simulator.phone.widgets import GROUP, IMAGE, WIDTH, Canvas, Element, Handler, Rect, background, label
from simulator.phone.world import Chat, ContactKind

if TYPE_CHECKING:
    from simulator.phone.apps.chat_app import ChatApp

TABS = 128
NOTICE = 116  # the height of a row that is not a chat
_SEARCH = 112  # QQ's search entry, under the header
_HEADER = 226
_NAME_SIZE, _PREVIEW_SIZE, _TIME_SIZE = 48, 38, 32
_PREVIEW_LEFT = 196
_VIEW = "android.view.View"
_FOLDED = "折叠"  # the beginning of the row below the pinned chats
_PINNED = 2  # chats above that row

Row = tuple[int, Callable[[int], list[Element]]]  # its height, and the function that builds it at a top edge


def _row_height(sheet: Sheet) -> int:
    return max(190, sheet.size(190))


def list_page(app: ChatApp) -> list[Element]:
    """Return the conversations, the contacts, or one of the pages behind the other tabs."""
    host, sheet, look = app.host, app.sheet, app.look
    end = host.floor - TABS
    start = _HEADER + (_SEARCH if look.app == "qq" else 0) + (BANNER if host.faults.banner else 0)
    found = [page(host, look.colors.list_page)]
    found += _rows(app, (0, start, WIDTH, end))
    if app.page not in ("list", "contacts"):
        found.append(label(WIDTH // 2, 900, "暂无新动态", 40, look.colors.grey, anchor="middle"))
    found.append(background((0, 0, WIDTH, start), _top_color(look)))
    if host.faults.banner:
        found += banner(start - BANNER)
    found += _qq_top(app) if look.app == "qq" else _wechat_top(app)
    return found + _tabs(app, end, sheet)


def _top_color(look: Look) -> str:
    return look.colors.list_page if look.app == "qq" else look.colors.header


def _rows(app: ChatApp, window: Rect) -> list[Element]:
    """Return the chats, with the other rows between them. ``app.list_scroll`` is limited to the length of the list."""
    chats: list[Chat] = []
    if app.page == "list":
        chats = app.world.by_time()
    elif app.page == "contacts":
        chats = sorted(app.world.chats.values(), key=lambda chat: chat.name)
    notices = app.world.notices if app.page == "list" else ()
    folded = [_notice_row(app.sheet, text) for text in notices if text.startswith(_FOLDED)]
    rows = [_notice_row(app.sheet, text) for text in notices if not text.startswith(_FOLDED)]
    rows += [_chat_row(app, chat) for chat in chats[:_PINNED]]
    rows += [*folded, *(_chat_row(app, chat) for chat in chats[_PINNED:])]
    room = window[3] - window[1]
    app.list_scroll = max(0, min(app.list_scroll, sum(height for height, _ in rows) - room))
    found: list[Element] = []
    top = window[1] - app.list_scroll
    for size, build in rows:
        if top + size > window[1] and top < window[3]:
            for element in build(top):
                element.clip = window
                found.append(element)
        top += size
    return found


def _chat_row(app: ChatApp, chat: Chat) -> Row:
    return (_row_height(app.sheet), lambda top: conversation_row(app, chat, top, summary=app.page == "list"))


def _notice_row(sheet: Sheet, text: str) -> Row:
    return (NOTICE, lambda top: _notice(sheet, text, top))


def _notice(sheet: Sheet, text: str, top: int) -> list[Element]:
    """Return a row that is not a chat: a device that is logged in, chats that are folded away."""
    colors = sheet.look.colors
    y = top + NOTICE // 2
    box: Rect = (0, top, WIDTH, top + NOTICE)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.header)
        canvas.rect((70, y - 20, 124, y + 14), colors.grey, 5)
        canvas.rect((74, y - 16, 120, y + 10), colors.header, 3)
        canvas.rect((86, y + 18, 108, y + 22), colors.grey)

    return [
        Element(box, paint=paint, kind=GROUP, id="notice_row"),
        label(_PREVIEW_LEFT, y, text, sheet.size(38), colors.grey, id="notice"),
    ]


def conversation_row(app: ChatApp, chat: Chat, top: int, *, summary: bool = True, name: str = "") -> list[Element]:
    """Return a chat in a list. ``name`` is another id for its name."""

    def open_it() -> None:
        app.open_chat(chat)

    sheet, look, colors = app.sheet, app.look, app.look.colors
    ids = look.ids
    height = _row_height(sheet)
    y = top + height // 2
    newest = chat.newest if summary else None
    when = short_time(newest.time, app.host.now()) if newest else ""
    words = _preview(app, chat) if newest else ""
    unread = f"有{chat.unread}条未读," if chat.unread and not chat.muted else ""
    told = f"{chat.name}, ,{unread}{words},{when}" if look.app == "qq" and newest else ""
    picture: Rect = (36, y - 66, 168, y + 66)
    found = [
        Element((0, top, WIDTH, top + height), "", ids.row_box, kind=GROUP),
        Element((0, top, WIDTH, top + height), "", ids.row_inner, open_it, None, told, GROUP, about=chat),
        avatar(picture, chat.name, round_=look.round_avatars, name="avatar", description=f"{chat.name}头像"),
        background((_PREVIEW_LEFT, top + height - 2, WIDTH, top + height), colors.line),
    ]
    size = sheet.size(_NAME_SIZE)
    up = sheet.size(32) if newest else 0
    time_width = round(text_width(when, sheet.size(_TIME_SIZE)))
    room = WIDTH - _PREVIEW_LEFT - 60 - time_width
    found.append(_row_text(sheet, chat.name, y - up, size, room, colors.ink, name or ids.row_name))
    if newest is not None:
        small = sheet.size(_PREVIEW_SIZE)
        found += [
            label(WIDTH - 36, y - up, when, sheet.size(_TIME_SIZE), colors.grey, anchor="right", id=ids.row_time),
            _row_text(sheet, words, y + up, small, 780, colors.grey, ids.row_preview),
        ]
    if chat.muted:
        found.append(_bell(sheet, WIDTH - 56, y + up))
    if chat.unread and summary:
        found.append(_mark(sheet, chat, picture))
    return found


def _row_text(sheet: Sheet, text: str, y: int, size: int, room: int, color: str, name: str) -> Element:
    """Return a line of a row, in a node that has the whole text, as a TextView that draws … does."""
    shown = ellipsize(text, size, room)
    width = max(1, round(text_width(shown, size)))
    box: Rect = (_PREVIEW_LEFT, y - size * 6 // 10, _PREVIEW_LEFT + width, y + size * 6 // 10)
    kind = _VIEW if sheet.look.app == "wechat" else "android.widget.TextView"
    return Element(
        box, text, name, paint=lambda canvas: canvas.rich(_PREVIEW_LEFT, y, ((shown, color),), size), kind=kind
    )


def _preview(app: ChatApp, chat: Chat) -> str:
    draft = app.drafts[chat.name].text if chat.name in app.drafts else ""
    newest = chat.newest
    if draft or newest is None:
        return f"[草稿]{draft}"
    words = newest.summary
    if app.look.app == "wechat":
        words = words.replace("[QQ红包]", "[微信红包]", 1)
    if newest.sender:
        words = f"{newest.sender}：{words}"
    if chat.muted and chat.unread:
        words = f"[{chat.unread}条]{words}"
    return words


def _bell(sheet: Sheet, x: int, y: int) -> Element:
    """Return the grey sign of a muted chat, at the end of its row."""
    color = sheet.look.colors.grey

    def paint(canvas: Canvas) -> None:
        canvas.arc((x - 13, y - 17, x + 13, y + 9), 180, 360, color, 4)
        canvas.line([(x - 11, y - 4), (x - 13, y + 10), (x + 13, y + 10), (x + 11, y - 4)], color, 4)
        canvas.line([(x - 17, y - 17), (x + 17, y + 17)], color, 4)

    return Element((x - 20, y - 20, x + 20, y + 20), paint=paint, listed=False)


def _mark(sheet: Sheet, chat: Chat, picture: Rect) -> Element:
    """Return the unread count at the upper right corner of the avatar; a dot without a number if the chat is muted."""
    if chat.muted:
        return _dot(sheet, picture)
    inset = 14 if sheet.look.round_avatars else 2
    return badge(sheet, picture[2] - inset, picture[1] + inset, chat.unread)


def _dot(sheet: Sheet, picture: Rect) -> Element:
    x, y = picture[2] - (14 if sheet.look.round_avatars else 2), picture[1] + 8
    box: Rect = (x - 13, y - 13, x + 13, y + 13)
    color = sheet.look.colors.badge
    return Element(box, "", sheet.look.ids.row_dot, None, lambda canvas: canvas.oval(box, color), kind=IMAGE)


def badge(sheet: Sheet, x: int, y: int, count: int) -> Element:
    """Return a red mark with a number, its middle at ``x``, ``y``; one digit makes a disc."""
    text = str(count) if count < 100 else "99+"
    half = max(25, round(text_width(text, 33)) // 2 + 14)
    box: Rect = (x - half, y - 25, x + half, y + 25)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, sheet.look.colors.badge, 25)
        canvas.text(x, y, text, 33, "#ffffff", "middle")

    return Element(box, text, sheet.look.ids.row_count, paint=paint)


def _qq_top(app: ChatApp) -> list[Element]:
    """Return QQ's top: our own avatar and name, ＋, and the search entry."""
    sheet, colors = app.sheet, app.look.colors
    found = [
        avatar((36, 112, 136, 212), sheet.account, round_=True, name="conversation_head", description="帐户及设置")
    ]
    found.append(label(164, 140, sheet.account, sheet.size(44), colors.ink, id="conversation_title"))
    dot: Rect = (164, 184, 182, 202)
    found.append(Element(dot, paint=lambda canvas: canvas.oval(dot, "#23d983"), listed=False))
    found.append(label(194, 193, "在线", sheet.size(28), colors.grey, id="conversation_status"))
    found.append(_add(app))
    box: Rect = (36, _HEADER + 10, WIDTH - 36, _HEADER + 96)

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, colors.search, 22)
        magnifier(canvas, WIDTH // 2 - 62, (box[1] + box[3]) // 2, colors.grey)
        canvas.text(WIDTH // 2 - 22, (box[1] + box[3]) / 2, "搜索", 40, colors.grey)

    found.append(Element(box, "搜索", app.look.ids.search, lambda: app.show("search"), paint))
    return found


def _wechat_top(app: ChatApp) -> list[Element]:
    """Return WeChat's top: the title in the middle with the count of unread messages, a magnifier, ＋."""
    sheet, colors = app.sheet, app.look.colors
    unread = sum(chat.unread for chat in app.world.chats.values() if not chat.muted)
    name = next((name for name, target in app.look.tabs if target == app.page), "")
    title = f"{name}({unread})" if unread and app.page == "list" else name
    size = sheet.size(48)
    width = round(text_width(title, size))
    box: Rect = ((WIDTH - width) // 2, 130, (WIDTH + width) // 2, 190)

    def draw(canvas: Canvas) -> None:
        canvas.text(WIDTH / 2, 160, title, size, colors.ink, "middle", bold=True)

    def glass(canvas: Canvas) -> None:
        canvas.arc((888, 138, 922, 172), 0, 359, colors.ink, 5)
        canvas.line([(917, 167), (932, 182)], colors.ink, 5)

    return [
        Element(box, title, "icon_title", paint=draw),
        Element((866, 112, 952, 208), "", app.look.ids.search, lambda: app.show("search"), glass, "搜索", IMAGE),
        _add(app),
    ]


def _add(app: ChatApp) -> Element:
    ink = app.look.colors.ink

    def paint(canvas: Canvas) -> None:
        if app.look.app == "wechat":
            canvas.ring((986, 138, 1030, 182), ink, app.look.colors.header, 5)
        canvas.rect((996, 158, 1021, 163), ink)
        canvas.rect((1006, 148, 1011, 173), ink)

    return Element((966, 112, 1052, 208), "", "ba3", None, paint, "快捷入口", IMAGE)


def magnifier(canvas: Canvas, x: int, y: int, color: str) -> None:
    canvas.arc((x - 15, y - 17, x + 11, y + 9), 0, 359, color, 4)
    canvas.line([(x + 8, y + 6), (x + 18, y + 16)], color, 5)


def _tabs(app: ChatApp, top: int, sheet: Sheet) -> list[Element]:
    colors = app.look.colors
    found = [
        background((0, top, WIDTH, app.host.height), colors.bar),
        background((0, top, WIDTH, top + 2), colors.line),
    ]
    step = WIDTH // len(app.look.tabs)
    for index, (name, target) in enumerate(app.look.tabs):
        found.append(_tab(app, name, index * step, step, top, target == app.page, lambda to=target: app.show(to)))  # type: ignore[misc]
    unread = sum(chat.unread for chat in app.world.chats.values() if not chat.muted)
    if unread:
        found.append(badge(sheet, step // 2 + 44, top + 30, unread))
    return found


def _tab(app: ChatApp, name: str, left: int, width: int, top: int, lit: bool, tap: Handler) -> Element:
    colors = app.look.colors
    color = colors.accent if lit else colors.icon
    middle = left + width // 2

    def paint(canvas: Canvas) -> None:
        canvas.rect((middle - 28, top + 22, middle + 28, top + 66), color, 20)
        if not lit:
            canvas.rect((middle - 23, top + 27, middle + 23, top + 61), colors.bar, 16)
        canvas.polygon([(middle - 12, top + 62), (middle + 8, top + 62), (middle - 14, top + 78)], color)
        canvas.text(middle, top + 102, name, 30, color, "middle")

    return Element((left, top, left + width, top + TABS), name, app.look.ids.tab, tap, paint)


def search_page(app: ChatApp) -> list[Element]:
    """Return the input at the top, then every chat whose name holds the words, then the way to the built-in AI."""
    host, sheet, look = app.host, app.sheet, app.look
    colors = look.colors
    found = [page(host, colors.list_page)]
    field: Rect = (36, 112, 912, 204)
    id_ = look.ids.search_input
    found.append(
        text_box(host, app.search, field, 42, 56, id_=id_, radius=20, hint="搜索", color=colors.search, ink=colors.ink)
    )
    found.append(
        label(990, 158, "取消", 42, colors.mine_link, anchor="middle", id="btn_cancel", tap=lambda: _back(app))
    )
    words = app.search.text.strip()
    y, height = _HEADER, _row_height(sheet)
    for title, kinds in (("联系人", {ContactKind.FRIEND, ContactKind.BAIT}), ("群聊", {ContactKind.GROUP})):
        chats = [chat for chat in app.world.search(words) if chat.kind in kinds]
        if chats:
            found.append(label(36, y + 40, title, 34, colors.grey, id="section"))
            y += 76
        for chat in chats:
            if y + height <= host.bottom:
                found += conversation_row(app, chat, y, summary=False, name=look.ids.search_result)
            y += height
    if not words:
        found.append(label(WIDTH // 2, 420, "搜索联系人、群聊", 36, colors.grey, anchor="middle"))
    elif app.ai_name and y + 130 <= host.bottom:
        found.append(_ask_row(app, (36, y + 22, WIDTH - 36, y + 118), ellipsize(f"{app.ai_name}：{words}", 40, 900)))
    return found


def _ask_row(app: ChatApp, box: Rect, text: str) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#f4f1ff", 20)
        canvas.text(box[0] + 36, (box[1] + box[3]) / 2, text, 40, "#6a4cff")

    return Element(box, text, "ask_ai", app.open_ai, paint)


def _back(app: ChatApp) -> None:
    app.back()
