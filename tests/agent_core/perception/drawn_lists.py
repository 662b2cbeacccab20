"""Lists of chats as QQ and WeChat show them, drawn for tests: marks at the avatars' corners, light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from importlib import resources

from PIL import Image, ImageDraw, ImageFont

from agent_core.devices.base import Frame

FINE = 2  # drawn so many times larger, so that edges are smooth as on a phone
SIZE = (1080, 2400)
FONT = str(resources.files("agent_core") / "fonts" / "NotoSansSC-Subset.otf")


@dataclass(frozen=True)
class Theme:
    """Colours, and what else differs between the apps. Shares are of the screen's width."""

    ground: str
    pinned: str
    name: str
    words: str
    time: str
    line: str
    bar: str
    mark: str
    disc: bool
    title: str
    tabs: tuple[str, ...]
    pitch: float = 0.18


_QQ = Theme(
    ground="#ffffff",
    pinned="#f5f6fa",
    name="#1a1a1a",
    words="#8c8c8c",
    time="#b2b2b2",
    line="#ececec",
    bar="#f7f7f7",
    mark="#fe4833",
    disc=True,
    title="消息",
    tabs=("消息", "频道", "联系人", "动态"),
)
_WECHAT = replace(
    _QQ,
    mark="#fa5151",
    disc=False,
    title="微信(5)",
    tabs=("微信", "通讯录", "发现", "我"),
    pitch=0.19,
    pinned="#ededed",
)


def _dark(theme: Theme, ground: str, pinned: str) -> Theme:
    return replace(
        theme,
        ground=ground,
        pinned=pinned,
        name="#d5d5d5",
        words="#7a7a7a",
        time="#5d5d5d",
        bar="#1e1e1e",
        line="#232323",
    )


THEMES = {
    "qq": _QQ,
    "qq dark": _dark(_QQ, "#121212", "#1f1f1f"),
    "wechat": _WECHAT,
    "wechat dark": _dark(_WECHAT, "#191919", "#111111"),
}
AVATARS = ("#5b8ff9", "#f6903d", "#61c4a1", "#9270ca", "#c2a83e", "#303030", "#d8d8d8")


@dataclass(frozen=True)
class Line:
    """One row. ``mark``: "" for none, "." for a dot, else what is written in it. ``avatar``: a colour; "figure" after
    it draws something light on it, "heart" something red in its upper right corner.
    """

    name: str
    preview: str = ""
    time: str = ""
    mark: str = ""
    avatar: str = ""
    pinned: bool = False
    edge: bool = False  # the mark stands at the row's right edge, as in older versions
    strip: bool = False  # no chat: a low strip with a small sign, such as "Windows 微信已登录"


@dataclass
class Drawn:
    image: Image.Image
    boxes: dict[str, tuple[int, int, int, int]] = field(default_factory=dict)  # rows by their names

    @property
    def frame(self) -> Frame:
        return Frame(self.image, blake2b(self.image.tobytes(), digest_size=16).hexdigest(), 0.0)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONT, size)


class Pen:
    """Draws in pixels of the screen."""

    def __init__(self, size: tuple[int, int], ground: str) -> None:
        self._image = Image.new("RGB", (size[0] * FINE, size[1] * FINE), ground)
        self._draw = ImageDraw.Draw(self._image)

    def rect(self, box: Sequence[float], color: str, rounded: float = 0) -> None:
        self._draw.rounded_rectangle([v * FINE for v in box], rounded * FINE, fill=color)

    def disc(self, x: float, y: float, radius: float, color: str) -> None:
        self._draw.ellipse([(v * FINE) for v in (x - radius, y - radius, x + radius, y + radius)], fill=color)

    def text(self, x: float, y: float, text: str, size: float, color: str, anchor: str = "lm") -> None:
        self._draw.text((x * FINE, y * FINE), text, color, _font(round(size * FINE)), anchor=anchor)

    def done(self) -> Image.Image:
        return self._image.reduce(FINE)


