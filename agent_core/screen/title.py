"""Reading the name in a chat's header, and whether all that stands there was read.

The whole product leans on this name, and a recogniser passes over what it does not know: "11" beside an emoji is
read as "11", and so are "l1" and "1 1". So the letters and the gaps between them are counted and measured, too.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from PIL import Image, ImageChops

from agent_core.geometry import Box
from agent_core.screen import picture
from agent_core.screen.compare import normalise
from agent_core.screen.ocr import OcrEngine

CONFIDENCE = 0.88
_LATIN_CONFIDENCE = 0.97  # letters and digits are read with 1.0 or are something else
# Gaps that may be a blank, in heights of the letters. Where all digits are of one width, a 1 has room on both sides,
# most on its right.
_LATIN_GAP, _AFTER_NARROW, _BEFORE_NARROW = 0.27, 0.12, 0.04
_WIDE_GAP = 0.245  # a bold blank; the strokes of a few letters (川, 八) stand as far apart, and are unsure
_KNOWN_SIGNS = frozenset("()（）[]【】-_—–·.,，。、/&+@#!！?？~～:：;；'\"“”‘’《》…|*%=<>")
# WeChat shows it in the place of the name.
_STATUS = re.compile(r"(?:对方)?正在(?:输入|讲话|说话)|(?:手机|电脑)?在线(?:$|\s*[-－])|(?:未连接|连接中|收取中)")
_WIDE_DIGITS = re.compile(r"\d\s+\d")  # full-width digits look so, too
_CASELESS = re.compile(r"^[cCoOsSuUvVwWxXzZ\W]*$")  # small letters that look like capitals, and none to compare with
_STROKES = frozenset("一—–ー")  # one long stroke each, and read as one another
_FLAT = frozenset("一二-—–_…·~.,")
_NARROW = frozenset("ijl|I1.,:;!'()[]{}ft ")


# Parts of a header, in heights of the name's letters.
_UNIT = 1080
_APART = 1.1  # a gap this wide parts what stands in the line
_SIGN_GAP = 0.22  # a sign stands apart from the name; an emoji in a name does not
_SIGN_INK = 0.78  # of the name's contrast: a sign is paler, or it is coloured
_SIGN_HEIGHT = 1.12
_COLOURED = 60  # levels between the channels of a coloured pixel
_BLUE = (130, 180)  # of 256 hues
_RIGHT_ICONS = 0.80  # of the width: icons stand right of here
_BLOCK_INK = 110  # levels by which that ground stands out at the most: ink stands out more
_BLOCK = 0.5  # of its box that the ground of a pill or a tag covers


@dataclass(frozen=True, slots=True)
class Title:
    """``flawed``: something stands there that was not read, or equal letters do not look equal. ``blank``: a blank may
    stand there that was not read. ``print``: a digest of its pixels. ``box``: where the name stands, in pixels.
    ``signed``: something coloured stands behind the name, the app's sign or an emoji that belongs to it."""

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

    What is no name is told apart first: the pill of unread messages before it, tags and signs behind it, icons at the
    right, the status line below.
    """
    place = name_place(image, region)
    if place is None:
        return Title()
    part, room = place.box, place.room
    # Twice, with other margins: a recogniser that guesses says two things.
    wider = Box(
        max(part.left - 14, min(part.left, room.left)),
        max(part.top - 8, min(part.top, room.top)),
        min(part.right + 14, max(part.right, room.right)),
        min(part.bottom + 8, max(part.bottom, room.bottom)),
    )
    first, second = await ocr.recognise_lines([image.crop(box.as_tuple()) for box in (part, wider)])
    best = max(first, second, key=lambda read: read.confidence)
    same = normalise(first.text) == normalise(second.text)
    text = first.text if same else best.text
    return Title(
        text,
        best.confidence if same else min(best.confidence, 0.5),
        flawed=place.strange or is_flawed(text, image, part),
        blank=same and has_blank_unread(text, image, part),
        print=sha256(image.crop(part.as_tuple()).tobytes()).hexdigest()[:16],
        box=part,
        signed=place.signed,
    )


@dataclass(frozen=True, slots=True)
class NamePlace:
    """Where a name stands. ``room``: how far it may be cropped without anything else of the header.

    ``strange``: something stands there that is not understood. ``signed``: something coloured stands behind the name.
    """

    box: Box
    room: Box
    strange: bool = False
    signed: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands apart in a header's line. ``contrast`` 0–255 against the header's ground.

    ``vivid``: coloured, but no blue outline as the app draws its signs.
    """

    box: Box
    contrast: int
    coloured: bool
    vivid: bool
    block: bool


