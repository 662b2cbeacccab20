"""Exports a screen as a kit: replaces words, turns avatars into blocks of their mean colours and pictures into mosaics.

Nothing here relies on the reader having understood the page: a page that it cannot read is the one worth sharing.
Anything that is neither flat, nor a known icon, nor a line of text that OCR found, becomes a plain block. Needs OCR and
NumPy.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node
from agent_core.errors import InputRejected
from agent_core.geometry import Box
from agent_core.kits.disguise import Disguise
from agent_core.kits.ground import Area, bare, clusters, mean_color, mosaic
from agent_core.kits.kit import MOST_COLORS, MOST_NODES, Band, Kit, NodePart, TextPart
from agent_core.perception import badges, layout, picture, shapes
from agent_core.perception.app_look import edge_avatars
from agent_core.perception.messages import own_box
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.page_report import MessageKind, PageReport, ReadPage, read_page, report
from agent_core.perception.pixels import Color, Grid, Pixels, far, mode
from agent_core.perception.reader import ScreenReader
from agent_core.perception.readings import BubbleKind, Reading
from agent_core.texts.layout import font

# Lengths are fractions of the screen's width.
_SIGN = 0.065  # a small sign is no larger
_AVATAR = 0.06  # an avatar is no smaller
_DENSE = 0.3  # of its box that areas without a flat colour cover in a picture
_HEADER = 0.20  # of a page that is not a chat
_ICONS_RIGHT = 0.885  # no name reaches this far: a sign in a header after this is an icon
_FLAT_SHARE = 0.001  # of a page that a flat colour covers
_FEW = 60  # pixels that a colour needs to be kept
_MANY = 160  # most colours that are kept
# Kinds of messages on which an app itself writes. The words of all others are a person's.
_APP_KINDS = frozenset({BubbleKind.CALL, BubbleKind.FILE, BubbleKind.CARD, BubbleKind.RED_PACKET, BubbleKind.VOICE})
_APP_MESSAGES = frozenset(MessageKind(kind.value) for kind in _APP_KINDS)

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of text on the screen. ``personal``: a person wrote it; in others the app's own words may stay."""

    box: Box
    ink: Box
    text: str
    personal: bool


async def export_kit(
    frame: Frame,
    nodes: Sequence[Node] | None,
    profile: AppProfile,
    *,
    version: str = "",
    activity: str = "",
    seed: str | None = None,
    ocr: OcrEngine | None = None,
) -> Kit:
    """Return the screen in ``frame`` as a kit. Raises ExtraMissing if OCR is not installed.

    nodes: the accessibility tree of the same moment; its texts are replaced in the same way. None leaves the tree out.
    seed: makes the replacements the same each time; only for kits that show nobody's words.
    """
    ocr = ocr or OcrEngine()
    page = await read_page(ScreenReader(ocr=ocr, model=None), frame, None, profile)
    grid = Grid.of(frame.image)
    seen = _shapes(grid, profile)
    lines = await _lines(ocr, frame, seen, page)
    disguise = Disguise(profile, seed)
    chance = random.Random(seed) if seed is not None else random.SystemRandom()  # noqa: S311 - no secret
    blocks = _avatars(grid, page, seen, lines)
    marks = _marks(frame.image, blocks) if page.rows else []
    beside = (_beside(line, marks) for line in lines if not any(box.contains(line.box.center) for box in blocks))
    lines = [line for line in beside if line is not None]
    letterless = _without_letters(frame.image, lines)
    for box in blocks:
        letterless.paste(_around(frame.image, box), box.as_tuple())
    image = bare(letterless, _areas_of(grid, seen), [*marks, *_icons(grid, seen, lines)])
    _cover_pictures(image, letterless, seen, chance)
    for box in blocks:
        _block(image, frame.image, box)
    for mark in marks:
        image.paste(frame.image.crop(mark.as_tuple()), (mark.left, mark.top))
    await _without_words(ocr, image, [*marks, *blocks])
    texts = [_text_part(frame.image, line, disguise) for line in lines]
    palette, ground = _areas(image)
    return Kit(
        app=profile.key,
        version=version,
        activity=activity,
        size=frame.size,
        page=_disguised(report(page), disguise),
        colors=tuple(map(_hex, palette)),
        ground=tuple(ground),
        texts=tuple(part for part in texts if part is not None),
        nodes=None if nodes is None else tuple(_node_part(node, disguise) for node in _checked(nodes)),
    )


