"""Find touches that may pay, delete, add, call, install or grant, by a control's words and by a dialog's question.

A control is larger than its words: a button reaches beyond them, and a row beyond its name.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from PIL import Image, ImageDraw

from agent_core.actions.types import Action
from agent_core.apps.profile import AppProfile
from agent_core.geometry import Box, Point
from agent_core.perception import picture
from agent_core.perception.lists import NAMES, ChatRow, chat_rows, tree_rows
from agent_core.perception.popups import Dialog, dialog_in, popup_in
from agent_core.perception.readings import Reading, Source
from agent_core.perception.tree_rows import within
from agent_core.policies.base import Situation, bare, touched

# Of the screen's width.
ACROSS, DOWN = 0.3, 0.07  # how far a control may reach from its words if its shape is unknown
HIGHEST = 0.3  # a control is no higher; anything higher contains several
MARGIN = 0.02  # around a control: a finger is not exact
ABOVE_NAME, BELOW_NAME = 0.03, 0.09  # how far a row of a list reaches above its name and below it
SAME_GROUND = 10  # levels of a colour channel that may differ on one background


def grown(box: Box, across: int, down: int) -> Box:
    """Return ``box`` with ``across`` more pixels on its left and right, and ``down`` more above and below."""
    return Box(box.left - across, box.top - down, box.right + across, box.bottom + down)


def control_at(
    point: Point, situation: Situation, means: Callable[[Reading], bool], rows: Sequence[ChatRow] | None = None
) -> str:
    """Return the words of the control under ``point`` if ``means`` holds for them, else "".

    rows: the rows of the list in front, if they are known already.

    A control is as large as the tree's clickable node around its words. Without such a node it is as large as the
    background area around the words. If that area has no bounds, the control reaches a fixed distance from the words,
    unless other words are much nearer to the point. Words in a row of a chat list name no control, because a touch
    there opens the chat.
    """
    meant = [one for one in situation.readings if one.text.strip() and means(one)]
    if rows is None:
        rows = rows_of(situation) if meant else []
    return next((one.text for one in meant if not of_chat(one, rows) and _covers(one, point, situation)), "")


def rows_of(situation: Situation) -> Sequence[ChatRow]:
    """Return the rows of the list in front, as its reader finds them; none in a chat or without a picture."""
    if situation.chat is not None or situation.frame is None:
        return []
    if situation.nodes and any(one.source is Source.TREE for one in situation.readings):
        return tree_rows(situation.nodes, situation.frame)
    return chat_rows(situation.readings, situation.frame)


def row_around(one: Reading, situation: Situation) -> Box | None:
    """Return the row that these words may be the name of, judged by their place; None if no name begins there."""
    width = situation.size[0]
    if situation.chat is not None or not NAMES[0] * width <= one.box.left <= NAMES[1] * width:
        return None
    return Box(0, one.box.top - round(ABOVE_NAME * width), width, one.box.bottom + round(BELOW_NAME * width))


def of_chat(one: Reading, rows: Sequence[ChatRow]) -> bool:
    """Tell whether a reading is in a row of a chat list."""
    return any(row.time and row.box.contains(one.box.center) for row in rows)


def _covers(one: Reading, point: Point, situation: Situation) -> bool:
    """Tell whether the control that these words name lies under ``point``."""
    width = situation.size[0]
    margin = round(MARGIN * width)
    if grown(one.box, margin, margin).contains(point):
        return True
    if not grown(one.box, width, round(HIGHEST * width)).contains(point):
        return False
    for area in _areas(one, situation):
        if _first_in(one, area, situation.readings):
            return grown(area, margin, margin).contains(point)
    wide = grown(one.box, round(ACROSS * width), round(DOWN * width))
    return wide.contains(point) and not any(
        2 * distance(other.box, point) <= distance(one.box, point)
        for other in situation.readings
        if other is not one and other.text.strip() and not within(one.box, other.box)
    )


def _areas(one: Reading, situation: Situation) -> Iterator[Box]:
    """Yield the possible areas of the control: the clickable tree node around the words, then their background."""
    most = HIGHEST * situation.size[0]
    around = [n.box for n in situation.nodes or () if n.clickable and within(one.box, n.box) and n.box.height <= most]
    if around:
        yield min(around, key=lambda box: box.width * box.height)
    if situation.frame is not None:
        shape = _shape(situation.frame.image, one.box)
        if shape is not None:
            yield shape


def _first_in(one: Reading, area: Box, readings: Sequence[Reading]) -> bool:
    """Tell whether the words name a control: there are no others above them in it, as a name is above details."""
    return not any(
        other.box.bottom <= one.box.top + one.box.height // 4
        for other in readings
        if other.text.strip() and any(char.isalpha() for char in other.text) and area.contains(other.box.center)
    )


def _shape(image: Image.Image, words: Box) -> Box | None:
    """Return the area of one colour behind ``words``; None if it has no bounds near them, like a page's ground."""
    reach = round(HIGHEST * image.width / 2)
    band = Box(0, max(0, words.top - reach), image.width, min(image.height, words.bottom + reach))
    step, small = picture.small_copy(image.crop(band.as_tuple()))
    own = Box(
        words.left // step, (words.top - band.top) // step, words.right // step, (words.bottom - band.top) // step
    )
    if own.width < 2 or own.height < 2 or own.left < 1 or own.right >= small.width:
        return None
    ground = picture.common_color(small.crop(grown(own, 2, 1).as_tuple()))
    marks = picture.mask(small, ground, SAME_GROUND)
    middle = own.center.y
    seed = next((x for x in range(own.left - 1, max(-1, own.left - 8), -1) if marks.getpixel((x, middle))), None)
    if seed is None:
        return None
    ImageDraw.floodfill(marks, (seed, middle), 128)
    bounds = marks.point([255 if level == 128 else 0 for level in range(256)]).getbbox()
    if bounds is None or bounds[1] <= 0 or bounds[3] >= small.height or bounds[2] < own.right:
        return None
    return Box(bounds[0] * step, band.top + bounds[1] * step, bounds[2] * step, band.top + bounds[3] * step)


