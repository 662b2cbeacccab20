from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.geometry import SCALE, Box, Point

SIZE = (1080, 2400)
SIZES = st.tuples(st.integers(1, 5000), st.integers(1, 5000))
PAIRS = st.tuples(st.integers(0, SCALE), st.integers(0, SCALE))


@pytest.mark.parametrize(
    ("pair", "point"),
    [
        ((0, 0), Point(0, 0)),
        ((500, 500), Point(540, 1200)),
        ((1000, 1000), Point(1079, 2399)),
        ((999, 1), Point(1079, 2)),
    ],
)
def test_from_a_models_numbers_to_pixels(pair: tuple[int, int], point: Point) -> None:
    assert Point.from_relative(pair, SIZE) == point


@given(pair=PAIRS, size=SIZES)
def test_it_is_always_on_the_screen(pair: tuple[int, int], size: tuple[int, int]) -> None:
    point = Point.from_relative(pair, size)
    assert 0 <= point.x < size[0]
    assert 0 <= point.y < size[1]
    assert all(0 <= value <= SCALE for value in point.to_relative(size))


@given(pair=PAIRS)
def test_there_and_back_is_the_same_place(pair: tuple[int, int]) -> None:
    there = Point.from_relative(pair, SIZE)
    back = Point.from_relative(there.to_relative(SIZE), SIZE)
    assert abs(back.x - there.x) <= 1
    assert abs(back.y - there.y) <= 2  # 2400 pixels on a scale of 1000


def test_a_box() -> None:
    box = Box(10, 20, 30, 60)
    assert (box.width, box.height, box.center, box.as_tuple()) == (20, 40, Point(20, 40), (10, 20, 30, 60))
    assert box.contains(Point(10, 20))
    assert box.contains(Point(29, 59))
    for outside in (Point(30, 40), Point(20, 60), Point(9, 40), Point(20, 19)):
        assert not box.contains(outside)


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (Box(29, 59, 40, 70), True),
        (Box(30, 20, 40, 60), False),
        (Box(10, 60, 30, 70), False),
        (Box(0, 0, 10, 20), False),
        (Box(15, 25, 16, 26), True),
        (Box(0, 0, 99, 99), True),
    ],
)
def test_boxes_that_only_touch_do_not_meet(other: Box, meets: bool) -> None:
    box = Box(10, 20, 30, 60)
    assert box.intersects(other) is meets
    assert other.intersects(box) is meets
