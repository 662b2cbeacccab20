"""Reads the rows of a list of chats or of search results: name, unread count, place to tap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.perception import badges, picture, tree
from agent_core.perception.badges import Mark
from agent_core.perception.kinds import is_time
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.readings import Reading
from agent_core.perception.tree_rows import within

_COUNT = re.compile(r"^(\d{1,3})\+?$")
_ONES = str.maketrans("lI|iOo", "111100")  # in a mark that holds a number
# Prefixes that apps put before the newest message. A recogniser may confuse brackets.
_PREFIX = re.compile(
    r"^[\[［【(（]\s*(?:(?P<count>\d{1,4})\+?\s*条(?:新消息)?|(?P<draft>草稿)|(?P<called>[^\[\]［］【】]{0,6}@[^\[\]［］【】]{0,6})"
    r"|特别关[心注])\s*[\]］】)）]\s*"
)
# QQ describes a row for screen readers: "昵称, ,有2条未读,预览,时间".
_UNREAD_FIELD = re.compile(r"^[^,，]*[,，]\s*有\s*(\d{1,4})\+?\s*条未读[,，]")
_DESCRIBED = re.compile(
    r"^(?P<name>.+?)[,，]\s*[,，](?:\s*有\s*(?P<count>\d{1,4})\+?\s*条未读[,，])?(?P<preview>.*)[,，](?P<time>[^,，]*)$",
    re.DOTALL,
)

NAMES = (0.13, 0.36)  # of the screen's width: names begin here
_TIMES = 0.75  # of the screen's width: times end right of this
_EDGE = 0.85  # of the screen's width: the marks of older versions are right of this
_TABS = 0.8  # of the screen's height: the tabs are below


@dataclass(frozen=True, slots=True)
class ChatRow:
    """One row of a list.

    box: the row in its whole width, in pixels.
    unread: the count; 0 if none is shown.
    preview: the newest message without the app's prefix.
    dot: there is a mark without a count, as on muted chats.
    time: as the row shows it; "" if it shows none.
    draft: the preview is our own unsent text.
    called: the app says that somebody was mentioned by @, so this is a group.
    sender: who wrote, if the app tells it beyond doubt.
    avatar_seen: False if only the tree gives the avatar's place; the picture may show another row there.
    """

    name: str
    box: Box
    unread: int = 0
    preview: str = ""
    confidence: float = 1.0
    dot: bool = False
    time: str = ""
    draft: bool = False
    called: bool = False
    sender: str = ""
    avatar: Box | None = None
    avatar_seen: bool = True

    @property
    def is_new(self) -> bool:
        """True if the app shows anything as unread."""
        return self.unread > 0 or self.dot


def with_preview(row: ChatRow, text: str) -> ChatRow:
    """Return the row with this preview, after parsing off "[2条]", "[草稿]" and "[有人@我]"."""
    rest = text.strip()
    while (found := _PREFIX.match(rest)) is not None:
        rest = rest[found.end() :]
        row = replace(
            row,
            unread=max(row.unread, int(found["count"] or 0)),
            draft=row.draft or bool(found["draft"]),
            called=row.called or bool(found["called"]),
        )
    return replace(row, preview=rest)


def described_name(description: str) -> str:
    """Return the name in QQ's description of a row; "" if ``description`` is none."""
    found = _DESCRIBED.match(description.strip())
    return found["name"].strip() if found else ""


def tabs(readings: Sequence[Reading], profile: AppProfile, size: tuple[int, int]) -> list[Reading]:
    """Return the tabs at the bottom of the app's main pages, from the left; empty if fewer than two are in line."""
    low = [r for r in readings if r.box.center.y > _TABS * size[1] and r.text.strip() in profile.tabs]
    lines = [[r for r in low if abs(r.box.center.y - one.box.center.y) < 0.02 * size[0]] for one in low]
    best = max(lines, key=len, default=[])
    # A tree may name a tab twice: as the item, and as the words in it.
    once = {r.text.strip(): r for r in best}
    return sorted(once.values(), key=lambda r: r.box.left) if len(once) > 1 else []


def is_list_page(
    rows: Sequence[ChatRow], readings: Sequence[Reading], profile: AppProfile, size: tuple[int, int]
) -> bool:
    """Tell whether this is the app's list of chats: its tabs at the bottom, and a row with a time.

    An address book has the tabs and no times; a folder of chats ("服务号") has times and no tabs.
    """
    return any(row.time for row in rows) and bool(tabs(readings, profile, size))


