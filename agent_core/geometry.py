"""Points and boxes in pixels of the phone's screen, from the top left."""

from __future__ import annotations

from dataclasses import dataclass

SCALE = 1000  # model coordinates go from 0 to 1000, whatever the picture's size


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int

    @classmethod
    def from_relative(cls, pair: tuple[int, int], size: tuple[int, int]) -> Point:
        """Convert a model's (0–1000, 0–1000) to a point on a screen of ``size`` (width, height) pixels; 1000 is the
        last pixel.
        """
        return cls(*(min(round(v * s / SCALE), s - 1) for v, s in zip(pair, size, strict=True)))

    def to_relative(self, size: tuple[int, int]) -> tuple[int, int]:
        return (min(SCALE, round(self.x * SCALE / size[0])), min(SCALE, round(self.y * SCALE / size[1])))


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle. ``right`` and ``bottom`` are outside it."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def center(self) -> Point:
        return Point((self.left + self.right) // 2, (self.top + self.bottom) // 2)

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.bottom - self.top

    def contains(self, point: Point) -> bool:
        return self.left <= point.x < self.right and self.top <= point.y < self.bottom

    def intersects(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def as_tuple(self) -> tuple[int, int, int, int]:
        return (self.left, self.top, self.right, self.bottom)
