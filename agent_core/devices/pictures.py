"""Comparing the pixels of a screen: whether two screens are equal, and whether one is black."""

from __future__ import annotations

import hashlib
import struct

from PIL import Image

STATUS_BAR = 0.035  # of the height: the clock there must not make a screen look changed
_CONTENT = (0.05, 0.94)  # between status and navigation bar, which show even over a protected window
_BLACK = 4  # of 255


def digest(image: Image.Image, status_bar: float = STATUS_BAR) -> str:
    """Hash the size and the pixels below the status bar; return 32 hexadecimal digits.

    BLAKE2 takes 18 ms for a phone's screen where SHA-256 takes 32 ms, which is most of what a new picture costs.

    status_bar: its part of the height.
    """
    top = round(image.height * status_bar)
    pixels = memoryview(image.tobytes())[top * image.width * 3 :]
    hashed = hashlib.blake2b(struct.pack("<II", *image.size), digest_size=16)
    hashed.update(pixels)
    return hashed.hexdigest()


def is_black(image: Image.Image) -> bool:
    """Tell whether there is nothing to see between the bars, as in a protected window or if the screen is off."""
    factor = max(1, min(16, image.width // 8, image.height // 8))
    box = (0, int(image.height * _CONTENT[0]), image.width, int(image.height * _CONTENT[1]))
    small = image.reduce(factor, box=box).convert("L")
    return max(small.tobytes()) <= _BLACK
