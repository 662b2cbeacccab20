"""Reads the name in a chat's header, and checks whether it was read completely.

The whole product relies on this name, and a recogniser skips what it does not know: "11" beside an emoji is read as
"11", and so are "l1" and "1 1". So the letters and the gaps between them are counted and measured, too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from agent_core.geometry import Box
from agent_core.perception import picture
from agent_core.perception.compare import normalise
from agent_core.perception.letters import has_blank_unread, is_flawed
from agent_core.perception.ocr import OcrEngine

CONFIDENCE = 0.88
_LATIN_CONFIDENCE = 0.97  # letters and digits are read with 1.0 or are something else
_KNOWN_SIGNS = frozenset("()（）[]【】-_—–·.,，。、/&+@#!！?？~～:：;；'\"“”‘’《》…|*%=<>")
# WeChat shows it in place of the name.
_STATUS = re.compile(r"(?:对方)?正在(?:输入|讲话|说话)|(?:手机|电脑)?在线(?:$|\s*[-－])|(?:未连接|连接中|收取中)")
_WIDE_DIGITS = re.compile(r"\d\s+\d")  # full-width digits look like this, too
_CASELESS = re.compile(r"^[cCoOsSuUvVwWxXzZ\W]*$")  # small letters that look like capitals, with none to compare with
_STROKES = frozenset("一—–ー")  # one long stroke each; a recogniser confuses them


# Parts of a header, in heights of the name's letters.
_UNIT = 1080
_APART = 1.1  # a gap this wide separates the parts of the line
_SIGN_GAP = 0.22  # a sign is separate from the name; an emoji in a name is not
_SIGN_INK = 0.78  # of the name's contrast: a sign is paler, unless it is coloured
_SIGN_HEIGHT = 1.12
_SOLID = 0.2  # side of a square that fits into no stroke of a letter or a sign
_MOST_SOLID = 0.15  # of its ink, for anything drawn in strokes
_HOLE = (0.15, 0.42)  # of its box that the outline of the blue robot encloses; a heart's encloses more
_FAINTEST = 14  # levels: a white heart on a grey header
_COLOURED = 60  # levels between the channels of a coloured pixel
_BLUE = (130, 180)  # of 256 hues
_RIGHT_ICONS = 0.80  # of the width: icons are right of this
# a bare count by the arrow: its right end (of the width), its distance to the name
_COUNT_RIGHT, _COUNT_GAP = 0.22, 2.5
_COUNT = re.compile(r"\d{1,4}\+?")
_BLOCK_INK = 110  # the most levels by which that background stands out: ink stands out more
_BLOCK, _BLANK = 0.5, 0.985  # of its box that the background of a pill or a tag covers: at least, at most


@dataclass(frozen=True, slots=True)
class Title:
    """The name in a header, as it was read.

    flawed: something there was not read, or equal letters do not look equal.
    blank: there may be a space that was not read.
    print: a digest of its pixels.
    box: the place of the name, in pixels.
    signed: something after the name is none of the app's signs, so it may be an emoji of the name.
    """

    text: str = ""
    confidence: float = 0.0
    flawed: bool = False
    blank: bool = False
    print: str = ""
    box: Box | None = None
    signed: bool = False

    @property
    def sure(self) -> bool:
        least = _LATIN_CONFIDENCE if self.text.isascii() else CONFIDENCE
        text = self.text
        ambiguous = (
            not all(_is_known(char) for char in text)
            or bool(_STROKES.intersection(text))
            or bool(_WIDE_DIGITS.search(text))
            or (text.isascii() and bool(_CASELESS.match(text)))
            or bool(_STATUS.match(text))
        )
        read = bool(text) and self.confidence >= least
        return read and not (ambiguous or self.flawed or self.blank or self.signed)


async def read_title(ocr: OcrEngine, image: Image.Image, region: Box) -> Title:
    """Read the name in the line of a header that begins right of its arrow.

    Everything that is not a name is separated first: the pill of unread messages before it, tags and signs after it,
    icons at the right, the status line below.
    """
    place = name_place(image, region)
    if place is None:
        return Title()
    part, room = place.box, place.room
    # Twice, with different margins: a recogniser that guesses gives two results.
    wider = Box(
        max(part.left - 14, min(part.left, room.left)),
        max(part.top - 8, min(part.top, room.top)),
        min(part.right + 14, max(part.right, room.right)),
        min(part.bottom + 8, max(part.bottom, room.bottom)),
    )
    counts = [place.count] if place.count else []
    first, second, *count = await ocr.recognise_lines([image.crop(box.as_tuple()) for box in (part, wider, *counts)])
    best = max(first, second, key=lambda read: read.confidence)
    same = normalise(first.text) == normalise(second.text)
    text = first.text if same else best.text
    return Title(
        text,
        best.confidence if same else min(best.confidence, 0.5),
        flawed=place.strange
        or not all(_COUNT.fullmatch(read.text.strip()) for read in count)
        or is_flawed(text, image, part),
        blank=same and has_blank_unread(text, image, part),
        print=sha256(image.crop(part.as_tuple()).tobytes()).hexdigest()[:16],
        box=part,
        signed=place.signed,
    )


@dataclass(frozen=True, slots=True)
class NamePlace:
    """The place of a name.

    room: how far it may be cropped without including anything else of the header.
    strange: something there is not understood.
    signed: something after the name is none of the app's signs.
    count: what can only be the number of unread messages beside the arrow.
    """

    box: Box
    room: Box
    strange: bool = False
    signed: bool = False
    count: Box | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A separate piece of a header's line.

    contrast: 0–255, against the header's background.
    solid: it is thicker than any stroke.
    block: a pale background with letters on it.
    strokes: a mask of its ink.
    """

    box: Box
    contrast: int
    coloured: bool
    solid: bool
    block: bool
    strokes: Image.Image


