"""The emoji that our texts use, drawn: the font has none of them. Another one is drawn as a smiling face."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from PIL import Image, ImageDraw

from agent_core.texts.layout import font, is_emoji, is_joiner

VARIATION = "\ufe0f"  # after a plain symbol: draw it as an emoji
_GRID = 400  # everything is drawn on a square of this size and reduced
_YELLOW, _BROWN, _BLUE, _RED, _GREEN, _WHITE, _DARK = (
    "#ffc83d", "#b8860b", "#3b88c3", "#e0323e", "#3fa845", "#ffffff", "#2f3b46",
)  # fmt: skip
Pen = ImageDraw.ImageDraw


def clusters(text: str) -> list[str]:
    """Split the text into units of drawing: an emoji with the marks that belong to it, else single characters."""
    found: list[str] = []
    for char in text:
        if found and is_joiner(char):
            found[-1] += char
        else:
            found.append(char)
    return found


def pictured(cluster: str) -> bool:
    """Tell whether this is drawn here rather than with the font."""
    return (cluster[0] in _DRAWN and (VARIATION in cluster or cluster[0] not in _IN_FONT)) or is_emoji(cluster[0])


@lru_cache(256)
def emoji(cluster: str, size: int) -> Image.Image:
    """Return an RGBA picture, ``size`` pixels square."""
    image = Image.new("RGBA", (_GRID, _GRID))
    _DRAWN.get(cluster[0], _face)(ImageDraw.Draw(image))
    if cluster[0] == "👎":
        image = image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
    return image.resize((size, size), Image.Resampling.BOX)


def _key(pen: Pen) -> None:
    pen.rounded_rectangle((24, 24, 376, 376), 72, fill=_BLUE)


def _play(pen: Pen) -> None:
    _key(pen)
    pen.polygon([(140, 96), (140, 304), (312, 200)], fill=_WHITE)


def _pause(pen: Pen) -> None:
    _key(pen)
    for left in (120, 224):
        pen.rectangle((left, 100, left + 56, 300), fill=_WHITE)


def _halt(pen: Pen) -> None:
    _key(pen)
    pen.rectangle((112, 112, 288, 288), fill=_WHITE)


def _next(pen: Pen) -> None:
    _key(pen)
    for left in (72, 176):
        pen.polygon([(left, 112), (left, 288), (left + 104, 200)], fill=_WHITE)
    pen.rectangle((288, 112, 320, 288), fill=_WHITE)


def _check(pen: Pen) -> None:
    pen.rounded_rectangle((24, 24, 376, 376), 72, fill=_GREEN)
    pen.line([(100, 208), (172, 284), (308, 120)], fill=_WHITE, width=52, joint="curve")


def _cross(pen: Pen) -> None:
    pen.line([(60, 60), (340, 340)], fill=_RED, width=76)
    pen.line([(340, 60), (60, 340)], fill=_RED, width=76)


def _thin_cross(pen: Pen) -> None:
    pen.line([(90, 90), (310, 310)], fill=_DARK, width=36)
    pen.line([(310, 90), (90, 310)], fill=_DARK, width=36)


def _question(pen: Pen) -> None:
    pen.text((200, 350), "?", _RED, font(440), anchor="ms", stroke_width=22)


def _hourglass(pen: Pen) -> None:
    pen.polygon([(96, 60), (304, 60), (220, 200), (304, 340), (96, 340), (180, 200)], fill="#cfe6f5")
    pen.polygon([(130, 116), (270, 116), (200, 216)], fill=_YELLOW)
    pen.polygon([(200, 240), (288, 340), (112, 340)], fill=_YELLOW)
    for top in (28, 332):
        pen.rounded_rectangle((72, top, 328, top + 40), 16, fill=_BROWN)


def _alarm(pen: Pen) -> None:
    for left in (40, 240):
        pen.ellipse((left, 30, left + 120, 150), fill=_DARK)
    for x in (96, 304):
        pen.line([(x, 372), (200, 220)], fill=_DARK, width=32)
    pen.ellipse((48, 60, 352, 364), fill=_RED)
    pen.ellipse((88, 100, 312, 324), fill=_WHITE)
    pen.line([(200, 132), (200, 214), (256, 246)], fill=_DARK, width=24, joint="curve")


def _warning(pen: Pen) -> None:
    pen.polygon([(200, 36), (384, 356), (16, 356)], fill=_YELLOW)
    pen.rounded_rectangle((180, 136, 220, 264), 18, fill=_DARK)
    pen.ellipse((178, 286, 222, 330), fill=_DARK)


def _hand(pen: Pen) -> None:
    for left, top in ((92, 92), (156, 40), (220, 52), (284, 104)):
        pen.rounded_rectangle((left, top, left + 54, 280), 27, fill=_YELLOW)
    pen.rounded_rectangle((92, 180, 338, 372), 90, fill=_YELLOW)
    pen.line([(120, 320), (50, 220)], fill=_YELLOW, width=56)
    pen.ellipse((26, 192, 78, 248), fill=_YELLOW)


def _thumb(pen: Pen) -> None:
    pen.polygon([(120, 190), (196, 40), (236, 34), (256, 70), (236, 170), (236, 360), (120, 340)], fill=_YELLOW)
    for number in range(4):
        top = 166 + 50 * number
        pen.rounded_rectangle((190, top, 360 - 12 * number, top + 46), 23, fill=_YELLOW)
    pen.rounded_rectangle((40, 176, 112, 364), 20, fill=_BLUE)


def _raised(pen: Pen) -> None:
    pen.line([(300, 300), (340, 60)], fill=_YELLOW, width=48)
    pen.ellipse((306, 16, 374, 92), fill=_YELLOW)
    pen.rounded_rectangle((72, 260, 330, 420), 80, fill="#a05cc0")
    pen.ellipse((96, 76, 288, 280), fill=_YELLOW)
    pen.pieslice((88, 60, 296, 268), 180, 360, fill="#6b4a2b")
    for x in (156, 228):
        pen.ellipse((x - 14, 174, x + 14, 204), fill=_DARK)
    pen.arc((156, 190, 228, 248), 20, 160, fill=_DARK, width=14)


def _clapper(pen: Pen) -> None:
    pen.rounded_rectangle((36, 164, 364, 364), 24, fill=_DARK)
    pen.rectangle((36, 72, 364, 148), fill=_DARK)
    for left in (52, 152, 252):
        pen.polygon([(left, 148), (left + 46, 72), (left + 92, 72), (left + 46, 148)], fill=_WHITE)
    pen.polygon([(170, 210), (170, 318), (256, 264)], fill=_WHITE)


def _bars(pen: Pen) -> None:
    pen.rounded_rectangle((24, 24, 376, 376), 40, fill="#e8eef3")
    for left, top, colour in ((72, 200, _GREEN), (164, 96, _RED), (256, 152, _BLUE)):
        pen.rectangle((left, top, left + 68, 340), fill=colour)


def _bell(pen: Pen) -> None:
    pen.pieslice((88, 50, 312, 290), 180, 360, fill=_YELLOW)
    pen.polygon([(88, 170), (312, 170), (356, 312), (44, 312)], fill=_YELLOW)
    pen.ellipse((160, 296, 240, 372), fill=_BROWN)


def _dot(colour: str) -> Callable[[Pen], None]:
    return lambda pen: pen.ellipse((40, 40, 360, 360), fill=colour)


def _face(pen: Pen) -> None:
    pen.ellipse((24, 24, 376, 376), fill=_YELLOW)
    for x in (140, 260):
        pen.ellipse((x - 24, 128, x + 24, 188), fill=_DARK)
    pen.arc((108, 140, 292, 310), 20, 160, fill=_DARK, width=28)


def _moon(pen: Pen) -> None:
    pen.ellipse((60, 40, 360, 340), fill=_YELLOW)
    angle = math.pi / 5
    x, y = 200 + 130 * math.cos(angle), 170 - 100 * math.sin(angle)
    pen.ellipse((x - 150, y - 130, x + 120, y + 140), fill=(0, 0, 0, 0))


_IN_FONT = "▶⚠✓"  # as plain symbols, without the variation mark
_DRAWN: dict[str, Callable[[Pen], None]] = {
    "▶": _play, "⏸": _pause, "⏹": _halt, "⏭": _next, "✅": _check, "❌": _cross, "✗": _thin_cross, "❓": _question,
    "⏳": _hourglass, "⏰": _alarm, "⚠": _warning, "✋": _hand, "👍": _thumb, "👎": _thumb, "🙋": _raised,
    "🎬": _clapper, "📊": _bars, "🔔": _bell, "🌙": _moon, "🔴": _dot(_RED), "🟢": _dot(_GREEN), "🟡": _dot(_YELLOW),
}  # fmt: skip
