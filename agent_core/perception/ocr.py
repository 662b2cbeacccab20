"""Reads text from pixels on this machine: RapidOCR, the extra ``[ocr]``.

There is one instance per process, loaded on first use. It runs in a thread of its own, one call at a time, because
options given to a call stick to the instance; every call here gives all of them. A recognised line is cached for the
whole process, because most of a screen was on the one before, if only at another place.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from PIL import Image, ImageChops

from agent_core import extras
from agent_core.geometry import Box
from agent_core.lru import keep_newest
from agent_core.perception.readings import Reading, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

LONGEST_SIDE = 960  # for finding lines; they are recognised at full resolution
_SCREENS_KEPT = 8
_KEYS_KEPT = 8192  # of lines, which have up to two each
_SURE = 0.9  # of the confidence of a line: in another frame it would be read alike

# One thread of our own: the loop's default executor is shut down when the queue ends.
_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ocr")
_lock = threading.Lock()
_instance: Any = None  # RapidOCR has no types
_threads: int | None = None  # None: the engine's own number


@dataclass(frozen=True, slots=True)
class Recognised:
    text: str
    confidence: float


class _Lines:
    """A cache of recognised lines by their pixels. Safe to use from any thread.

    A line that moved comes in another frame, a few pixels wider or higher. So one that was read surely is also known
    by its ink, the pixels without the plain ground around them.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Recognised] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, crop: Image.Image) -> Recognised | None:
        pixels = _pixels_key(crop)
        if (line := self._get(pixels)) is None and (ink := _ink_key(crop)) is not None:
            line = self._get(ink)
            if line is not None:
                self._keep(pixels, line)
        return line

    def keep(self, crop: Image.Image, line: Recognised) -> None:
        self._keep(_pixels_key(crop), line)
        if line.confidence >= _SURE and (ink := _ink_key(crop)) is not None:
            self._keep(ink, line)

    def _get(self, key: bytes) -> Recognised | None:
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
            return self._known.get(key)

    def _keep(self, key: bytes, line: Recognised) -> None:
        with self._lock:
            keep_newest(self._known, key, line, _KEYS_KEPT)


_lines = _Lines()


class OcrEngine:
    """A reader that uses the shared OCR engine, and keeps the newest screens by their digests."""

    def __init__(self) -> None:
        self._screens: OrderedDict[tuple[str, tuple[int, int, int, int] | None], list[Reading]] = OrderedDict()

    @staticmethod
    def available() -> bool:
        """Tell whether the extra ``[ocr]`` is installed; nothing is loaded."""
        return extras.installed("ocr")

    async def read(self, image: Image.Image, region: Box | None = None, *, digest: str = "") -> list[Reading]:
        """Return the lines of text in ``image`` (RGB) or in its ``region``, from the top; boxes in pixels of the image.

        digest: the frame's digest, under which the result is kept; with "" nothing is kept.
        """
        key = (digest, region.as_tuple() if region else None)
        if digest and key in self._screens:
            self._screens.move_to_end(key)
            return list(self._screens[key])
        found = await asyncio.get_running_loop().run_in_executor(_thread, _read, image, region)
        if digest:
            keep_newest(self._screens, key, found, _SCREENS_KEPT)
        return list(found)

    async def read_part(self, image: Image.Image, region: Box) -> list[Reading]:
        """Read a part of a page that often stays the same; the result is kept under the part's own pixels."""
        return await self.read(image, region, digest=_pixels_key(image.crop(region.as_tuple())).hex())

    async def recognise(self, crop: Image.Image) -> tuple[str, float]:
        """Return the text of a crop with one line, and its confidence (0–1)."""
        result = (await self.recognise_lines([crop]))[0]
        return result.text, result.confidence

    async def recognise_lines(self, crops: Sequence[Image.Image]) -> list[Recognised]:
        """Return one result per crop, in order; each crop holds one line. Equal pixels are recognised once."""
        known = [_lines.get(crop) for crop in crops]
        if all(known):
            return [line for line in known if line is not None]
        return await asyncio.get_running_loop().run_in_executor(_thread, _recognise, list(crops))


