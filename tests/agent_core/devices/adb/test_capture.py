from __future__ import annotations

import io
import struct

import pytest
from PIL import Image

from agent_core.devices.adb.capture import RawUnusableError, decode_png, decode_raw
from agent_core.devices.pictures import digest
from agent_core.errors import ScreenshotFailed

SIZE = (108, 240)


def picture() -> Image.Image:
    image = Image.new("RGB", SIZE, (240, 240, 240))
    image.paste((18, 183, 245), (20, 100, 90, 140))
    return image


def png(image: Image.Image) -> bytes:
    data = io.BytesIO()
    image.convert("RGBA").save(data, "PNG")
    return data.getvalue()


def raw(image: Image.Image, *, header: int = 16, pixel_format: int = 1) -> bytes:
    head = struct.pack("<III", *image.size, pixel_format) + b"\x01\0\0\0" * (header == 16)
    return head + image.convert("RGBA").tobytes()


WARNING = b"[Warning] Multiple displays were found, but no display id was specified!\n"


@pytest.mark.parametrize("before", [b"", WARNING])
@pytest.mark.parametrize("header", [12, 16])
def test_both_ways_give_the_same_picture(before: bytes, header: int) -> None:
    image = picture()
    by_png, by_raw = decode_png(before + png(image)), decode_raw(before + raw(image, header=header), SIZE)
    assert by_png.tobytes() == by_raw.tobytes() == image.tobytes()
    assert digest(by_png) == digest(by_raw)


def test_raw_of_a_screen_that_was_turned() -> None:
    assert decode_raw(raw(picture().rotate(90, expand=True)), SIZE).size == SIZE[::-1]


def test_raw_blue_first() -> None:
    image = Image.new("RGB", SIZE, (1, 2, 3))
    assert decode_raw(raw(image, pixel_format=5), SIZE).getpixel((0, 0)) == (3, 2, 1)


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (raw(picture())[:-1], SIZE),
        (raw(picture()), (108, 241)),
        (raw(picture()), None),
        (raw(picture(), pixel_format=4), SIZE),
        (b"", SIZE),
    ],
)
def test_raw_that_is_not_what_was_expected(data: bytes, size: tuple[int, int] | None) -> None:
    with pytest.raises(RawUnusableError):
        decode_raw(data, size)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "nothing was printed"),
        (b"screencap: not found\n", "not found"),
        (png(picture())[:-40], "did not come whole"),
        (png(picture())[:20], "did not come whole"),
        (b"\x89PNG\r\n\x1a\nrubbish" * 10, "did not come whole"),
    ],
)
def test_no_whole_picture(data: bytes, words: str) -> None:
    with pytest.raises(ScreenshotFailed, match=words):
        decode_png(data)
