"""Emoji as small pictures in several colours, drawn from shapes: no font of them is small enough to be shipped."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

_GRID = 100  # a design is drawn on a square of this size
_SMOOTH = 4

_YELLOW, _AMBER, _BROWN = "#ffcd3c", "#f5a623", "#5c3b00"
_RED, _PINK, _GREEN, _BLUE, _SKIN = "#e8423f", "#ff8fa8", "#4caf50", "#4aa3f0", "#ffc99b"

_HEARTS = {0x2763, 0x2764, *range(0x1F493, 0x1F4A0), 0x1F9E1}
_HANDS = {*range(0x1F446, 0x1F450), 0x1F64C, 0x1F64F, 0x1F91D, 0x270A, 0x270B, 0x270C, 0x1F4AA}


class _Pen:
    """A pen that draws on the grid, whatever the size of the picture."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)
        self._unit = image.width / _GRID

    def _box(self, *edges: float) -> tuple[float, ...]:
        return tuple(edge * self._unit for edge in edges)

    def disc(self, x: float, y: float, radius: float, color: str) -> None:
        self._draw.ellipse(self._box(x - radius, y - radius, x + radius, y + radius), fill=color)

    def box(self, left: float, top: float, right: float, bottom: float, color: str, radius: float = 0) -> None:
        self._draw.rounded_rectangle(self._box(left, top, right, bottom), radius * self._unit, fill=color)

    def shape(self, color: str, *places: tuple[float, float]) -> None:
        self._draw.polygon([(x * self._unit, y * self._unit) for x, y in places], fill=color)

    def stroke(self, color: str, *places: tuple[float, float]) -> None:
        self._draw.line([(x * self._unit, y * self._unit) for x, y in places], fill=color, width=round(10 * self._unit))

    def arc(self, x: float, y: float, radius: float, start: int, end: int, color: str) -> None:
        box = self._box(x - radius, y - radius, x + radius, y + radius)
        self._draw.arc(box, start, end, fill=color, width=round(6 * self._unit))


@lru_cache(256)
def emoji_image(char: str, pixels: int) -> Image.Image:
    """Return an RGBA square of ``pixels``. The same character always looks the same; many characters share a design."""
    image = Image.new("RGBA", (pixels * _SMOOTH, pixels * _SMOOTH))
    pen, code = _Pen(image), ord(char)
    if code in _OTHERS:
        _OTHERS[code](pen)
    elif code in _HEARTS:
        _heart(pen)
    elif code in _HANDS:
        _hand(pen)
    elif 0x1F600 <= code <= 0x1F64F or 0x1F910 <= code <= 0x1F92F or 0x1F970 <= code <= 0x1F97A:
        _face(pen, code)
    else:
        _THINGS[code % len(_THINGS)](pen)
    return image.reduce(_SMOOTH)


def _face(pen: _Pen, code: int) -> None:
    pen.disc(50, 50, 46, _AMBER)
    pen.disc(50, 48, 44, _YELLOW)
    mood = code % 4
    if mood == 1:  # hearts for eyes
        pen.disc(33, 40, 10, _RED)
        pen.disc(67, 40, 10, _RED)
    else:
        pen.disc(34, 40, 6, _BROWN)
        pen.disc(66, 40, 6, _BROWN)
    if mood == 3:
        pen.arc(50, 82, 22, 210, 330, _BROWN)
    else:
        pen.arc(50, 52, 26, 25, 155, _BROWN)
    if mood == 2:  # tears
        pen.disc(18, 60, 9, _BLUE)
        pen.disc(82, 60, 9, _BLUE)
    else:
        pen.disc(20, 58, 8, _PINK)
        pen.disc(80, 58, 8, _PINK)


def _heart(pen: _Pen) -> None:
    pen.disc(30, 36, 23, _RED)
    pen.disc(70, 36, 23, _RED)
    pen.shape(_RED, (9, 46), (91, 46), (50, 92))
    pen.disc(28, 30, 7, _PINK)


