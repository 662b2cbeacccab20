"""The page of statistics: charts of the last days."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.model.usage import money
from bot.channels.chat.cards import took_words
from bot.channels.web.console.charts import Chart, ChartDay, chart
from bot.channels.web.console.texts import ConsoleTexts
from bot.channels.web.console.visit import Pages, Shown, Visit
from bot.desk.digest import SPANS
from bot.desk.digest_views import DayFigures, StatisticsView

statistics = Pages("statistics")


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
