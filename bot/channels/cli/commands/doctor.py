"""``phonedesk doctor``: checks everything that a run needs, and says what to do about problems."""

from __future__ import annotations

import shlex
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.cells import cell_len
from rich.table import Table

from agent_core.errors import ConfigError
from agent_core.owner import folder as own
from agent_core.texts import Listed
from bot.app import logs
from bot.app.doctor.report import CheckResult, CheckStatus
from bot.app.doctor.texts import DoctorTexts
from bot.app.settings.files import ENV_FILE
from bot.app.settings.layers import Settings
from bot.app.settings.loading import load, own_folder
from bot.channels.chat.texts import Lang
from bot.channels.cli.commands.common import Exit, run_async
from bot.channels.cli.commands.output import Json
from bot.channels.cli.terminal.console import Console, Text, print_json
from bot.channels.cli.terminal.language import spoken_language

MARKS = {
    CheckStatus.OK: ("✓", "green"),
    CheckStatus.NOTE: ("·", ""),
    CheckStatus.WARNING: ("!", "yellow"),
    CheckStatus.FAILED: ("✗", "bold red"),
    CheckStatus.SKIPPED: ("–", "dim"),
}


def doctor(
    device: str = "",
    lang: Literal["zh", "en"] | None = None,
    fix: Annotated[bool, typer.Option("--fix")] = False,
    as_json: Json = False,
) -> None:
    """Check settings, phone, model, knowledge and bot, and say what to do. Nothing is changed without ``fix``."""
    settings = _settings(lang)
    spoken = lang or (settings.lang if isinstance(settings, Settings) else spoken_language())
    results = run_async(lambda: _examine(settings, device, spoken, None if as_json else Console(), mend=fix))
    if as_json:
        print_json([result.as_json() for result in results])
    raise typer.Exit(Exit.FAILED if _failed(results) else Exit.OK)


def check_all(lang: Lang, console: Console) -> bool:
    """Check everything and show it. Return whether something failed."""
    settings = _settings(lang)
    return _failed(run_async(lambda: _examine(settings, "", lang, console, mend=False)))


def _failed(results: list[CheckResult]) -> bool:
    return any(result.status is CheckStatus.FAILED for result in results)


def _settings(lang: str | None) -> Settings | ConfigError:
    """Return the settings, or the error if there are none, which is then the first result instead of the end."""
    logs.configure("error")  # problems are told in the list
    try:
        settings = load(lang=lang)
    except ConfigError as error:
        return error
    own.use(own_folder(settings))
    return settings


async def _examine(
    settings: Settings | ConfigError, serial: str, lang: Lang, console: Console | None, *, mend: bool
) -> list[CheckResult]:
    """Run the checks and return the results; show them on ``console`` as they come."""
    words = DoctorTexts(lang)
    results: list[CheckResult] = []
    with console.status(words.get("output.looking")) if console else nullcontext() as waiting:
        # All the parts are loaded now, which takes a second: something must be visible by then.
        from bot.app.doctor.examine import CHECKS, examine

        titles = [words.get(f"{check.key}.title") for check in CHECKS]
        shown = _Shown(console, max(cell_len(title) for title in titles) + 1, words) if console is not None else None
        async for result in examine(settings, serial=serial, lang=lang, mend=mend):
            results.append(result)
            if shown is not None and waiting is not None:
                shown.add(result)
                waiting.update(titles[min(len(results), len(titles) - 1)])
        if shown is not None:
            shown.fold()
    if console is not None:
        _summary(console, results, words, mend=mend, device=serial)
    return results


class _Shown:
    """The results on the terminal. Checks that were skipped for the same reason share a line."""

    def __init__(self, console: Console, width: int, words: DoctorTexts) -> None:
        self._console, self._width, self._words = console, width, words
        self._titles: dict[str, str] = {}
        self._folded: list[CheckResult] = []

    def add(self, result: CheckResult) -> None:
        self._titles[result.check] = result.title
        if self._folded and self._folded[0].after != result.after:
            self.fold()
        if result.after:
            self._folded.append(result)
        else:
            _show(self._console, result, self._width)

    def fold(self) -> None:
        """Show the lines that were held back."""
        if self._folded:
            titles = Listed(result.title for result in self._folded)
            cause = self._titles[self._folded[0].after]
            said = self._words.get("output.not_made", {"title": cause, "titles": titles})
            self._console.print(Text(f"{MARKS[CheckStatus.SKIPPED][0]} {said}", "dim"))
        self._folded = []


def _show(console: Console, result: CheckResult, width: int) -> None:
    """Show one result: what was seen beside its title (``width`` cells), what to do below."""
    mark, style = MARKS[result.status]
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=1)
    table.add_column(width=width)
    table.add_column(ratio=1, overflow="fold")
    quiet = "dim" if result.status is CheckStatus.SKIPPED else ""
    table.add_row(Text(mark, style), Text(result.title, quiet or "bold"), Text(result.seen, quiet))
    console.print(table)
    if result.advice:  # across the whole terminal, so that its commands can be copied
        console.print(Text(f"  → {result.advice}", style), soft_wrap=True)


def _summary(
    console: Console, results: list[CheckResult], words: DoctorTexts, *, mend: bool = False, device: str = ""
) -> None:
    counts = Counter(result.status for result in results)
    counted = Listed(
        words.get(f"output.count_{status.value}", {"count": counts[status]}) for status in CheckStatus if counts[status]
    )
    console.print()
    console.print(Text(words.get("output.summary", {"total": len(results), "counts": counted})))
    if mend and not any(result.mending for result in results):
        console.print(Text(words.get("output.nothing_to_mend")), soft_wrap=True)
    if any("PHONEDESK_" in f"{result.seen} {result.advice}" for result in results if not result.after):
        file = Path.cwd() / ENV_FILE
        key = "output.where" if file.exists() else "output.where_to_be"
        console.print(Text(words.get(key, {"file": file})), soft_wrap=True)
    if counts[CheckStatus.FAILED]:
        titles = Listed(result.title for result in results if result.status is CheckStatus.FAILED)
        console.print(Text(words.get("output.mend_first", {"titles": titles})), soft_wrap=True)
    else:
        option = f" --device {shlex.quote(device)}" if device else ""  # the phone that was checked
        console.print(Text(words.get("output.all_well", {"device": option})), soft_wrap=True)