def name_place(image: Image.Image, region: Box) -> NamePlace | None:
    """Return the place of the name in a header's line; None if nothing is written there."""
    line, rows, above = _name_line(image, region)
    if line is None:
        return None
    found, reaches_icons = _without_icons(_pieces(image, line), round(_RIGHT_ICONS * image.width))
    letters = [piece for piece in found if not piece.block and not piece.coloured]
    if not letters:
        return None
    groups: list[list[_Piece]] = []
    high = _height(letters)
    for piece in found:
        if piece.block and not piece.coloured:
            groups.append([])  # nothing goes on across a pill or a tag
        elif groups and groups[-1] and piece.box.left - groups[-1][-1].box.right < _APART * high:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    groups = [group for group in groups if group]
    ink = max(piece.contrast for piece in letters)
    written = [group for group in groups if any(p.contrast >= _SIGN_INK * ink and not p.coloured for p in group)]
    name = max(written or groups, key=lambda group: group[-1].box.right - group[0].box.left)
    kept = _without_signs(name)
    before_name = [group for group in groups if group[-1].box.right < name[0].box.left]
    behind = [group for group in groups if group[0].box.left > name[-1].box.right]
    count = next((group for group in before_name if _may_be_count(group, name, high, image.width)), None)
    strange = (
        above
        or reaches_icons
        or any(group is not count for group in before_name)
        or any(group[-1].box.right - group[0].box.left >= 2.5 * high for group in behind)
    )
    left, right = kept[0].box.left, kept[-1].box.right
    before = max((p.box.right for p in found if p.box.right <= left), default=region.left)
    after = min((p.box.left for p in found if p.box.left >= right), default=region.right)
    room = Box(before + 1, rows[0], after - 1, rows[1])
    margin = max(2, round(10 * image.width / _UNIT))
    box = Box(
        max(left - margin, min(left, room.left)),
        max(room.top, line.top - margin),
        min(right + margin, max(right, room.right)),
        min(room.bottom, line.bottom + margin),
    )
    # Letters are never coloured, pale or solid: this is an emoji or a company's sign.
    strange = strange or any(p.coloured or p.solid or p.contrast < _SIGN_INK * ink for p in kept)
    signs = [*name[len(kept) :], *(piece for group in behind for piece in group)]
    return NamePlace(
        box, room, strange, not all(_is_sign(image, piece, ink) for piece in signs), _around(count, margin)
    )


def _without_icons(found: list[_Piece], right: int) -> tuple[list[_Piece], bool]:
    """Return the pieces without the icons right of ``right``, and whether a name may reach up to them."""
    first = next((index for index, piece in enumerate(found) if piece.box.left > right), len(found))
    letters = [piece for piece in found[:first] if not piece.block and not piece.coloured]
    if not letters:
        return found[:first], False
    for index in range(first, len(found)):
        if found[index].box.left - found[index - 1].box.right >= _APART * _height(letters):
            return found[:index], False
    return found, first < len(found)