def chat_rows(readings: Sequence[Reading], frame: Frame) -> list[ChatRow]:
    """Return the rows from the top, found in the picture: a name and a preview under it, right of an avatar."""
    width = frame.size[0]
    inside = _inside(readings, frame)
    names = [r for r in inside if _may_be_name(r, width)]
    column = _column(names, width)
    if not column:
        return []
    lines = sorted((r for r in names if abs(r.box.left - column) <= 0.03 * width), key=lambda r: r.box.top)
    avatars = badges.find_avatars(frame.image, min(line.box.left for line in lines))
    rows, rest = [], list(lines)
    for number, avatar in enumerate(avatars):
        reach = 0.2 * avatar.height
        own = [r for r in lines if avatar.top - reach <= r.box.center.y < avatar.bottom + reach]
        rest = [r for r in rest if r not in own]
        # A line lower than the middle is the preview of a name that was not read.
        if own and own[0].box.center.y < avatar.center.y + 0.15 * avatar.height:
            rows.append(_row(own, _row_box(avatars, number, width), inside, avatar))
    rows += _without_avatars(rest, rows, inside, avatars, width)
    return sorted(rows, key=lambda row: row.box.top)


async def without_marks(readings: Sequence[Reading], frame: Frame, ocr: OcrEngine) -> list[Reading]:
    """Read the names again that a mark comes close to.

    A wide "99+" reaches as far as the name. The recogniser then reads both as one line, or loses the first letter.
    """
    width, _ = frame.size
    lines = _lines(_inside(readings, frame), width)
    if not lines:
        return list(readings)
    column = round(median(line.box.left for line in lines))
    avatars = badges.find_avatars(frame.image, min(line.box.left for line in lines))
    disc = badges.round_avatars(frame.image, avatars)
    found = list(readings)
    for avatar in avatars:
        mark = badges.corner_mark(frame.image, avatar, disc=disc)
        if mark is None or mark.box.right < column - 0.012 * width:
            continue
        near = [
            r
            for r in found
            if avatar.top - 0.3 * avatar.height < r.box.center.y < avatar.center.y
            and r.box.left < column + 0.12 * width
            and r.box.right > mark.box.right + 0.01 * width
        ]
        if near:
            name = max(near, key=lambda r: r.box.right)
            alone = await _read_beside(name, mark.box, column, frame, ocr)
            found = [r for r in found if r not in near] + ([alone] if alone is not None else [])
    return found


