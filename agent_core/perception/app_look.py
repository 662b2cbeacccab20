"""Measures the look of a chat page apart from its words: the colours and places of its parts. Needs NumPy."""

from __future__ import annotations

from collections import Counter

from PIL import Image

from agent_core.apps.learnt import AppLook
from agent_core.apps.profile import AppProfile
from agent_core.geometry import Box
from agent_core.perception import layout, shapes
from agent_core.perception.pixels import Grid, far, spans
from agent_core.perception.readings import ChatScreen, SendState, Side

# Fractions of the screen's width.
_STRIP = 0.142  # avatars of a chat lie within this distance of an edge
_AVATAR = (0.06, 0.16)  # their size
_KEYBOARD = 0.12  # of the screen's height: more below the input bar is a keyboard or a panel


def look_of(image: Image.Image, chat: ChatScreen, profile: AppProfile) -> AppLook:
    """Return the look of the chat page in ``image``, as far as it can be measured. ``chat`` is the reading of it."""
    grid = Grid.of(image)
    header = layout.header(grid)
    field = next(iter(layout.fields(grid)), None)
    if header is None or field is None:
        return AppLook()
    width = image.width
    page = shapes.page_of(grid, profile, top=header.bottom, bottom=field.top)
    left = [box for box in edge_avatars(grid, page) if box.left < width // 2] if page.plain else []
    whole = [box for box in left if 0.85 * box.width <= box.height <= 1.2 * box.width]
    resting = not chat.draft and image.height - field.bottom <= _KEYBOARD * image.height
    return AppLook(
        ground=_hex(page.ground.color) if page.plain else "",
        mine=_bubbles(page, Side.ME),
        theirs=_bubbles(page, Side.THEM),
        header=_part(header.bottom, width),
        bar=_part(image.height - field.top, width) if resting else None,
        avatar_left=_part(whole[-1].left, width) if whole else None,
        avatar_size=_part(whole[-1].width, width) if whole else None,
        send_always=_send_always(chat),
    )


def edge_avatars(grid: Grid, page: shapes.PageShapes) -> list[Box]:
    """Return everything at both edges of a chat that is large enough for an avatar.

    The boxes are in pixels of the picture, from top to bottom for the left edge, then for the right one.
    """
    rows = (page.box.top // grid.step, page.box.bottom // grid.step)
    strip = round(_STRIP * grid.width)
    least = _AVATAR[0] * grid.width
    found = []
    for left in (0, grid.width - strip):
        filled = far(grid.pixels[rows[0] : rows[1], left : left + strip], page.ground.color) > 6
        for start, end in spans(filled.sum(axis=1) >= 2, gap=1, least=3):
            columns = spans(filled[start:end].any(axis=0), gap=1, least=2)
            wide = [span for span in columns if span[1] - span[0] >= least]
            if wide and end - start >= 0.3 * least:
                first, last = wide[0][0], wide[-1][1]
                found.append(grid.full(Box(left + first, rows[0] + start, left + last, rows[0] + end)))
    return found


def _bubbles(page: shapes.PageShapes, side: Side) -> str:
    """Return the most common colour of one side's bubbles, as ``#rrggbb``; "" if no bubble is sure."""
    sure = [
        shape for shape in page.shapes if shape.sure and shape.side is side and shape.form is shapes.MessageShape.BUBBLE
    ]
    common = Counter(_hex(shape.color) for shape in sure).most_common(1)
    return common[0][0] if common else ""


def _send_always(chat: ChatScreen) -> bool | None:
    if chat.draft or chat.input_box is None or chat.send_state is SendState.KEYBOARD:
        return None
    return chat.send_state is not SendState.ABSENT


def _part(length: int, width: int) -> float:
    return round(length / width, 4)


def _hex(color: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)
