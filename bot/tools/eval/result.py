"""A case and its result, which goes from one process to another; the results for a person, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.texts import cut
from bot.app.escapes import escaped
from bot.tools.eval.scenario import EvalScenario, Mode

if TYPE_CHECKING:
    from bot.channels.chat.texts import Texts
    from bot.channels.cli.terminal.console import Console

WIDE = 140  # columns of a screen with room for the figures
LONGEST = 48  # characters of a problem or a reply in the table


@dataclass(frozen=True, slots=True)
class Case:
    """A file after reading, and one way to run it.

    place: its unique path in the folder that was named, without its suffix.
    """

    path: Path
    scenario: EvalScenario
    mode: Mode
    place: str = ""

    @property
    def name(self) -> str:
        return self.place or self.path.stem

    @property
    def title(self) -> str:
        return self.scenario.title or self.path.stem

    @property
    def look(self) -> str:
        """The looks of the chat apps in the case: ``qq-plain``; "" if there is none."""
        return "+".join(self.scenario.looks[app] for app in self.scenario.chat_apps)

    @property
    def key(self) -> tuple[str, str, str]:
        """The file, the mode and the look, which no other case shares."""
        return str(self.path), self.mode.value, self.look

    def result(self, *problems: str) -> CaseResult:
        """Return a result of this case in which nothing happened but ``problems``."""
        return CaseResult(str(self.path), self.title, self.mode.value, self.look, list(problems))


@dataclass(frozen=True, slots=True)
class EvalReply:
    """A text that was seen to arrive. ``provenance``: knowledge, composed or person."""

    contact: str
    text: str
    provenance: str


@dataclass(slots=True)
class CaseResult:
    """A case's result. ``problems``: the failures, in order; none means passed. Times in seconds."""

    file: str
    title: str
    mode: str
    look: str
    problems: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)  # of each run
    message: str = ""  # of the last run
    replies: list[EvalReply] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # kinds of questions
    steps: int = 0
    model_calls: int = 0
    model_readings: int = 0  # pictures that the model was given to read
    model_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    kept: str = ""  # the folder with pictures and log

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of its case."""
        return self.file, self.mode, self.look

    @property
    def passed(self) -> bool:
        return not self.problems

    def data(self) -> dict[str, Any]:
        plain = asdict(self)
        for name in ("model_seconds", "seconds"):
            plain[name] = round(plain[name], 3)
        return {**plain, "passed": self.passed}


# The results of a suite -----------------------------------------------------------------------------------------------


def results_json(results: Sequence[CaseResult], model: str, seconds: float) -> dict[str, Any]:
    """Return every case with all its figures, and the sums."""
    passed = sum(result.passed for result in results)
    return {
        "cases": [result.data() for result in results],
        "passed": passed,
        "failed": len(results) - passed,
        "seconds": round(seconds, 3),
        "model": model,
    }


def show_results(console: Console, results: Sequence[CaseResult], model: str, seconds: float, words: Texts) -> None:
    """Show a row for each case, below it all problems, then the sums.

    A narrow screen gets the case, its mode and its result; JSON has everything.
    """
    # Here, because processes that run cases show nothing.
    from rich.table import Column, Table

    from bot.channels.cli.terminal.console import Text

    wide = console.width >= WIDE
    table = Table(
        Column(words.get("eval.case"), overflow="fold"),
        Column(words.get("eval.mode"), no_wrap=True),
        Column(words.get("eval.result"), overflow="fold"),
    )
    for name in ("look", "replies", "asked", "calls", "seconds") if wide else ():
        table.add_column(words.get(f"eval.{name}"), justify="right" if name in ("calls", "seconds") else "left")
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
            Text(words.get("eval.passed"), "green") if result.passed else Text(_short(result.problems[0]), "red"),
            *(map(Text, figures) if wide else ()),
        )
    console.print(table)
    for result in results:
        if not result.passed:
            console.print(Text(f"{result.file} ({', '.join(filter(None, (result.mode, result.look)))})", "bold red"))
            for problem in result.problems:
                console.print(Text(words.get("eval.problem", problem=problem)))
            if result.kept:
                console.print(Text(words.get("eval.kept", folder=result.kept), "dim"))
    console.print(Text(total(results, model, seconds, words), "bold"))


def total(results: Sequence[CaseResult], model: str, seconds: float, words: Texts) -> str:
    passed = sum(result.passed for result in results)
    calls = sum(result.model_calls for result in results)
    thinking = sum(result.model_seconds for result in results)
    tokens = sum(result.tokens_in for result in results), sum(result.tokens_out for result in results)
    return words.get(
        "eval.total",
        passed=passed,
        count=len(results),
        seconds=seconds,
        model=model,
        calls=calls,
        thinking=thinking,
        tokens_in=tokens[0],
        tokens_out=tokens[1],
    )


def _replies(result: CaseResult) -> str:
    """Return how many replies came from where."""
    found = Counter(reply.provenance for reply in result.replies)
    return " ".join(f"{count}×{provenance}" for provenance, count in found.items()) or "–"


def _short(text: str) -> str:
    return cut(escaped(text).splitlines()[0], LONGEST)
