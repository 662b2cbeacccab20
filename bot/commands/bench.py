"""``phonedesk bench``: how much the product does on this machine, with virtual phones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.table import Table

from agent_core.errors import ConfigInvalid
from bot.commands.common import Exit, fail, run_async, settings_from
from bot.terminal.console import Console, err, print_json, watched

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from bot.bench.scale import Scale

T = TypeVar("T")
MOST_PHONES = 200
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

bench = typer.Typer(
    name="bench",
    help="Measure this machine with virtual phones.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@bench.command("scale")
def scale(
    phones: Annotated[str, typer.Option(help="How many phones, with commas.")] = "1,10,50",
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="Replies in each of two rounds, at least.")] = 20,
    as_json: Json = False,
) -> None:
    """One server, many phones: runs a minute, how soon a run begins, memory. Takes some minutes.

    Example: phonedesk bench scale --phones 1,10
    """
    from bot.bench.scale import scale as measure
    from bot.bench.usage import machine

    settings_from()
    sizes = _sizes(phones)

    async def each(say: Callable[[str], None]) -> list[Scale]:
        return [await measure(size, runs, say=say) for size in sizes]

    found = _measure(each)
    if as_json:
        print_json({"machine": machine(), "sizes": [_plain(asdict(one)) for one in found]})
    else:
        _show(found, machine())
    for one in found:
        for problem in one.problems:
            err.print(f"{one.phones}: {problem}", style="red")
    raise typer.Exit(Exit.FAILED if any(one.problems for one in found) else Exit.OK)


@bench.command("idle")
def idle(
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long it is looked at.")] = 30.0,
    as_json: Json = False,
) -> None:
    """A server with one phone and nothing to do: share of a core, memory.

    Example: phonedesk bench idle --seconds 60
    """
    from bot.bench.scale import idle as measure
    from bot.bench.usage import machine

    settings_from()
    found = _measure(lambda say: measure(seconds, say=say))
    if as_json:
        print_json({"machine": machine(), **_plain(asdict(found))})
        return
    table = Table("seconds", "share of a core", "memory, MiB", title=machine())
    table.add_row(f"{found.seconds:.0f}", f"{found.cpu:.1%}", f"{found.resident:.0f}")
    Console().print(table)


@bench.command("growth")
def growth(
    runs: Annotated[int, typer.Option(min=1, max=10_000, help="Replies that are given.")] = 50,
    as_json: Json = False,
) -> None:
    """What a run leaves in the data folder, table by table.

    Example: phonedesk bench growth --runs 100
    """
    from bot.bench.growth import growth as measure
    from bot.bench.usage import machine

    settings_from()
    found = _measure(lambda say: measure(runs, say=say))
    if as_json:
        tables = [_plain(asdict(one)) for one in found.tables]
        totals = {"runs": found.runs, "bytes": round(found.bytes), "others": round(found.others)}
        print_json({"machine": machine(), **totals, "tables": tables})
        return
    table = Table("file", "table", "rows a run", "KB a run", title=f"{found.runs} runs, {machine()}")
    for one in found.tables:
        table.add_row(one.file, one.table, f"{one.rows:.1f}", f"{one.bytes / 1000:.1f}")
    table.add_row("", "other files", "", f"{found.others / 1000:.1f}")
    table.add_row("", "all", "", f"{found.bytes / 1000:.1f}")
    Console().print(table)


@bench.command("soak")
def soak(
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Replies after the first 50.")] = 1000,
    phones: Annotated[int, typer.Option(min=1, max=MOST_PHONES, help="How many phones share them.")] = 4,
    as_json: Json = False,
) -> None:
    """Whether many runs leave something behind: memory, descriptors, threads. Takes about an hour for 1,000.

    Example: phonedesk bench soak --runs 200
    """
    from bot.bench.soak import soak as measure
    from bot.bench.usage import machine

    settings_from()
    found = _measure(lambda say: measure(runs, phones, say=say))
    if as_json:
        levels = [_plain(asdict(one)) for one in found.levels]
        totals = {"phones": phones, "seconds": round(found.seconds), "bytes_a_run": round(found.bytes_a_run)}
        print_json({"machine": machine(), **totals, "levels": levels, "problems": list(found.problems)})
    else:
        title = f"{phones} phones, {found.seconds:.0f} s, {machine()}"
        table = Table("runs", "memory, MiB", "descriptors", "threads", "data folder, MB", title=title)
        for one in found.levels:
            kept = f"{one.kept / 1e6:.1f}"
            table.add_row(str(one.runs), f"{one.resident:.0f}", str(one.descriptors), str(one.threads), kept)
        Console().print(table)
    for problem in found.problems:
        err.print(problem, style="red")
    raise typer.Exit(Exit.FAILED if found.problems else Exit.OK)


def _sizes(written: str) -> list[int]:
    sizes = [part.strip() for part in written.split(",") if part.strip()]
    if not sizes or not all(part.isdecimal() and 1 <= int(part) <= MOST_PHONES for part in sizes):
        said, advice = f"--phones {written} is no list of numbers.", f"1 to {MOST_PHONES}, such as 1,10."
        fail(ConfigInvalid(said, advice=advice, key="bench_phones", said=written, most=MOST_PHONES))
    return [int(part) for part in sizes]


def _measure(work: Callable[[Callable[[str], None]], Awaitable[T]]) -> T:
    """What is going on is shown on standard error, where somebody looks at it."""
    with watched().status("") as status:
        return run_async(lambda: work(status.update))


def _plain(values: dict[str, object]) -> dict[str, object]:
    """Rounded; what there is none of is null."""
    return {
        name: (None if math.isnan(value) else round(value, 3)) if isinstance(value, float) else value
        for name, value in values.items()
    }


def _show(found: list[Scale], name: str) -> None:
    table = Table(
        "phones", "runs", "runs a minute", "one each, s", "delay p50, s", "delay p95, s", "memory, MiB", "peak, MiB",
        title=name,
    )  # fmt: skip
    for one in found:
        numbers = (one.runs_a_minute, one.every, one.delay_p50, one.delay_p95, one.resident, one.peak)
        forms = (".0f", ".2f", ".2f", ".2f", ".0f", ".0f")
        table.add_row(
            str(one.phones), str(one.runs), *(format(n, form) for n, form in zip(numbers, forms, strict=True))
        )
    Console().print(table)
