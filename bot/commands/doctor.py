"""``phonedesk doctor``: is everything there that a run needs, and what to do where it is not."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from typing import Annotated, Literal

import typer
from rich.cells import cell_len
from rich.table import Table

from agent_core import own
from agent_core.errors import ConfigError
from agent_core.texts import language_of
from bot import logs
from bot.chat.texts import Lang
from bot.commands.common import Exit, run_async
from bot.doctor.report import Result, Status
from bot.doctor.texts import Texts
from bot.settings import Settings, load
from bot.settings.own import own_folder
from bot.terminal.console import Console, Text, print_json

MARKS = {
    Status.OK: ("✓", "green"),
    Status.WARNING: ("!", "yellow"),
    Status.FAILED: ("✗", "bold red"),
    Status.SKIPPED: ("–", "dim"),
}


def doctor(
    device: Annotated[str, typer.Option(help="The phone's serial, or host:port.")] = "",
    lang: Annotated[Literal["zh", "en"] | None, typer.Option(help="The language of the output.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: check, status, seen, advice.")] = False,
) -> None:
    """Check settings, phone, model, knowledge and bot, and say what to do. Nothing is changed.

    Exit code 0 where nothing failed, else 1.

    Example: phonedesk doctor --device 127.0.0.1:16001 --lang en
    """
    settings = _settings(lang)
    known = settings.lang if isinstance(settings, Settings) else language_of(os.environ.get("PHONEDESK_LANG", "zh"))
    spoken: Lang = lang or known
    results = run_async(lambda: _examine(settings, device, spoken, None if as_json else Console()))
    if as_json:
        print_json([result.as_json() for result in results])
    failed = any(result.status is Status.FAILED for result in results)
    raise typer.Exit(Exit.FAILED if failed else Exit.OK)


def _settings(lang: str | None) -> Settings | ConfigError:
    """The settings, or why there are none: that is the first thing to be said, not the end."""
    logs.configure("error")  # what goes wrong here is told in the list
    try:
        settings = load(lang=lang)
    except ConfigError as error:
        return error
    own.use(own_folder(settings))
    return settings


async def _examine(settings: Settings | ConfigError, serial: str, lang: Lang, console: Console | None) -> list[Result]:
    """The results; shown on ``console`` as they come."""
    from bot.doctor.examine import CHECKS, examine

    words = Texts(lang)
    titles = [words.get(f"{check.key}.title") for check in CHECKS]
    width = max(cell_len(title) for title in titles)
    results: list[Result] = []
    with console.status(titles[0]) if console else nullcontext() as waiting:
        async for result in examine(settings, serial=serial, lang=lang):
            results.append(result)
            if console is not None and waiting is not None:
                _show(console, result, width)
                waiting.update(titles[min(len(results), len(titles) - 1)])
    if console is not None:
        _summary(console, results, words)
    return results


def _show(console: Console, result: Result, width: int) -> None:
    """One result: what was seen beside its title (``width`` cells), what to do under it."""
    mark, style = MARKS[result.status]
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=width)
    table.add_column(ratio=1, overflow="fold")
    quiet = "dim" if result.status is Status.SKIPPED else ""
    table.add_row(Text(mark, style), Text(result.title, quiet or "bold"), Text(result.seen, quiet))
    if result.advice:
        table.add_row("", "", Text(f"→ {result.advice}", style))
    console.print(table)


def _summary(console: Console, results: list[Result], words: Texts) -> None:
    counts = Counter(result.status for result in results)
    values = {"total": len(results), **{status.value: counts[status] for status in Status}}
    console.print()
    console.print(Text(words.get("output.summary", values)))
    console.print(Text(words.get("output.mend_first" if counts[Status.FAILED] else "output.all_well")))