def name_place(image: Image.Image, region: Box) -> NamePlace | None:
    """Return where the name stands in a header's line; None if nothing is written there."""
    line, rows, above = _name_line(image, region)
    if line is None:
        return None
    found = _pieces(image, line)
    while found and (found[-1].box.left > _RIGHT_ICONS * image.width):
        found.pop()  # icons at the right
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
    strange = above or any(not _is_sign_alone(group, name, high) for group in groups if group is not name)
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
    # In the name it is an emoji or a company; behind it, the app's sign or an emoji that belongs to the name.
    strange = strange or any(piece.coloured for piece in kept)
    return NamePlace(box, room, strange, any(piece.vivid for piece in name[len(kept) :]))


def _name_line(image: Image.Image, region: Box) -> tuple[Box | None, tuple[int, int], bool]:
    """Return the rows of the name, those up to what stands above and below it, and whether something does above.

    The name is the first tall row, parts of 二 joined. A status line below begins close under it and is never joined.
    """
    right = min(region.right, round(_RIGHT_ICONS * image.width))
    area = Box(region.left, region.top, max(region.left + 1, right), region.bottom)
    crop = image.crop(area.as_tuple())
    ground = picture.common_color(crop)
    rows = picture.spans(picture.projections(picture.ink(crop, ground))[1], least=2)
    # What the header's edge cuts belongs to the page below it or to the status bar above it.
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
    rest = max(0, round(34 * image.width / _UNIT) - (bottom - top)) // 2  # a lone 一 wants a line's height around it
    line = Box(region.left, area.top + max(free[0], top - rest), region.right, area.top + min(free[1], bottom + rest))
    return line, (area.top + free[0], area.top + free[1]), index > 0


def _pieces(image: Image.Image, line: Box) -> list[_Piece]:
    """What stands apart in a line, from the left."""
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
        if contrast < 24:
            continue
        placed = Box(line.left + start, line.top + box[1], line.left + end, line.top + box[3])
        coloured = _is_coloured(part)
        vivid = coloured and not _is_blue_outline(part, ground)
        found.append(_Piece(placed, contrast, coloured, vivid, _is_block(part, ground, line.height)))
    return found


def _is_coloured(part: Image.Image) -> bool:
    _, saturation, value = part.convert("HSV").split()
    strong = sum(ImageChops.multiply(saturation, value).histogram()[_COLOURED:])
    return strong > 0.08 * part.width * part.height


def _is_blue_outline(part: Image.Image, ground: picture.Color) -> bool:
    hue, saturation, _ = part.convert("HSV").split()
    strong = saturation.point([255 if level > 90 else 0 for level in range(256)])
    counts = hue.histogram(strong)
    blue = sum(counts[_BLUE[0] : _BLUE[1]])
    filled = sum(picture.ink(part, ground, 40).histogram()[1:])
    return blue > 0.85 * max(1, sum(counts)) and filled < 0.6 * part.width * part.height


def _is_block(part: Image.Image, ground: picture.Color, high: int) -> bool:
    """Whether a piece has a pale ground of its own, as the pill of unread messages and tags have: letters have none."""
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
    return _share(inner, own) > _BLOCK and all(_share(inner.crop(edge), own) > 0.6 for edge in edges)


def _share(part: Image.Image, color: picture.Color) -> float:
    """How much of a picture has a colour, 0–1."""
    return picture.mask(part, color, 12).histogram()[255] / max(1, part.width * part.height)


def _height(pieces: Sequence[_Piece]) -> int:
    return max(piece.box.height for piece in pieces)


