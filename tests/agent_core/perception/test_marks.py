from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image, ImageChops

from agent_core.actions.types import Back, DoubleTap, LongPress, Swipe, Tap
from agent_core.geometry import Point
from agent_core.perception.marks import mark, mark_swipe, mark_tap, to_jpeg

SIZE = (1080, 2400)


def changed(before: Image.Image, after: Image.Image) -> tuple[int, int, int, int] | None:
    return ImageChops.difference(before, after).getbbox()


@pytest.mark.parametrize("action", [Tap(element=(500, 250)), DoubleTap(element=(500, 250))])
def test_a_ring_stands_around_a_tap_and_the_picture_itself_is_untouched(action: Tap | DoubleTap) -> None:
    image = Image.new("RGB", SIZE, "grey")
    marked = mark(image, action)
    box = changed(image, marked)
    assert box is not None
    assert abs((box[0] + box[2]) // 2 - 540) <= 2
    assert abs((box[1] + box[3]) // 2 - 600) <= 2
    assert image.getcolors() == [(SIZE[0] * SIZE[1], (128, 128, 128))]


@pytest.mark.parametrize("action", [Tap(element=(500, 250)), LongPress(element=(500, 250))])
def test_the_words_that_are_tapped_and_those_below_them_in_a_row_of_a_list_can_be_read(action: Tap | LongPress) -> None:
    image = Image.new("RGB", SIZE, "grey")
    line = (0, 600 - 50, SIZE[0], 600 + 60)  # across the whole screen, 110 pixels of 2400 high
    assert changed(image.crop(line), mark(image, action).crop(line)) is None


def test_a_long_press_has_two_rings() -> None:
    image = Image.new("RGB", SIZE, "grey")
    one, two = (
        changed(image, mark(image, Tap(element=(500, 500)))),
        changed(image, mark(image, LongPress(element=(500, 500)))),
    )
    assert one is not None
    assert two is not None
    assert two[2] - two[0] > 1.5 * (one[2] - one[0])


def test_an_arrow_goes_from_start_to_end_and_has_its_head_there() -> None:
    image = Image.new("RGB", SIZE, "grey")
    marked = mark(image, Swipe(start=(500, 800), end=(500, 200)))
    box = changed(image, marked)
    assert box is not None
    assert box[1] <= 480
    assert box[3] >= 1920
    aside = marked.crop((510, 490, 530, 530)).getcolors(10_000)
    assert aside is not None
    assert len(aside) > 1  # the arrow's head is beside the line near the end only
    assert changed(image.crop((505, 1200, 525, 1300)), marked.crop((505, 1200, 525, 1300))) is None


def test_a_swipe_that_does_not_move_is_a_long_press_and_other_actions_leave_no_mark() -> None:
    image = Image.new("RGB", SIZE, "grey")
    point = Point(300, 300)
    assert changed(mark_swipe(image, point, point), mark_tap(image, point, rings=2)) is None
    assert changed(image, mark(image, Back())) is None


def test_a_jpeg_for_a_card_is_small() -> None:
    picture = to_jpeg(Image.effect_noise(SIZE, 8).convert("RGB"), longest=1200)
    assert picture.startswith(b"\xff\xd8")
    assert max(Image.open(BytesIO(picture)).size) == 1200
    assert to_jpeg(Image.new("RGBA", (40, 30)))[:2] == b"\xff\xd8"
