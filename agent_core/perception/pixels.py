"""Pixels as arrays: the small copy that a page is measured on, runs, spans and flat colours.

A small copy holds every ``step``-th pixel, unmixed, so that it is about 360 pixels wide at any resolution; ``Grid``
converts between the two. Needs NumPy, so it is imported only when a picture is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agent_core.geometry import Box

Pixels = NDArray[np.int16]  # height × width × 3
Mask = NDArray[np.bool_]
Color = tuple[int, int, int]
Span = tuple[int, int]  # start and end, the end is exclusive

SMALL_WIDTH = 360
_SAMPLE = 6000


@dataclass(frozen=True, slots=True)
class Grid:
    """The small copy of a picture.

    Lengths in the modules that use it are fractions of its width unless they say otherwise.
    """

    pixels: Pixels
    step: int
    image: Image.Image

    @classmethod
    def of(cls, image: Image.Image) -> Grid:
        step = max(1, round(image.width / SMALL_WIDTH))
        size = (max(1, image.width // step), max(1, image.height // step))
        small = image.convert("RGB").resize(size, Image.Resampling.NEAREST)
        return cls(np.asarray(small).astype(np.int16), step, image)

    @property
    def width(self) -> int:
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        return int(self.pixels.shape[0])

    def full(self, box: Box) -> Box:
        """Convert a box of the small copy to pixels of the picture."""
        s = self.step
        right = self.image.width if box.right >= self.width else box.right * s
        bottom = self.image.height if box.bottom >= self.height else box.bottom * s
        return Box(box.left * s, box.top * s, right, bottom)

    def small(self, box: Box) -> Box:
        """Convert a box of the picture to pixels of the small copy."""
        s = self.step
        return Box(box.left // s, box.top // s, -(-box.right // s), -(-box.bottom // s))

    def crop(self, box: Box) -> Pixels:
        return self.pixels[max(0, box.top) : max(0, box.bottom), max(0, box.left) : max(0, box.right)]


def far(pixels: Pixels, color: Color) -> NDArray[np.int16]:
    """Return the greatest difference of a channel from ``color``, pixel by pixel (0–255)."""
    return greatest(np.abs(pixels - np.array(color, dtype=np.int16)))


def greatest(pixels: Pixels) -> NDArray[np.int16]:
    """Return the greatest channel of each pixel; several times as fast as a maximum over the last axis."""
    return np.maximum(np.maximum(pixels[..., 0], pixels[..., 1]), pixels[..., 2])


def mode(pixels: Pixels, *, tolerance: int = 4) -> tuple[Color, float]:
    """Return the most common colour and the share (0–1) of pixels within ``tolerance`` levels of it."""
    found = common_colors(pixels, most=1, apart=tolerance)
    return found[0] if found else ((0, 0, 0), 0.0)


def common_colors(pixels: Pixels, *, most: int, apart: int = 6) -> list[tuple[Color, float]]:
    """Return the most common colours that are ``apart`` levels from one another, with their shares, commonest first."""
    flat = pixels.reshape(-1, 3)
    if len(flat) > _SAMPLE:  # a few thousand pixels show the most common colours as well as all of them
        flat = flat[:: len(flat) // _SAMPLE | 1]
    codes = (flat[:, 0].astype(np.int32) << 16) | (flat[:, 1].astype(np.int32) << 8) | flat[:, 2]
    values, counts = np.unique(codes, return_counts=True)
    colors = np.stack((values >> 16, values >> 8 & 255, values & 255), axis=1).astype(np.int16)
    whole = max(1, len(flat))
    found: list[tuple[Color, float]] = []
    while len(colors) and len(found) < most:
        best = colors[counts.argmax()]
        near = greatest(np.abs(colors - best)) <= apart
        share = float(counts[near].sum()) / whole
        if share < 0.02:
            break
        found.append(((int(best[0]), int(best[1]), int(best[2])), share))
        colors, counts = colors[~near], counts[~near]
    return found


def spans(flags: NDArray[np.bool_] | np.bool_, *, gap: int = 0, least: int = 1) -> list[Span]:
    """Return the runs of True as (start, end).

    Runs at most ``gap`` apart are joined; runs shorter than ``least`` are dropped.
    """
    padded = np.concatenate(([False], np.atleast_1d(flags), [False]))
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    joined: list[Span] = []
    for start, end in zip(changes[::2].tolist(), changes[1::2].tolist(), strict=True):
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return [span for span in joined if span[1] - span[0] >= least]


def pieces(mask: Mask, *, gap: int, least: int = 1) -> Iterator[tuple[Box, Mask]]:
    """Yield the separate pieces of ``mask`` from the left: each one's box, and its own part of the mask."""
    for left, right in spans(mask.any(axis=0), gap=gap, least=least):
        part = mask[:, left:right]
        rows = np.flatnonzero(part.any(axis=1))
        top, bottom = int(rows[0]), int(rows[-1]) + 1
        yield Box(left, top, right, bottom), part[top:bottom]


def block(mask: Mask, *, share: float = 0.35) -> Box | None:
    """Return the box of the rows and columns of ``mask`` that are set for ``share`` of the fullest one's length.

    For a mask of a bubble's background that is the bubble's box: letters leave gaps in it, and specks elsewhere do not
    count.
    """
    columns = mask.sum(axis=0)
    if not columns.size or columns.max() == 0:
        return None
    # An icon in a bubble leaves less of its columns than letters do.
    low = 0.6 * share
    across = max(spans(columns >= low * columns.max(), gap=3), key=lambda s: int(columns[s[0] : s[1]].sum()))
    rows = mask[:, across[0] : across[1]].sum(axis=1)
    down = max(spans(rows >= share * rows.max(), gap=4), key=lambda s: int(rows[s[0] : s[1]].sum()))
    # Again without the parts above and below, which may be wider.
    columns = mask[down[0] : down[1]].sum(axis=0)
    across = max(spans(columns >= low * columns.max(), gap=3), key=lambda s: int(columns[s[0] : s[1]].sum()))
    return Box(across[0], down[0], across[1], down[1])


def luminance(color: Color) -> float:
    """Return how light a colour is, 0–255 (Rec. 601)."""
    return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2]


def saturation(color: Color) -> int:
    """Return how colourful a colour is: its greatest channel minus its least."""
    return max(color) - min(color)