def _is_sign_alone(group: Sequence[_Piece], name: Sequence[_Piece], high: int) -> bool:
    """Whether what stands far from the name is a sign, an icon, or the number of unread messages at the left."""
    width = group[-1].box.right - group[0].box.left
    ink = max(piece.contrast for piece in name)
    pale = all(piece.contrast < _SIGN_INK * ink or piece.coloured for piece in group)
    left = group[-1].box.right < name[0].box.left and width < 2.5 * high
    return left or (pale and width < 2.5 * high)


def _without_signs(name: list[_Piece]) -> list[_Piece]:
    """A name without the signs that the app puts behind it: apart, no taller than letters, paler or coloured."""
    kept = list(name)
    dark = [piece.contrast for piece in name if not piece.coloured]
    ink, high = max(dark, default=255), _height(name)
    while len(kept) > 1:
        last, before = kept[-1], kept[-2]
        apart = last.box.left - before.box.right >= _SIGN_GAP * high
        pale = last.contrast < _SIGN_INK * ink or last.coloured
        if not (apart and pale and last.box.height <= _SIGN_HEIGHT * high and last.box.width <= 1.3 * high):
            # A sign may be drawn in several pieces: what stands apart from the name and is pale throughout.
            cut = _sign_of_pieces(kept, ink, high)
            if cut is None:
                break
            kept = kept[:cut]
            continue
        kept.pop()
    return kept


def _sign_of_pieces(kept: Sequence[_Piece], ink: int, high: int) -> int | None:
    """Where a sign of several pieces begins at the end of ``kept``; None if there is none."""
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
    """Whether a recogniser can be trusted with a character: it writes © for a face, and ● for an emoji."""
    return char.isalnum() or char.isspace() or char in _KNOWN_SIGNS


def is_flawed(text: str, image: Image.Image, line: Box) -> bool:
    """Whether ``text`` cannot be all that is written in ``line``."""
    letters = [char for char in text if not char.isspace()]
    if not letters:
        return True
    if text.isascii():
        found = picture.glyphs(image, line)
        if len(found) != len(letters):
            return len(found) > len(letters)  # fewer: some touch
        return _unlike(letters, found)
    width, height = picture.ink_size(image, line)
    if all(char in _FLAT for char in letters):
        return False
    em = height / 0.93
    return width > em * (1.15 * sum(map(_width, text)) + 0.4)


def _unlike(letters: list[str], found: list[tuple[int, int]]) -> bool:
    """Whether two equal letters have different sizes."""
    first: dict[str, tuple[int, int]] = {}
    for letter, size in zip(letters, found, strict=True):
        other = first.setdefault(letter, size)
        allowed = max(2.0, 0.16 * max(size[1], other[1]))
        if abs(size[0] - other[0]) > allowed or abs(size[1] - other[1]) > allowed:
            return True
    return False


def has_blank_unread(text: str, image: Image.Image, line: Box) -> bool:
    """Whether a blank seems to stand in ``line`` that is not in ``text``: "1 1" is read as "11"."""
    gaps = picture.gaps(image, line)
    if not text.isascii():
        if not all(char.isalnum() for char in text):
            return False  # signs have room around them
        return max(gaps, default=0) > _WIDE_GAP * picture.ink_size(image, line)[1]
    letters = text.strip()
    places = [index for index, letter in enumerate(letters) if not letter.isspace()]
    if len(gaps) != len(places) - 1:
        return False  # some touch
    height = picture.ink_size(image, line)[1]
    for (left, right), gap in zip(itertools.pairwise(places), gaps, strict=True):
        least = _LATIN_GAP + _AFTER_NARROW * (letters[left] in _NARROW) + _BEFORE_NARROW * (letters[right] in _NARROW)
        if right - left == 1 and gap > least * height:
            return True
    return False


def _width(char: str) -> float:
    """About how wide a character is, in em."""
    if unicodedata.east_asian_width(char) in "WF":
        return 1.0
    if char in _NARROW:
        return 0.6 if char == "1" else 0.36
    return 0.85 if char in "mwMW@" else 0.7 if char.isupper() else 0.6