def _may_be_count(group: Sequence[_Piece], name: Sequence[_Piece], high: int, width: int) -> bool:
    """Tell whether the group left of a name can be the number of unread messages without a background of its own."""
    right = group[-1].box.right
    narrow = right - group[0].box.left < 2.5 * high
    return narrow and right < _COUNT_RIGHT * width and name[0].box.left - right >= _COUNT_GAP * high


def _around(group: Sequence[_Piece] | None, margin: int) -> Box | None:
    if group is None:
        return None
    tops, bottoms = [piece.box.top for piece in group], [piece.box.bottom for piece in group]
    left, right = group[0].box.left, group[-1].box.right
    return Box(max(0, left - margin), max(0, min(tops) - margin), right + margin, max(bottoms) + margin)


def _name_line(image: Image.Image, region: Box) -> tuple[Box | None, tuple[int, int], bool]:
    """Return the name's line, the rows that it may be cropped to, and whether something is above it.

    The name is the first tall row, with the parts of 二 joined. A status line begins close below it and is never
    joined.
    """
    right = min(region.right, round(_RIGHT_ICONS * image.width))
    area = Box(region.left, region.top, max(region.left + 1, right), region.bottom)
    crop = image.crop(area.as_tuple())
    ground = picture.common_color(crop)
    rows = picture.spans(picture.projections(picture.ink(crop, ground))[1], least=2)
    # Rows that the header's edge cuts belong to the page below it or to the status bar above it.
    rows = [row for row in rows if row[0] > 0 and row[1] < crop.height]
    if not rows:
        return None, (0, 0), False
    tallest = max(bottom - top for top, bottom in rows)
    first = next(index for index, (top, bottom) in enumerate(rows) if bottom - top >= 0.7 * tallest)
    top, bottom = rows[first]
    index = first
    while index > 0 and bottom - rows[index - 1][0] <= 1.15 * tallest:  # the upper stroke of a letter
        index -= 1
        top = rows[index][0]
    free = (rows[index - 1][1] if index else 0, rows[first + 1][0] - 1 if first + 1 < len(rows) else crop.height)
    rest = max(0, round(34 * image.width / _UNIT) - (bottom - top)) // 2  # a single 一 needs a line's height around it
    line = Box(region.left, area.top + max(free[0], top - rest), region.right, area.top + min(free[1], bottom + rest))
    return line, (area.top + free[0], area.top + free[1]), index > 0