async def _read_beside(one: Reading, mark: Box, column: int, frame: Frame, ocr: OcrEngine) -> Reading | None:
    """Read a name from ``column`` on with the mark painted over; None if nothing else is left.

    A name whose letters the mark covers is unsure.
    """
    width = frame.size[0]
    area = Box(column - round(0.004 * width), one.box.top - 4, one.box.right + 4, one.box.bottom + 4)
    crop = frame.image.crop(area.as_tuple())
    ground = picture.common_color(crop)
    pill = Image.new("L", crop.size)
    x, y = area.left, area.top
    around = (mark.left - x - 2, mark.top - y - 2, mark.right - x + 1, mark.bottom - y + 1)
    ImageDraw.Draw(pill).rounded_rectangle(around, mark.height // 2 + 2, fill=255)
    crop.paste(ground, mask=pill)
    lines = picture.text_lines(crop, Box(0, 0, *crop.size), ground, width=width)
    if not lines:
        return None
    line = lines[-1]
    text, confidence = await ocr.recognise(crop.crop(line.as_tuple()))
    touched = ImageChops.multiply(picture.ink(crop, ground), pill.filter(ImageFilter.MaxFilter(3)))
    if touched.getbbox() is not None:
        confidence = 0.0
    box = Box(area.left + line.left, area.top + line.top, area.left + line.right, area.top + line.bottom)
    return replace(one, text=text, box=box, confidence=confidence)


def tree_rows(nodes: Sequence[Node], frame: Frame) -> list[ChatRow]:
    """Return the rows from the top by the tree, or by the places of its texts if it has no nodes for rows.

    Ids change with each version of the apps, so rows are recognised by their structure.
    """
    width, _ = frame.size
    readings = tree.readings(nodes, frame.size)
    holders = _holders(nodes, frame.size)
    held = [[r for r in readings if r.box != one.box and within(r.box, one.box)] for one in holders]
    column = _column([r for texts in held for r in texts if _may_be_name(r, width)], width)
    described = [one for one in nodes if described_name(one.description)]
    found = [
        row for one, texts in zip(holders, held, strict=True) if (row := _held(one, texts, described, column, width))
    ]
    if not found:
        return chat_rows(readings, frame)
    avatars = badges.find_avatars(frame.image, column or round(NAMES[0] * width))
    rows = []
    for row in found:
        avatar = next((box for box in avatars if box.top <= row.box.center.y < box.bottom), None)
        if row.time or avatar is not None:
            node = _avatar_node(nodes, row.box, column) if avatar is None else None
            rows.append(replace(row, avatar=avatar or node, avatar_seen=node is None))
    return sorted(rows, key=lambda row: row.box.top)


def _avatar_node(nodes: Sequence[Node], row: Box, column: int) -> Box | None:
    """Return the square left of a row's name.

    Only the tree shows an avatar that is as pale as the row.
    """
    squares = [
        n.box
        for n in nodes
        if within(n.box, row)
        and n.box.right <= column
        and n.box.height >= row.height // 2
        and abs(n.box.width - n.box.height) <= n.box.height // 8
    ]
    return max(squares, key=lambda box: box.height, default=None)


async def count_unread(rows: Sequence[ChatRow], frame: Frame, ocr: OcrEngine | None) -> list[ChatRow]:
    """Add the counts and dots of the red marks in the picture: at the avatar's corner, else at the row's right edge."""
    disc = badges.round_avatars(frame.image, [row.avatar for row in rows if row.avatar and row.avatar_seen])
    counted = []
    for row in rows:
        avatar = row.avatar if row.avatar_seen else None
        mark = badges.corner_mark(frame.image, avatar, disc=disc) if avatar is not None else None
        if mark is None and not row.unread:
            edge = Box(round(_EDGE * row.box.width), row.box.top, row.box.right, row.box.bottom)
            mark = next(reversed(badges.red_marks(frame.image, edge)), None)
        if mark is None:
            counted.append(row)
        elif not mark.number:
            counted.append(replace(row, dot=True))
        else:
            counted.append(replace(row, unread=row.unread or await read_number(mark, frame, ocr)))
    return counted


async def read_number(mark: Mark, frame: Frame, ocr: OcrEngine | None) -> int:
    """Return the number in a red mark: 99 for "99+", 1 if it cannot be read, 0 for a dot."""
    if not mark.number:
        return 0
    if ocr is None:
        return 1
    box = mark.box
    inset = box.height // 6  # the round ends would be read as brackets
    inner = (box.left + inset, box.top + inset // 2, box.right - inset, box.bottom - inset // 2)
    text = (await ocr.recognise(frame.image.crop(inner)))[0]
    match = _COUNT.match(text.translate(_ONES))
    return max(1, int(match[1])) if match else 1


# Rows by the picture


def _inside(readings: Sequence[Reading], frame: Frame) -> list[Reading]:
    height = frame.size[1]
    return [r for r in readings if 0.06 * height < r.box.center.y < 0.92 * height and r.role != "input"]


def _lines(inside: Sequence[Reading], width: int) -> list[Reading]:
    """Return the lines that begin at the column of the names, from the top."""
    names = [r for r in inside if _may_be_name(r, width)]
    column = _column(names, width)
    return sorted((r for r in names if abs(r.box.left - column) <= 0.03 * width), key=lambda r: r.box.top)


def _may_be_name(reading: Reading, width: int) -> bool:
    return NAMES[0] * width <= reading.box.left <= NAMES[1] * width and not is_time(reading.text)


def _column(names: Sequence[Reading], width: int) -> int:
    """Return where most of the names begin; the left one of two such places."""
    best: list[int] = []
    for name in sorted(names, key=lambda reading: reading.box.left):
        near = [other.box.left for other in names if abs(other.box.left - name.box.left) <= 0.02 * width]
        if len(near) > len(best):
            best = near
    return round(median(best)) if best else 0


def _row_box(avatars: Sequence[Box], number: int, width: int) -> Box:
    """Return the row's box: around an avatar, at most half way to the next ones."""
    box, margin = avatars[number], round(0.03 * width)
    above = (box.top - avatars[number - 1].bottom) // 2 if number else margin
    below = (avatars[number + 1].top - box.bottom) // 2 if number + 1 < len(avatars) else margin
    return Box(0, max(0, box.top - min(margin, above)), width, box.bottom + min(margin, below))


def _row(lines: Sequence[Reading], box: Box, inside: Sequence[Reading], avatar: Box | None) -> ChatRow:
    width = box.width
    beside = [r for r in inside if box.top <= r.box.center.y < box.bottom and r not in lines]
    times = [r for r in beside if r.box.right > _TIMES * width and is_time(r.text)]
    counts = [
        int(match[1])
        for r in beside
        if r.box.center.x > _EDGE * width and r not in times and (match := _COUNT.match(r.text.strip()))
    ]
    row = ChatRow(
        name=lines[0].text.strip(),
        box=box,
        unread=max(counts, default=0),
        confidence=lines[0].confidence,
        time=times[0].text.strip() if times else "",
        avatar=avatar,
    )
    return with_preview(row, lines[1].text) if len(lines) > 1 else row


def _without_avatars(
    lines: Sequence[Reading], known: Sequence[ChatRow], inside: Sequence[Reading], avatars: Sequence[Box], width: int
) -> list[ChatRow]:
    """Return rows whose avatar is as pale as the row: a name with a time beside it and a preview under it.

    A name that a header or the tabs cut is lower than the others and left out.
    """
    if not avatars:
        return []
    side = avatars[0].height
    usual = median([r.box.height for r in inside if any(r.text.strip() == row.name for row in known)] or [0])
    found = []
    for name, preview in pairwise(lines):
        apart = preview.box.center.y - name.box.center.y
        middle = (name.box.center.y + preview.box.center.y) // 2
        box = Box(0, max(0, middle - round(0.7 * side)), width, middle + round(0.7 * side))
        if 0.25 * side < apart < 0.9 * side and name.box.height >= 0.8 * usual:
            row = _row((name, preview), box, inside, None)
            beside = [r for r in inside if r.text.strip() == row.time and box.contains(r.box.center)]
            if any(abs(r.box.center.y - name.box.center.y) < 0.5 * name.box.height for r in beside):
                top = middle - side // 2
                found.append(replace(row, avatar=Box(avatars[0].left, top, avatars[0].right, top + side)))
    return found


# Rows by the tree


def _holders(nodes: Sequence[Node], size: tuple[int, int]) -> list[Node]:
    """Return the nodes that hold one row each: as wide as the screen; the inner ones of nested nodes."""
    width, height = size
    wide = [
        n
        for n in nodes
        if n.box.width >= 0.9 * width
        and 0.09 * width <= n.box.height <= 0.3 * width
        and n.box.top >= 0
        and n.box.bottom <= height
    ]
    inner = [n for n in wide if not any(within(o.box, n.box) and o.box != n.box for o in wide)]
    return list({n.box: n for n in inner}.values())


def _held(holder: Node, texts: Sequence[Reading], described: Sequence[Node], column: int, width: int) -> ChatRow | None:
    """Return the row in a holder; None if there is none. ``column``: where the names of the list begin."""
    said = [
        one.description.strip()
        for one in described
        if within(holder.box, one.box) and one.box.height < 1.3 * holder.box.height
    ]
    lines = sorted(
        (r for r in texts if _may_be_name(r, width) and abs(r.box.left - column) <= 0.03 * width),
        key=lambda r: r.box.top,
    )
    if not lines:
        return _described(holder, said[0]) if said else None
    name = lines[0]
    row = _row(lines, holder.box, texts, None)
    # The count is at the avatar's corner: left of the name, in the upper half.
    corner = [
        int(match[1])
        for r in texts
        if r.box.center.x < name.box.left and r.box.center.y < holder.box.center.y
        if r.box.width < 0.12 * width and (match := _COUNT.match(r.text.strip()))
    ]
    told = [
        int(match[1])
        for one in said
        if one.startswith(name.text) and (match := _UNREAD_FIELD.match(one[len(name.text) + 1 :]))
    ]
    return replace(row, unread=max(row.unread, *corner, *told, 0))


def _described(holder: Node, description: str) -> ChatRow:
    """Return a row of which the tree has only its description."""
    found = _DESCRIBED.match(description)
    if found is None:
        return ChatRow("", holder.box)
    time = found["time"].strip()
    row = ChatRow(found["name"].strip(), holder.box, int(found["count"] or 0), time=time if is_time(time) else "")
    return with_preview(row, found["preview"])
