"""Finds what covers an app: dialogs that appear by themselves, and notifications.

Such a dialog asks for a permission, offers an update or shows an advertisement; ``leave`` is the button that closes it.
Notifications slide in from the top and are not in the tree. A dialog is a small bright window over a dimmed page, or
the page by which Android itself asks for a permission. A page with the same words is none: its switches are what a task
may be about.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from PIL import Image, ImageDraw
from pydantic import BaseModel, ConfigDict

from agent_core.devices.base import Frame, Node, Window
from agent_core.geometry import Box
from agent_core.perception.compare import fold
from agent_core.perception.readings import Reading, Source

LONGEST = 200  # characters of what a dialog says; a longer text belongs to a page
MOST_TEXTS = 12  # on a dialog; a page has more
GRID = (90, 200)  # points of the picture that are examined
LIT = 200  # of 255: a page behind a dialog is darker, whatever is on it
EDGE = 0.05  # of the height: the system bars at top and bottom are not dimmed
TALLEST, NARROWEST = 0.7, 0.4  # of the height, of the width
ABOVE = 0.15  # of the height: how far above its dialog a closing picture may float
HEADER = 0.15  # of the height: anything with words above this is a page
SAME_GROUND = 4  # of 255: the least by which a dark dialog is brighter than the page
FILLED = 0.4  # of a dialog's points that are lit
CENTRED = 0.05  # of the width: the most by which its margins may differ
_ASKS_FOR_RIGHTS = re.compile(r"GrantPermissions", re.IGNORECASE)  # the activity; the others of that package are pages


_Area = tuple[int, int, int, int]  # left, top, right, bottom, in points of the grid


class _Kind(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    packages: tuple[str, ...] = ()
    says: tuple[str, ...]
    leave: tuple[str, ...]
    agree: tuple[str, ...] = ()
    close: tuple[str, ...] = ()
    activities: tuple[str, ...] = ()
    beside: str = ""
    by_person: bool = False
    task: str


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    popup: tuple[_Kind, ...]


@dataclass(frozen=True, slots=True)
class Popup:
    """A dialog that appeared by itself.

    kind: see ``popups.toml``.
    leave: the button that agrees to nothing, at ``box`` (pixels).
    system: the phone shows it, over whatever app is in front.
    by_person: leaving it may end the app, so a person decides.
    """

    kind: str
    text: str
    leave: str
    box: Box
    system: bool = False
    by_person: bool = False

    def belongs_to(self, task: str) -> bool:
        """Tell whether the task's own words are about such a thing, so that it is expected."""
        kind = next(kind for kind in kinds() if kind.kind == self.kind)
        return re.search(kind.task, task, re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Dialog:
    """A small window over the page, and the texts in it. ``box`` is in pixels."""

    box: Box
    texts: tuple[Reading, ...]


@cache
def kinds() -> tuple[_Kind, ...]:
    text = resources.files(__package__).joinpath("popups.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text)).popup


def stands_over_apps(package: str) -> bool:
    """Tell whether the phone's own dialogs over apps belong to this package, such as a dialog for a permission."""
    return any(package in kind.packages for kind in kinds())


def popup_in(window: Window, readings: Sequence[Reading], frame: Frame | None) -> Popup | None:
    """Return the dialog in front, recognised by its text above a button that leaves it; None if none is sure."""
    texts = [reading for reading in readings if reading.text.strip()]
    panel: Box | None = None
    looked = False
    for kind in kinds():
        pairs = _pairs(kind, texts)
        if not pairs:
            continue
        system = window.package in kind.packages
        activity = window.activity or ""
        if (system and _ASKS_FOR_RIGHTS.search(activity)) or activity.endswith(kind.activities):
            found = _first(kind, pairs, texts, system=True)
        else:
            panel, looked = (panel if looked else panel_of(frame)), True
            inside = [one for one in texts if panel is not None and _of_panel(kind, one, panel, frame)]
            found = _first(kind, _pairs(kind, inside), inside, system=system)
        if found is not None:
            return found
    return None


def _pairs(kind: _Kind, texts: Sequence[Reading]) -> list[tuple[Reading, Reading]]:
    """Return pairs of a text of this kind and the button below it that leaves.

    Texts in one row are a label and a value.

    A button that agrees may have the leaving one beside it, and a picture that closes is above the text.
    """
    leaves = [one for button in kind.leave for one in texts if fold(one.text) == fold(button)]
    says = [
        one
        for one in texts
        if len(one.text) <= LONGEST and any(re.search(pattern, one.text, re.IGNORECASE) for pattern in kind.says)
    ]
    below = [
        (said, leave)
        for leave in leaves
        for said in says
        if said is not leave and leave.box.top >= said.box.bottom - said.box.height // 4
    ]
    agrees = [one for one in texts if fold(one.text) in {fold(button) for button in kind.agree}]
    beside = [
        (said, leave)
        for leave in leaves
        for said in agrees
        if abs(said.box.center.y - leave.box.center.y) < min(said.box.height, leave.box.height)
    ]
    closes = [one for one in texts if _closes(kind, one)]
    above = [(said, close) for close in closes for said in agrees if close.box.bottom <= said.box.top]
    return [*below, *beside, *above]


def _closes(kind: _Kind, reading: Reading) -> bool:
    """Tell whether this is a picture that the tree describes as closing something."""
    return reading.role == "image" and fold(reading.text) in {fold(button) for button in kind.close}


def _of_panel(kind: _Kind, reading: Reading, panel: Box, frame: Frame | None) -> bool:
    """Tell whether the text is in the dialog, or is the picture above it that closes it."""
    middle = reading.box.center
    if panel.contains(middle):
        return True
    height = frame.size[1] if frame else 0
    near = panel.top - ABOVE * height <= middle.y < panel.top and panel.left <= middle.x < panel.right
    return near and _closes(kind, reading)


def _first(
    kind: _Kind, pairs: Sequence[tuple[Reading, Reading]], texts: Sequence[Reading], *, system: bool
) -> Popup | None:
    if not pairs or len(texts) > MOST_TEXTS:
        return None
    said, leave = pairs[0]
    no = {fold(button) for button in kind.leave}
    others = [one.text for one in texts if one is not said and fold(one.text) not in no]
    if kind.beside and not any(re.match(kind.beside, text.strip(), re.IGNORECASE) for text in others):
        return None
    return Popup(kind.kind, said.text.strip(), leave.text.strip(), leave.box, system, kind.by_person)


def dialog_in(
    readings: Sequence[Reading], nodes: Sequence[Node] | None, frame: Frame | None, size: tuple[int, int]
) -> Dialog | None:
    """Return the dialog in front, whatever its text; None if there is none.

    It is recognised by the dimmed page around it. If the picture does not tell, a tree with only a few texts, none of
    them at a page's header, is that of a dialog's window.
    """
    low = EDGE * size[1]
    texts = [one for one in readings if one.text.strip() and one.box.center.y > low]
    panel = panel_of(frame)
    if panel is not None:
        return Dialog(panel, tuple(one for one in texts if panel.contains(one.box.center)))
    if not nodes or not 1 < len(texts) <= MOST_TEXTS or any(one.source is not Source.TREE for one in texts):
        return None
    boxes = [one.box for one in texts] + [n.box for n in nodes if n.clickable and n.box.height < TALLEST * size[1] / 2]
    boxes = [box for box in boxes if box.center.y > low]
    around = Box(
        min(box.left for box in boxes),
        min(box.top for box in boxes),
        max(box.right for box in boxes),
        max(box.bottom for box in boxes),
    )
    small = around.top >= HEADER * size[1] and around.height <= TALLEST * size[1]
    return Dialog(around, tuple(texts)) if small else None


def panel_of(frame: Frame | None) -> Box | None:
    """Return the small window over a dimmed page, bright or dark; None if the page is not dimmed.

    Nothing is lit behind a dialog: whatever is lit is on the dialog or is all of it.
    """
    if frame is None:
        return None
    rows = GRID[1]
    edge = round(EDGE * rows)
    small = frame.image.resize(GRID, Image.Resampling.NEAREST).convert("L").crop((0, edge, GRID[0], rows - edge))
    lit = small.point([0] * LIT + [255] * (256 - LIT))
    around = lit.getbbox()
    found = around and (_window(lit) or _window(_ground(small, around), around))
    if not found:
        return None
    left, top, right, bottom = found
    width, height = frame.size
    low = height if bottom == small.height else round((bottom + edge) * height / rows)  # a sheet reaches the edge
    return Box(left * width // GRID[0], (top + edge) * height // rows, -(-right * width // GRID[0]), low)


def _window(points: Image.Image, holds: _Area | None = None) -> _Area | None:
    """Return the area of a picture's white points, if together they have the shape of a dialog around ``holds``."""
    found = points.getbbox()
    if found is None:
        return None
    left, top, right, bottom = found
    filled = points.crop(found).histogram()[255] / ((right - left) * (bottom - top))
    if right - left < NARROWEST * GRID[0] or bottom - top > TALLEST * GRID[1] or filled < FILLED:
        return None
    if holds is not None and (holds[0] < left or holds[1] < top or holds[2] > right or holds[3] > bottom):
        return None
    return found if abs(left - (GRID[0] - right)) <= CENTRED * GRID[0] else None


def _ground(small: Image.Image, around: _Area) -> Image.Image:
    """Return, as white points, the dark background of the lit words in ``around``; none if the page has the same."""
    levels = small.crop(around).histogram()
    ground = max(range(LIT), key=levels.__getitem__)
    marks = small.point([255 if abs(level - ground) <= SAME_GROUND else 0 for level in range(256)])
    if ground - max(range(256), key=small.histogram().__getitem__) <= SAME_GROUND:
        return Image.new("L", small.size)
    left, top, right, bottom = around
    inside = ((x, y) for y in range(top, bottom) for x in range(left, right) if marks.getpixel((x, y)))
    ImageDraw.floodfill(marks, next(inside), 128)
    return marks.point([255 if level == 128 else 0 for level in range(256)])


STATUS_BAR = 0.04  # of the screen's height: clock and signs, which are in no app's tree
SMALL = 0.25  # of the strip's area: a larger node holds other things, and says nothing about them
MARGIN = 6  # pixels around a node that letters and shadows may fill
TOLERANCE = 24  # levels of a channel: soft shadows and thin lines count as nothing
FEW = 0.002  # of the strip's pixels


def strange(image: Image.Image, nodes: Sequence[Node], strip: Box) -> bool:
    """Tell whether anything is drawn in ``strip`` (at the top of the RGB ``image``) that ``nodes`` do not contain.

    A row of pixels without nodes has one colour; a card over the app breaks that.
    """
    import numpy as np  # it comes with the extra [ocr], without which this is never called

    top = strip.top + round(STATUS_BAR * image.height)
    pixels = np.asarray(image.crop((strip.left, top, strip.right, strip.bottom)), dtype=np.int16)
    told = np.zeros(pixels.shape[:2], dtype=bool)
    most = SMALL * strip.width * strip.height
    for node in nodes:
        box = node.box
        if box.intersects(strip) and box.width * min(box.bottom, strip.bottom) - box.width * max(box.top, 0) <= most:
            left, upper = max(0, box.left - MARGIN), max(0, box.top - MARGIN - top)
            told[upper : max(0, box.bottom + MARGIN - top), left : box.right + MARGIN] = True
    # Compare each row with the colour at its edge: no card reaches that far.
    other = np.abs(pixels - pixels[:, :1, :]).max(axis=2) > TOLERANCE
    return bool((other & ~told).mean() > FEW)
