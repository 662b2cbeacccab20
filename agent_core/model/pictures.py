"""Pictures for a model: small JPEGs as data URLs, each screen encoded once."""

from __future__ import annotations

import base64
import io
import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Protocol

from PIL import Image

from agent_core.lru import keep_newest

MAX_BASE64 = 70 * 1024  # characters of a picture in one request
HALVE_ABOVE = 1200  # pixels of the longer side; smaller pictures stay as they are
QUALITY = 80


class Picture(Protocol):
    """What is needed of a captured frame: the image, and a digest by which an equal screen is known."""

    @property
    def image(self) -> Image.Image: ...

    @property
    def digest(self) -> str: ...


def data_url(image: Image.Image) -> str:
    """``image`` as a JPEG data URL of at most about 70 KB of base64: half size first, then coarser as it must be."""
    encoded = b""
    for candidate, quality in _candidates(image.convert("RGB")):
        buffer = io.BytesIO()
        candidate.save(buffer, "JPEG", quality=quality)
        encoded = base64.b64encode(buffer.getvalue())
        if len(encoded) <= MAX_BASE64:
            break
    return f"data:image/jpeg;base64,{encoded.decode()}"


def picture_tokens(size: tuple[int, int]) -> int:
    """What a picture of ``size`` pixels costs a vision model of this family, at most: one token a 28×28 patch."""
    factor = _factor(size)
    return math.ceil(size[0] / factor / 28) * math.ceil(size[1] / factor / 28) + 16


def _factor(size: tuple[int, int]) -> int:
    return 2 if max(size) > HALVE_ABOVE else 1


def _candidates(image: Image.Image) -> Iterator[tuple[Image.Image, int]]:
    factor = _factor(image.size)
    half = image.reduce(factor) if factor > 1 else image
    for quality in (QUALITY, 65, 50):
        yield half, quality
    for smaller in (2, 3, 4):
        yield half.reduce(smaller), 60


class PictureCache:
    """Data URLs by the digest of the screen; the last few screens are kept."""

    def __init__(self, size: int = 8) -> None:
        self._size = size
        self._urls: OrderedDict[str, str] = OrderedDict()
        self.encoded = 0  # how often a picture really was encoded

    def url(self, picture: Picture) -> str:
        known = self._urls.get(picture.digest)
        if known is None:
            known = data_url(picture.image)
            self.encoded += 1
        keep_newest(self._urls, picture.digest, known, self._size)
        return known