def draw(lines: Sequence[Line], app: str = "qq", size: tuple[int, int] = SIZE, scale: float = 1.0) -> Drawn:
    """Draw a list page. ``scale``: the phone's font scale."""
    theme, (w, h) = THEMES[app], size
    pen = Pen(size, theme.ground)
    drawn = Drawn(Image.new("RGB", (1, 1)))
    top = 0.235 * w
    bottom = h - 0.17 * w
    for number, line in enumerate(lines):
        pitch = (0.11 if line.strip else theme.pitch * (1 + 0.35 * max(0, scale - 1))) * w
        if top + pitch > bottom:
            break
        drawn.boxes[line.name] = (0, round(top), w, round(top + pitch))
        _row(pen, theme, line, number, (top, pitch), w, scale)
        top += pitch
    pen.rect((0, 0, w, 0.235 * w), theme.bar)
    pen.text(0.06 * w, 0.045 * w, "12:00", 0.036 * w, theme.name)
    pen.text(0.05 * w, 0.16 * w, theme.title, 0.05 * w, theme.name)
    pen.rect((0, bottom, w, h), theme.bar)
    step = w / len(theme.tabs)
    for number, tab in enumerate(theme.tabs):
        middle = step * (number + 0.5)
        pen.rect((middle - 0.03 * w, bottom + 0.015 * w, middle + 0.03 * w, bottom + 0.07 * w), theme.words, 0.02 * w)
        pen.text(middle, bottom + 0.095 * w, tab, 0.028 * w * min(1.15, scale), theme.name, "mm")
    drawn.image = pen.done()
    return drawn


def _row(pen: Pen, theme: Theme, line: Line, number: int, at: tuple[float, float], w: float, scale: float) -> None:
    top, pitch = at
    middle = top + pitch / 2
    if line.pinned:
        pen.rect((0, top, w, top + pitch), theme.pinned)
    left, side = 0.041 * w, 0.12 * w
    name_left = left + side + 0.032 * w
    if line.strip:
        pen.rect((0.09 * w, middle - 0.02 * w, 0.14 * w, middle + 0.02 * w), theme.words, 0.004 * w)
        pen.text(name_left, middle, line.name, 0.036 * w * scale, theme.words)
        return
    _avatar(pen, theme, line, number, (left, middle - side / 2, left + side, middle + side / 2))
    pen.rect((name_left, top + pitch - 1, w, top + pitch), theme.line)
    if line.preview:
        apart = (0.026 + 0.002 * scale) * w * max(1, scale)
        pen.text(name_left, middle - apart, line.name, 0.045 * w * scale, theme.name)
        pen.text(name_left, middle + apart, line.preview, 0.037 * w * scale, theme.words)
        pen.text(0.965 * w, middle - apart, line.time, 0.031 * w * scale, theme.time, "rm")
    else:
        pen.text(name_left, middle, line.name, 0.045 * w * scale, theme.name)
    if line.mark:
        corner = 0.146 * side if theme.disc else 0.0
        x, y = left + side - corner * 0.8, middle - side / 2 + corner * 0.8
        if line.edge:
            x, y = 0.935 * w, middle + 0.03 * w
        elif line.mark != ".":
            x = min(x, name_left - 0.006 * w - mark_half(line.mark, w))  # it does not lie on the name
        draw_mark(pen, x, y, line.mark, theme.mark, w)


def mark_half(mark: str, w: float) -> float:
    """Half the width of a mark with a number."""
    return 0.0225 * w + 0.0085 * w * (len(mark) - 1)


def draw_mark(pen: Pen, x: float, y: float, mark: str, color: str, w: float) -> None:
    """A red mark around a point."""
    if mark == ".":
        pen.disc(x, y, 0.011 * w, color)
        return
    high, wide = 0.0225 * w, mark_half(mark, w)
    pen.rect((x - wide, y - high, x + wide, y + high), color, high)
    pen.text(x, y, mark, 0.03 * w, "#ffffff", "mm")


def _avatar(pen: Pen, theme: Theme, line: Line, number: int, box: tuple[float, float, float, float]) -> None:
    color, _, sign = (line.avatar or AVATARS[number % len(AVATARS)]).partition(" ")
    left, top, right, bottom = box
    side, x, y = right - left, (left + right) / 2, (top + bottom) / 2
    if theme.disc:
        pen.disc(x, y, side / 2, color)
    else:
        pen.rect(box, color, 0.1 * side)
    if sign == "figure":
        pen.disc(x, top + 0.36 * side, 0.15 * side, "#f4f7fb")
        pen.rect((x - 0.26 * side, top + 0.56 * side, x + 0.26 * side, top + 0.8 * side), "#f4f7fb", 0.1 * side)
    if sign == "heart":
        pen.disc(x + 0.2 * side, y - 0.2 * side, 0.13 * side, "#ff2f2f")
