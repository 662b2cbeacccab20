"""The elements of a screen: painted, hit-tested and dumped from one list.

Everything is laid out on a page of 1080 units' width, whatever the screen's size; ``Canvas`` scales to pixels. Boxes
are (left, top, right, bottom) in units, right and bottom outside. Corners, circles and lines of text are drawn with
masks that are cached, because a phone's screen changes a little at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from PIL import Image, ImageColor, ImageDraw

from agent_core.texts.layout import advance, font, font_of, handwritten, in_handwriting, is_emoji, is_joiner, text_width
from simulator.phone.emoji import emoji_image

WIDTH = 1080
Rect = tuple[int, int, int, int]
Anchor = Literal["left", "middle", "right"]

_SMOOTH = 4  # masks are drawn this much larger and reduced


@lru_cache(128)
def _ellipse(width: int, height: int) -> Image.Image:
    mask = Image.new("L", (width * _SMOOTH, height * _SMOOTH))
    ImageDraw.Draw(mask).ellipse((0, 0, width * _SMOOTH - 1, height * _SMOOTH - 1), fill=255)
    return mask.reduce(_SMOOTH)


@lru_cache(64)
def _corners(radius: int) -> tuple[Image.Image, ...]:
    disc = _ellipse(2 * radius, 2 * radius)
    boxes = ((0, 0), (radius, 0), (0, radius), (radius, radius))
    return tuple(disc.crop((x, y, x + radius, y + radius)) for x, y in boxes)


@lru_cache(768)
def _line(text: str, size: int, bold: bool, hand: bool) -> Image.Image:
    """Return the mask of one line of text, with the line's full height."""
    mask = Image.new("L", (max(1, round(text_width(text, size)) + 3), round(size * 1.45)))
    draw = ImageDraw.Draw(mask)
    if not any(is_emoji(char) or is_joiner(char) or (hand and not handwritten(char)) for char in text):
        draw.text((0, size * 1.08), text, 255, font(size, hand), anchor="ls", stroke_width=size / 72 if bold else 0)
        return mask
    x = 0.0
    for char in text:
        if is_joiner(char):
            continue
        if is_emoji(char):
            _face(draw, x + size * 0.1, size * 0.2, size)
        else:
            draw.text((x, size * 1.08), char, 255, font_of(char, size, hand), anchor="ls")
        x += advance(char, size, hand)
    return mask


