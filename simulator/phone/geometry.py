"""The position of the virtual phone's pages on the screen that its clients see."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image

from agent_core.geometry import Box
from simulator.phone.widgets import WIDTH


@dataclass(frozen=True, slots=True)
class Geometry:
    """The geometry of the screen. Pages are drawn upright; on a phone that lies on its side they are small in the
    middle, between black bars, as Android shows apps that know no landscape.

    upright: width and height of the phone held upright, in pixels.
    rotation: quarter turns, 0–3, as Android counts them.
    """

    upright: tuple[int, int]
    rotation: int = 0

    @property
    def lies(self) -> bool:
        """True if the phone lies on its side."""
        return self.rotation % 2 == 1

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the screen as it is turned now, in pixels."""
        return self.upright[::-1] if self.lies else self.upright

    @property
    def page(self) -> Box:
        """The part of the screen that the page fills, in pixels."""
        width, height = self.size
        if not self.lies:
            return Box(0, 0, width, height)
        narrow = round(height * self.upright[0] / self.upright[1])
        left = (width - narrow) // 2
        return Box(left, 0, left + narrow, height)

    @property
    def scale(self) -> float:
        """Pixels of the screen a unit."""
        return self.page.width / WIDTH

    def units(self, x: float, y: float) -> tuple[float, float]:
        """Return the place on the page, in units, of a place on the screen in pixels."""
        return (x - self.page.left) / self.scale, y / self.scale

    def box(self, box: Box) -> Box:
        """Return a box of the upright phone as a box of the screen, both in pixels."""
        if not self.lies:
            return box
        smaller, left = self.page.width / self.upright[0], self.page.left
        edges = (left + box.left * smaller, box.top * smaller, left + box.right * smaller, box.bottom * smaller)
        return Box(*(round(edge) for edge in edges))

    def picture(self, upright: Image.Image) -> Image.Image:
        """Return the screen for the picture of the upright phone: that picture itself unless the phone lies."""
        if not self.lies:
            return upright
        screen = Image.new("RGB", self.size)
        page = self.page
        screen.paste(upright.resize((page.width, page.height), Image.Resampling.BILINEAR), (page.left, page.top))
        return screen
