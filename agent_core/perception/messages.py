"""Reads the shapes of a chat page: their kinds and their words.

A text is recognised by its shape: lines of one size on one background, with nothing taller among them, in a bubble that
fits them. A card has a picture or smaller, paler lines beside its words; a picture has no background of one colour, or
letters too small for a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from PIL import Image

from agent_core.geometry import Box
from agent_core.perception import picture
from agent_core.perception.kinds import call_line, voice_seconds
from agent_core.perception.letters import FULL, Letters, ems, is_coloured, is_emoji, is_glyph, letters_of
from agent_core.perception.ocr import OcrEngine, Recognised
from agent_core.perception.picture import Color, TextLine
from agent_core.perception.readings import Bubble, BubbleKind, DoubtKind, Side
from agent_core.perception.shapes import MessageShape, PageShapes, Shape, plays

TEXT_CONFIDENCE = 0.80
SIGNS_CONFIDENCE = 0.5
_WORDS_MEET = re.compile(r"[A-Za-z0-9][.,!?;:%)]?$")
_SECONDS = re.compile(
    r"(?:^|[^\d])(\d{1,3})\s*(?:[\"″”“＂]|['’‘′]{2}|['’‘′](?!\w))\s*\W{0,6}$|^\W{0,4}(\d{1,3})\s*[\"″”“＂'’‘′]{1,2}"
)
_SAID = re.compile(r"[\w?？!！。.…,，~～+＋]")
_ONLY_SECONDS = re.compile(r"^\d{1,3}\s*[\"″”“＂'’‘′`´]{0,3}$")
_WAVES = re.compile(r"[三川一二丨|lIi!1.·:…\-—~＞>》)）(（\]\[▶►●○ ]+")  # as a recogniser writes bars and arcs
_WORD = re.compile(r"[\u4e00-\u9fff]")
_FILE_SIZE = re.compile(r"^\d+(?:[.,]\d+)?\s*[KMG]?B?(?:\s*[/／|·].*)?$", re.IGNORECASE)
_FILE_NAME = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")
_CARD_FOOT = re.compile(r"^[^\w]{0,2}.{0,3}(?:QQ|微信)?(?:小程序|链接|网页|分享|公众号|视频号)$")
# In heights of a line.
_TALL = 1.55  # no letter or emoji of a text is taller than this, compared with the usual line
_PALE = 0.62  # of the strongest line's contrast
# Of the screen's width.
_LINE_HEIGHT = (0.020, 0.080)  # ink of a line of a message: a digit at the smallest font size, an emoji at the largest
_TINY = (0.62, 0.026)  # of the usual height, and of the width: no line of a message is this low
_BLOCK = (0.055, 0.26)  # an icon or a small picture in a card
_STICKER = 0.30
_ONE_LINE = 0.14  # greatest height of a bubble with one line
_EDGE = (0.004, 0.012)  # inside the box of a picture: its frame is searched for here
_RECEIVER = 0.75  # in em: the icon beside a call's words
_LETTERS_LEAST = 0.885  # of the size of the page's letters: a text is not smaller
_SMALL_PRINT = 0.78  # of the letters of the largest line
_ONE_GROUND = 12  # levels between two bubbles that count as one colour
_PADDING = 1.15  # in em: the greatest padding above the first line of a text
_ROOM = 1.5  # in em: no text has this much more room after its longest line than before it
_WIDTHS = (0.3, 0.55)  # of the screen: bubbles of these widths are always as wide as their longest line
_PITCH = (1.9, 2.45)  # in em: no lines of a text are this far apart, unless an empty line is between them


@dataclass(frozen=True, slots=True)
class Words:
    """Text read in one place, and the confidence of its worst line (1.0 if nothing is written)."""

    text: str = ""
    confidence: float = 1.0

    @property
    def unsure(self) -> bool:
        return self.confidence < least(self.text)


def least(text: str) -> float:
    """Return the confidence that a text needs; a recogniser is never certain of punctuation alone."""
    return TEXT_CONFIDENCE if any(char.isalnum() for char in text) else SIGNS_CONFIDENCE


def join_lines(lines: Sequence[str]) -> str:
    """Join wrapped lines: Chinese without a space, Latin words and numbers with one."""
    text = ""
    for line in lines:
        if text and _WORDS_MEET.search(text) and line[:1].isascii() and line[:1].isalnum():
            text += " "
        text += line
    return text


def joined(found: Sequence[Recognised]) -> Words:
    """Join recognised lines into one text."""
    found = [line for line in found if line.text]
    if not found:
        return Words()
    worded = [line for line in found if any(char.isalnum() for char in line.text)] or found
    return Words(join_lines([line.text for line in found]), min(line.confidence for line in worded))


async def read_lines(ocr: OcrEngine, image: Image.Image, lines: Sequence[Box]) -> list[Recognised]:
    return await ocr.recognise_lines([image.crop(line.as_tuple()) for line in lines])


async def read_box(ocr: OcrEngine, image: Image.Image, box: Box, background: Color | None = None) -> Words:
    """Read the text in a box line by line."""
    return joined(await read_lines(ocr, image, picture.text_lines(image, box, background)))


async def read_shapes(ocr: OcrEngine, image: Image.Image, page: PageShapes) -> list[Bubble]:
    """Read the messages of a page from the top."""
    own = [_own_lines(image, shape) for shape in page.shapes]
    usual = _usual_height(own, image.width)
    texts: list[_Text | None] = []
    bubbles = []
    for shape, lines in zip(page.shapes, own, strict=True):
        bubble, text = await _read(ocr, image, page, shape, lines, usual)
        if shape.transcript is not None and bubble.kind is not BubbleKind.VOICE:
            bubble = replace(bubble, sure=False, doubt=DoubtKind.NO_AVATAR)
        bubbles.append(bubble)
        texts.append(text)
    return _fitting(bubbles, texts)


async def read_calls(ocr: OcrEngine, image: Image.Image, page: PageShapes) -> list[Bubble]:
    """Read what the app says of calls in the middle of a page, where no avatar tells whose they are.

    They count as the customer's, because a call below our last message is unanswered.
    """
    found = []
    for box in page.lines:
        words = await read_box(ocr, image, box)
        call = call_line(words.text, in_picture=True)
        if call:
            found.append(Bubble(Side.THEM, call, box, BubbleKind.CALL))
    return found


def own_box(shape: Shape) -> Box:
    """Return the part of a bubble that holds its own words: below a quotation in it."""
    quote = shape.quote
    if quote is not None and quote.top >= shape.box.top and quote.bottom <= shape.box.bottom:
        return Box(shape.box.left, quote.bottom, shape.box.right, shape.box.bottom)
    return shape.box


def _own_lines(image: Image.Image, shape: Shape) -> list[TextLine]:
    if shape.form is not MessageShape.BUBBLE:
        return []
    return picture.lines_of(image, own_box(shape), shape.color)


def _usual_height(pages: Sequence[Sequence[TextLine]], width: int) -> float:
    """Return the usual height of a line's ink on this page; 0 if nothing is written on it.

    Each text has its own usual height, and those of messages are the largest: text in pictures is smaller.
    """
    least, most = _LINE_HEIGHT[0] * width, _LINE_HEIGHT[1] * width
    own = [[line.ink.height for line in lines] for lines in pages if lines]
    even = [median(heights) for heights in own if max(heights) <= _TALL * median(heights) and max(heights) <= most]
    return max((height for height in even if height >= least), default=0.0)


@dataclass(frozen=True, slots=True)
class _Text:
    """The layout of a text in its bubble.

    letters: their size.
    odd: its lines are farther from the edge or from one another than a message's, or have several sizes.
    tail: its bubble has one.
    """

    letters: Letters
    odd: bool
    tail: bool
    side: Side
    ground: Color


def _fitting(bubbles: list[Bubble], texts: Sequence[_Text | None]) -> list[Bubble]:
    """Mark messages as doubtful whose text does not look like the page's other texts: pictures with words.

    Letters in a picture are smaller. Either all bubbles of texts have a tail or none has, and those of one side have
    one background.
    """
    found = []
    for index, (bubble, text) in enumerate(zip(bubbles, texts, strict=True)):
        others = [other for at, other in enumerate(texts) if other is not None and at != index]
        usual = max((other.letters.surely for other in others), default=0.0)
        odd = text is not None and (
            text.odd
            or 0 < text.letters.most < _LETTERS_LEAST * usual
            or (bool(others) and not text.tail and all(other.tail for other in others))
            or _is_alone(text.ground, [other.ground for other in others if other.side is text.side])
        )
        found.append(replace(bubble, sure=False, doubt=bubble.doubt or DoubtKind.MAYBE_PICTURE) if odd else bubble)
    return found


def _is_alone(ground: Color, others: Sequence[Color]) -> bool:
    """Tell whether the others share one background that differs from this one.

    If the others have two colours, there is no rule to go by.
    """
    return len(set(others)) == 1 and not picture.near(ground, others[0], _ONE_GROUND)


async def _read(
    ocr: OcrEngine, image: Image.Image, page: PageShapes, shape: Shape, lines: Sequence[TextLine], usual: float
) -> tuple[Bubble, _Text | None]:
    """Read one message. The second value is the layout of its text in the bubble, None if it is not a text."""
    if shape.form is MessageShape.BUBBLE and lines:
        return await _read_lines(ocr, image, shape, lines, usual)
    return await _wordless(ocr, image, page, shape, usual), None


def _begun(shape: Shape) -> Bubble:
    return Bubble(
        shape.side, "", shape.box, BubbleKind.OTHER, shape.state, sure=shape.sure and not shape.doubt, doubt=shape.doubt
    )


async def _wordless(ocr: OcrEngine, image: Image.Image, page: PageShapes, shape: Shape, usual: float) -> Bubble:
    bubble = _begun(shape)
    if shape.form is MessageShape.PACKET:
        past = shape.box.left + shape.box.width // 5  # the envelope
        upper = Box(past, shape.box.top, shape.box.right, shape.box.top + shape.box.height * 2 // 3)
        words = await read_box(ocr, image, upper, shape.color)
        return replace(bubble, kind=BubbleKind.RED_PACKET, text=words.text)
    if shape.form is MessageShape.PICTURE:
        return await _pictured(ocr, image, page, shape, usual)
    if shape.box.height <= _ONE_LINE * image.width:  # a character that is too faint or too low for a line
        return replace(bubble, sure=False, doubt="what stands in it cannot be read")
    return replace(bubble, kind=BubbleKind.IMAGE)


async def _read_lines(
    ocr: OcrEngine, image: Image.Image, shape: Shape, lines: Sequence[TextLine], usual: float
) -> tuple[Bubble, _Text | None]:
    bubble = _begun(shape)
    block = _block(image, shape, lines, usual)
    written = lines if block is None else picture.lines_of(image, _words_beside(shape, block), shape.color)
    heights = [line.ink.height for line in written]
    if len(written) >= 3 and median(heights) < max(_TINY[0] * usual, _TINY[1] * image.width):
        return replace(bubble, kind=BubbleKind.IMAGE), None  # letters too small for a message
    if block is not None or not _even(image, shape, lines):
        return await _card(ocr, image, bubble, block, written), None
    quoted = await _quoted(ocr, image, shape)
    if all(is_emoji(image, line, shape.color) for line in lines):  # a recogniser takes them for letters
        return replace(bubble, kind=BubbleKind.STICKER, quoted=quoted), None
    read = await read_lines(ocr, image, [line.box for line in lines])
    words = joined(read)
    if await _is_voice(ocr, image, words.text, lines, shape.color):
        transcript = (await read_box(ocr, image, shape.transcript, shape.color)).text if shape.transcript else ""
        length = _seconds(words.text)
        voice = replace(bubble, kind=BubbleKind.VOICE, text=transcript or length, seconds=voice_seconds(length))
        return voice, None
    call = call_line(words.text, in_picture=True) if len(lines) == 1 else ""
    if call and lines[0].ink.width > (ems(call) + _RECEIVER) * min(lines[0].ink.height, usual) / FULL:
        return replace(bubble, kind=BubbleKind.CALL, text=call, quoted=quoted), None
    if not _SAID.search(words.text) or not is_glyph(image, lines, words.text, own_box(shape), shape.color):
        return replace(bubble, quoted=quoted, sure=False, doubt=DoubtKind.UNREADABLE), None
    sure = bubble.sure and not words.unsure
    text = _text(image, shape, lines, read)
    return replace(bubble, kind=BubbleKind.TEXT, text=words.text, quoted=quoted, sure=sure), text


def _text(image: Image.Image, shape: Shape, lines: Sequence[TextLine], read: Sequence[Recognised]) -> _Text:
    sizes = [letters_of(image, line, one.text, shape.color) for line, one in zip(lines, read, strict=True)]
    size = max(one.most for one in sizes)
    pitches = [(below.ink.bottom - above.ink.bottom) / size for above, below in pairwise(lines)] if size else []
    above = (lines[0].ink.top - own_box(shape).top) / size if size else 0.0
    # In paragraphs and lists a few lines are farther apart; in a screenshot all of them are.
    loose = above > _PADDING or (bool(pitches) and _PITCH[0] < median(pitches) < _PITCH[1])
    # The lines of a text have one size; those of a card do not, and its picture may count as one.
    surely = max(one.surely for one in sizes)
    uneven = bool(size) and (
        min(one.most for one in sizes if one.most) < _SMALL_PRINT * surely
        or max(line.ink.height for line in lines) > _TALL * size
    )
    # A narrower bubble may have the least possible width; in a wider one a line may have been broken.
    hugs = _WIDTHS[0] * image.width < shape.box.width < _WIDTHS[1] * image.width
    roomy = bool(size) and shape.quote is None and hugs and _room(image, shape, lines) > _ROOM * size
    whole = not (shape.cut or shape.open)  # lines at the edge of the page may be cut, or far from the bubble's edge
    return _Text(Letters(size, surely), whole and (loose or uneven or roomy), shape.tail, shape.side, shape.color)


def _room(image: Image.Image, shape: Shape, lines: Sequence[TextLine]) -> int:
    """Return how much wider the empty room after the longest line is than before it, in pixels.

    A bubble is as wide as its longest line, so a text has about the same room on both sides.
    """
    edge = max(2, image.width // 200)  # the bubble's own edge is soft
    rows = (lines[0].ink.top, lines[-1].ink.bottom)
    crop = image.crop((shape.box.left + edge, rows[0], shape.box.right - edge, rows[1]))
    found = picture.ink(crop, shape.color).getbbox()
    return 0 if found is None else crop.width - found[2] - found[0]


async def _quoted(ocr: OcrEngine, image: Image.Image, shape: Shape) -> str:
    if shape.quote is None:
        return ""
    return (await read_box(ocr, image, shape.quote, shape.quote_color)).text


def _is_framed(image: Image.Image, box: Box, ground: Color) -> bool:
    """Tell whether a picture is a rectangle that reaches all its edges, as a photo does and a sticker does not."""
    near, far = (max(1, round(part * image.width)) for part in _EDGE)
    wide, high = box.width // 5, box.height // 5
    strips = (
        (box.left + wide, box.top + near, box.right - wide, box.top + far),
        (box.left + wide, box.bottom - far, box.right - wide, box.bottom - near),
        (box.left + near, box.top + high, box.left + far, box.bottom - high),
        (box.right - far, box.top + high, box.right - near, box.bottom - high),
    )
    marks = [picture.ink(image.crop(strip), ground, 12) for strip in strips]
    return all(sum(mark.histogram()[1:]) > 0.8 * mark.width * mark.height for mark in marks)


async def _is_voice(ocr: OcrEngine, image: Image.Image, text: str, lines: Sequence[TextLine], ground: Color) -> bool:
    """Tell whether a bubble of one line holds the seconds of a voice message beside its waves, and no words."""
    if len(lines) != 1 or not re.search(r"\d", text):
        return False
    if (
        not _SECONDS.search(text)
        or _WORD.search(_WAVES.sub("", text))
        or re.search(r"[A-Za-z]{3}", _WAVES.sub("", text))
    ):
        return False
    # The seconds are separate from the waves.
    line = lines[0]
    crop = image.crop(line.box.as_tuple())
    columns = picture.spans(
        picture.projections(picture.ink(crop, ground))[0], gap=max(3, round(0.35 * line.ink.height))
    )
    ends = {columns[0], columns[-1]} if columns else set()
    margin = max(3, line.ink.height // 4)
    parts = [crop.crop((max(0, a - margin), 0, min(crop.width, b + margin), crop.height)) for a, b in sorted(ends)]
    found = await ocr.recognise_lines(parts)
    return len(columns) > 1 and any(_ONLY_SECONDS.match(part.text) for part in found)


def _seconds(text: str) -> str:
    found = _SECONDS.search(text)
    return f"{next(group for group in found.groups() if group)}″" if found else text


def _block(image: Image.Image, shape: Shape, lines: Sequence[TextLine], usual: float) -> Box | None:
    """Return an icon or a small picture at one end of a bubble: taller than a line of text, separate from the words.

    An icon may be as pale as its card, so every stroke of it counts. A picture that fills the bubble's width, with
    words over or under it, is returned as a box without a width.
    """
    width, box = image.width, own_box(shape)
    tallest = max(line.ink.height for line in lines)
    inset = max(1, round(10 * width / 1080))
    area = Box(box.left + inset, box.top + inset, box.right - inset, box.bottom - inset)
    if area.width < 4 or area.height < 4:
        return None
    marks = picture.ink(image.crop(area.as_tuple()), shape.color, 12)
    columns = picture.spans(picture.projections(marks)[0], gap=round(0.018 * width))
    least = max(_TALL * usual, _BLOCK[0] * width)
    found = []
    for start, end in columns if len(columns) > 1 else []:
        if not 0.6 * _BLOCK[0] * width <= end - start <= _BLOCK[1] * width:
            continue
        rows = picture.spans(
            picture.projections(marks.crop((start, 0, end, marks.height)))[1], gap=round(0.004 * width)
        )
        top, bottom = max(rows, key=lambda span: span[1] - span[0])
        if bottom - top > least:
            found.append(Box(area.left + start, area.top + top, area.left + end, area.top + bottom))
    if found:
        return max(found, key=lambda one: one.height)
    usual = median(line.ink.height for line in lines) if len(lines) >= 3 else usual
    filling = tallest > max(1.9 * usual, _LINE_HEIGHT[1] * width) or (
        len(lines) >= 3 and tallest > max(_TALL * usual, _BLOCK[0] * width)
    )
    return Box(box.left, box.top, box.left, box.top) if filling else None


def _even(image: Image.Image, shape: Shape, lines: Sequence[TextLine]) -> bool:
    """Tell whether the lines belong to one text: none below the first is smaller, paler and grey, as small print is.

    A link is pale, but coloured.
    """
    if len(lines) < 2:
        return True
    strengths = [picture.contrast(image, line.ink, shape.color) for line in lines]
    strongest, tallest = max(strengths), max(line.ink.height for line in lines)
    return not any(
        strength < _PALE * strongest
        and line.ink.height < 0.86 * tallest
        and not is_coloured(image.crop(line.ink.as_tuple()), shape.color)
        for strength, line in zip(strengths[1:], lines[1:], strict=True)
    )


def _words_beside(shape: Shape, block: Box) -> Box:
    """Return the part of a card with its words: beside its icon or picture."""
    words = own_box(shape)
    if not block.width:
        return words
    if block.left - words.left > words.right - block.right:
        return Box(words.left, words.top, block.left, words.bottom)
    return Box(block.right, words.top, words.right, words.bottom)


async def _card(
    ocr: OcrEngine, image: Image.Image, bubble: Bubble, block: Box | None, lines: Sequence[TextLine]
) -> Bubble:
    """Return the card with its kind and its name or title; OTHER with all its words if the kind is unknown."""
    found = [line.text for line in await read_lines(ocr, image, [line.box for line in lines]) if line.text]
    if len(found) > 1 and _FILE_SIZE.match(found[-1]) and any(char.isdigit() for char in found[-1]):
        return replace(bubble, kind=BubbleKind.FILE, text="".join(found[:-1]))
    if found and _FILE_NAME.search("".join(found)):
        return replace(bubble, kind=BubbleKind.FILE, text="".join(found))
    if found and any(_FILE_NAME.search("".join(found[: end + 1])) for end in range(len(found))):
        end = next(end for end in range(len(found)) if _FILE_NAME.search("".join(found[: end + 1])))
        return replace(bubble, kind=BubbleKind.FILE, text="".join(found[: end + 1]))
    if len(found) > 1 and _CARD_FOOT.match(found[-1]):
        return replace(bubble, kind=BubbleKind.CARD, text="".join(found[:-1]))
    call = next(filter(None, (call_line(line, in_picture=True) for line in ("".join(found), *found))), "")
    if call:
        return replace(bubble, kind=BubbleKind.CALL, text=call)
    if not found:
        return replace(bubble, kind=BubbleKind.IMAGE)
    if block is not None and not block.width:  # a wide picture with words over or under it
        return replace(bubble, kind=BubbleKind.LOCATION, text=found[0])
    kind = BubbleKind.CARD if len(found) > 1 else BubbleKind.OTHER
    return replace(bubble, kind=kind, text="\n".join(found), sure=False)


async def _pictured(ocr: OcrEngine, image: Image.Image, page: PageShapes, shape: Shape, usual: float) -> Bubble:
    """Read a message without a flat background: a picture, a video, a sticker, or a text in a decorated bubble."""
    bubble = _begun(shape)
    if shape.box.height < 0.75 * image.width:
        lines = [line for line in await ocr.read_part(image, shape.box) if line.confidence >= TEXT_CONFIDENCE]
        heights = [line.box.height for line in lines]
        if heights and usual and all(0.8 * usual <= height <= 2.0 * usual for height in heights):
            written = sum(line.box.width * line.box.height for line in lines)
            if written > 0.3 * shape.box.width * shape.box.height:
                text = join_lines([line.text for line in lines])
                return replace(bubble, kind=BubbleKind.TEXT, text=text, sure=False, doubt=DoubtKind.DECORATED)
    small = max(shape.box.width, shape.box.height) <= _STICKER * image.width
    if small and not _is_framed(image, shape.box, page.ground.color):
        return replace(bubble, kind=BubbleKind.STICKER)
    return replace(bubble, kind=BubbleKind.VIDEO if plays(image, shape.box) else BubbleKind.IMAGE)
