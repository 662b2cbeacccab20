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
from agent_core.screen import picture, tree
from agent_core.screen.compare import Match, compare, contains, ends_with, fold, normalise
from agent_core.screen.ocr import OcrEngine, Recognised
from agent_core.screen.readings import Bubble, BubbleKind, ChatScreen, Reading, Side, Source

TITLE_CONFIDENCE = 0.85
TEXT_CONFIDENCE = 0.80
_WORDS_MEET = re.compile(r"[A-Za-z0-9][.,!?;:%)]?$")
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


async def read_bubble(ocr: OcrEngine, image: Image.Image, box: Box, ground: picture.Color) -> Words:
    """The words of a bubble without what it quotes."""
    return _joined(await read_lines(ocr, image, bubble_lines(image, box, ground)))


def bubble_lines(image: Image.Image, box: Box, ground: picture.Color) -> list[Box]:
    """The lines of a bubble; paler lines before the first strong one are a quotation and left out."""
    lines = picture.text_lines(image, box, ground)
    strengths = [picture.contrast(image, line, ground) for line in lines]
    while len(lines) > 1 and strengths[0] < _QUOTE_CONTRAST * strengths[-1]:
        lines, strengths = lines[1:], strengths[1:]
    return lines


def _joined(found: Sequence[Recognised]) -> Words:
    found = [line for line in found if line.text]
    if not found:
        return Words()
    return Words(join_lines([line.text for line in found]), min(line.confidence for line in found))


async def read_title(ocr: OcrEngine, image: Image.Image, region: Box) -> Words:
    """The name in a header: the first tall line of ``region``, and the widest part of it."""
    lines = picture.text_lines(image, region)
    if not lines:
        return Words()
    tallest = max(line.height for line in lines)
    line = next(line for line in lines if line.height >= 0.7 * tallest)
    parts = picture.segments(image, line, apart=max(4, round(1.1 * line.height)))
    part = max(parts, key=lambda box: box.width, default=line)
    # Twice, with other margins: a recogniser that guesses says two things.
    wider = Box(max(0, part.left - 14), max(0, part.top - 8), part.right + 14, part.bottom + 8)
    first, second = await read_lines(ocr, image, [part, wider])
    if normalise(first.text) != normalise(second.text):
        best = max(first, second, key=lambda r: r.confidence)
        return Words(best.text, min(best.confidence, 0.5))
    return Words(first.text, max(first.confidence, second.confidence))


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
    if not title.text:
        return None
    page = picture.page(image, profile, bottom=footer.field.top)
    doubts = []
    if page.plain:
        bubbles, newest = await _read_shapes(ocr, image, page)
    else:
        bubbles, newest = await _grouped(ocr, frame, page.box, profile)
        doubts.append("the page has not the colours of the app's profile")
    draft = await read_draft(ocr, image, footer.field)
    if title.confidence < TITLE_CONFIDENCE:
        doubts.append(f"the title may be {title.text!r} ({title.confidence:.2f})")
    if newest < TEXT_CONFIDENCE and bubbles:
        doubts.append(f"the newest message may be {bubbles[-1].text!r} ({newest:.2f})")
    if draft.confidence < TEXT_CONFIDENCE:
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
    )


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


