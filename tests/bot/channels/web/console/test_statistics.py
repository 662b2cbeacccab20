"""Where the parts of a chart stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bot.channels.web.console.statistics import HEIGHT, WIDTH, Chart, ChartDay, chart

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def drawn(*values: tuple[float | None, ...], whole: bool = True, sums: bool = True) -> Chart:
    days = [ChartDay(MONDAY + timedelta(days=number), each) for number, each in enumerate(values)]
    names = [f"s{number}" for number in range(len(values[0]))]
    return chart("key", "Title", names, days, lambda value: f"{value:g}", whole=whole, sums=sums)


def test_parts_stand_upon_each_other_and_are_as_high_as_their_figures() -> None:
    made = drawn((2, 6), (0, 4), (None, None))
    (low, high), (alone,), nothing = (column.parts for column in made.columns)
    assert nothing == ()
    assert low.y == pytest.approx(high.y + high.height)
    assert high.height == pytest.approx(3 * low.height, abs=0.2)
    assert alone.height == pytest.approx(2 * low.height, abs=0.2)
    assert alone.y + alone.height == pytest.approx(low.y + low.height)
    assert (low.series, high.series, alone.series) == (0, 1, 1)
    assert low.x == high.x < alone.x
    assert made.columns[0].said == "03-02: s0 2 · s1 6"


def test_the_table_has_the_same_figures_and_says_where_there_is_none() -> None:
    made = drawn((2, 6), (0, 4), (None, 1))
    assert made.rows == (("03-02", ("2", "6")), ("03-03", ("0", "4")), ("03-04", ("–", "1")))
    assert made.legend == ("s0 2", "s1 11")
    assert drawn((5,), (7,), sums=False).legend == ("s0",)


@pytest.mark.parametrize("count", [1, 7, 30, 90])
def test_it_fits_its_frame_and_names_the_newest_day(count: int) -> None:
    made = drawn(*[(number % 9 + 1.0, 3.0) for number in range(count)])
    parts = [part for column in made.columns for part in column.parts]
    assert min(part.x for part in parts) >= made.left
    assert max(part.x + part.width for part in parts) <= made.right <= WIDTH
    assert min(part.y for part in parts) >= 0
    assert max(part.y + part.height for part in parts) <= HEIGHT
    assert min(part.width for part in parts) >= 1
    newest = f"{MONDAY + timedelta(days=count - 1):%m-%d}"
    assert made.labels[-1][1] == newest
    assert len(made.labels) <= 5


@pytest.mark.parametrize(
    ("most", "whole", "top"),
    [(0, True, 2), (7, True, 10), (0.034, False, 0.04), (0.0116, False, 0.02), (250, False, 300)],
)
def test_the_scale_ends_at_a_round_figure(most: float, whole: bool, top: float) -> None:
    made = drawn((most,), whole=whole)
    assert made.empty is (most == 0)
    assert float(made.lines[-1][1]) == pytest.approx(top)
