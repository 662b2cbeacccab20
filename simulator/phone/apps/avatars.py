"""Avatars: small pictures without letters, the same for the same name."""

from __future__ import annotations

from collections.abc import Callable

from simulator.phone.widgets import IMAGE, Canvas, Element, Rect

_FIGURES = ("#5b8ff9", "#f6903d", "#61c4a1", "#9270ca", "#e8684a", "#8fdc6a", "#4aa0f5")


def avatar(box: Rect, who: str, *, round_: bool, name: str, description: str) -> Element:
    """Return an avatar. ``name`` is the node's id."""
    seed = sum(ord(char) * (index + 1) for index, char in enumerate(who))
    size = box[2] - box[0]

    def paint(canvas: Canvas) -> None:
        _DESIGNS[seed % len(_DESIGNS)](canvas, box, seed, size // 2 if round_ else size // 10)

    return Element(box, "", name, None, paint, description, IMAGE)


def _figure(canvas: Canvas, box: Rect, seed: int, radius: int) -> None:
    _person(canvas, box, _FIGURES[seed // 5 % len(_FIGURES)], "#f4f7fb", radius)


def _drawing(canvas: Canvas, box: Rect, seed: int, radius: int) -> None:
    """Draw a dark figure on a ground that is nearly white."""
    _person(canvas, box, "#fbfbfd", _FIGURES[seed // 5 % len(_FIGURES)], radius)


def _person(canvas: Canvas, box: Rect, ground: str, color: str, radius: int) -> None:
    left, top, size = box[0], box[1], box[2] - box[0]
    middle = left + size // 2
    canvas.rect(box, ground, radius)
    head, body = size * 17 // 100, size * 30 // 100
    canvas.oval((middle - head, top + size // 5, middle + head, top + size // 5 + 2 * head), color)
    shoulders = (middle - body, top + size * 58 // 100, middle + body, top + size * 84 // 100)
    canvas.rect(shoulders, color, size * 13 // 100)


def _evening(canvas: Canvas, box: Rect, seed: int, radius: int) -> None:
    """Draw a photo of hills."""
    left, top, size = box[0], box[1], box[2] - box[0]
    canvas.blend(box, ("#f2b48c", "#8fb8e8", "#c9d6e8")[seed // 5 % 3], "#3f5f7a", radius)
    canvas.oval((left + size * 6 // 10, top + size // 4, left + size * 8 // 10, top + size * 45 // 100), "#fff3d6")
    base = top + size * 72 // 100
    canvas.polygon(
        [(left + size // 6, base), (left + size * 45 // 100, top + size * 45 // 100), (left + size * 8 // 10, base)],
        "#2c4258",
    )


def _cat(canvas: Canvas, box: Rect, seed: int, radius: int) -> None:
    left, top, size = box[0], box[1], box[2] - box[0]
    canvas.rect(box, ("#ffe9c7", "#d7ecd9", "#e9e1f5")[seed // 5 % 3], radius)
    x, y, head = left + size // 2, top + size * 56 // 100, size * 28 // 100
    fur = ("#f29b4b", "#6d6f78", "#3b3b42")[seed // 15 % 3]
    canvas.polygon([(x - head, y), (x - head + 4, y - head - head // 2), (x - 4, y - head + 4)], fur)
    canvas.polygon([(x + head, y), (x + head - 4, y - head - head // 2), (x + 4, y - head + 4)], fur)
    canvas.oval((x - head, y - head, x + head, y + head), fur)
    for eye in (-head // 2, head // 2):
        canvas.oval((x + eye - 4, y - 7, x + eye + 4, y + 3), "#fffbe6")
    canvas.oval((x - 3, y + 5, x + 3, y + 10), "#ffb3b3")


def _flag(canvas: Canvas, box: Rect, seed: int, radius: int) -> None:
    """Draw a picture of bright areas."""
    left, top, right, bottom = box
    size = right - left
    first, second = (("#27b0e6", "#ffd34d"), ("#111111", "#e5484d"), ("#e8f0ff", "#3a5bd9"))[seed // 5 % 3]
    canvas.rect(box, first, radius)
    canvas.oval((left + size // 4, top + size // 4, right - size // 4, bottom - size // 4), second)


_DESIGNS: tuple[Callable[[Canvas, Rect, int, int], None], ...] = (_figure, _evening, _cat, _drawing, _flag)