async def _read_shapes(ocr: OcrEngine, image: Image.Image, page: picture.Page) -> tuple[list[Bubble], float]:
    """The bubbles of a page and the confidence of the newest one."""
    shapes = [s for i, s in enumerate(page.shapes) if not s.cut or i == len(page.shapes) - 1]
    bubbles, confidence = [], 1.0
    for shape in shapes:
        words = Words()
        kind = shape.kind
        if kind is BubbleKind.TEXT:
            words = await read_bubble(ocr, image, shape.box, shape.color)
            kind = tree.kind_of(words.text)
            if kind in tree.WORDLESS:
                words = Words()
        elif kind is BubbleKind.RED_PACKET:
            upper = Box(shape.box.left, shape.box.top, shape.box.right, shape.box.top + shape.box.height * 2 // 3)
            words = await read_box(ocr, image, upper, shape.color)
        confidence = words.confidence
        bubbles.append(Bubble(shape.side, words.text, shape.box, kind, shape.state))
    if page.shapes and page.shapes[-1].cut and page.shapes[-1].side is Side.THEM:
        confidence = 0.0
    return bubbles, confidence


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
    """The one-coloured box left of a Send button, walked pixel by pixel; it may be several lines tall."""
    pixels = image.load()
    if pixels is None:
        return None
    y = send.center.y
    ground = pixels[image.width - 2, y]
    x = send.left - 1
    while x > 0.4 * image.width and picture.near(pixels[x, y], _color(ground), 10):
        x -= 1
    while x > 0.3 * image.width:
        ink = picture.common_color(image.crop((x - 40, y - 8, x, y + 8)))
        if not picture.near(ink, _color(ground), 10):
            break
        x -= 20
    else:
        return None
    right = x
    field = picture.common_color(image.crop((right - 60, y - 8, right - 8, y + 8)))
    edge = right - 12
    top = bottom = y
    while top > 0.3 * image.height and picture.near(pixels[edge, top - 1], field, 10):
        top -= 1
    while bottom < image.height - 1 and picture.near(pixels[edge, bottom + 1], field, 10):
        bottom += 1
    left, row = edge, min(bottom - 1, top + 4)
    while left > 0 and picture.near(pixels[left - 1, row], field, 10):
        left -= 1
    box = Box(left, top, right, bottom + 1)
    return box if box.width > 0.3 * image.width and 20 < box.height < 0.4 * image.height else None


def _color(pixel: object) -> picture.Color:
    return (int(pixel[0]), int(pixel[1]), int(pixel[2])) if isinstance(pixel, tuple) else (0, 0, 0)


async def _grouped(ocr: OcrEngine, frame: Frame, area: Box, profile: AppProfile) -> tuple[list[Bubble], float]:
    """Lines found by OCR as bubbles by place: same side, close together."""
    size = frame.size
    groups: list[list[Reading]] = []
    for line in await ocr.read(frame.image, digest=frame.digest):
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
    title = await read_title(
        ocr, image, _grown(title_box, image) if title_box else picture.region_box(profile.title_region, image.size)
    )
    if not _agree(seen.title, title):
        doubts.append(f"the title is {seen.title!r} in the tree and {title.text!r} in the picture")
    doubts += await _newest_doubts(ocr, seen, image, profile)
    if seen.input_box and seen.draft is not None:
        draft = await read_draft(ocr, image, seen.input_box)
        if not _same_text(seen.draft, draft):
            doubts.append(f"the input holds {seen.draft!r} in the tree and {draft.text!r} in the picture")
    return replace(seen, sure=seen.sure and not doubts, doubt="; ".join([d for d in (seen.doubt, *doubts) if d]))


def place_doubts(seen: ChatScreen, image: Image.Image, profile: AppProfile) -> list[str]:
    """Whether the picture has its newest message where the tree has it. A page of other colours tells nothing."""
    newest = seen.newest
    bottom = seen.input_box.top if seen.input_box else round(profile.messages_region[3] * image.height)
    page = picture.page(image, profile, bottom=bottom)
    if not page.plain:
        return []
    if newest is None or newest.box is None:
        return ["the picture shows messages and the tree none"] if page.shapes else []
    if not page.shapes:
        return ["the tree shows messages and the picture none"]
    last = page.shapes[-1]
    if last.box.top >= newest.box.bottom - 4:
        return ["below the newest message of the tree stands another in the picture"]
    if last.side is not newest.side or not last.box.intersects(newest.box):
        return ["the newest message of the tree stands elsewhere in the picture"]
    return []


async def _newest_doubts(ocr: OcrEngine, seen: ChatScreen, image: Image.Image, profile: AppProfile) -> list[str]:
    newest = seen.newest
    misplaced = place_doubts(seen, image, profile)
    if misplaced or newest is None or newest.box is None or newest.kind is not BubbleKind.TEXT:
        return misplaced
    lines = bubble_lines(image, newest.box, picture.common_color(image.crop(newest.box.as_tuple())))
    some = lines if len(lines) <= 4 else [*lines[:2], *lines[-2:]]
    read = [r for r in await read_lines(ocr, image, some) if r.text]
    text = join_lines([r.text for r in read])
    if read and all(contains(newest.text, r.text, confidence=r.confidence) for r in read):
        enough = some is not lines or len(fold(text)) >= 0.8 * len(fold(newest.text))
        if enough:
            return []
    return [f"the newest message is {newest.text!r} in the tree and {text!r} in the picture"]


def _agree(name: str, seen: Words) -> bool:
    """Titles agree as whole names; a recogniser's slips count only where it was not certain."""
    if normalise(name) == normalise(seen.text):
        return True
    if seen.text.endswith(("…", "..")):  # too long for the header
        return normalise(name).startswith(normalise(seen.text.rstrip("….")))
    return compare(name, seen.text, confidence=seen.confidence) is Match.NEARLY


def _same_text(text: str, seen: Words) -> bool:
    if not normalise(text) and not seen.text:
        return True
    if compare(text, seen.text, confidence=seen.confidence) is not Match.DIFFERENT:
        return True
    return len(fold(seen.text)) > 40 and ends_with(text, seen.text, confidence=seen.confidence)


def _grown(box: Box, image: Image.Image) -> Box:
    return Box(
        max(0, box.left - 8), max(0, box.top - 4), min(image.width, box.right + 8), min(image.height, box.bottom + 4)
    )
