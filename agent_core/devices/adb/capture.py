"""Pictures and the accessibility tree of the screen.

A picture is taken by the faster of two ways, then decoded, hashed and checked. The tree is read from ``uiautomator
dump``.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring
from PIL import Image

from agent_core.devices.adb.parse import first_line
from agent_core.devices.adb.transport import Transport
from agent_core.devices.base import Frame, Node
from agent_core.devices.pictures import decoded, digest, is_black
from agent_core.devices.shell import command_line
from agent_core.devices.waiting import Time
from agent_core.errors import ScreenshotFailed, TreeUnavailable
from agent_core.geometry import Box

_TRIALS = 2  # captures by each way before one is preferred; they are wanted anyway
_LOOK_AGAIN = 100  # captures after which the slower way is measured again
_PNG = b"\x89PNG\r\n\x1a\n"
_MARK = b"phonedesk-picture\n"
# Pixel formats of android.graphics.PixelFormat that a screen has, by Pillow's names for them.
_RAW_MODES = {1: "RGBX", 2: "RGBX", 5: "BGRX"}


class Way(StrEnum):
    PNG = "png"
    RAW = "raw"


class RawUnusableError(Exception):
    """The output is not a raw picture of the known screen size."""


@dataclass(frozen=True, slots=True)
class CapturedPicture:
    frame: Frame
    black: bool
    before: str  # printed before the picture
    several_displays: bool


@dataclass(frozen=True, slots=True)
class _Decoded:
    image: Image.Image
    digest: str
    black: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    """The newest picture. ``start``: where it begins in ``array``."""

    array: bytearray
    start: int
    decoded: _Decoded

    def is_same(self, output: bytearray, start: int) -> bool:
        """Tell whether there are the very same bytes from ``start``."""
        with memoryview(self.array)[self.start :] as picture:
            return len(output) - start == len(picture) and output.endswith(picture)


@dataclass(slots=True)
class CaptureHistory:
    """The sizes and timings of earlier pictures of a phone over one connection, kept for later runs.

    size: of the newest picture.
    seconds: the durations of the newest pictures by each way, without and with a command line before them.
    """

    size: tuple[int, int] | None = None
    seconds: dict[tuple[Way, bool], deque[float]] = field(default_factory=dict)
    raw_usable: bool = True
    count: int = 0

    def choose(self, with_before: bool) -> Way:
        """Return the way to take the next picture: the faster one, once both were tried."""
        if not self.raw_usable or self.size is None:
            return Way.PNG
        png, raw = (self.seconds.get((way, with_before), ()) for way in (Way.PNG, Way.RAW))
        if min(len(png), len(raw)) < _TRIALS:
            return Way.PNG if len(png) <= len(raw) else Way.RAW
        faster = Way.PNG if min(png) <= min(raw) else Way.RAW
        if self.count % _LOOK_AGAIN == 0:
            return Way.PNG if faster is Way.RAW else Way.RAW
        return faster


class Capture:
    """The camera of one phone, over ``transport``.

    Way and timings are learned from the captures that are taken anyway.
    """

    def __init__(self, transport: Transport, time: Time, history: CaptureHistory) -> None:
        self.display: str | None = None  # physical id, if there are several
        self._transport, self._time = transport, time
        self._history = history
        self._last: _Kept | None = None
        self._spare = bytearray()  # for the next picture

    async def take(self, before: str = "") -> CapturedPicture:
        """Take one picture, in one call.

        before: a command line to run first; its output is returned with the picture.

        Returns black pictures too, with ``black`` set. Raises ScreenshotFailed if no whole picture came.
        """
        history = self._history
        history.count += 1
        way = history.choose(bool(before))
        try:
            return await self._take(way, before)
        except RawUnusableError:
            history.raw_usable = history.count > 2 and history.raw_usable and history.size is not None
            history.size = None  # the screen was turned or changed: a PNG says how
            return await self._take(Way.PNG, before)

    def forget(self) -> None:
        """Release the pictures that are kept for comparing."""
        self._last, self._spare = None, bytearray()

    @property
    def way(self) -> Way:
        """The way that would be taken now."""
        return self._history.choose(False)

    @property
    def size(self) -> tuple[int, int] | None:
        """The size of the newest picture."""
        return self._history.size

    async def _take(self, way: Way, before: str) -> CapturedPicture:
        args = ["screencap"]
        if way is Way.PNG:
            args.append("-p")
        if self.display is not None:
            args += ["-d", self.display]
        line = command_line(args)
        if before:
            line = "; ".join((before, command_line(["echo", _MARK.decode().strip()]), line))
        started = self._time.clock()
        array, self._spare = self._spare, bytearray()
        output = await self._transport.exec_out(line, seconds=20, into=array)
        start = _end_of_mark(output) if before else 0
        text, warned = output[: max(0, start - len(_MARK))], b"Multiple displays" in output[start : start + 2000]
        decoded = await self._decode(way, output, start)
        kept = self._history.seconds.setdefault((way, bool(before)), deque(maxlen=4))
        kept.append(self._time.clock() - started)
        self._history.size = decoded.image.size
        frame = Frame(decoded.image, decoded.digest, started)
        return CapturedPicture(frame, decoded.black, text.decode("utf-8", "replace").replace("\r\n", "\n"), warned)

    async def _decode(self, way: Way, output: bytearray, start: int) -> _Decoded:
        """Decode the picture from ``start``. The array is kept, or used for the next picture."""
        last, size = self._last, self._history.size
        if last is not None and last.is_same(output, start):
            self._spare = output
            return last.decoded  # nothing to decode

        def work() -> _Decoded:
            image = decode_png(output, start) if way is Way.PNG else decode_raw(output, size, start)
            return _Decoded(image, digest(image), is_black(image))

        decoded = await asyncio.to_thread(work)
        last = self._last
        if last is not None and last.decoded.digest == decoded.digest:
            decoded = last.decoded  # the same screen, taken the other way
        self._last = _Kept(output, start, decoded)
        if last is not None:
            self._spare = last.array
        return decoded


def _end_of_mark(output: bytearray) -> int:
    found = output.find(_MARK)
    if found < 0:
        raise _no_picture(output)
    return found + len(_MARK)


def _no_picture(output: bytes | bytearray) -> ScreenshotFailed:
    words = first_line(output[:2000].decode("utf-8", "replace")) or "nothing was printed"
    return ScreenshotFailed(f"The phone gave no picture: {words}.", key="no_screenshot", why=words)


def decode_png(output: bytes | bytearray, start: int = 0) -> Image.Image:
    """Decode the output of ``screencap -p`` from ``start``, which may have warnings before the picture, to RGB.

    Raises ScreenshotFailed if the picture is not whole.
    """
    begin = output.find(_PNG, start)
    if begin < 0:
        raise _no_picture(output[start:])
    return decoded(memoryview(output)[begin:], ["PNG"])


def decode_raw(output: bytes | bytearray, size: tuple[int, int] | None, start: int = 0) -> Image.Image:
    """Decode the output of ``screencap`` from ``start`` to RGB.

    Its format is width, height, pixel format and, from Android 9, a colour space (each 4 bytes, little endian), then
    four bytes a pixel.

    size: the size of the last PNG; the raw picture must have it in either orientation.

    Raises RawUnusableError if it does not.
    """
    if size is None:
        raise RawUnusableError
    for width, height in (size, size[::-1]):
        begin = output.find(struct.pack("<II", width, height), start, start + 4096)
        header = len(output) - begin - width * height * 4
        if begin < 0 or header not in {12, 16}:
            continue
        (pixel_format,) = struct.unpack_from("<I", output, begin + 8)
        if pixel_format not in _RAW_MODES:
            continue
        pixels = memoryview(output)[begin + header :]
        return Image.frombytes("RGB", (width, height), pixels, "raw", _RAW_MODES[pixel_format])
    raise RawUnusableError


_BOUNDS = re.compile(r"\[(-?\d+),(-?\d+)\]\[(-?\d+),(-?\d+)\]")
# Some Androids print an emoji as two references to halves of a surrogate pair, which no XML reader accepts.
_PAIR = re.compile(r"&#(5[5-6]\d{3});&#(5[6-7]\d{3});")
_REFERENCE = re.compile(r"&#(\d+);")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def extract_xml(output: bytes | bytearray) -> str:
    """Cut the XML document out of the tool's output.

    Raises TreeUnavailable, with the tool's own words, if there is none.
    """
    text = output.decode("utf-8", "replace")
    end = text.rfind("</hierarchy>")
    start = text.rfind("<?xml", 0, end) if end >= 0 else -1
    if start < 0 and end >= 0:
        start = text.find("<hierarchy")
    if start < 0:
        words = next((line.strip() for line in text.splitlines() if line.strip()), "nothing was printed")
        raise TreeUnavailable(
            f"The accessibility tree could not be read: {words[:200]}.", key="tree_unread", why=words[:200]
        )
    return text[start : end + len("</hierarchy>")]


def parse_tree(xml: str, size: tuple[int, int] | None = None) -> tuple[Node, ...]:
    """Return the nodes in document order.

    Boxes are in pixels, clipped to ``size`` (else to the first node's box). Nodes that are entirely off the screen are
    left out. Raises TreeUnavailable if the XML is not well-formed.
    """
    try:
        root = fromstring(_mended(xml))
    except (ParseError, DefusedXmlException) as error:
        raise TreeUnavailable(
            f"The accessibility tree is not well-formed: {error}.", key="tree_broken", why=error
        ) from error
    nodes: list[Node] = []
    screen = Box(0, 0, *size) if size else None
    for element in root.iter("node"):
        box = _box(element)
        if box is None:
            continue
        screen = screen or Box(0, 0, box.right, box.bottom)
        clipped = Box(max(box.left, 0), max(box.top, 0), min(box.right, screen.right), min(box.bottom, screen.bottom))
        if clipped.width > 0 and clipped.height > 0:
            nodes.append(_node(element, clipped))
    return tuple(nodes)


def _box(element: Element) -> Box | None:
    found = _BOUNDS.fullmatch(element.get("bounds", ""))
    return Box(int(found[1]), int(found[2]), int(found[3]), int(found[4])) if found else None


def _node(element: Element, box: Box) -> Node:
    return Node(
        box=box,
        text=element.get("text", ""),
        description=element.get("content-desc", ""),
        resource_id=element.get("resource-id", ""),
        class_name=element.get("class", ""),
        package=element.get("package", ""),
        clickable=element.get("clickable") == "true",
        focused=element.get("focused") == "true",
        enabled=element.get("enabled") != "false",
    )


def _mended(xml: str) -> str:
    def joined(match: re.Match[str]) -> str:
        high, low = int(match[1]), int(match[2])
        if not (0xD800 <= high < 0xDC00 <= low < 0xE000):
            return match[0]
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))

    def allowed(match: re.Match[str]) -> str:
        code = int(match[1])
        bad = (code < 0x20 and code not in {9, 10, 13}) or 0xD800 <= code < 0xE000 or code in {0xFFFE, 0xFFFF}
        return "" if bad or code > 0x10FFFF else match[0]

    return _FORBIDDEN.sub("", _REFERENCE.sub(allowed, _PAIR.sub(joined, xml)))
