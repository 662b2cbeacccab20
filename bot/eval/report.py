"""The results as a person reads them, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.table import Column, Table

from bot.escapes import escaped
from bot.eval.result import CaseResult
from bot.terminal.console import Console, Text

WIDE = 140  # columns of a screen that has room for the figures
LONGEST = 48  # characters of a problem or a reply in the table


def as_json(results: Sequence[CaseResult], model: str, seconds: float) -> dict[str, Any]:
    """Every case with all its figures, and the sums."""
    passed = sum(result.passed for result in results)
    return {
        "cases": [result.data() for result in results],
        "passed": passed,
        "failed": len(results) - passed,
        "seconds": round(seconds, 3),
        "model": model,
    }


def show(console: Console, results: Sequence[CaseResult], model: str, seconds: float) -> None:
    """Show a row for each case, below it what went wrong in full, then the sums.

    A narrow screen gets the case, its mode and its result; JSON has everything.
    """
    wide = console.width >= WIDE
    table = Table(Column("case", overflow="fold"), Column("mode", no_wrap=True), Column("result", overflow="fold"))
    for name in ("look", "replies", "asked", "calls", "seconds") if wide else ():
        table.add_column(name, justify="right" if name in ("calls", "seconds") else "left")
    for result in results:
        figures = [
            result.look or "–",
            _replies(result),
            " ".join(result.asked) or "–",
            str(result.model_calls),
            f"{result.seconds:.1f}",
        ]
        table.add_row(
            Text(result.title),
            result.mode,
            Text("passed", "green") if result.passed else Text(_short(result.problems[0]), "red"),
            *(map(Text, figures) if wide else ()),
        )
    console.print(table)
    for result in results:
        if not result.passed:
            console.print(Text(f"{result.file} ({', '.join(filter(None, (result.mode, result.look)))})", "bold red"))
            for problem in result.problems:
                console.print(Text(f"  {problem}"))
            if result.kept:
                console.print(Text(f"  kept in {result.kept}", "dim"))
    console.print(Text(total(results, model, seconds), "bold"))


def total(results: Sequence[CaseResult], model: str, seconds: float) -> str:
    passed = sum(result.passed for result in results)
    calls = sum(result.model_calls for result in results)
    thinking = sum(result.model_seconds for result in results)
    tokens = sum(result.tokens_in for result in results), sum(result.tokens_out for result in results)
    return (
        f"{passed} of {len(results)} passed in {seconds:.1f} s. "
        f"Model {model}: {calls} calls, {thinking:.1f} s, {tokens[0]} tokens in, {tokens[1]} out."
    )


def _replies(result: CaseResult) -> str:
    """How many, and from where."""
    found = Counter(reply.provenance for reply in result.replies)
    return " ".join(f"{count}×{provenance}" for provenance, count in found.items()) or "–"


def _short(text: str) -> str:
    line = escaped(text).splitlines()[0]
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
