"""Reads the chat page from its picture: the parts by their shapes, the words by recognising line by line.

Anything that is not understood becomes a doubt and is never ignored: a message whose side or words are uncertain, a
block that is not a known kind of message, a page with a picture behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from PIL import Image

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame
from agent_core.geometry import Box
from agent_core.perception import badges, layout, messages, picture, shapes
from agent_core.perception.compare import (
    Match,
    compare,
    contains,
    counts_members,
    ends_with,
    fold,
    name,
    normalise,
    without_count,
)
from agent_core.perception.kinds import call_line, is_hint, kind_of
from agent_core.perception.messages import Words, join_lines, read_box, read_lines
from agent_core.perception.ocr import OcrEngine
from agent_core.perception.pixels import Grid, luminance
from agent_core.perception.readings import (
    Bubble,
    BubbleKind,
    BubbleState,
    ChatScreen,
    Doubt,
    DoubtKind,
    Reading,
    SendState,
    Side,
    Source,
)
from agent_core.perception.title import Title, read_title
from agent_core.perception.transcribe import Transcriber
from agent_core.perception.tree_rows import side_of, with_lines
from agent_core.texts.clean import is_clean

_HINT_CONTRAST = 120  # contrast of an input's words with its background: a hint is paler
_ICON_ROOM = 0.12  # of the screen's width, at the right end of an input: a microphone may be here
_MARK_REACH = 0.16  # of the screen's width, left of our message: the mark of a failed one is here
_STATES = (BubbleState.OK, BubbleState.SENDING, BubbleState.FAILED)  # from the best to the worst
_DIMMED = (70, 205)  # how light an input bar is behind a dialog; no theme has such a bar


@dataclass(frozen=True, slots=True)
class Footer:
    """The input of a chat and what sends its text.

    voice: a hold-to-talk bar takes the input's place.
    """

    field: layout.Field
    send: Box | None
    state: SendState
    draft: Words
    voice: bool = False


async def find_footer(ocr: OcrEngine, grid: Grid, profile: AppProfile) -> Footer | None:
    """Return the input bar of a chat; None if the screen has none."""
    for field in layout.fields(grid):
        sends = [button for button in field.buttons if await _says(ocr, grid.image, button, profile.send_texts)]
        if not sends and (field.buttons or not any(icon.left >= field.box.right for icon in field.icons)):
            continue
        draft, voice = await read_input(ocr, grid.image, field, profile)
        if sends:
            state = SendState.ON if draft.text else SendState.DIMMED
            return Footer(field, sends[-1], state, draft)
        key = await _send_key(ocr, grid, field, profile)
        return Footer(field, key, SendState.KEYBOARD if key else SendState.ABSENT, draft, voice)
    return None


async def _says(ocr: OcrEngine, image: Image.Image, box: Box, texts: Sequence[str]) -> bool:
    words = await read_box(ocr, image, box)
    return normalise(words.text) in {normalise(text) for text in texts}


async def _send_key(ocr: OcrEngine, grid: Grid, field: layout.Field, profile: AppProfile) -> Box | None:
    """Return the key of the keyboard that says 发送; None if there is none."""
    image, top = grid.image, layout.keyboard_top(grid, field)
    if top is None:
        return None
    corner = Box(round(0.66 * image.width), top + (image.height - top) // 2, image.width, image.height)
    wanted = {normalise(text) for text in profile.send_texts}
    found = [line.box for line in await ocr.read_part(image, corner) if normalise(line.text) in wanted]
    return found[-1] if found else None


async def read_input(
    ocr: OcrEngine, image: Image.Image, field: layout.Field, profile: AppProfile
) -> tuple[Words, bool]:
    """Return the text in an input, and whether the input is a hold-to-talk bar."""
    words = await _read_typed(ocr, image, field.box)
    voice = normalise(words.text).casefold() in {normalise(text).casefold() for text in profile.voice_bar_texts}
    return Words() if voice or is_hint(words.text) else words, voice


async def read_draft(ocr: OcrEngine, image: Image.Image, box: Box) -> Words:
    """Return the text in an input box (only the visible lines of a long one); "" if it is empty or shows a hint."""
    words = await _read_typed(ocr, image, box)
    return Words() if is_hint(words.text) else words


async def _read_typed(ocr: OcrEngine, image: Image.Image, box: Box) -> Words:
    crop = image.crop(box.as_tuple())
    ground = picture.common_color(crop)
    plain = picture.without_colors(crop, ground)
    room = _text_room(plain, ground, image.width)
    lines = picture.text_lines(plain, room, ground, width=image.width)
    if not lines or max(picture.contrast(plain, line, ground) for line in lines) < _HINT_CONTRAST:
        return Words()
    return messages.joined(await read_lines(ocr, plain, lines))


def _text_room(crop: Image.Image, ground: picture.Color, width: int) -> Box:
    """Return the box of an input without the icon at its right end, which is separate and no draft."""
    right = crop.width
    columns = picture.spans(picture.projections(picture.ink(crop, ground, 40))[0], gap=round(0.01 * width))
    if columns:
        start, end = columns[-1]
        before = columns[-2][1] if len(columns) > 1 else 0
        alone = start >= crop.width - _ICON_ROOM * width and start - before > 0.04 * width
        if alone and 0.02 * width <= end - start <= 0.075 * width:
            right = start - 1
    return Box(0, 0, max(1, right), crop.height)


async def read_chat(
    ocr: OcrEngine, frame: Frame, profile: AppProfile, second: Transcriber | None = None
) -> ChatScreen | None:
    """Read the chat page in a picture by OCR; None if it is not one.

    second: a model that is shown the crop of anything OCR is unsure of. If both read the same, the reading is sure.
    """
    image = frame.image
    grid = Grid.of(image)
    footer = await find_footer(ocr, grid, profile)
    if footer is None:
        return None
    header = layout.header(grid)
    if header is None:
        return None
    page = shapes.page_of(grid, profile, top=header.bottom, bottom=footer.field.top)
    if _DIMMED[0] < luminance(footer.field.bar) < _DIMMED[1] and picture.card_over(image):
        return None  # a dialog over a dimmed chat
    title = await read_title(ocr, image, header.line)
    if second is not None:
        title = await _title_twice(second, image, title)
    if not title.text and not page.shapes:
        return None
    found, cut = _whole(page)
    bubbles = await _messages(ocr, frame, replace(page, shapes=tuple(found)), second)
    whole = 1 if cut and len(found) > 1 and found[0].cut else 0  # a message that is cut is left to the doubt ABOVE
    doubts = _doubts(page, found[whole:], bubbles[whole:], title, footer.draft)
    if cut:
        doubts.append(Doubt(DoubtKind.ABOVE))
    calls = await messages.read_calls(ocr, image, page)
    named = [shape.named for shape in found if shape.side is Side.THEM]
    voice = footer.voice and footer.field.icons and footer.field.icons[0].right <= footer.field.box.left
    return ChatScreen(
        title=title.text,
        bubbles=with_lines(bubbles, calls),
        draft=footer.draft.text,
        source=Source.OCR,
        sure=not doubts,
        doubts=tuple(doubts),
        input_box=None if footer.voice else footer.field.box,
        send_point=footer.send.center if footer.send else None,
        partial=cut and len(doubts) == 1,
        title_print=title.print,
        title_sure=title.sure,
        title_box=title.box,
        group=counts_members(title.text) or (bool(named) and sum(named) * 2 > len(named)),
        draft_sure=not footer.draft.unsure,
        send_box=footer.send,
        send_state=footer.state,
        keyboard_icon=footer.field.icons[0].center if voice else None,
    )


def _whole(page: shapes.PageShapes) -> tuple[list[shapes.Shape], bool]:
    """Return the shapes, and whether the upper edge cuts into the current question.

    A shape that is cut is left out if a message of ours follows it.
    """
    found = list(page.shapes)
    cut = bool(found) and found[0].cut
    if all(shape.side is Side.THEM for shape in found):
        return found, cut or (page.remnant and bool(found))
    ours_below = any(shape.side is Side.ME for shape in found[1:])
    return (found[1:] if cut and ours_below else found), False


async def _messages(ocr: OcrEngine, frame: Frame, page: shapes.PageShapes, second: Transcriber | None) -> list[Bubble]:
    if not page.plain and not page.shapes:
        return await _grouped(ocr, frame, page.box)
    bubbles = await messages.read_shapes(ocr, frame.image, page)
    sided = [shape.sure for shape in page.shapes]
    return bubbles if second is None else await _words_twice(second, frame.image, bubbles, asked_from(bubbles, sided))


def _doubts(
    page: shapes.PageShapes, found: Sequence[shapes.Shape], bubbles: Sequence[Bubble], title: Title, draft: Words
) -> list[Doubt]:
    """Return everything uncertain on a page that matters for the current questions."""
    doubts = [Doubt.of(kind) for kind in page.doubts]
    if found and found[-1].open:
        doubts.append(Doubt(DoubtKind.BELOW))
    if not title.sure:
        kind = DoubtKind.TITLE_MORE if (title.flawed or title.signed) and title.text else DoubtKind.TITLE
        doubts.append(Doubt(kind, title.text, confidence=title.confidence))
    doubts += newest_doubts(bubbles, [shape.sure for shape in found])
    if draft.unsure:
        doubts.append(Doubt(DoubtKind.INPUT, draft.text, confidence=draft.confidence))
    return doubts


async def _title_twice(model: Transcriber, image: Image.Image, title: Title, wanted: str = "") -> Title:
    """Make a title sure that OCR read with too little confidence, if a model reads exactly the same.

    If letters look like others, or something else is beside them, a second reading does not help.

    wanted: the tree's title; the model may confirm it instead.
    """
    if title.sure or title.box is None or title.flawed or title.blank or title.signed or not title.text:
        return title
    said = await model.title(image.crop(title.box.as_tuple()))
    text = wanted or title.text
    if not said or name(said, drawn=True) != name(text, drawn=True):
        return title
    return replace(title, text=text, confidence=1.0)


def _named_by_picture(seen: ChatScreen, title: Title) -> ChatScreen:
    """Make the tree's title sure if the picture tells which text is the name.

    The tree may only have left open which of its texts is the name. The picture tells it by position, and must be sure
    of exactly the same letters in the same place.
    """
    if seen.title_sure or not title.sure or normalise(title.text) != normalise(seen.title):
        return seen
    if not is_clean(seen.title) or title.box is None or not (seen.title_box and seen.title_box.intersects(title.box)):
        return seen
    rest = tuple(doubt for doubt in seen.doubts if doubt.kind is not DoubtKind.HEADER)
    return replace(seen, title_sure=True, doubts=rest, sure=not rest)


async def _words_twice(model: Transcriber, image: Image.Image, bubbles: Sequence[Bubble], start: int) -> list[Bubble]:
    """Ask a model about the messages whose words OCR was unsure of; those that it reads alike become sure.

    start: the index of the first message that is asked now; messages above it are not shown to the model.
    """
    found = list(bubbles[:start])
    for bubble in bubbles[start:]:
        unsure = not bubble.sure and not bubble.doubt and bubble.kind is BubbleKind.TEXT and bubble.box is not None
        if unsure and bubble.box is not None:
            said = await model.words(image.crop(bubble.box.as_tuple()))
            same = said is not None and compare(said, bubble.text) is not Match.DIFFERENT
            found.append(replace(bubble, text=said or bubble.text, sure=True) if same else bubble)
        else:
            found.append(bubble)
    return found


def newest_doubts(bubbles: Sequence[Bubble], sided: Sequence[bool]) -> list[Doubt]:
    """Return the doubts about the messages after our last one.

    sided: for each message, whether its side is sure.
    """
    doubts = []
    for bubble in bubbles[asked_from(bubbles, sided) :]:
        if not bubble.sure:
            said = bubble.text if bubble.kind is BubbleKind.TEXT else bubble.kind.value
            doubts.append(Doubt.of(bubble.doubt or DoubtKind.MESSAGE, said))
    return doubts


def asked_from(bubbles: Sequence[Bubble], sided: Sequence[bool]) -> int:
    """Return the index after our last message that is surely ours: the messages from there on are asked now."""
    ours = [i for i, bubble in enumerate(bubbles) if bubble.side is Side.ME and i < len(sided) and sided[i]]
    return ours[-1] + 1 if ours else 0


async def _grouped(ocr: OcrEngine, frame: Frame, area: Box) -> list[Bubble]:
    """Group lines found by OCR into bubbles: lines of one side that are close together. No bubble is sure."""
    size = frame.size
    groups: list[list[Reading]] = []
    calls = []
    for line in whole_lines(await ocr.read(frame.image, digest=frame.digest)):
        if not (area.top <= line.box.top and line.box.bottom <= area.bottom):
            continue
        if _centred(line.box, size):
            call = call_line(line.text, in_picture=True)
            calls += [Bubble(Side.THEM, call, line.box, BubbleKind.CALL, sure=False)] if call else []
            continue
        last = groups[-1][-1] if groups else None
        if last and _continues(last.box, line.box, frame.image):
            groups[-1].append(line)
        else:
            groups.append([line])
    bubbles = []
    for group in groups:
        text = join_lines([line.text for line in group])
        box = Box(
            min(line.box.left for line in group),
            group[0].box.top,
            max(line.box.right for line in group),
            group[-1].box.bottom,
        )
        bubbles.append(Bubble(side_of(box, size), text, box, kind_of(text), sure=False))
    return list(with_lines(bubbles, calls))


def whole_lines(readings: Sequence[Reading]) -> list[Reading]:
    """Join readings of one line that a detector separated, at a wide comma for example."""
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
    """Tell whether ``right`` continues the line of ``left``."""
    height = min(left.height, right.height)
    overlap = min(left.bottom, right.bottom) - max(left.top, right.top)
    return overlap > 0.6 * height and -height < right.left - left.right < 0.9 * height


def _centred(box: Box, size: tuple[int, int]) -> bool:
    return abs(box.left + box.right - size[0]) < 0.06 * size[0] and box.width < 0.5 * size[0]


def _continues(above: Box, below: Box, image: Image.Image) -> bool:
    """Tell whether two lines belong to one bubble: close together, with the same background all the way."""
    if below.top - above.bottom > 0.8 * above.height or abs(above.left - below.left) > above.height:
        return False
    between = image.crop(
        (below.left, above.bottom, below.left + max(1, above.height), max(below.top, above.bottom + 1))
    )
    return len(between.getcolors(64) or range(65)) <= 64


# Two sources


async def checked(
    ocr: OcrEngine,
    seen: ChatScreen,
    title_box: Box | None,
    frame: Frame,
    profile: AppProfile,
    second: Transcriber | None = None,
) -> ChatScreen:
    """Check a page read from the tree against the picture: title, newest message, anything below it, draft.

    This reveals a tree that is older than the picture.

    second: a model that is shown the crop of anything OCR is unsure of and the tree has differently.
    """
    image = frame.image
    grid = Grid.of(image)
    header = layout.header(grid)
    doubts = []
    title = await read_title(ocr, image, _header(title_box, header, image, profile))
    agreed = _agree(seen.title, title) or (
        seen.group and _agree(without_count(seen.title), replace(title, text=without_count(title.text)))
    )
    if not agreed and second is not None and not seen.group:
        again = await _title_twice(second, image, title, seen.title)
        agreed = _agree(seen.title, again)
    seen = _named_by_picture(seen, title)
    if not agreed:
        doubts.append(Doubt(DoubtKind.TITLES_DIFFER, seen.title, title.text, title.confidence))
    page = page_between(grid, header, profile, seen.input_box)
    seen = _states_by_picture(_sides_by_picture(seen, page), page, image)
    shaped = _without_lines(seen, page)
    torn = _place_doubts(shaped, page, image.width)
    doubts += torn or await _newest_doubts(ocr, shaped, image, page, second)
    if seen.input_box and seen.draft is not None:
        draft = await read_draft(ocr, image, seen.input_box)
        if not _same_text(seen.draft, draft):
            doubts.append(Doubt(DoubtKind.INPUTS_DIFFER, seen.draft, draft.text, draft.confidence))
    return replace(
        seen,
        sure=seen.sure and not doubts,
        doubts=(*seen.doubts, *doubts),
        title_print=title.print,
        title_sure=seen.title_sure and agreed,
        title_box=title.box or seen.title_box,
        torn=bool(torn),
    )


def _sides_by_picture(seen: ChatScreen, page: shapes.PageShapes) -> ChatScreen:
    """Make messages of the tree sure whose avatar is out of sight, if the picture tells their side."""
    if not page.plain or all(bubble.sure for bubble in seen.bubbles):
        return seen
    found = []
    for bubble in seen.bubbles:
        box = bubble.box
        same = [s for s in page.shapes if box and s.sure and abs(s.box.center.y - box.center.y) < box.height // 10 + 8]
        told = not bubble.sure and bubble.kind is BubbleKind.TEXT and len(same) == 1
        found.append(replace(bubble, side=same[0].side, sure=True) if told else bubble)
    rest = seen.doubts
    if all(bubble.sure for bubble in found):
        rest = tuple(doubt for doubt in seen.doubts if doubt.kind is not DoubtKind.NODES)
    return replace(seen, bubbles=tuple(found), doubts=rest, sure=not rest)


def _states_by_picture(seen: ChatScreen, page: shapes.PageShapes, image: Image.Image) -> ChatScreen:
    """Give each of our messages the worse of the states that tree and picture tell.

    The tree often does not name the red mark beside a failed message, because its id changes from build to build. On a
    wallpaper shapes have no state, so the red is searched for separately.
    """

    def state(bubble: Bubble) -> BubbleState:
        box = bubble.box
        if bubble.side is not Side.ME or box is None:
            return bubble.state
        states = {bubble.state}
        states |= {
            s.state for s in page.shapes if s.side is Side.ME and s.box.top < box.bottom and s.box.bottom > box.top
        }
        beside = Box(max(0, box.left - round(_MARK_REACH * image.width)), box.top, box.left, box.bottom)
        if badges.red_marks(image, beside):
            states.add(BubbleState.FAILED)
        return max(states, key=_STATES.index)

    return replace(seen, bubbles=tuple(replace(bubble, state=state(bubble)) for bubble in seen.bubbles))


def placed(seen: ChatScreen, image: Image.Image, profile: AppProfile) -> tuple[ChatScreen, list[Doubt]]:
    """Return the tree's page with sides and states from the picture, and the doubts about the places of messages.

    A page with a picture behind it tells no sides.
    """
    grid = Grid.of(image)
    page = page_between(grid, layout.header(grid), profile, seen.input_box)
    seen = _states_by_picture(_sides_by_picture(seen, page), page, image)
    return seen, _place_doubts(_without_lines(seen, page), page, image.width)


def _without_lines(seen: ChatScreen, page: shapes.PageShapes) -> ChatScreen:
    """Return the tree's page without calls that the picture shows as centred lines, because those are not shapes."""
    kept = [
        bubble
        for bubble in seen.bubbles
        if bubble.kind is not BubbleKind.CALL
        or bubble.box is None
        or not any(line.intersects(bubble.box) for line in page.lines)
    ]
    return replace(seen, bubbles=tuple(kept))