def _face(draw: ImageDraw.ImageDraw, x: float, y: float, size: int) -> None:
    """Draw an emoji of any kind as a round face, which is all that a reader of this screen needs to see of it."""
    draw.ellipse((x, y, x + size, y + size), outline=255, width=max(2, size // 14))
    for eye in (0.3, 0.62):
        draw.ellipse((x + size * eye, y + size * 0.32, x + size * (eye + 0.09), y + size * 0.45), fill=255)
    draw.arc((x + size * 0.25, y + size * 0.3, x + size * 0.75, y + size * 0.78), 20, 160, fill=255, width=3)


def _apart(text: str) -> list[str]:
    """Split a text: each emoji and joiner by itself, the characters between them together."""
    pieces: list[str] = []
    for char in text:
        alone = is_emoji(char) or is_joiner(char)
        if pieces and not alone and not (is_emoji(pieces[-1][0]) or is_joiner(pieces[-1][0])):
            pieces[-1] += char
        else:
            pieces.append(char)
    return pieces


_STAMPS: dict[tuple[str, tuple[int, int], Rect], Image.Image] = {}
_STAMPS_KEPT = 8


class Canvas:
    """A picture that is drawn on in units."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self.scale = image.width / WIDTH
        self._draw = ImageDraw.Draw(image)

    def _px(self, value: float) -> int:
        return round(value * self.scale)

    def _box(self, box: Rect) -> Rect:
        return (self._px(box[0]), self._px(box[1]), self._px(box[2]), self._px(box[3]))

    def rect(self, box: Rect, color: str, radius: int = 0) -> None:
        left, top, right, bottom = self._box(box)
        if right <= left or bottom <= top:
            return
        r = min(self._px(radius), (right - left) // 2, (bottom - top) // 2)
        if r < 1:
            self._draw.rectangle((left, top, right - 1, bottom - 1), fill=color)
            return
        if right - left > 2 * r:
            self._draw.rectangle((left + r, top, right - r - 1, bottom - 1), fill=color)
        if bottom - top > 2 * r:
            self._draw.rectangle((left, top + r, left + r - 1, bottom - r - 1), fill=color)
            self._draw.rectangle((right - r, top + r, right - 1, bottom - r - 1), fill=color)
        ink = ImageColor.getrgb(color)
        places = ((left, top), (right - r, top), (left, bottom - r), (right - r, bottom - r))
        for place, mask in zip(places, _corners(r), strict=True):
            self.image.paste(ink, place, mask)

    def oval(self, box: Rect, color: str) -> None:
        left, top, right, bottom = self._box(box)
        self.image.paste(ImageColor.getrgb(color), (left, top), _ellipse(max(1, right - left), max(1, bottom - top)))

    def ring(self, box: Rect, color: str, inner: str, width: int) -> None:
        """Draw a ring of ``width`` units around a disc of the colour ``inner``."""
        self.oval(box, color)
        self.oval((box[0] + width, box[1] + width, box[2] - width, box[3] - width), inner)

    def arc(self, box: Rect, start: int, end: int, color: str, width: int) -> None:
        self._draw.arc(self._box(box), start, end, fill=color, width=max(1, self._px(width)))

    def line(self, points: Sequence[tuple[int, int]], color: str, width: int) -> None:
        pixels = [(self._px(x), self._px(y)) for x, y in points]
        self._draw.line(pixels, fill=color, width=max(1, self._px(width)), joint="curve")

    def polygon(self, points: Sequence[tuple[int, int]], color: str) -> None:
        self._draw.polygon([(self._px(x), self._px(y)) for x, y in points], fill=color)

    def text(
        self, x: float, y: float, text: str, size: int, color: str, anchor: Anchor = "left", bold: bool = False
    ) -> None:
        """Draw one line; ``x`` is its left, middle or right, ``y`` the middle of its characters."""
        if not text:
            return
        pixels = max(6, self._px(size))
        mask = _line(text, pixels, bold, in_handwriting())
        shift = {"left": 0.0, "middle": text_width(text, pixels) / 2, "right": text_width(text, pixels)}[anchor]
        # The middle of a Chinese character lies 0.38 em above the base line, which is 1.08 em down in the mask.
        place = (round(x * self.scale - shift), round(y * self.scale - pixels * 0.70))
        self.image.paste(ImageColor.getrgb(color), place, mask)

    def rich(self, x: float, y: float, runs: Sequence[tuple[str, str]], size: int, *, bold: bool = False) -> None:
        """Draw one line of texts, each in its colour, with emoji in theirs; ``y`` is the middle of the characters."""
        pixels = max(6, self._px(size))
        left = x * self.scale
        for text, color in runs:
            for part in _apart(text):
                if is_emoji(part[0]):
                    picture = emoji_image(part[0], pixels)
                    place = (round(left + pixels * 0.1), round(y * self.scale - pixels / 2))
                    self.image.paste(picture, place, picture)
                elif not is_joiner(part[0]):
                    place = (round(left), round(y * self.scale - pixels * 0.70))
                    self.image.paste(ImageColor.getrgb(color), place, _line(part, pixels, bold, in_handwriting()))
                left += text_width(part, pixels)

    def blend(self, box: Rect, top: str, bottom: str, radius: int) -> None:
        """Draw a rounded area whose colour changes from ``top`` to ``bottom``."""
        left, up, right, down = self._box(box)
        if right <= left or down <= up:
            return
        mask = Image.linear_gradient("L").resize((right - left, down - up))
        ground = Image.composite(Image.new("RGB", mask.size, bottom), Image.new("RGB", mask.size, top), mask)
        shape = Image.new("L", (mask.width * 2, mask.height * 2))
        ImageDraw.Draw(shape).rounded_rectangle(
            (0, 0, shape.width - 1, shape.height - 1), self._px(radius) * 2, fill=255
        )
        self.image.paste(ground, (left, up), shape.reduce(2))

    def stamp(self, name: str, box: Rect, paint: Callable[[], None]) -> None:
        """Draw a picture that always looks the same and fills its box: once, then from a copy kept under ``name``."""
        key = (name, self.image.size, box)
        if key not in _STAMPS:
            paint()
            if len(_STAMPS) >= _STAMPS_KEPT:
                _STAMPS.clear()
            _STAMPS[key] = self.image.crop(self._box(box))
        self.image.paste(_STAMPS[key], self._box(box)[:2])

    def dim(self, strength: float) -> None:
        """Darken everything so far, as under a dialog."""
        table = [round(value * (1 - strength)) for value in range(256)]
        self.image.paste(self.image.point(table * 3))


Paint = Callable[[Canvas], None]
Handler = Callable[[], None]


@dataclass(slots=True)
class Element:
    """One element of the screen. ``id`` is without the package. Later elements lie over earlier ones."""

    box: Rect
    text: str = ""
    id: str = ""
    tap: Handler | None = None
    paint: Paint | None = None
    description: str = ""
    kind: str = "android.widget.TextView"
    focused: bool = False
    listed: bool = True  # False: drawn, but no node of the tree (a keyboard's keys, separators)
    blocks: bool = False  # takes taps although it has no handler (a dialog's backdrop)
    package: str = ""  # if it is not the front app's
    clip: Rect | None = field(default=None)  # the part of it that can be seen and tapped
    about: object = None  # the message that it shows whole, for those who compare a reading with the truth

    def visible(self) -> Rect | None:
        """Return the box within the clip; None if nothing of it is visible."""
        left, top, right, bottom = self.box
        if self.clip is not None:
            left, top = max(left, self.clip[0]), max(top, self.clip[1])
            right, bottom = min(right, self.clip[2]), min(bottom, self.clip[3])
        return (left, top, right, bottom) if right > left and bottom > top else None

    def covers(self, x: float, y: float) -> bool:
        """Tell whether it is visible at this place."""
        box = self.visible()
        return box is not None and box[0] <= x < box[2] and box[1] <= y < box[3]


IMAGE = "android.widget.ImageView"
BUTTON = "android.widget.Button"
EDIT = "android.widget.EditText"
GROUP = "android.widget.RelativeLayout"


def background(box: Rect, color: str, radius: int = 0) -> Element:
    """Return a coloured area that is not a node of the tree."""
    return Element(box, paint=lambda canvas: canvas.rect(box, color, radius), listed=False)


def label(
    x: int,
    y: int,
    text: str,
    size: int,
    color: str,
    *,
    anchor: Anchor = "left",
    bold: bool = False,
    id: str = "",  # noqa: A002 - the name that Android has for it
    tap: Handler | None = None,
    listed: bool = True,
) -> Element:
    """Return a line of text with its own box; ``y`` is its middle."""
    width = round(text_width(text, size))
    left = {"left": x, "middle": x - width // 2, "right": x - width}[anchor]
    box = (left, y - round(size * 0.65), left + max(width, 1), y + round(size * 0.65))
    return Element(box, text, id, tap, lambda canvas: canvas.text(x, y, text, size, color, anchor, bold), listed=listed)


def hit(elements: Sequence[Element], x: float, y: float) -> Element | None:
    """Return the topmost element that takes a tap at this place (in units)."""
    for element in reversed(elements):
        if (element.tap or element.blocks) and element.covers(x, y):
            return element
    return None


@dataclass(slots=True)
class TextField:
    """An input field. ``action``: the effect of its editor action or Enter."""

    text: str = ""
    multiline: bool = False
    action: Handler | None = None
    enter_acts: bool = False  # Enter does the action although the field could take a new line
    action_key: str = "换行"  # the label of the keyboard's action key

    selected: bool = False  # all of the text is

    def add(self, text: str) -> None:
        if self.selected:
            self.text, self.selected = "", False
        self.text += text if self.multiline else text.replace("\n", "")
