"""The chat page read from its picture: shapes by their colours, words by recognising line by line.

Where the page does not have the profile's colours (a theme, a wallpaper) lines found by OCR are grouped by place
instead, and the page is not sure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from PIL import Image

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame
from agent_core.geometry import Box
from agent_core.screen import picture, shapes, tree
from agent_core.screen.cards import read_card
from agent_core.screen.compare import Match, compare, contains, ends_with, fold, normalise
from agent_core.screen.ocr import OcrEngine, Recognised
from agent_core.screen.readings import Bubble, BubbleKind, ChatScreen, Reading, Side, Source
from agent_core.screen.title import Title, read_title

TEXT_CONFIDENCE = 0.80
SIGNS_CONFIDENCE = 0.5
_WORDS_MEET = re.compile(r"[A-Za-z0-9][.,!?;:%)]?$")
_CALL_SIGN = re.compile(r"^.*?(?=通话时长)")  # a receiver, read as some letter
_HINT_CONTRAST = 120  # of an input's words against its ground: a hint is pale
_QUOTE_CONTRAST = 0.9  # of a quotation against the words under it


@dataclass(frozen=True, slots=True)
class Words:
    """Text read in one place, and the confidence of its worst line (1.0 where nothing is written)."""

    text: str = ""
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Footer:
    """Where is typed and what sends it. ``send`` None: no Send button is seen."""

    field: Box
    send: Box | None


def join_lines(lines: Sequence[str]) -> str:
    """Wrapped lines as one text: Chinese without a blank, Latin words and numbers kept apart."""
    text = ""
    for line in lines:
        if text and _WORDS_MEET.search(text) and line[:1].isascii() and line[:1].isalnum():
            text += " "
        text += line
    return text


async def read_lines(ocr: OcrEngine, image: Image.Image, lines: Sequence[Box]) -> list[Recognised]:
    return await ocr.recognise_lines([image.crop(line.as_tuple()) for line in lines])


async def read_box(ocr: OcrEngine, image: Image.Image, box: Box, background: picture.Color | None = None) -> Words:
    """What is written in a box, line by line."""
    return _joined(await read_lines(ocr, image, picture.text_lines(image, box, background)))


def quoted_and_own(image: Image.Image, box: Box, ground: picture.Color) -> tuple[list[Box], list[Box]]:
    """The lines of a bubble: the paler ones before the first strong one are a quotation, the rest its own words."""
    lines = picture.text_lines(image, box, ground)
    strengths = [picture.contrast(image, line, ground) for line in lines]
    own = 0
    while own < len(lines) - 1 and strengths[own] < _QUOTE_CONTRAST * strengths[-1]:
        own += 1
    return lines[:own], lines[own:]


def _joined(found: Sequence[Recognised]) -> Words:
    found = [line for line in found if line.text]
    if not found:
        return Words()
    worded = [line for line in found if any(char.isalnum() for char in line.text)] or found
    return Words(join_lines([line.text for line in found]), min(line.confidence for line in worded))


async def find_footer(ocr: OcrEngine, frame: Frame, profile: AppProfile) -> Footer | None:
    """The input box with its Send button; None where there is neither on this screen."""
    image = frame.image
    boxes = picture.light_boxes(image, picture.rgb(profile.input_color), top=round(0.35 * image.height))
    for box in reversed(boxes):
        for button in picture.beside(image, box)[:4]:
            if await _says(ocr, image, button, profile.send_texts):
                return Footer(box, button)
    return None


async def _says(ocr: OcrEngine, image: Image.Image, box: Box, texts: Sequence[str]) -> bool:
    if not 1.0 < box.width / max(1, box.height) < 5 and not 20 < box.height < 200:
        return False
    words = await read_box(ocr, image, box)
    return any(normalise(words.text) == normalise(text) for text in texts)


async def read_chat(ocr: OcrEngine, frame: Frame, profile: AppProfile) -> ChatScreen | None:
    """The chat page in a picture, by OCR alone; None where it is not one."""
    image = frame.image
    footer = await find_footer(ocr, frame, profile)
    if footer is None:
        footer = await _footer_by_detection(ocr, frame, profile)
    if footer is None:
        return None
    title = await read_title(ocr, image, picture.region_box(profile.title_region, image.size))
    page = shapes.page(image, profile, bottom=footer.field.top)
    if not page.plain and picture.card_over(image):
        return None  # a dialog over a dimmed chat
    if not title.text and not page.shapes:
        return None
    doubts = []
    cut = bool(page.shapes) and page.shapes[0].cut and all(shape.side is Side.THEM for shape in page.shapes)
    if cut:
        doubts.append("the upper part of what is asked is out of sight")
    if page.plain:
        bubbles, newest = await _read_shapes(ocr, image, page)
    else:
        bubbles, newest = await _grouped(ocr, frame, page.box, profile)
        doubts.append("the page has not the colours of the app's profile")
    draft = await read_draft(ocr, image, footer.field)
    if not title.sure:
        more = " and something more" if title.flawed and title.text else ""
        doubts.append(f"the title may be {title.text!r}{more} ({title.confidence:.2f})")
    if bubbles and newest < _least(bubbles[-1].text):
        doubts.append(f"the newest message may be {bubbles[-1].text!r} ({newest:.2f})")
    if draft.confidence < _least(draft.text):
        doubts.append(f"the input may hold {draft.text!r} ({draft.confidence:.2f})")
    return ChatScreen(
        title=title.text,
        bubbles=tuple(bubbles),
        draft=draft.text,
        source=Source.OCR,
        sure=not doubts,
        doubt="; ".join(doubts),
        input_box=footer.field,
        send_point=footer.send.center if footer.send else None,
        partial=cut and len(doubts) == 1,
        title_print=title.print,
    )


def _least(text: str) -> float:
    """The confidence that is wanted of a text; a recogniser is never certain of signs alone."""
    return TEXT_CONFIDENCE if any(char.isalnum() for char in text) else SIGNS_CONFIDENCE


async def read_draft(ocr: OcrEngine, image: Image.Image, field: Box) -> Words:
    """What stands in an input box (of a long text the lines that are seen); "" where nothing but a hint does."""
    crop = image.crop(field.as_tuple())
    ground = picture.common_color(crop)
    plain = picture.without_colors(crop, ground)
    lines = picture.text_lines(plain, Box(0, 0, *plain.size), ground, width=image.width)
    if not lines or max(picture.contrast(plain, line, ground) for line in lines) < _HINT_CONTRAST:
        return Words()
    words = _joined(await read_lines(ocr, plain, lines))
    return Words() if tree.is_hint(words.text) else words


async def _read_shapes(ocr: OcrEngine, image: Image.Image, page: shapes.Page) -> tuple[list[Bubble], float]:
    """The bubbles of a page and the confidence of the newest one."""
    found = list(page.shapes)
    ours = any(shape.side is Side.ME for shape in found[1:])
    if found and found[0].cut and ours:
        found = found[1:]  # what the edge cuts is no part of what is asked now
    bubbles, confidence = [], 1.0
    for shape in found:
        words, quoted = Words(), ""
        kind = shape.kind
        if shape.words is not None:
            kind, text = await read_card(ocr, image, shape)
            words = Words(text)
        elif kind is BubbleKind.TEXT:
            words, quoted = await _read_text(ocr, image, shape)
            kind = tree.kind_of(words.text)
            if kind in tree.WORDLESS:
                words = Words()
            elif kind is BubbleKind.CALL:
                words = replace(words, text=_CALL_SIGN.sub("", words.text))
        elif kind is BubbleKind.RED_PACKET:
            past = shape.box.left + shape.box.width // 5  # the envelope
            upper = Box(past, shape.box.top, shape.box.right, shape.box.top + shape.box.height * 2 // 3)
            words = replace(await read_box(ocr, image, upper, shape.color), confidence=1.0)
        confidence = words.confidence
        bubbles.append(Bubble(shape.side, words.text, shape.box, kind, shape.state, quoted))
    return bubbles, confidence


async def _read_text(ocr: OcrEngine, image: Image.Image, shape: shapes.Shape) -> tuple[Words, str]:
    """The words of a bubble, and those that it quotes."""
    quote, own = quoted_and_own(image, shape.box, shape.color)
    said = _joined(await read_lines(ocr, image, own))
    return said, _joined(await read_lines(ocr, image, [_without_bar(image, line) for line in quote])).text


def _without_bar(image: Image.Image, line: Box) -> Box:
    """A quotation's line without the upright bar that some apps draw before it."""
    parts = picture.segments(image, line, apart=max(3, round(0.2 * line.height)))
    bar = len(parts) > 1 and parts[0].width < 0.6 * line.height
    return Box(parts[1].left, line.top, line.right, line.bottom) if bar else line


