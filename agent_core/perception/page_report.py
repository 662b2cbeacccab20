"""Reports the reading of one screen: as plain data for the command line, the chat and tests; as boxes on a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from PIL import Image, ImageDraw
from pydantic import BaseModel, ConfigDict

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node
from agent_core.extras import ExtraMissing
from agent_core.geometry import Box
from agent_core.perception.compare import counts_members, without_count
from agent_core.perception.kinds import is_time
from agent_core.perception.lists import ChatRow
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Reading, SendState, Side
from agent_core.perception.redaction import COVER, Secrets, covered_text, secrets_in
from agent_core.perception.tree import TreeHealth
from agent_core.texts import Lang

PixelBox = tuple[int, int, int, int]  # left, top, right, bottom; right and bottom are exclusive
Words = Callable[[str], str]

_TITLE, _CONTROL, _ME, _THEM, _ASKED = "#6b4eff", "#8a6d00", "#0067c5", "#14803c", "#ff2d55"
_HALO = "#ffffff"


class PageKind(StrEnum):
    CHAT = "chat"
    LIST = "list"
    OTHER = "other"


class MessageKind(StrEnum):
    TEXT = "text"
    IMAGE = "image"
    VOICE = "voice"
    FILE = "file"
    CARD = "card"
    RED_PACKET = "red_packet"
    CALL = "call"
    STICKER = "sticker"
    OTHER = "other"


# A still picture of a video is an image, and a place on a map is a card like any other.
_KINDS = {BubbleKind.VIDEO: MessageKind.IMAGE, BubbleKind.LOCATION: MessageKind.CARD}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TitleReport(_Part):
    text: str  # of a group: without its member count
    sure: bool
    group: bool


class MessageReport(_Part):
    side: Side
    kind: MessageKind
    text: str
    sure: bool


class InputReport(_Part):
    box: PixelBox
    text: str
    sure: bool


class SendReport(_Part):
    box: PixelBox | None
    state: SendState


class RowReport(_Part):
    name: str
    preview: str
    unread: int  # 1 for a mark without a number
    dot: bool = False  # the mark has no number, as on muted chats


class PageReport(_Part):
    """One screen. ``title``, ``input`` and ``send`` are None if the page is not a chat; ``input`` also if none is
    seen.
    """

    page: PageKind
    title: TitleReport | None = None
    messages: tuple[MessageReport, ...] = ()  # from the top, the newest last
    question: tuple[int, ...] = ()  # indexes into ``messages``: the customer's newest, which nobody has answered
    input: InputReport | None = None
    send: SendReport | None = None
    rows: tuple[RowReport, ...] = ()  # of a list, from the top
    doubts: tuple[str, ...] = ()  # for people, in the language that was asked for


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A screen as it was read: a chat, or the rows of a list; neither for any other page."""

    chat: ChatScreen | None = None
    rows: tuple[ChatRow, ...] = ()


async def read_page(reader: ScreenReader, frame: Frame, nodes: Sequence[Node] | None, profile: AppProfile) -> ReadPage:
    """Read one screen of the app. No model is asked. Raises ExtraMissing if neither OCR nor the tree can read it."""
    if not reader.reads_pictures and reader.health(nodes, frame) is not TreeHealth.FULL:
        raise ExtraMissing("ocr")
    chat = await reader.chat(frame, nodes, profile, use_model=False)
    if chat is not None:
        return ReadPage(chat)
    rows = tuple(await reader.rows(frame, nodes))
    if rows and _tells_times(rows, await reader.texts(frame, nodes) or (), frame.size[0]):
        return ReadPage(rows=rows)
    return ReadPage()


def without_secrets(page: ReadPage, covered: Sequence[Box]) -> ReadPage:
    """Return the page as people may see it: without texts in covered parts of the picture, or quotations of them."""
    if not covered:
        return page

    def hidden(box: Box | None) -> bool:
        return box is None or any(box.intersects(other) for other in covered)

    chat = page.chat
    texts = [text for row in page.rows if hidden(row.box) for text in (row.name, row.preview)]
    if chat is not None:
        texts += [text for bubble in chat.bubbles if hidden(bubble.box) for text in (bubble.text, bubble.quoted)]
        texts += [chat.draft] if chat.draft and hidden(chat.input_box) else []
    return _covered(page, secrets_in(texts), hidden)


def _covered(page: ReadPage, secrets: Secrets, hidden: Callable[[Box | None], bool]) -> ReadPage:
    def said(text: str, box: Box | None) -> str:
        return COVER if text and hidden(box) else covered_text(text, secrets)

    rows = tuple(replace(row, name=said(row.name, row.box), preview=said(row.preview, row.box)) for row in page.rows)
    chat = page.chat
    if chat is None:
        return ReadPage(rows=rows)
    bubbles = tuple(replace(b, text=said(b.text, b.box), quoted=said(b.quoted, b.box)) for b in chat.bubbles)
    title = said(chat.title, chat.title_box) if chat.title_box else covered_text(chat.title, secrets)
    draft = None if chat.draft is None else said(chat.draft, chat.input_box)
    # A misreading may contain a part of the secret.
    doubts = tuple(replace(d, text=d.text and COVER, other=d.other and COVER) for d in chat.doubts)
    return ReadPage(replace(chat, title=title, bubbles=bubbles, draft=draft, doubts=doubts))


