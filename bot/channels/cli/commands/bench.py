"""``phonedesk bench``: measures the product on this machine with virtual phones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.table import Table

from agent_core.errors import ConfigInvalid, InputRejected
from bot.channels.chat.texts import Texts
from bot.channels.cli.commands.common import Exit, fail, run_async, settings_from
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, err, print_json, watched
from bot.channels.cli.terminal.language import texts
from bot.tools.bench import BenchPart

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from bot.tools.bench.scale import Scale
    from bot.tools.bench.targets import TargetTable
    from bot.tools.bench.usage import Say

T = TypeVar("T")
MOST_PHONES = 200
BUSY = 0.1  # of the machine's processors: more work of others than this is told, because times are longer then
DIGITS = {
    "steps": 2,
    "ocr": 2,
    "picture": 0,
    "calls": 1,
    "plain": 1,
    "idle_cpu": 1,
    "live": 1,
    "live_moving": 1,
    "help": 1,
}

bench = typer.Typer(name="bench", rich_markup_mode=None)


@bench.callback(invoke_without_command=True)
def table(context: typer.Context, only: list[BenchPart] | None = None, as_json: Json = False) -> None:
    """Compare this machine's figures with what phonedesk aims at. Takes about a minute."""
    if context.invoked_subcommand is not None:
        if only or as_json:
            said, advice = "These options are for the table.", "Write them behind the command, or leave them out."
            fail(InputRejected(said, advice=advice, key="options_of_list"))
        return
    from bot.tools.bench.targets import targets
    from bot.tools.bench.usage import machine

    words = texts(settings_from().lang)
    found = _measure(lambda say: targets(set(only or BenchPart), say=say), words)
    if as_json:
        rows = [_plain({**asdict(row), "target": row.target, "within": row.within}) for row in found.rows]
        totals = _plain({"seconds": found.seconds, "others": found.others})
        print_json({"machine": machine(), **totals, "met": found.met, "rows": rows, "calls": found.calls})
    else:
        _show_targets(found, machine(), words)
    raise typer.Exit(Exit.OK if found.met else Exit.FAILED)


@bench.command("scale")
def scale(
    phones: str = "1,10,50",
    runs: Annotated[int, typer.Option(min=1, max=10_000)] = 20,
    as_json: Json = False,
) -> None:
    """Measure one server with many phones: runs per minute, how soon a run begins, memory. Takes some minutes."""
    from bot.tools.bench.scale import scale as measure
    from bot.tools.bench.usage import machine

    words = texts(settings_from().lang)
    sizes = _sizes(phones)

    async def each(say: Say) -> list[Scale]:
        return [await measure(size, runs, say=say) for size in sizes]

    found = _measure(each, words)
    if as_json:
        print_json({"machine": machine(), "sizes": [_plain(asdict(one)) for one in found]})
    else:
        _show(found, machine(), words)
    for one in found:
        for problem in one.problems:
            err.print(words.get("bench.problem", phones=one.phones, problem=problem), style="red")
    raise typer.Exit(Exit.FAILED if any(one.problems for one in found) else Exit.OK)


@bench.command("growth")
def growth(
    runs: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
    as_json: Json = False,
) -> None:
    """Measure the data that a run leaves in the data folder, table by table."""
    from bot.tools.bench.growth import growth as measure
    from bot.tools.bench.usage import machine

    words = texts(settings_from().lang)
    found = _measure(lambda say: measure(runs, say=say), words)
    if as_json:
        tables = [_plain(asdict(one)) for one in found.tables]
        totals = {"runs": found.runs, "bytes": round(found.bytes), "others": round(found.others)}
        print_json({"machine": machine(), **totals, "tables": tables})
        return
    title = words.get("bench.title", runs=found.runs, machine=machine())
    table = Table(*(words.get(f"bench.{head}") for head in ("file", "table", "rows", "size")), title=title)
    for one in found.tables:
        table.add_row(one.file, one.table, f"{one.rows:.1f}", f"{one.bytes / 1000:.1f}")
    table.add_row("", words.get("bench.others"), "", f"{found.others / 1000:.1f}")
    table.add_row("", words.get("bench.all"), "", f"{found.bytes / 1000:.1f}")
    Console().print(table)