async def _footer_by_detection(ocr: OcrEngine, frame: Frame, profile: AppProfile) -> Footer | None:
    """The Send button among all the lines of the screen, and the box left of it. For themes of other colours."""
    width, height = frame.size
    wanted = {normalise(text) for text in profile.send_texts}
    sends = [
        line
        for line in await ocr.read(frame.image, digest=frame.digest)
        if normalise(line.text) in wanted and line.box.center.y > height // 2 and line.box.center.x > 0.6 * width
    ]
    if not sends:
        return None
    send = sends[-1].box
    field = field_left_of(frame.image, send)
    return Footer(field, send) if field else None


def field_left_of(image: Image.Image, send: Box) -> Box | None:
    """The box of one colour left of a Send button, in its row; it may be several lines tall."""
    row = (round(0.1 * image.width), send.top, send.left - round(0.08 * image.width), send.bottom)
    if row[2] - row[0] < 0.2 * image.width:
        return None
    color = picture.common_color(image.crop(row))
    boxes = picture.light_boxes(image, color, top=round(0.35 * image.height))
    return next((box for box in boxes if box.top <= send.center.y < box.bottom and box.left < send.left), None)


async def _grouped(ocr: OcrEngine, frame: Frame, area: Box, profile: AppProfile) -> tuple[list[Bubble], float]:
    """Lines found by OCR as bubbles by place: same side, close together."""
    size = frame.size
    groups: list[list[Reading]] = []
    for line in whole_lines(await ocr.read(frame.image, digest=frame.digest)):
        if not (area.top <= line.box.top and line.box.bottom <= area.bottom) or _centred(line.box, size):
            continue
        last = groups[-1][-1] if groups else None
        if last and _continues(last.box, line.box, frame.image, profile):
            groups[-1].append(line)
        else:
            groups.append([line])
    bubbles, confidence = [], 1.0
    for group in groups:
        text = join_lines([line.text for line in group])
        box = Box(
            min(line.box.left for line in group),
            group[0].box.top,
            max(line.box.right for line in group),
            group[-1].box.bottom,
        )
        bubbles.append(Bubble(tree.side_of(box, size), text, box, tree.kind_of(text)))
        confidence = min(line.confidence for line in group)
    return bubbles, confidence


