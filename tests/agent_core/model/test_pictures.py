from __future__ import annotations

import base64
import io
import random

from PIL import Image

from agent_core.devices.base import Frame
from agent_core.model.prompt import MAX_BASE64, PictureCache, data_url, picture_tokens


def opened(url: str) -> Image.Image:
    head, _, data = url.partition(",")
    assert head == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


def noise(size: tuple[int, int]) -> Image.Image:
    return Image.frombytes("RGB", size, random.Random(7).randbytes(size[0] * size[1] * 3))


def test_a_phone_screen_is_halved() -> None:
    assert opened(data_url(Image.new("RGB", (1080, 2400), "white"))).size == (540, 1200)


def test_a_small_crop_stays_as_it_is() -> None:
    assert opened(data_url(Image.new("RGB", (600, 200), "white"))).size == (600, 200)


def test_even_the_worst_screen_stays_small() -> None:
    url = data_url(noise((1080, 2400)))
    assert len(url.partition(",")[2]) <= MAX_BASE64


def test_other_modes_are_taken() -> None:
    assert opened(data_url(Image.new("RGBA", (40, 40)))).mode == "RGB"


def test_an_unchanged_screen_is_encoded_once() -> None:
    cache = PictureCache(size=2)
    frames = [Frame(Image.new("RGB", (40, 80), (n, 0, 0)), f"digest-{n}", 0.0) for n in range(3)]
    assert cache.url(frames[0]) == cache.url(Frame(frames[0].image.copy(), "digest-0", 9.0))
    assert cache.encoded == 1
    for frame in frames:
        cache.url(frame)
    assert cache.encoded == 3
    cache.url(frames[0])  # the oldest was forgotten
    assert cache.encoded == 4


def test_tokens_are_of_the_picture_as_it_is_sent() -> None:
    assert 800 < picture_tokens((1080, 2400)) < 1000