# The contents of the screen


def _shapes(grid: Grid, profile: AppProfile) -> shapes.PageShapes | None:
    header, fields = layout.header(grid), layout.fields(grid)
    if header is None or not fields:
        return None
    return shapes.page_of(grid, profile, top=header.bottom, bottom=fields[0].top)


async def _lines(ocr: OcrEngine, frame: Frame, seen: shapes.PageShapes | None, page: ReadPage) -> list[_Line]:
    """Return the lines of the messages as the reader separates them, and the other lines that OCR finds."""
    image = frame.image
    found: list[_Line] = []
    taken: list[Box] = []
    for shape in seen.shapes if seen is not None else ():
        if shape.form is shapes.MessageShape.PICTURE:
            continue
        boxes = picture.lines_of(image, own_box(shape), shape.color)
        words = await ocr.recognise_lines([image.crop(line.box.as_tuple()) for line in boxes])
        if any(word.confidence < 0.5 for word in words):
            continue  # not only lines of text: OCR's own findings are more reliable there
        taken += [line.box for line in boxes]
        personal = _is_personal(shape.box, seen, page)
        found += [
            _Line(line.box, line.ink, word.text, personal) for line, word in zip(boxes, words, strict=True) if word.text
        ]
    for reading in await ocr.read(image, digest=frame.digest):
        if not any(reading.box.intersects(box) for box in taken) and not _is_icon(reading, seen, page):
            personal = _is_personal(reading.box, seen, page)
            found.append(_Line(reading.box, _ink(image, reading.box), reading.text, personal))
    return found


def _is_personal(box: Box, seen: shapes.PageShapes | None, page: ReadPage) -> bool:
    """Tell whether the text in ``box`` is a person's: a name, a message, a draft."""
    chat = page.chat
    if chat is not None:
        if chat.title_box is not None and chat.title_box.intersects(box):
            return True
        if chat.draft and chat.input_box is not None and chat.input_box.intersects(box):
            return True
        said = next((b for b in chat.bubbles if b.box is not None and b.box.contains(box.center)), None)
        if said is not None:
            return said.kind not in _APP_KINDS
    parts = (part for shape in (seen.shapes if seen else ()) for part in (shape.box, shape.quote, shape.transcript))
    return any(part is not None and part.intersects(box) for part in parts)


def _is_icon(reading: Reading, seen: shapes.PageShapes | None, page: ReadPage) -> bool:
    """Tell whether OCR took an icon for a letter: a sign alone, or one letter in the bars that is not the name."""
    letters = sum(char.isalnum() for char in reading.text)
    if letters > 1:
        return False
    if letters == 0:
        return True
    if page.rows:
        return not any(row.box.contains(reading.box.center) for row in page.rows)
    title = page.chat.title_box if page.chat is not None else None
    named = title is not None and title.intersects(reading.box)
    return seen is not None and not named and (not seen.plain or not seen.box.contains(reading.box.center))


def _ink(image: Image.Image, box: Box) -> Box:
    crop = image.crop(box.as_tuple())
    bounds = picture.ink(crop, picture.common_color(crop), 60).getbbox()
    if bounds is None:
        return box
    return Box(box.left + bounds[0], box.top + bounds[1], box.left + bounds[2], box.top + bounds[3])


# People and pictures


def _cover_pictures(
    image: Image.Image, letterless: Image.Image, seen: shapes.PageShapes | None, chance: random.Random
) -> None:
    """Put a mosaic in ``image`` over parts without a flat colour in ``letterless``; bubbles on a wallpaper stay."""
    top = seen.box.top if seen is not None else round(_HEADER * image.width)
    bottom = seen.box.bottom if seen is not None else image.height
    if seen is not None and not seen.plain:
        before = image.copy()
        mosaic(image, seen.box, chance)
        for shape in seen.shapes:
            image.paste(before.crop(shape.box.as_tuple()), (shape.box.left, shape.box.top))
        return
    found = list(_pictures(Grid.of(letterless), top, bottom))
    found += [
        shape.box for shape in (seen.shapes if seen is not None else ()) if shape.form is shapes.MessageShape.PICTURE
    ]
    for box in found:
        mosaic(image, box, chance)


