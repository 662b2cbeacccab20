"""The result of a case as plain data: for the table, for JSON, and from one process to another."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bot.tools.eval.scenario import EvalScenario, Mode


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
