"""Reads a screenshot and a dump of the accessibility tree from files.

Every error is an InputRejected that names the file and says what to do.
"""

from __future__ import annotations

import time
import warnings
from hashlib import blake2b
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from agent_core.devices.base import Frame, Node
from agent_core.errors import InputRejected, TreeUnavailable

SHORTEST, LONGEST = 240, 8000  # pixels of a side
MOST_TIMES = 3  # as long as wide; the longest phones have 2.5, more is several screens in one picture
MOST_BYTES = 64 * 1024 * 1024


def load_picture(path: Path) -> Frame:
    """Return a PNG or JPEG file of any mode as a frame. A rotation in its EXIF data is ignored."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG", "JPEG")) as opened:
                _check_size(path, opened.size)
                image = _as_rgb(opened)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _absurd(path, "?") from error
    except UnidentifiedImageError as error:
        raise _no_picture(path) from error
    except OSError as error:
        if error.errno is None:  # cut off in the middle
            raise _no_picture(path) from error
        raise _unreadable(path, error) from error
    except (SyntaxError, ValueError, EOFError) as error:
        raise _no_picture(path) from error
    digest = blake2b(image.tobytes(), digest_size=16).hexdigest()
    return Frame(image=image, digest=digest, taken_at=time.monotonic())


def load_dump(path: Path, size: tuple[int, int]) -> tuple[Node, ...]:
    """Return the nodes of a file written by ``uiautomator dump``, for a screen of ``size`` pixels."""
    from agent_core.devices.adb.capture import extract_xml, parse_tree

    try:
        if path.stat().st_size > MOST_BYTES:
            raise _no_dump(path)
        written = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        return parse_tree(extract_xml(written), size)
    except TreeUnavailable as error:
        raise _no_dump(path) from error


def _as_rgb(opened: Image.Image) -> Image.Image:
    if opened.mode.startswith("I"):  # 16-bit grey: a plain conversion would clip it at 255
        return opened.convert("I").point(lambda level: level / 256).convert("L").convert("RGB")
    if opened.mode in {"P", "PA"}:
        return opened.convert("RGBA").convert("RGB")
    return opened.convert("RGB")


def _check_size(path: Path, size: tuple[int, int]) -> None:
    short, long = min(size), max(size)
    if not (short >= SHORTEST and long <= LONGEST and long <= MOST_TIMES * short):
        raise _absurd(path, f"{size[0]}×{size[1]}")


def _absurd(path: Path, size: str) -> InputRejected:
    return InputRejected(
        f"{path} is {size} pixels large, which no phone's screen is.",
        advice="Give a screenshot of one screen, as the phone took it.",
        key="picture_size",
        file=str(path),
        size=size,
    )


def _no_picture(path: Path) -> InputRejected:
    return InputRejected(
        f"{path} is not a whole PNG or JPEG picture.",
        advice="Take the screenshot again, and copy it as a file.",
        key="no_picture",
        file=str(path),
    )


def _no_dump(path: Path) -> InputRejected:
    return InputRejected(
        f"{path} is not a whole dump of uiautomator.",
        advice="Write it anew (uiautomator dump on the phone) and copy it over; or leave --tree away.",
        key="no_dump",
        file=str(path),
    )


def _unreadable(path: Path, error: OSError) -> InputRejected:
    return InputRejected(
        f"{path} cannot be read: {error.strerror or error}.",
        advice="Check the name and the rights of the file.",
        key="file_unreadable",
        file=str(path),
        why=error,
    )