def page_between(grid: Grid, header: layout.Header | None, profile: AppProfile, field: Box | None) -> shapes.PageShapes:
    """Return the messages between header and input. ``field`` is the input's box by another source."""
    image = grid.image
    top = header.bottom if header else picture.region_box(profile.messages_region, image.size).top
    found = next((f for f in layout.fields(grid) if field is None or f.box.intersects(field)), None)
    if found is not None:
        bottom = found.top
    else:
        bottom = field.top if field else round(profile.messages_region[3] * image.height)
    return shapes.page_of(grid, profile, top=top, bottom=bottom)


def _place_doubts(seen: ChatScreen, page: shapes.PageShapes, width: int) -> list[Doubt]:
    if not page.plain:
        return []
    newest = seen.newest
    if newest is None or newest.box is None:
        return [Doubt(DoubtKind.TREE_EMPTY)] if page.shapes else []
    if not page.shapes:
        return [Doubt(DoubtKind.PICTURE_EMPTY)]
    last = page.shapes[-1]
    if last.box.top >= newest.box.bottom - 4:
        return [Doubt(DoubtKind.NEWER)]
    # A node may hold a margin around its bubble, and a sticker does not fill its node.
    off = abs(last.box.center.y - newest.box.center.y) > 0.04 * width
    if last.side is not newest.side or off or not last.box.intersects(newest.box):
        return [Doubt(DoubtKind.ELSEWHERE)]
    return []