def _pieces(image: Image.Image, line: Box) -> list[_Piece]:
    """Return the separate pieces of a line, from the left."""
    crop = image.crop(line.as_tuple())
    ground = picture.common_color(crop)
    marks = picture.ink(crop, ground, 10)
    columns = picture.spans(picture.projections(marks)[0], gap=0)
    found = []
    for start, end in columns:
        own = marks.crop((start, 0, end, crop.height))
        box = own.getbbox()
        if box is None or (end - start) < 2:
            continue
        part = crop.crop((start, box[1], end, box[3]))
        contrast = picture.contrast(part, Box(0, 0, *part.size), ground)
        if contrast < _FAINTEST:
            continue
        placed = Box(line.left + start, line.top + box[1], line.left + end, line.top + box[3])
        strokes = picture.ink(part, ground, max(10, contrast // 2))
        solid, block = _is_solid(strokes, line.height), _is_block(part, ground, line.height)
        found.append(_Piece(placed, contrast, _is_coloured(part), solid, block, strokes))
    return found


def _is_solid(strokes: Image.Image, high: int) -> bool:
    """Tell whether much of what is drawn is thicker than any stroke. ``high``: the line's height."""
    marks, side = np.asarray(strokes) > 0, max(3, round(_SOLID * high))
    if min(marks.shape) < side:
        return False
    sums = np.pad(marks.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    squares = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    return bool((squares == side * side).sum() > _MOST_SOLID * marks.sum())


def _is_sign(image: Image.Image, piece: _Piece, ink: int) -> bool:
    """Tell whether a piece is drawn as the apps draw their signs: a tag, thin grey strokes, a blue outline.

    ink: the contrast of letters.
    """
    if piece.block and not piece.coloured:
        return True
    if piece.solid or not (piece.coloured or piece.contrast < _SIGN_INK * ink):
        return False
    hole = _hole(piece.strokes)
    if piece.coloured and (hole < _HOLE[0] or not _is_blue(image.crop(piece.box.as_tuple()))):
        return False
    return hole <= _HOLE[1]


def _hole(strokes: Image.Image) -> float:
    """Return how much of its box an outline encloses, 0–1."""
    room = Image.new("L", (strokes.width + 2, strokes.height + 2))
    room.paste(strokes, (1, 1))
    ImageDraw.floodfill(room, (0, 0), 128)
    return room.histogram()[0] / (strokes.width * strokes.height)


def _is_coloured(part: Image.Image) -> bool:
    _, saturation, value = part.convert("HSV").split()
    strong = sum(ImageChops.multiply(saturation, value).histogram()[_COLOURED:])
    return strong > 0.08 * part.width * part.height


def _is_blue(part: Image.Image) -> bool:
    hue, saturation, _ = part.convert("HSV").split()
    counts = hue.histogram(saturation.point([255 if level > 90 else 0 for level in range(256)]))
    return sum(counts[_BLUE[0] : _BLUE[1]]) > 0.85 * max(1, sum(counts))


def _is_block(part: Image.Image, ground: picture.Color, high: int) -> bool:
    """Tell whether a piece has a pale background, as the pill of unread messages and tags have and letters have not."""
    if part.width < 0.7 * part.height or part.height < 0.35 * high:
        return False
    inner = part.crop(
        (part.width // 8, part.height // 10, part.width - part.width // 8, part.height - part.height // 10)
    )
    own = picture.common_color(inner)
    if picture.near(own, ground, 8) or max(abs(a - b) for a, b in zip(own, ground, strict=True)) > _BLOCK_INK:
        return False
    wide, high_ = max(1, inner.width // 8), max(1, inner.height // 8)
    edges = (
        (0, 0, inner.width, high_),
        (0, inner.height - high_, inner.width, inner.height),
        (0, inner.height // 4, wide, inner.height - inner.height // 4),
        (inner.width - wide, inner.height // 4, inner.width, inner.height - inner.height // 4),
    )
    # A pill or a tag holds letters; an emoji of one pale colour does not.
    return _BLOCK < _share(inner, own) < _BLANK and all(_share(inner.crop(edge), own) > 0.6 for edge in edges)


def _share(part: Image.Image, color: picture.Color) -> float:
    """Return the share of a picture that has a colour, 0–1."""
    return picture.mask(part, color, 12).histogram()[255] / max(1, part.width * part.height)


def _height(pieces: Sequence[_Piece]) -> int:
    return max(piece.box.height for piece in pieces)


def _without_signs(name: list[_Piece]) -> list[_Piece]:
    """Return a name without the app's signs after it: separate, no taller than letters, paler or coloured."""
    kept = list(name)
    dark = [piece.contrast for piece in name if not piece.coloured]
    ink, high = max(dark, default=255), _height(name)
    while len(kept) > 1:
        last, before = kept[-1], kept[-2]
        apart = last.box.left - before.box.right >= _SIGN_GAP * high
        pale = last.contrast < _SIGN_INK * ink or last.coloured
        if not (apart and pale and last.box.height <= _SIGN_HEIGHT * high and last.box.width <= 1.3 * high):
            # A sign may be drawn in several pieces that are separate from the name and all pale.
            cut = _sign_of_pieces(kept, ink, high)
            if cut is None:
                break
            kept = kept[:cut]
            continue
        kept.pop()
    return kept


def _sign_of_pieces(kept: Sequence[_Piece], ink: int, high: int) -> int | None:
    """Return the index at which a sign of several pieces begins at the end of ``kept``; None if there is none."""
    for cut in range(len(kept) - 1, 0, -1):
        tail = kept[cut:]
        if not all(piece.contrast < _SIGN_INK * ink or piece.coloured for piece in tail):
            return None
        if tail[-1].box.right - tail[0].box.left > 1.3 * high:
            return None
        if kept[cut].box.left - kept[cut - 1].box.right >= _SIGN_GAP * high:
            return cut
    return None


def _is_known(char: str) -> bool:
    """Tell whether a recogniser can be trusted with a character: it reads a face as © and an emoji as ●."""
    return char.isalnum() or char.isspace() or char in _KNOWN_SIGNS