def whole_lines(readings: Sequence[Reading]) -> list[Reading]:
    """Readings with the parts of one line put together that a detector took apart at a wide comma."""
    lines: list[Reading] = []
    for reading in sorted(readings, key=lambda r: (r.box.center.y // max(1, r.box.height // 2), r.box.left)):
        last = next((line for line in reversed(lines) if _beside(line.box, reading.box)), None)
        if last is None:
            lines.append(reading)
            continue
        box = Box(
            last.box.left,
            min(last.box.top, reading.box.top),
            reading.box.right,
            max(last.box.bottom, reading.box.bottom),
        )
        text = join_lines([last.text, reading.text])
        lines[lines.index(last)] = replace(
            last, text=text, box=box, confidence=min(last.confidence, reading.confidence)
        )
    return sorted(lines, key=lambda line: line.box.top)


def _beside(left: Box, right: Box) -> bool:
    """Whether ``right`` goes on in the line of ``left``."""
    height = min(left.height, right.height)
    overlap = min(left.bottom, right.bottom) - max(left.top, right.top)
    return overlap > 0.6 * height and -height < right.left - left.right < 0.9 * height


def _centred(box: Box, size: tuple[int, int]) -> bool:
    return abs(box.left + box.right - size[0]) < 0.06 * size[0] and box.width < 0.5 * size[0]


def _continues(above: Box, below: Box, image: Image.Image, profile: AppProfile) -> bool:
    """Whether two lines stand in one bubble: close together on one ground all the way."""
    if below.top - above.bottom > 0.8 * above.height or abs(above.left - below.left) > above.height:
        return False
    between = image.crop(
        (below.left, above.bottom, below.left + max(1, above.height), max(below.top, above.bottom + 1))
    )
    return len(between.getcolors(64) or range(65)) <= 64


# Two sources


async def checked(
    ocr: OcrEngine, seen: ChatScreen, title_box: Box | None, frame: Frame, profile: AppProfile
) -> ChatScreen:
    """``seen`` (from the tree) held against the picture: the title, the newest message, what is below it, the draft.

    A tree that is older than the picture shows here.
    """
    image = frame.image
    doubts = []
    title = await read_title(ocr, image, _header(title_box, image, profile))
    if not _agree(seen.title, title):
        more = " and something more" if title.flawed and title.text else ""
        doubts.append(f"the title is {seen.title!r} in the tree and {title.text!r}{more} in the picture")
    page = _page_of(seen, image, profile)
    torn = _place_doubts(seen, page, image.width)
    doubts += torn or await _newest_doubts(ocr, seen, image, page)
    if seen.input_box and seen.draft is not None:
        draft = await read_draft(ocr, image, seen.input_box)
        if not _same_text(seen.draft, draft):
            doubts.append(f"the input holds {seen.draft!r} in the tree and {draft.text!r} in the picture")
    return replace(
        seen,
        sure=seen.sure and not doubts,
        doubt="; ".join([d for d in (seen.doubt, *doubts) if d]),
        title_print=title.print,
        torn=bool(torn),
    )


def place_doubts(seen: ChatScreen, image: Image.Image, profile: AppProfile) -> list[str]:
    """Whether the picture has its newest message where the tree has it. A page of other colours tells nothing."""
    return _place_doubts(seen, _page_of(seen, image, profile), image.width)


def _page_of(seen: ChatScreen, image: Image.Image, profile: AppProfile) -> shapes.Page:
    bottom = seen.input_box.top if seen.input_box else round(profile.messages_region[3] * image.height)
    return shapes.page(image, profile, bottom=bottom)


def _place_doubts(seen: ChatScreen, page: shapes.Page, width: int) -> list[str]:
    if not page.plain:
        return []
    newest = seen.newest
    if newest is None or newest.box is None:
        return ["the picture shows messages and the tree none"] if page.shapes else []
    if not page.shapes:
        return ["the tree shows messages and the picture none"]
    last = page.shapes[-1]
    if last.box.top >= newest.box.bottom - 4:
        return ["below the newest message of the tree stands another in the picture"]
    # A node may hold a margin around its bubble, and a sticker does not fill its node.
    off = abs(last.box.center.y - newest.box.center.y) > 0.04 * width
    if last.side is not newest.side or off or not last.box.intersects(newest.box):
        return ["the newest message of the tree stands elsewhere in the picture"]
    return []


async def _newest_doubts(ocr: OcrEngine, seen: ChatScreen, image: Image.Image, page: shapes.Page) -> list[str]:
    """For a newest message that stands where the picture has it: whether it says there what it says in the tree."""
    newest = seen.newest
    if newest is None or newest.box is None or newest.kind is not BubbleKind.TEXT:
        return []
    # The bubble as the picture has it: in a tree that is older it may be a shorter one at the same place.
    box = page.shapes[-1].box if page.plain else newest.box
    _, lines = quoted_and_own(image, box, picture.common_color(image.crop(box.as_tuple())))
    some = lines if len(lines) <= 4 else [*lines[:2], *lines[-2:]]
    read = [line for line in await read_lines(ocr, image, some) if line.text]
    text = join_lines([line.text for line in read])
    if read and compare(newest.text, text, confidence=min(r.confidence for r in read)) is not Match.DIFFERENT:
        return []
    inside = bool(read) and all(contains(newest.text, line.text, confidence=line.confidence) for line in read)
    if inside and (some is not lines or len(fold(text)) >= 0.8 * len(fold(newest.text))):
        return []
    return [f"the newest message is {newest.text!r} in the tree and {text!r} in the picture"]


def _header(title: Box | None, image: Image.Image, profile: AppProfile) -> Box:
    """Where the title is read: the rows that the tree says, over the profile's whole width, so that none is cut."""
    region = picture.region_box(profile.title_region, image.size)
    if title is None:
        return region
    return Box(
        max(0, min(region.left, title.left - 8)),
        max(0, title.top - 4),
        min(image.width, max(region.right, title.right)),
        min(image.height, title.bottom + 4),
    )


def _agree(name: str, seen: Title) -> bool:
    """Whether a title in the picture can be ``name``. One that was read alike but is flawed is another."""
    if normalise(name) == normalise(seen.text):
        return not seen.flawed and not (seen.blank and not re.search(r"\s", name.strip()))
    if seen.text.endswith(("…", "..")):  # too long for the header
        return normalise(name).startswith(normalise(seen.text.rstrip("….")))
    return compare(name, seen.text, confidence=seen.confidence) is Match.NEARLY


def _same_text(text: str, seen: Words) -> bool:
    if not normalise(text) and not seen.text:
        return True
    if compare(text, seen.text, confidence=seen.confidence) is not Match.DIFFERENT:
        return True
    return len(fold(seen.text)) > 40 and ends_with(text, seen.text, confidence=seen.confidence)