async def _newest_doubts(
    ocr: OcrEngine, seen: ChatScreen, image: Image.Image, page: shapes.PageShapes, second: Transcriber | None
) -> list[Doubt]:
    """Check whether the newest message says in the picture what it says in the tree; return the doubts.

    If OCR is unsure of its words, the model is shown the crop.
    """
    newest = seen.newest
    if newest is None or newest.box is None or newest.kind is not BubbleKind.TEXT:
        return []
    # The bubble's box by the picture: an older tree may have a shorter bubble in the same place.
    box = messages.own_box(page.shapes[-1]) if page.plain and page.shapes else newest.box
    lines = picture.text_lines(image, box, picture.common_color(image.crop(box.as_tuple())))
    some = lines if len(lines) <= 4 else [*lines[:2], *lines[-2:]]
    read = [line for line in await read_lines(ocr, image, some) if line.text]
    text = join_lines([line.text for line in read])
    if read and compare(newest.text, text, confidence=min(r.confidence for r in read)) is not Match.DIFFERENT:
        return []
    inside = bool(read) and all(contains(newest.text, line.text, confidence=line.confidence) for line in read)
    if inside and (some is not lines or len(fold(text)) >= 0.8 * len(fold(newest.text))):
        return []
    if second is not None and messages.joined(read).unsure:
        said = await second.words(image.crop(box.as_tuple()))
        if said and compare(newest.text, said) is not Match.DIFFERENT:
            return []
    return [Doubt(DoubtKind.MESSAGES_DIFFER, newest.text, text)]


def _header(title: Box | None, header: layout.Header | None, image: Image.Image, profile: AppProfile) -> Box:
    """Return the box to read the title from.

    This is the header's line, so that no letter is cut; without a header, the rows that the tree gives.
    """
    if header is not None and (title is None or header.line.intersects(title)):
        return header.line
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
    """Tell whether a title in the picture can be ``name``.

    A flawed title that reads the same is a different one, and no picture can confirm letters that nobody sees.
    """
    if not is_clean(name):
        return False
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