@bench.command("soak")
def soak(
    runs: Annotated[int, typer.Option(min=1, max=100_000)] = 1000,
    phones: Annotated[int, typer.Option(min=1, max=MOST_PHONES)] = 4,
    as_json: Json = False,
) -> None:
    """Check whether many runs leave something behind: memory, descriptors, threads."""
    from bot.tools.bench.growth import soak as measure
    from bot.tools.bench.usage import machine

    words = texts(settings_from().lang)
    found = _measure(lambda say: measure(runs, phones, say=say), words)
    if as_json:
        levels = [_plain(asdict(one)) for one in found.levels]
        totals = {"phones": phones, "seconds": round(found.seconds), "bytes_a_run": round(found.bytes_a_run)}
        found_wrong = {"problems": list(found.problems), "grown": list(found.grown)}
        print_json({"machine": machine(), **totals, "levels": levels, **found_wrong})
    else:
        title = words.get("bench.soaked", phones=phones, seconds=found.seconds, machine=machine())
        heads = ("runs", "resident", "descriptors", "threads", "folder")
        table = Table(*(words.get(f"bench.{head}") for head in heads), title=title)
        for one in found.levels:
            kept = f"{one.kept / 1e6:.1f}"
            table.add_row(str(one.runs), f"{one.resident:.0f}", str(one.descriptors), str(one.threads), kept)
        Console().print(table)
    wrong = [*found.problems, *found.grown]
    for problem in wrong:
        err.print(words.get("bench.problem", phones=phones, problem=problem), style="red")
    raise typer.Exit(Exit.FAILED if wrong else Exit.OK)


def _show_targets(found: TargetTable, name: str, words: Texts) -> None:
    table = Table(*(words.get(f"bench.{head}") for head in ("figure", "target", "measured", "within")), title=name)
    for row in found.rows:
        target = "" if row.target is None else f"≤ {row.target:g}"
        measured = "–" if math.isnan(row.measured) else f"{row.measured:.{DIGITS.get(row.figure, 0)}f}"
        verdict = "" if row.within is None else words.get("bench.met" if row.within else "bench.missed")
        style = "red" if row.within is False else None
        table.add_row(words.get(f"bench.figure_{row.figure}"), target, measured, verdict, style=style)
    Console().print(table)
    if found.calls:
        calls = ", ".join(f"{step} {count:g}" for step, count in found.calls.items())
        Console().print(words.get("bench.calls_by_step", calls=calls))
    if found.others > BUSY:
        Console().print(words.get("bench.busy", others=100 * found.others), style="yellow")


def _sizes(written: str) -> list[int]:
    sizes = [part.strip() for part in written.split(",") if part.strip()]
    if not sizes or not all(part.isdecimal() and 1 <= int(part) <= MOST_PHONES for part in sizes):
        said, advice = f"--phones {written} is no list of numbers.", f"1 to {MOST_PHONES}, such as 1,10."
        fail(ConfigInvalid(said, advice=advice, key="bench_phones", said=written, most=MOST_PHONES))
    return [int(part) for part in sizes]


def _measure(work: Callable[[Say], Awaitable[T]], words: Texts) -> T:
    """Run a measurement and show its progress on standard error if that is a terminal."""
    with watched().status("") as status:

        def say(key: str, /, **values: object) -> None:
            status.update(words.get(f"bench.{key}", **values))

        return run_async(lambda: work(say))


def _plain(values: dict[str, object]) -> dict[str, object]:
    """Return the values rounded; NaN becomes null."""
    return {
        name: (None if math.isnan(value) else round(value, 3)) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _show(found: list[Scale], name: str, words: Texts) -> None:
    columns = {
        "phones": "d",
        "runs": "d",
        "runs_a_minute": ".0f",
        "every": ".2f",
        "delay_p50": ".2f",
        "delay_p95": ".2f",
        "cpu": ".0%",
        "resident": ".0f",
        "peak": ".0f",
        "phones_cpu": ".0%",
        "phones_resident": ".0f",
    }
    table = Table(*(words.get(f"bench.{head}") for head in columns), title=name)
    for one in found:
        table.add_row(*(format(getattr(one, head), form) for head, form in columns.items()))
    Console().print(table)
