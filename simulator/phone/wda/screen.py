"""The screen of the virtual iPhone: in points, upright or turned, while the phone behind it is upright in pixels."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from agent_core.geometry import Box


@dataclass(slots=True)
class Screen:
    """``size``: of the phone upright, in pixels. ``turned``: the top of the phone is on the left."""

    size: tuple[int, int]
    scale: int = 3
    turned: bool = False

    @property
    def window(self) -> tuple[float, float, float, float]:
        """The window's rectangle in points: x, y, width, height."""
        width, height = self.size[::-1] if self.turned else self.size
        return (0, 0, width / self.scale, height / self.scale)

    def picture(self, upright: Image.Image) -> Image.Image:
        return upright.transpose(Image.Transpose.ROTATE_90) if self.turned else upright

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        """Return a place in points as pixels of the phone upright."""
        # A value divided by the scale comes back with an error of a millionth, which would miss an element's edge.
        x, y = round(x * self.scale, 3), round(y * self.scale, 3)
        return (self.size[0] - 1 - y, x) if self.turned else (x, y)

    def points(self, box: Box) -> tuple[float, float, float, float]:
        """Return a box of the phone upright in points: x, y, width, height."""
        left, top, right, bottom = box.as_tuple()
        if self.turned:
            left, top, right, bottom = top, self.size[0] - right, bottom, self.size[0] - left
        scale = self.scale
        return (left / scale, top / scale, (right - left) / scale, (bottom - top) / scale)