def _pixels_key(crop: Image.Image) -> bytes:
    hasher = blake2b(crop.tobytes(), digest_size=16)
    hasher.update(repr((crop.mode, crop.size)).encode())
    return hasher.digest()


def _ink_key(crop: Image.Image) -> bytes | None:
    """Return the key of a line's ink, without the plain ground around it.

    None if the place of the ink may decide what it means (- and _), and if it is a single letter.
    """
    if not crop.width or not crop.height:
        return None
    box = ImageChops.difference(crop, Image.new(crop.mode, crop.size, crop.getpixel((0, 0)))).getbbox()
    if box is None:
        return None
    left, top, right, bottom = box
    height = bottom - top
    return _pixels_key(crop.crop(box)) if 2 * height >= crop.height and right - left > 2 * height else None


def use_threads(count: int) -> None:
    """Let the engine use ``count`` threads once it is loaded. Several processes on few cores are faster with one."""
    global _threads  # noqa: PLW0603 - it belongs to the one instance
    _threads = count


def _loaded() -> Any:
    """Return the instance, loading it if needed. The lock must be held."""
    global _instance  # noqa: PLW0603 - one instance a process: its models take hundreds of megabytes
    if _instance is None:
        from rapidocr import RapidOCR

        _instance = RapidOCR(
            params={
                "Global.use_cls": False,
                "Global.use_preprocess_img": False,  # it would shrink what is recognised, too
                "Global.use_vertical_padding": False,
                "Global.text_score": 0.0,  # doubtful lines are wanted, with their confidence
                "Global.log_level": "error",
                "Det.limit_type": "max",
                "Det.limit_side_len": LONGEST_SIDE,
                **({"EngineConfig.onnxruntime.intra_op_num_threads": _threads} if _threads else {}),
            }
        )
    return _instance


def _pixels(image: Image.Image) -> Pixels:
    """Return the pixels as the engine wants them: BGR, contiguous."""
    import numpy as np

    return np.ascontiguousarray(np.asarray(image.convert("RGB"))[:, :, ::-1])


def _read(image: Image.Image, region: Box | None) -> list[Reading]:
    part = image.crop(region.as_tuple()) if region else image
    left, top = (region.left, region.top) if region else (0, 0)
    if not part.width or not part.height:
        return []
    with _lock:
        result = _loaded()(_pixels(part), use_det=True, use_cls=False, use_rec=False)
    if result.boxes is None:
        return []
    boxes = [_box(corners, left, top) for corners in result.boxes]
    lines = _recognise([image.crop(box.as_tuple()) for box in boxes])
    readings = [
        Reading(text=line.text, box=box, source=Source.OCR, confidence=line.confidence)
        for box, line in zip(boxes, lines, strict=True)
        if line.text
    ]
    return sorted(readings, key=lambda reading: (reading.box.top, reading.box.left))


def _box(corners: Any, left: int, top: int) -> Box:
    """Return the box on the screen of corners in the part at ``left`` and ``top``. Text there is level."""
    xs, ys = [float(x) for x, _ in corners], [float(y) for _, y in corners]
    return Box(left + int(min(xs)), top + int(min(ys)), left + round(max(xs)), top + round(max(ys)))


def _recognise(crops: Sequence[Image.Image]) -> list[Recognised]:
    """Recognise one line per crop, one by one: a batch is padded to its widest line and is no faster on a CPU."""
    results = []
    for crop in crops:
        line = _lines.get(crop)
        if line is None:
            line = _recognise_line(crop)
            _lines.keep(crop, line)
        results.append(line)
    return results


def _recognise_line(crop: Image.Image) -> Recognised:
    if crop.width < 2 or crop.height < 2:
        return Recognised("", 0.0)
    with _lock:
        result = _loaded()(_pixels(crop), use_det=False, use_cls=False, use_rec=True)
    text = result.txts[0].strip() if result.txts else ""
    return Recognised(text, float(result.scores[0]) if text else 0.0)