def distance(box: Box, point: Point) -> float:
    """Return the distance in pixels from a point to a box; 0 inside it."""
    across = max(box.left - point.x, 0, point.x - box.right)
    down = max(box.top - point.y, 0, point.y - box.bottom)
    return math.hypot(across, down)


LONGEST_LABEL = 20  # Han letters, or twice as many Latin ones: a longer text is running text, not a control
BESIDE = 8  # pixels around the words of a refusal, if no tree tells its button
_IN_A_ROW = 4  # letters more than the word: a longer text in a row of a list is not a button


@cache
def _risky_file() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("risky.toml").read_text(encoding="utf-8"))


@cache
def risky_words() -> tuple[str, ...]:
    """Return the words on buttons of any app that pay, delete, add, call, install or grant rights."""
    return tuple(word for name, listed in _risky_file().items() if name != "refusals" for word in listed)


@cache
def _refusals() -> frozenset[str]:
    return frozenset(bare(text) for text in _risky_file()["refusals"]["texts"])


def risk_at(proposal: Action, situation: Situation, app: AppProfile | None, named: Sequence[Reading]) -> str:
    """Return the words of the risky control that a touch may click, or "" if it may click none.

    app: its own risky words count, too.
    named: the readings that name the place that is touched.

    The whole area of a button counts, not only its words. On a dialog that asks about a risk, every button is risky
    unless it is a known refusal.
    """
    pair = touched(proposal, situation.size)
    if pair is None:
        return ""
    point = Point.from_relative(pair, situation.size)
    risky = _Risky((*risky_words(), *(app.risky if app else ())), situation.gate.contact)
    dialog = dialog_in(situation.readings, situation.nodes, situation.frame, situation.size)
    rows = [] if dialog is not None else rows_of(situation)
    for one in named:
        if risky.in_a_row(one) if of_chat(one, rows) else risky.is_control(one):
            return one.text
    if dialog is not None and dialog.box.contains(point):
        asked = next((one.text for one in dialog.texts if risky.is_meant(one)), "")
        if asked:
            return "" if _refuses(point, situation, dialog) else asked
    return control_at(point, situation, risky.is_control, rows)


def _refuses(point: Point, situation: Situation, dialog: Dialog) -> bool:
    """Tell whether a point of a dialog is on the words or the button that refuses.

    A refusal whose words also appear in the dialog's text is doubtful: "Close" agrees to "Close the account?".
    """
    popup = popup_in(situation.window, situation.readings, situation.frame)
    if popup is not None and popup.box.contains(point):
        return True
    under = min(dialog.texts, key=lambda one: (distance(one.box, point), one.box.width * one.box.height))
    around = [n.box for n in situation.nodes or () if n.clickable and n.box.contains(point)]
    button = min(around, key=lambda box: box.width * box.height, default=grown(under.box, BESIDE, BESIDE))
    refusal, said = bare(under.text), {bare(one.text) for one in dialog.texts}
    named = {bare(one.text) for one in dialog.texts if button.contains(one.box.center)}
    in_doubt = any(refusal in text for text in said - {refusal})
    return button.contains(point) and named == {refusal} and refusal in _refusals() and not in_doubt


@dataclass(frozen=True, slots=True)
class _Risky:
    """A judge of readings: ``words`` name a risk; the name ``contact`` is never a button, whatever it says."""

    words: Sequence[str]
    contact: str

    def is_control(self, one: Reading) -> bool:
        """Tell whether a reading is the label of a risky control."""
        text = one.text.strip()
        length = sum(1 if char > "\u2e80" else 0.5 for char in text)
        return (one.role == "button" or length <= LONGEST_LABEL) and self.is_meant(one) and self._no_refusal(text)

    def in_a_row(self, one: Reading) -> bool:
        """Tell whether a reading in a row of a chat list is a risky label: a customer's question is not a button."""
        text = bare(one.text)
        near = any(bare(word) in text and len(text) <= len(bare(word)) + _IN_A_ROW for word in self.words)
        return near and self._no_refusal(text)

    def is_meant(self, one: Reading) -> bool:
        """Tell whether a reading contains words of a risk."""
        text = bare(one.text)
        return text != bare(self.contact) and any(bare(word) in text for word in self.words)

    @staticmethod
    def _no_refusal(text: str) -> bool:
        return bare(text) not in _refusals()
