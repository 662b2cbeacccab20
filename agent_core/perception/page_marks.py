"""Draws boxes around the parts of a page that were read, on a copy of a screenshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image, ImageDraw

from agent_core.geometry import Box
from agent_core.perception.page_report import ReadPage, report
from agent_core.perception.readings import Side

Words = Callable[[str], str]

_TITLE, _CONTROL, _ME, _THEM, _ASKED = "#6b4eff", "#8a6d00", "#0067c5", "#14803c", "#ff2d55"
_HALO = "#ffffff"


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
