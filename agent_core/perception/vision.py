"""Reads the chat page with a model that transcribes crops, checked against the shapes in the picture.

The model gives the words; code finds in the picture where bubbles are, whose they are and whether one failed. What the
shapes leave in doubt stays in doubt, whatever the model writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PIL import Image

from agent_core.apps.profile import AppProfile
from agent_core.devices.base import Frame, Node
from agent_core.geometry import Box
from agent_core.perception import layout, picture, shapes, tree
from agent_core.perception.chat import newest_doubts, page_between
from agent_core.perception.compare import counts_members, normalise
from agent_core.perception.kinds import CARDS
from agent_core.perception.pixels import Grid
from agent_core.perception.readings import Bubble, BubbleKind, ChatScreen, Doubt, DoubtKind, Side, Source
from agent_core.perception.title import name_place
from agent_core.perception.transcribe import Transcriber

# The possible kinds of a shape. A card has a flat background, or a picture over its whole width.
_KINDS = {
    shapes.MessageShape.BUBBLE: CARDS | {BubbleKind.TEXT, BubbleKind.VOICE, BubbleKind.CALL},
    shapes.MessageShape.PICTURE: CARDS | {BubbleKind.IMAGE, BubbleKind.VIDEO, BubbleKind.STICKER},
    shapes.MessageShape.PACKET: frozenset({BubbleKind.RED_PACKET}),
}


async def read_by_model(
    transcriber: Transcriber, frame: Frame, nodes: Sequence[Node], profile: AppProfile
) -> ChatScreen | None:
    """Return the chat page; None if it is not one.

    nodes: a tree without texts may still say where things are.
    """
    image = frame.image
    grid = Grid.of(image)
    header = layout.header(grid)
    field, send = await _places(transcriber, frame, grid, nodes, profile)
    if header is None or field is None:
        return None
    place = name_place(image, header.line)
    title = await transcriber.title(image.crop((place.box if place else header.line).as_tuple()))
    if not title:
        return None
    readable, draft = await transcriber.draft(_around(frame, field))
    if readable and draft is None:
        return None
    page = page_between(grid, header, profile, field)
    written = await transcriber.bubbles(image.crop(page.box.as_tuple()))
    if not page.plain and picture.card_over(image):
        return None  # a dialog over a dimmed chat
    doubts = [Doubt.of(kind) for kind in page.doubts]
    title_sure = place is not None and not place.strange and not place.signed
    if not title_sure:
        doubts.append(Doubt(DoubtKind.TITLE_MORE, title))
    if not readable:
        doubts.append(Doubt(DoubtKind.MODEL_INPUT))
    bubbles: Sequence[Bubble] = ()
    placed: list[Bubble] | None = None
    cut = bool(page.shapes) and page.shapes[0].cut and all(shape.side is Side.THEM for shape in page.shapes)
    if written is None:
        doubts.append(Doubt(DoubtKind.MODEL_MESSAGES))
    else:
        placed = _placed(written, page)
        bubbles = written if placed is None else placed
        if placed is None:
            doubts.append(Doubt(DoubtKind.MODEL_OTHERS))
        else:
            whole = placed[1:] if cut and len(placed) > 1 else placed  # a cut message is left to the doubt ABOVE
            sided = [shape.sure for shape in page.shapes[len(page.shapes) - len(whole) :]]
            doubts += newest_doubts(whole, sided)
    if page.shapes and page.shapes[-1].open:
        doubts.append(Doubt(DoubtKind.BELOW))
    if cut:
        doubts.append(Doubt(DoubtKind.ABOVE))
    named = [shape.named for shape in page.shapes if shape.side is Side.THEM]
    return ChatScreen(
        title=title,
        bubbles=tuple(bubbles),
        draft=draft if readable else None,
        source=Source.MODEL,
        sure=not doubts,
        doubts=tuple(doubts),
        input_box=field,
        send_point=send.center if send else None,
        partial=cut and len(doubts) == 1,
        torn=written is None or (placed is None and page.plain),
        title_sure=title_sure,
        title_box=place.box if place else None,
        group=counts_members(title) or (bool(named) and sum(named) * 2 > len(named)),
        draft_sure=readable,
    )


def _placed(written: Sequence[Bubble], page: shapes.PageShapes) -> list[Bubble] | None:
    """Give the model's bubbles the places, states and doubts of the picture's; None if they do not match.

    The uppermost may be cut off by the edge; then it may be missing on either side.
    """
    seen = list(page.shapes)
    words = list(written)
    if seen and seen[0].cut and len(seen) == len(words) + 1:
        seen = seen[1:]
    if not page.plain or len(seen) != len(words):
        return None
    if any(bubble.side is not shape.side for bubble, shape in zip(words, seen, strict=True)):
        return None
    return [_of_shape(bubble, shape) for bubble, shape in zip(words, seen, strict=True)]


def _of_shape(bubble: Bubble, shape: shapes.Shape) -> Bubble:
    """Return the model's bubble with its place in the picture; unsure if its kind does not fit its shape.

    A picture with letters is not a text, though a model writes them down; a white picture looks like a bubble.
    """
    sure = shape.sure and not shape.doubt and bubble.kind in _KINDS[shape.form]
    return replace(bubble, box=shape.box, state=shape.state, sure=sure, doubt=shape.doubt)


async def _places(
    transcriber: Transcriber, frame: Frame, grid: Grid, nodes: Sequence[Node], profile: AppProfile
) -> tuple[Box | None, Box | None]:
    """Return input and Send: by nodes without texts, else by shape.

    A box with icons beside it is an input, and so is one whose button says what sends.
    """
    field = tree.input_node(nodes, profile, frame.size)
    if field is not None:
        send = tree.send_node(nodes, profile, field, frame.size)
        return field.box, send.box if send else None
    wanted = {normalise(text) for text in profile.send_texts}
    for found in layout.fields(grid):
        for button in found.buttons:
            if normalise(await transcriber.button(_around(frame, button)) or "") in wanted:
                return found.box, button
        if not found.buttons and any(icon.left >= found.box.right for icon in found.icons):
            return found.box, None
    return None, None


def _around(frame: Frame, box: Box) -> Image.Image:
    """Return the picture of a box with its edges, and without what is beside it."""
    return frame.image.crop((box.left - 6, box.top - 6, box.right + 6, box.bottom + 6))
