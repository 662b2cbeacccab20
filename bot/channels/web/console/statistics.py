"""The page of statistics. Its charts are bars by day as SVG, which the server places, with the same figures as a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, log10

from agent_core.model.usage import money
from bot.channels.chat.cards import took_words
from bot.channels.chat.chart import scale
from bot.channels.web.console.texts import ConsoleTexts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.digest import SPANS
from bot.desk.digest_views import DayFigures, StatisticsView

statistics = Pages("statistics")
WIDTH, HEIGHT = 400, 200  # of the drawing; pages show it as wide as they have room
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 384, 10, 172
MOST_LABELS = 5
_FILLED = 0.72  # of a column
Write = Callable[[float], str]


@statistics.page("/statistics", "statistics.html")
async def show_statistics(visit: Visit) -> Shown:
    written = visit.query("days") or str(SPANS[0])
    count = int(written) if written.isdecimal() and len(written) <= 3 else 0
    view = await visit.desk.digest.days(visit.actor, count)
    words = visit.words
    most = max((failures.count for failures in view.failures), default=1)
    return {
        "empty": view.empty,
        "charts": _charts(view, words),
        "failures": [
            (words.find(f"error.{each.kind}", words.own("statistics.other")), each.count, 100 * each.count / most)
            for each in view.failures
        ],
        "kept_since": f"{view.kept_since:%m-%d}" if view.kept_since is not None else "",
        "days": count,
        "spans": SPANS,
    }


def _charts(view: StatisticsView, words: ConsoleTexts) -> Sequence[Chart]:
    def days(*values: str) -> list[ChartDay]:
        return [ChartDay(each.bar.at, tuple(_value(each, name) for name in values)) for each in view.days]

    answers = [words.get(f"digest.{name}") for name in ("alone", "by_person", "left")]
    cost = words.get("digest.cost")
    made = [
        chart("answers", words.own("statistics.answers"), answers, days("alone", "by_person", "left"), _count),
        chart(
            "time", words.own("statistics.time"), [words.get("digest.median")], days("median_seconds"),
            lambda seconds: took_words(seconds, words), sums=False,
        ),
        chart(
            "tokens", words.own("statistics.tokens"),
            [words.own("statistics.tokens_in"), words.own("statistics.tokens_out")],
            days("tokens_in", "tokens_out"), _count,
        ),
    ]  # fmt: skip
    if any(each.cost is not None for each in view.days):
        title = f"{cost} ({view.currency})" if view.currency else cost
        made.append(chart("cost", title, [cost], days("cost"), money, whole=False))
    return made


def _value(day: DayFigures, name: str) -> float | None:
    value = getattr(day.bar if hasattr(day.bar, name) else day, name)
    return None if value is None else float(value)


def _count(value: float) -> str:
    return f"{value:,.0f}"


# Charts ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChartDay:
    """A column of a chart. ``values``: one for each series, from the bottom up; None if there is none."""

    at: datetime
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of a column. ``series``: its number, which has a color."""

    series: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class DrawnDay:
    """A column. ``said``: its figures in words. ``parts``: those that can be seen."""

    said: str
    parts: tuple[Rectangle, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, ready to be shown.

    legend: a text for each series. lines, labels: of the scale and of the days, each with its place.
    rows: of the table, a day and its figures.
    """

    key: str
    title: str
    legend: tuple[str, ...]
    columns: tuple[DrawnDay, ...]
    lines: tuple[tuple[float, str], ...]
    labels: tuple[tuple[float, str], ...]
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = _RIGHT

    @property
    def empty(self) -> bool:
        return not any(column.parts for column in self.columns)


def chart(
    key: str,
    title: str,
    names: Sequence[str],
    days: Sequence[ChartDay],
    write: Write,
    *,
    whole: bool = True,
    sums: bool = True,
) -> Chart:
    """Draw a chart.

    names: of the series. write: returns a figure in words.
    whole: the figures are whole numbers. sums: the sum of a series means something.
    """
    top = _top(max((sum(value or 0 for value in day.values) for day in days), default=0), whole=whole)
    step = (_RIGHT - _LEFT) / max(1, len(days))
    totals = [sum(day.values[place] or 0 for day in days) for place in range(len(names))]
    rows = tuple((f"{day.at:%m-%d}", tuple("–" if one is None else write(one) for one in day.values)) for day in days)
    apart = ceil(len(days) / MOST_LABELS)
    return Chart(
        key=key,
        title=title,
        legend=tuple(f"{name} {write(total)}" if sums else name for name, total in zip(names, totals, strict=True)),
        columns=tuple(
            DrawnDay(
                f"{row[0]}: {' · '.join(f'{name} {said}' for name, said in zip(names, row[1], strict=True))}",
                _column(day, _LEFT + step * place, step, top),
            )
            for place, (day, row) in enumerate(zip(days, rows, strict=True))
        ),
        lines=tuple((_height(value, top), write(value)) for value in (0, top / 2, top)),
        labels=tuple(  # the newest day is always named
            (round(_LEFT + step * (place + 0.5), 1), row[0])
            for place, row in enumerate(rows)
            if (len(rows) - 1 - place) % apart == 0
        ),
        names=tuple(names),
        rows=rows,
    )


def _top(most: float, *, whole: bool) -> float:
    """Return the top of the scale: a round number."""
    if whole or not most:
        return scale(ceil(most))
    unit = 10.0 ** (floor(log10(most)) - 1)
    return scale(ceil(most / unit)) * unit


def _height(value: float, top: float) -> float:
    return round(_BOTTOM - (_BOTTOM - _TOP) * value / top, 1)


def _column(day: ChartDay, left: float, step: float, top: float) -> tuple[Rectangle, ...]:
    parts, below = [], 0.0
    for series, value in enumerate(day.values):
        if value:
            y, end = _height(below + value, top), _height(below, top)
            x, width = round(left + step * (1 - _FILLED) / 2, 1), round(step * _FILLED, 1)
            parts.append(Rectangle(series, x, y, width, round(max(end - y, 0.5), 1)))
            below += value
    return tuple(parts)
