"""Rows of a list of chats or of search results: name, unread count, where to tap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from agent_core.devices.base import Frame
from agent_core.geometry import Box
from agent_core.screen import picture
from agent_core.screen.ocr import OcrEngine
from agent_core.screen.readings import Reading

_COUNT = re.compile(r"^(\d{1,3})\+?$")
_ONES = str.maketrans("lI|iO", "11110")  # in a mark that holds a number
_TIME = re.compile(
    r"^(?:(?:今天|昨天|前天|上午|下午|凌晨|晚上|中午)?\s*\d{1,2}[:：]\d{2}|昨天|前天|刚刚|星期[一二三四五六日天]|周[一二三四五六日天]"
    r"|(?:\d{2,4}[年/.-])?\d{1,2}[月/.-]\d{1,2}日?)$"
)


@dataclass(frozen=True, slots=True)
class ChatRow:
    """``box`` is the whole width of the row, in pixels. ``unread`` 0 where no count is seen (a dot has none)."""

    name: str
    box: Box
    unread: int = 0
    preview: str = ""
    confidence: float = 1.0


def is_time(text: str) -> bool:
    """Whether ``text`` is what a row says of when: ``14:05``, ``昨天``, ``星期三`` …"""
    return bool(_TIME.match(text.strip()))


def chat_rows(readings: Sequence[Reading], frame: Frame) -> list[ChatRow]:
    """The rows from the top. A row is a name with what stands under it in the same column, right of an avatar."""
    width, height = frame.size
    inside = [r for r in readings if 0.06 * height < r.box.center.y < 0.92 * height and r.role != "input"]
    names = [r for r in inside if 0.13 * width <= r.box.left <= 0.36 * width and not _TIME.match(r.text.strip())]
    column = _column(names, width)
    lines = sorted((r for r in names if abs(r.box.left - column) <= 0.03 * width), key=lambda r: r.box.top)
    groups: list[list[Reading]] = []
    for line in lines:
        # From OCR the boxes hug the letters; a row's two lines stand closer than the next row's name.
        if groups and len(groups[-1]) < 2 and line.box.top - groups[-1][-1].box.bottom < 0.9 * line.box.height:
            groups[-1].append(line)
        else:
            groups.append([line])
    rows = [_row(group, index, groups, inside, width) for index, group in enumerate(groups)]
    return [
        row
        for row, group in zip(rows, groups, strict=True)
        if picture.avatar_left_of(frame.image, group[0].box, row.box)
    ]


async def count_unread(rows: Sequence[ChatRow], frame: Frame, ocr: OcrEngine | None) -> list[ChatRow]:
    """The rows with the counts that stand in red marks too small to be found as text; 1 where one cannot be read."""
    counted = []
    for row in rows:
        if row.unread:
            counted.append(row)
            continue
        marks = picture.red_marks(
            frame.image, Box(round(0.85 * row.box.width), row.box.top, row.box.right, row.box.bottom)
        )
        count = 0
        if marks:
            mark = marks[-1]
            inset = mark.height // 6  # the round ends would be read as brackets
            inner = (mark.left + inset, mark.top + inset // 2, mark.right - inset, mark.bottom - inset // 2)
            text = (await ocr.recognise(frame.image.crop(inner)))[0] if ocr else ""
            match = _COUNT.match(text.translate(_ONES))
            count = max(1, int(match[1])) if match else 1
        counted.append(replace(row, unread=count))
    return counted


def _column(names: Sequence[Reading], width: int) -> int:
    """Where most of the names begin."""
    best: list[int] = []
    for name in names:
        near = [other.box.left for other in names if abs(other.box.left - name.box.left) <= 0.02 * width]
        if len(near) > len(best):
            best = near
    return round(median(best)) if best else 0


def _row(
    group: Sequence[Reading], index: int, groups: Sequence[Sequence[Reading]], inside: Sequence[Reading], width: int
) -> ChatRow:
    top, bottom = group[0].box.top, group[-1].box.bottom
    margin = round(0.035 * width)
    if index:
        margin = min(margin, max(0, (top - groups[index - 1][-1].box.bottom) // 2))
    upper = top - margin
    lower = bottom + margin
    if index + 1 < len(groups):
        lower = min(lower, bottom + max(0, (groups[index + 1][0].box.top - bottom) // 2))
    counts = [
        int(match[1])
        for reading in inside
        if reading not in group and upper <= reading.box.center.y < lower
        if (reading.box.center.x > 0.85 * width or reading.box.right < group[0].box.left)
        if (match := _COUNT.match(reading.text.strip()))
    ]
    return ChatRow(
        name=group[0].text.strip(),
        box=Box(0, max(0, upper), width, lower),
        unread=max(counts, default=0),
        preview=group[1].text.strip() if len(group) > 1 else "",
        confidence=group[0].confidence,
    )