def _white_heart(pen: _Pen) -> None:
    for color, more in (("#c4c7cc", 4), ("#f2f3f5", 0)):
        pen.disc(31, 36, 19 + more, color)
        pen.disc(69, 36, 19 + more, color)
        pen.shape(color, (13 - more, 46), (87 + more, 46), (50, 86 + 1.5 * more))


def _diamond(pen: _Pen) -> None:
    pen.shape(_BLUE, (50, 12), (88, 50), (50, 88), (12, 50))


def _gem(pen: _Pen) -> None:
    pen.shape("#57b5f7", (6, 40), (26, 14), (74, 14), (94, 40), (50, 92))
    pen.shape("#9bd5fb", (26, 14), (50, 40), (74, 14))


def _drop(pen: _Pen) -> None:
    pen.disc(50, 62, 28, _BLUE)
    pen.shape(_BLUE, (25, 52), (50, 6), (75, 52))


def _snowflake(pen: _Pen) -> None:
    for x, y in ((0, 44), (38, 22), (38, -22)):
        pen.stroke("#5bb5f5", (50 - x, 50 - y), (50 + x, 50 + y))


def _hand(pen: _Pen) -> None:
    pen.box(14, 44, 34, 92, _BLUE, 6)
    pen.box(36, 46, 88, 90, _SKIN, 14)
    pen.shape(_SKIN, (38, 52), (56, 10), (68, 16), (64, 50))
    for y in (58, 70, 82):
        pen.box(60, y - 1, 88, y + 1, _AMBER)


def _parcel(pen: _Pen) -> None:
    pen.box(10, 26, 90, 90, "#c98d4f", 6)
    pen.box(10, 16, 90, 38, "#dda565", 6)
    pen.box(42, 16, 58, 56, "#f3dcb8")


def _party(pen: _Pen) -> None:
    pen.shape(_AMBER, (10, 92), (30, 34), (68, 72))
    pen.shape(_RED, (20, 64), (26, 48), (52, 76), (42, 82))
    for x, y, color in ((52, 18, _BLUE), (74, 26, _RED), (86, 52, _GREEN), (64, 44, _PINK), (36, 12, _GREEN)):
        pen.disc(x, y, 6, color)


def _flower(pen: _Pen) -> None:
    pen.box(46, 50, 54, 94, _GREEN)
    for x, y in ((50, 18), (28, 34), (72, 34), (36, 58), (64, 58)):
        pen.disc(x, y, 17, _PINK)
    pen.disc(50, 40, 12, _YELLOW)


def _fire(pen: _Pen) -> None:
    pen.disc(50, 66, 30, _RED)
    pen.shape(_RED, (22, 60), (46, 4), (62, 32), (70, 24), (80, 62))
    pen.disc(50, 74, 18, _YELLOW)
    pen.shape(_YELLOW, (34, 70), (50, 40), (66, 70))


def _gift(pen: _Pen) -> None:
    pen.box(12, 42, 88, 92, _RED, 4)
    pen.box(8, 28, 92, 46, "#f06a67", 4)
    pen.box(44, 28, 56, 92, _YELLOW)
    pen.disc(38, 20, 11, _YELLOW)
    pen.disc(62, 20, 11, _YELLOW)


def _clock(pen: _Pen) -> None:
    pen.disc(50, 54, 40, _RED)
    pen.disc(50, 54, 31, "#ffffff")
    pen.box(47, 32, 53, 56, _BROWN)
    pen.box(47, 52, 70, 58, _BROWN)
    pen.disc(22, 20, 12, _AMBER)
    pen.disc(78, 20, 12, _AMBER)


_OTHERS = {0x1F90D: _white_heart, 0x1F539: _diamond, 0x1F48E: _gem, 0x1F4A7: _drop, 0x2744: _snowflake}
_THINGS = (_parcel, _party, _flower, _fire, _gift, _clock)