def report(page: ReadPage, lang: Lang = "en") -> PageReport:
    """Return the reading as plain data, with its doubts in words of this language."""
    if page.chat is not None:
        return _chat_report(page.chat, lang)
    rows = tuple(map(_row_report, page.rows))
    return PageReport(page=PageKind.LIST if rows else PageKind.OTHER, rows=rows)


def _chat_report(chat: ChatScreen, lang: Lang) -> PageReport:
    count, asked = len(chat.bubbles), len(chat.question)
    field = chat.input_box
    return PageReport(
        page=PageKind.CHAT,
        title=_title_report(chat),
        messages=tuple(_message_report(bubble) for bubble in chat.bubbles),
        question=tuple(range(count - asked, count)),
        input=InputReport(box=field.as_tuple(), text=chat.draft or "", sure=chat.draft is not None and chat.draft_sure)
        if field
        else None,
        send=SendReport(box=_pixels(chat.send_box), state=chat.send_state),
        doubts=tuple(dict.fromkeys(doubt.told(lang) for doubt in chat.doubts)),
    )


def _row_report(row: ChatRow) -> RowReport:
    dot = row.dot and not row.unread
    return RowReport(name=row.name, preview=row.preview, unread=row.unread or int(dot), dot=dot)


def _title_report(chat: ChatScreen) -> TitleReport:
    group = chat.group or counts_members(chat.title)
    return TitleReport(text=without_count(chat.title) if group else chat.title, sure=chat.title_sure, group=group)


def _message_report(bubble: Bubble) -> MessageReport:
    kind = _KINDS.get(bubble.kind) or MessageKind(bubble.kind.value)
    return MessageReport(side=bubble.side, kind=kind, text=bubble.text, sure=bubble.sure)


def _pixels(box: Box | None) -> PixelBox | None:
    return box.as_tuple() if box else None


def _tells_times(rows: Sequence[ChatRow], texts: Sequence[Reading], width: int) -> bool:
    """Tell whether a time is at the right of any row: an address book and search results have none."""
    return any(
        row.box.top <= text.box.center.y < row.box.bottom and text.box.right > 0.75 * width and is_time(text.text)
        for row in rows
        for text in texts
    )


@dataclass(frozen=True, slots=True)
class _Mark:
    box: Box
    label: str
    color: str
    strong: bool = False


def mark_page(image: Image.Image, page: ReadPage, words: Words) -> Image.Image:
    """Return a copy of ``image`` with a box and a label for each part of ``page``; the question's boxes are strongest.

    A part in doubt is labelled with a question mark.

    words: returns the label's text for ``title``, ``input``, ``send``, ``unread``, ``dot``, ``me``, ``them`` and the
    kinds of messages (``kind_text`` …).
    """
    picture = image.convert("RGB") if image.mode != "RGB" else image.copy()
    draw = ImageDraw.Draw(picture)
    for mark in _marks(page, words):
        _draw(draw, mark, picture.size)
    return picture


def _marks(page: ReadPage, words: Words) -> list[_Mark]:
    chat, said = page.chat, report(page)
    unread = [
        _Mark(row.box, words("dot") if told.dot else f"{words('unread')} {told.unread}", _ASKED, True)
        for row, told in zip(page.rows, said.rows, strict=True)
        if told.unread
    ]
    if chat is None or said.title is None:
        return unread
    marks = []
    if chat.title_box:
        marks.append(_Mark(chat.title_box, _label(words("title"), said.title.sure), _TITLE))
    for index, (bubble, message) in enumerate(zip(chat.bubbles, said.messages, strict=True)):
        if bubble.box:
            label = f"{index + 1} {words(message.side.value)} {words(f'kind_{message.kind.value}')}"
            asked = index in said.question
            color = _ASKED if asked else _ME if message.side is Side.ME else _THEM
            marks.append(_Mark(bubble.box, _label(label, message.sure), color, asked))
    if chat.input_box and said.input:
        marks.append(_Mark(chat.input_box, _label(words("input"), said.input.sure), _CONTROL))
    if chat.send_box:
        marks.append(_Mark(chat.send_box, words("send"), _CONTROL))
    return marks


def _label(text: str, sure: bool) -> str:
    return text if sure else f"{text} ?"


def _draw(draw: ImageDraw.ImageDraw, mark: _Mark, size: tuple[int, int]) -> None:
    from agent_core.texts.layout import font  # it has Chinese letters; loaded only if something is drawn

    unit = max(2, round(min(size) / 216))  # 5 pixels at a width of 1080
    width = unit * 2 if mark.strong else unit
    box = mark.box
    for color, extra in ((_HALO, width + unit), (mark.color, width)):
        edge = (box.left - extra, box.top - extra, max(box.right, box.left) + extra, max(box.bottom, box.top) + extra)
        draw.rectangle(edge, outline=color, width=extra)
    letters = font(unit * 6)
    left, top, right, bottom = letters.getbbox(mark.label)
    wide, high = round(right - left) + unit * 2, round(bottom - top) + unit * 2
    x = max(0, min(box.left - width, size[0] - wide))
    y = max(0, box.top - width - high)
    draw.rectangle((x, y, x + wide, y + high), fill=mark.color)
    draw.text((x + unit - left, y + unit - top), mark.label, font=letters, fill=_HALO)