def _areas_of(grid: Grid, seen: shapes.PageShapes | None) -> list[Area]:
    """Return the backgrounds of the bubbles, of their quotations, of the input and of Send."""
    found = []
    for shape in seen.shapes if seen is not None else ():
        if shape.form is shapes.MessageShape.PICTURE:
            continue
        found.append(Area(shape.box, shape.color))
        found += [Area(shape.transcript, shape.color)] if shape.transcript else []
        found += [Area(shape.quote, shape.quote_color)] if shape.quote else []
    for field in layout.fields(grid)[:1]:
        found += [Area(field.box, field.color), *(Area(box, _ground(grid.image, box)) for box in field.buttons)]
    return found


def _icons(grid: Grid, seen: shapes.PageShapes | None, lines: Sequence[_Line]) -> list[Box]:
    """Return the icons of a chat's header and input bar by their usual places; none that contains a letter."""
    header, fields = layout.header(grid), layout.fields(grid)
    if seen is None or header is None or not fields:
        return []
    right = grid.small(
        Box(round(_ICONS_RIGHT * grid.image.width), header.line.top, header.line.right, header.line.bottom)
    )
    busy = far(grid.pixels[:, :], header.ground) > 20
    signs = (grid.full(box) for box in clusters(busy, right))
    found = [header.arrow, *(box for box in signs if box.width <= _SIGN * grid.image.width), *fields[0].icons]
    return [box for box in found if not any(line.box.intersects(box) for line in lines)]


async def _without_words(ocr: OcrEngine, image: Image.Image, known: Sequence[Box]) -> None:
    """Cover everything in ``image``, which should have no words, that OCR still takes for letters: very large ones."""
    draw = ImageDraw.Draw(image)
    for reading in await ocr.read(image):
        if sum(char.isalnum() for char in reading.text) > 1 and not any(reading.box.intersects(box) for box in known):
            draw.rectangle(_drawn(reading.box), fill=_ground(image, reading.box))


def _avatars(grid: Grid, page: ReadPage, seen: shapes.PageShapes | None, lines: Sequence[_Line]) -> list[Box]:
    """Return the avatars of a list, or everything at both edges of a chat that is large enough for one."""
    if page.rows:
        texts = [line.box.left for line in lines if any(row.box.contains(line.box.center) for row in page.rows)]
        column = [left for left in texts if left < 0.4 * grid.image.width]
        found = badges.find_avatars(grid.image, round(median(column))) if column else []
        more = (row.avatar for row in page.rows if row.avatar is not None)
        return [*_header_avatars(grid, page), *found, *(box for box in more if not any(map(box.intersects, found)))]
    if seen is None or not seen.plain:
        return []
    return edge_avatars(grid, seen)


def _header_avatars(grid: Grid, page: ReadPage) -> list[Box]:
    """Return our own avatar above a list, at the left."""
    bottom, strip = page.rows[0].box.top // grid.step, round(_HEADER * grid.width)
    part = grid.pixels[:bottom, :strip]
    busy = far(part, mode(part, tolerance=4)[0]) > 6
    least = _AVATAR * grid.width
    found = (box for box in clusters(busy, Box(0, 0, strip, bottom)) if box.right < strip)
    return [grid.full(box) for box in found if min(box.width, box.height) >= least]


