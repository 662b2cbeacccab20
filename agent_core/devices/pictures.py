"""The pixels of a screen: decoding a picture, and telling whether two screens are equal or one is black."""

from __future__ import annotations

import io
import sys

from PIL import Image

from agent_core.errors import ScreenshotFailed

STATUS_BAR = 0.035  # of the height: the clock there must not make a screen look changed
_CONTENT = (0.05, 0.94)  # between status and navigation bar, which show even over a protected window
_BLACK = 4  # of 255
_SAMPLES = (24, 48)  # columns and rows
_BAND = 60  # rows
_HASH = 2**sys.hash_info.width - 1


def decoded(data: bytes | memoryview, formats: list[str]) -> Image.Image:
    """Return a picture in one of ``formats`` (``PNG``, ``JPEG``) as RGB. Raises ScreenshotFailed if it is not whole."""
    try:
        with Image.open(io.BytesIO(data), formats=formats) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ScreenshotFailed(f"The picture did not come whole: {error}.", key="half_screenshot", why=error) from error


def digest(image: Image.Image, status_bar: float = STATUS_BAR) -> str:
    """Return a digest of the size and of the pixels below the status bar, which is the same for equal screens.

    It is Python's own hash of bytes: keyed anew in each process, so that nobody can draw two screens with one digest,
    and five to ten times as fast as those of ``hashlib``. Digests of different processes cannot be compared.

    status_bar: its part of the height.
    """
    width, height = image.size
    tops = range(round(height * status_bar), height, _BAND)
    # In bands, because the bytes of a whole screen do not fit into the processor's cache.
    bands = [hash(image.crop((0, top, width, min(top + _BAND, height))).tobytes()) for top in tops]
    return f"{width}x{height}-{hash(b''.join(band.to_bytes(8, 'big', signed=True) for band in bands)) & _HASH:016x}"


def is_black(image: Image.Image) -> bool:
    """Tell whether there is nothing to see between the bars, as in a protected window or if the screen is off."""
    box = (0, int(image.height * _CONTENT[0]), image.width, int(image.height * _CONTENT[1]))
    samples = image.resize(_SAMPLES, Image.Resampling.NEAREST, box=box).convert("L")
    if max(samples.tobytes()) > _BLACK:  # nearly always; it costs a tenth of reading everything
        return False
    factor = max(1, min(16, image.width // 8, image.height // 8))
    return max(image.reduce(factor, box=box).convert("L").tobytes()) <= _BLACK
