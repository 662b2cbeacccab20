"""The messages of a chat page: rows with avatar, nickname and bubble, times and tips between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_core.texts.layout import text_width, wrap
from simulator.phone.apps.avatars import avatar
from simulator.phone.apps.bubbles import Bubble, text, with_transcript
from simulator.phone.apps.media import media
from simulator.phone.apps.sheet import Sheet, time_text
from simulator.phone.widgets import GROUP, IMAGE, WIDTH, Canvas, Element, Rect, label
from simulator.phone.world import Chat, ContactKind, Kind, Message, MessageState, Side

SEPARATOR_AFTER = timedelta(minutes=5)
TIME_SIZE = 32
NICKNAME_SIZE = 31
_KEPT = 80  # messages that the page can be scrolled through

Row = tuple[int, Callable[[int], list[Element]]]  # its height, and the function that builds it at a top edge


@dataclass(slots=True)
class ChatView:
    """The distance that a chat page is scrolled up from its end, in units."""

    scroll: int = 0


def messages(
    sheet: Sheet, chat: Chat, now: datetime, view: ChatView, window: Rect, resend: Callable[[Message], None]
) -> list[Element]:
    """Return the part of the chat that is visible in ``window``.

    ``view.scroll`` is limited to the length of the chat.
    """
    rows = _rows(sheet, chat, now, resend)
    total = sum(height for height, _ in rows) + 40
    room = window[3] - window[1]
    view.scroll = max(0, min(view.scroll, total - room))
    y = window[1] + 20 if total <= room else window[3] - total + 20 + view.scroll
    found: list[Element] = [Element(window, "", sheet.look.ids.messages, kind="android.widget.ListView")]
    for height, build in rows:
        if y + height > window[1] and y < window[3]:
            for element in build(y):
                element.clip = window
                found.append(element)
        y += height
    return found


def _rows(sheet: Sheet, chat: Chat, now: datetime, resend: Callable[[Message], None]) -> list[Row]:
    rows: list[Row] = []
    previous: Message | None = None
    for message in chat.messages[-_KEPT:]:
        if previous is None or message.time - previous.time > SEPARATOR_AFTER:
            rows.append(_time(sheet, message.time, now))
        if message.kind in (Kind.RECALLED, Kind.TIP):
            rows.append(_tip(sheet, message.summary))
        else:
            rows.append(_message(sheet, message, chat, now, resend))
        previous = message
    return rows


def _time(sheet: Sheet, moment: datetime, now: datetime) -> Row:
    text = time_text(moment, now, twelve_hours=sheet.look.twelve_hours)
    return _line(sheet, text, sheet.look.ids.time)


def _tip(sheet: Sheet, text: str) -> Row:
    return _line(sheet, text, sheet.look.ids.tip)


def _line(sheet: Sheet, text: str, name: str) -> Row:
    size, color = sheet.size(TIME_SIZE), sheet.look.colors.grey
    lines = wrap(text, size, WIDTH - 200)
    step = sheet.size(46)
    height = sheet.size(54) + step * len(lines)

    def build(y: int) -> list[Element]:
        top = y + sheet.size(27) - 6
        width = round(max(text_width(line, size) for line in lines))
        box: Rect = ((WIDTH - width) // 2, top, (WIDTH + width) // 2, top + step * len(lines))

        def paint(canvas: Canvas) -> None:
            for index, line in enumerate(lines):
                canvas.text(WIDTH // 2, top + step * index + step / 2, line, size, color, "middle")

        return [Element(box, text, name, paint=paint)]

    return (height, build)


def _drawn(sheet: Sheet, message: Message, chat: Chat, now: datetime) -> Bubble:
    if message.kind in (Kind.TEXT, Kind.QUOTE):
        return text(sheet, message, chat, now)
    drawn = media(sheet, message)
    return with_transcript(sheet, message, drawn) if message.transcript else drawn


def _message(sheet: Sheet, message: Message, chat: Chat, now: datetime, resend: Callable[[Message], None]) -> Row:
    geometry = sheet.look.geometry
    drawn = _drawn(sheet, message, chat, now)
    mine = message.side is Side.ME
    named = chat.kind is ContactKind.GROUP and not mine
    head = sheet.size(44) if named else 0
    height = max(drawn.height + head, geometry.avatar) + geometry.row_gap

    def build(y: int) -> list[Element]:
        top = y + geometry.row_gap // 2
        who = message.sender or chat.name
        x = WIDTH - geometry.margin - geometry.avatar if mine else geometry.margin
        found = [
            Element((0, y, WIDTH, y + height), "", sheet.look.ids.row, kind=GROUP),
            _avatar(sheet, (x, top, x + geometry.avatar, top + geometry.avatar), who, mine=mine),
        ]
        if named:
            size = sheet.size(NICKNAME_SIZE)
            found.append(
                label(geometry.edge, top + size // 2, who, size, sheet.look.colors.grey, id=sheet.look.ids.nickname)
            )
        left = WIDTH - geometry.edge - drawn.width if mine else geometry.edge
        found += drawn.build(left, top + head)
        box = (left, top + head, left + drawn.width, top + head + drawn.height)
        found += _mark(sheet, message, box, resend)
        return found

    return (height, build)


def _avatar(sheet: Sheet, box: Rect, who: str, *, mine: bool) -> Element:
    """Return an avatar. Its description tells whose message it is."""
    if sheet.look.app == "wechat":
        words = f"{sheet.account if mine else who}头像"
    else:
        words = "我的资料卡" if mine else f"{who}的资料卡"
    return avatar(
        box,
        sheet.account if mine else who,
        round_=sheet.look.round_avatars,
        name=sheet.look.ids.avatar,
        description=words,
    )


def _mark(sheet: Sheet, message: Message, box: Rect, resend: Callable[[Message], None]) -> list[Element]:
    """Return the mark left of a message of ours that has not arrived."""
    y = box[3] - 54 if sheet.look.app == "qq" else (box[1] + box[3]) // 2
    place: Rect = (box[0] - 84, y - 24, box[0] - 36, y + 24)
    if message.state is MessageState.FAILED:

        def failed(canvas: Canvas) -> None:
            canvas.oval(place, sheet.look.colors.badge)
            canvas.rect((place[0] + 21, place[1] + 10, place[0] + 27, place[1] + 29), "#ffffff")
            canvas.rect((place[0] + 21, place[1] + 33, place[0] + 27, place[1] + 39), "#ffffff")

        return [Element(place, "", sheet.look.ids.failed, lambda: resend(message), failed, "重新发送", IMAGE)]
    if message.state is MessageState.SENDING:

        def sending(canvas: Canvas) -> None:
            canvas.arc(place, 0, 359, sheet.look.colors.line, 6)
            canvas.arc(place, -90, 30, sheet.look.colors.grey, 6)

        return [Element(place, "", sheet.look.ids.sending, None, sending, "", "android.widget.ProgressBar")]
    return []
