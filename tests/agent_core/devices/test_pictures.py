from __future__ import annotations

from PIL import Image

from agent_core.devices.pictures import digest, is_black

SIZE = (108, 240)


def picture() -> Image.Image:
    image = Image.new("RGB", SIZE, (240, 240, 240))
    image.paste((18, 183, 245), (20, 100, 90, 140))
    return image


def test_the_clock_does_not_change_a_screen_but_anything_below_does() -> None:
    image, clock, bubble = picture(), picture(), picture()
    clock.paste((0, 0, 0), (0, 0, 108, 8))
    bubble.paste((0, 0, 0), (50, 60, 51, 61))
    assert digest(clock) == digest(image)
    assert digest(bubble) != digest(image)
    assert digest(Image.new("RGB", (240, 108))) != digest(Image.new("RGB", (108, 240)))


def test_black_between_the_bars_is_black() -> None:
    image = Image.new("RGB", SIZE)
    image.paste((255, 255, 255), (0, 0, 108, 8))  # the status bar shows over a protected window
    image.paste((255, 255, 255), (0, 232, 108, 240))
    assert is_black(image)


def test_a_dark_page_is_not_black() -> None:
    image = Image.new("RGB", SIZE)
    image.paste((150, 150, 150), (20, 100, 60, 104))
    assert not is_black(image)
    assert not is_black(Image.new("RGB", SIZE, (12, 12, 12)))
    assert not is_black(picture())
