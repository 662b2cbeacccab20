"""The pages of a chat app around its chats: the list, the search, contacts, and the built-in AI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_core.devices.virtual.apps.base import (
    BANNER,
    GREY,
    INK,
    LINE,
    PALE,
    TITLE_BAR,
    avatar,
    back_arrow,
    badge,
    banner,
    page,
    row_line,
    short_time,
    title_bar,
)
from agent_core.devices.virtual.apps.fields import text_box
from agent_core.devices.virtual.widgets import (
    GROUP,
    WIDTH,
    Canvas,
    Element,
    Handler,
    Rect,
    background,
    ellipsize,
    label,
)
from agent_core.devices.virtual.world import Chat, ContactKind

if TYPE_CHECKING:
    from agent_core.devices.virtual.apps.chat_app import ChatApp

ROW = 168
TABS = 120
SEARCH_BOTTOM = TITLE_BAR + 104


def list_page(app: ChatApp) -> list[Element]:
    host = app.host
    end = host.floor - TABS
    start = SEARCH_BOTTOM + (BANNER if host.faults.banner else 0)
    window: Rect = (0, start, WIDTH, end)
    chats = app.world.by_time() if app.page == "list" else []
    names = {"list": app.list_title, "contacts": "联系人", "moments": "动态"}
    if app.page == "contacts":
        chats = sorted(app.world.chats.values(), key=lambda chat: chat.name)
    app.list_scroll = max(0, min(app.list_scroll, len(chats) * ROW - (end - start)))
    found = [page(host, "#ffffff")]
    for index, chat in enumerate(chats):
        top = start + index * ROW - app.list_scroll
        if top + ROW > start and top < end:
            for element in conversation_row(app, chat, top, summary=app.page == "list"):
                element.clip = window
                found.append(element)
    if app.page == "moments":
        found.append(label(WIDTH // 2, 900, "暂无新动态", 40, PALE, anchor="middle"))
    found.append(background((0, 0, WIDTH, SEARCH_BOTTOM), "#ffffff"))
    if host.faults.banner:
        found += banner(SEARCH_BOTTOM)
    found += title_bar(names[app.page])
    found.append(_plus())
    found.append(_search_entry(app))
    if app.ai_name:
        found.append(ai_entry(app, (892, TITLE_BAR + 6, WIDTH - 32, TITLE_BAR + 88)))
    return found + _tabs(app, end)


def _plus() -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.ring((982, 136, 1026, 180), INK, "#ffffff", 4)
        canvas.line([(992, 158), (1016, 158)], INK, 4)
        canvas.line([(1004, 146), (1004, 170)], INK, 4)

    return Element(
        (960, 114, 1050, 202), "", "ba3", paint=paint, description="快捷入口", kind="android.widget.ImageView"
    )


def _search_entry(app: ChatApp) -> Element:
    right = WIDTH - 32 if not app.ai_name else 872
    box: Rect = (32, TITLE_BAR + 6, right, TITLE_BAR + 88)
    middle = (box[1] + box[3]) // 2
    center = (box[0] + box[2]) // 2

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#f2f3f5", 20)
        magnifier(canvas, center - 60, middle, GREY)
        canvas.text(center - 22, middle, "搜索", 38, GREY)

    return Element(box, "搜索", "et_search_keyword", lambda: app.show("search"), paint)


def magnifier(canvas: Canvas, x: int, y: int, color: str) -> None:
    canvas.arc((x - 15, y - 17, x + 11, y + 9), 0, 359, color, 4)
    canvas.line([(x + 8, y + 6), (x + 18, y + 16)], color, 5)


def ai_entry(app: ChatApp, box: Rect) -> Element:
    """The way into the built-in AI, beside the search."""

    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#efeaff", 20)
        canvas.text((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, app.ai_name, 38, "#6a4cff", "middle")

    return Element(box, app.ai_name, "ask_ai", app.open_ai, paint)


def conversation_row(app: ChatApp, chat: Chat, top: int, *, summary: bool = True) -> list[Element]:
    def open_it() -> None:
        app.open_chat(chat)

    newest = chat.newest
    middle = top + ROW // 2
    round_ = app.old_style.round_avatars
    found = [
        Element((0, top, WIDTH, top + ROW), "", "conversation_row", open_it, description=chat.name, kind=GROUP),
        avatar((32, top + 24, 152, top + 144), chat.name, round_=round_),
        row_line(184, top + ROW - 2),
    ]
    if newest is None or not summary:
        found.append(label(184, middle, ellipsize(chat.name, 46, 800), 46, INK, id="name"))
        return found
    when = short_time(newest.time, app.host.now())
    draft = app.drafts[chat.name].text if chat.name in app.drafts else ""
    words = f"[草稿]{draft}" if draft else f"{newest.sender}：{newest.summary}" if newest.sender else newest.summary
    found += [
        label(184, top + 54, ellipsize(chat.name, 46, 620), 46, INK, id="name"),
        label(1048, top + 52, when, 30, PALE, anchor="right", id="time"),
        label(184, top + 114, ellipsize(words, 36, 740), 36, GREY, id="summary"),
    ]
    if chat.unread:
        found.append(badge(1012, top + 114, chat.unread))
    return found


def _tabs(app: ChatApp, top: int) -> list[Element]:
    found = [
        background((0, top, WIDTH, app.host.height), "#fafafa"),
        background((0, top, WIDTH, top + 2), LINE),
    ]
    step = WIDTH // len(app.tabs)
    for index, (name, target) in enumerate(app.tabs):
        found.append(_tab(app, name, index * step, step, top, target == app.page, lambda t=target: app.show(t)))  # type: ignore[misc]
    unread = sum(chat.unread for chat in app.world.chats.values())
    if unread:
        found.append(badge(step // 2 + 46, top + 30, unread))
    return found


def _tab(app: ChatApp, name: str, left: int, width: int, top: int, lit: bool, tap: Handler) -> Element:
    color = app.old_style.accent if lit else "#7d8187"
    middle = left + width // 2

    def paint(canvas: Canvas) -> None:
        canvas.rect((middle - 26, top + 20, middle + 26, top + 62), color, 16)
        canvas.polygon([(middle - 12, top + 58), (middle + 8, top + 58), (middle - 14, top + 74)], color)
        canvas.text(middle, top + 96, name, 30, color, "middle")

    return Element((left, top, left + width, top + TABS), name, "tab", tap, paint)


def search_page(app: ChatApp) -> list[Element]:
    """Input at the top, then every chat whose name holds the words, then the bait."""
    host = app.host
    found = [page(host, "#ffffff"), back_arrow(lambda: _back(app))]
    found.append(
        text_box(
            host,
            app.search,
            (124, 112, 900, 204),
            42,
            56,
            id_="et_search_keyword",
            radius=20,
            hint="搜索",
            color="#f2f3f5",
        )
    )
    found.append(
        label(990, 158, "取消", 42, app.old_style.accent, anchor="middle", id="btn_cancel", tap=lambda: _back(app))
    )
    words = app.search.text.strip()
    y = TITLE_BAR
    for title, kinds in (("联系人", {ContactKind.FRIEND, ContactKind.BAIT}), ("群聊", {ContactKind.GROUP})):
        chats = [chat for chat in app.world.search(words) if chat.kind in kinds]
        if chats:
            found.append(label(32, y + 40, title, 34, GREY, id="section"))
            y += 76
        for chat in chats:
            if y + ROW <= host.bottom:
                found += conversation_row(app, chat, y, summary=False)
            y += ROW
    if not words:
        found.append(label(WIDTH // 2, 420, "搜索联系人、群聊", 36, PALE, anchor="middle"))
    elif app.ai_name and y + 130 <= host.bottom:
        box: Rect = (32, y + 22, WIDTH - 32, y + 118)
        found.append(_ask_row(app, box, ellipsize(f"{app.ai_name}：{words}", 40, 900)))
    return found


def _ask_row(app: ChatApp, box: Rect, text: str) -> Element:
    def paint(canvas: Canvas) -> None:
        canvas.rect(box, "#f4f1ff", 20)
        canvas.text(box[0] + 36, (box[1] + box[3]) / 2, text, 40, "#6a4cff")

    return Element(box, text, "ask_ai", app.open_ai, paint)


def _back(app: ChatApp) -> None:
    app.back()