def _pictures(grid: Grid, top: int, bottom: int) -> Iterator[Box]:
    """Yield the boxes of parts without a flat colour, in pixels of the picture."""
    rows = (top // grid.step, bottom // grid.step)
    part = grid.pixels[rows[0] : rows[1]]
    busy = np.ones(part.shape[:2], dtype=bool)
    for color in _flat_colors(part):
        busy &= far(part, color) > 6
    for box in clusters(busy, Box(0, 0, grid.width, len(part))):
        own = busy[box.top : box.bottom, box.left : box.right]
        if max(box.width, box.height) > _SIGN * grid.width and float(own.mean()) >= _DENSE:
            yield grid.full(Box(box.left, box.top + rows[0], box.right, box.bottom + rows[0]))


def _flat_colors(pixels: Pixels) -> list[Color]:
    """Return the colours of areas: no single colour of a photo covers as much."""
    flat = pixels.reshape(-1, 3).astype(np.int32)
    values, counts = np.unique((flat[:, 0] << 16) | (flat[:, 1] << 8) | flat[:, 2], return_counts=True)
    common = values[counts >= _FLAT_SHARE * len(flat)].tolist()
    return [(value >> 16, value >> 8 & 255, value & 255) for value in common]


def _marks(image: Image.Image, avatars: Sequence[Box]) -> list[Box]:
    """Return the red marks at the corners of avatars."""
    disc = badges.round_avatars(image, avatars)
    found = (badges.corner_mark(image, box, disc=disc) for box in avatars)
    return [mark.box for mark in found if mark is not None]


def _beside(line: _Line, marks: Sequence[Box]) -> _Line | None:
    """Return the line without the mark at its left end; None if it is the number in one."""
    for mark in marks:
        if mark.contains(line.box.center):
            return None
        if mark.intersects(line.box) and mark.right < line.box.right:
            box = Box(max(mark.right, line.box.left), line.box.top, line.box.right, line.box.bottom)
            return replace(line, box=box, ink=replace(line.ink, left=max(mark.right, line.ink.left)))
    return line


def _around(image: Image.Image, box: Box) -> Color:
    """Return the colour beside an avatar."""
    return _rgb(image.getpixel((max(0, box.left - 3) or min(image.width - 1, box.right + 3), box.center.y)))


def _block(image: Image.Image, before: Image.Image, box: Box) -> None:
    """Replace an avatar by its mean colour in its shape."""
    crop, ground = before.crop(box.as_tuple()), _around(before, box)
    mean = mean_color(before, box)
    if max(abs(a - b) for a, b in zip(mean, ground, strict=True)) < 40:
        mean = (140, 150, 160) if sum(ground) > 384 else (110, 120, 130)
    round_ = _is_round(crop, ground)
    flat = Image.new("RGB", crop.size, ground if round_ else mean)
    if round_:
        ImageDraw.Draw(flat).ellipse((0, 0, crop.width - 1, crop.height - 1), fill=mean)
    image.paste(flat, (box.left, box.top))


def _is_round(crop: Image.Image, ground: Color) -> bool:
    inset = max(1, crop.width // 14)
    corners = [(x, y) for x in (inset, crop.width - 1 - inset) for y in (inset, crop.height - 1 - inset)]
    return sum(picture.near(_rgb(crop.getpixel(corner)), ground, 12) for corner in corners) >= 3


# Words


def _without_letters(image: Image.Image, lines: Sequence[_Line]) -> Image.Image:
    bare = image.copy()
    draw = ImageDraw.Draw(bare)
    for line in lines:
        draw.rectangle(_drawn(line.box), fill=_ground(image, line.box))
    return bare


def _text_part(image: Image.Image, line: _Line, disguise: Disguise) -> TextPart | None:
    shown = disguise.plain(line.text) if line.personal else disguise.line(line.text)
    one, other = font(100).getbbox(line.text), font(100).getbbox(shown)
    wide, high = one[2] - one[0], one[3] - one[1]
    if not wide or not high or not shown.strip():
        return None
    by_width, by_height = 100 * line.ink.width / wide, 100 * line.ink.height / high
    size = by_width if 0.5 <= by_width / max(1, by_height) <= 1.35 else by_height
    size = max(6, min(400, round(size)))
    left = max(0, line.ink.left - round(other[0] * size / 100))
    color = _strongest(image, line.ink, _ground(image, line.box))
    return TextPart(left=left, middle=line.ink.center.y, size=size, color=_hex(color), text=shown)


def _strongest(image: Image.Image, box: Box, ground: Color) -> Color:
    """Return the colour of letters: the median of the pixels that are farthest from their background."""
    pixels = np.asarray(image.crop(box.as_tuple()).convert("RGB")).astype(np.int16).reshape(-1, 3)
    away = np.abs(pixels - np.array(ground, dtype=np.int16)).max(axis=1)
    least = np.quantile(away, 0.97)
    middle = np.median(pixels[away >= least], axis=0)
    return int(middle[0]), int(middle[1]), int(middle[2])


def _disguised(page: PageReport, disguise: Disguise) -> PageReport:
    """Return the report with replaced words."""

    def said(kind: MessageKind, text: str) -> str:
        return "\n".join(map(disguise.line, text.split("\n"))) if kind in _APP_MESSAGES else disguise.plain(text)

    title = page.title and page.title.model_copy(update={"text": disguise.plain(page.title.text)})
    field = page.input and page.input.model_copy(update={"text": disguise.plain(page.input.text)})
    messages = tuple(m.model_copy(update={"text": said(m.kind, m.text)}) for m in page.messages)
    rows = tuple(
        row.model_copy(update={"name": disguise.line(row.name), "preview": disguise.line(row.preview)})
        for row in page.rows
    )
    return page.model_copy(update={"title": title, "input": field, "messages": messages, "rows": rows, "doubts": ()})


def _node_part(node: Node, disguise: Disguise) -> NodePart:
    return NodePart(
        box=node.box.as_tuple(),
        text=disguise.line(node.text)[:2000],
        description=disguise.line(node.description)[:2000],
        id=node.resource_id[:200],
        kind=node.class_name[:200],
        clickable=node.clickable,
        focused=node.focused,
    )


def _checked(nodes: Sequence[Node]) -> Sequence[Node]:
    if len(nodes) > MOST_NODES:
        raise InputRejected(
            f"The tree has {len(nodes)} elements, more than {MOST_NODES}.",
            advice="Leave the tree out.",
            key="kit_tree_large",
            count=len(nodes),
            most=MOST_NODES,
        )
    return nodes


# Areas of colour


def _areas(image: Image.Image) -> tuple[list[Color], list[Band]]:
    """Return the picture in few colours, as bands of rows that look alike."""
    pixels = np.asarray(image.convert("RGB")).astype(np.int32)
    codes: Codes = (pixels[..., 0] << 16) | (pixels[..., 1] << 8) | pixels[..., 2]
    values, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colors = np.stack((values >> 16, values >> 8 & 255, values & 255), axis=1)
    chosen: list[int] = []
    for index in np.argsort(-counts)[: 40 * _MANY].tolist():
        if len(chosen) >= min(_MANY, MOST_COLORS) or (chosen and counts[index] < _FEW):
            break
        if not chosen or int(np.abs(colors[chosen] - colors[index]).max(axis=1).min()) > 2:
            chosen.append(index)
    palette = colors[chosen]
    nearest = np.empty(len(values), dtype=np.int16)
    for start in range(0, len(values), 4096):
        part = colors[start : start + 4096]
        nearest[start : start + 4096] = np.abs(part[:, None, :] - palette[None, :, :]).sum(axis=2).argmin(axis=1)
    rows = nearest[inverse].reshape(codes.shape)
    bands = list(_bands(rows))
    return [(int(r), int(g), int(b)) for r, g, b in palette.tolist()], bands


def _bands(rows: NDArray[np.int16]) -> Iterator[Band]:
    changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
    for start, end in zip([0, *changes.tolist()], [*changes.tolist(), len(rows)], strict=True):
        row = rows[start]
        cuts = [0, *(np.flatnonzero(row[1:] != row[:-1]) + 1).tolist(), len(row)]
        runs = tuple((cuts[i + 1] - cuts[i], int(row[cuts[i]])) for i in range(len(cuts) - 1))
        yield Band(rows=end - start, runs=runs)


def _ground(image: Image.Image, box: Box) -> Color:
    pixels = np.asarray(image.crop(box.as_tuple()).convert("RGB")).astype(np.int16)
    return mode(pixels, tolerance=3)[0] if pixels.size else (0, 0, 0)


def _drawn(box: Box) -> tuple[int, int, int, int]:
    return (box.left, box.top, max(box.left, box.right - 1), max(box.top, box.bottom - 1))


def _rgb(pixel: object) -> Color:
    return (int(pixel[0]), int(pixel[1]), int(pixel[2])) if isinstance(pixel, tuple) else (0, 0, 0)


def _hex(color: Color) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
