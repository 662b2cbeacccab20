"""Summarises how long the phases of steps took: counts, means, extremes and deviations."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.session import StepRecord

# The phases of a step in the order in which they happen; any other comes after them.
PHASES = (
    *("observe", "capture", "settle", "read"),
    *("model", "first_token", "thinking", "reply"),
    *("gate", "act", "step"),
)
# Phases that are parts of others.
PARTS = {
    **dict.fromkeys(("capture", "settle", "read"), "observe"),
    **dict.fromkeys(("first_token", "thinking", "reply"), "model"),
}


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase's times in seconds. ``deviation`` is the sample's, 0 for a single value."""

    name: str
    count: int
    total: float
    mean: float
    least: float
    most: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Timings:
    """The timings of some runs. ``asked``: the steps for which the model was asked."""

    runs: int
    steps: int
    asked: int
    tokens_in: int
    tokens_out: int
    phases: tuple[Phase, ...]


def timings_of(runs: Sequence[Sequence[StepRecord]]) -> Timings:
    """Summarise the steps of each of ``runs``."""
    steps = [step for run in runs for step in run]
    known = {name for step in steps for name in step.timings}
    names = [*(name for name in PHASES if name in known), *sorted(known - set(PHASES))]
    return Timings(
        runs=len(runs),
        steps=len(steps),
        asked=sum(bool(step.reply) for step in steps),
        tokens_in=sum(step.tokens_in for step in steps),
        tokens_out=sum(step.tokens_out for step in steps),
        phases=tuple(_phase(name, [step.timings[name] for step in steps if name in step.timings]) for name in names),
    )


def _phase(name: str, seconds: Sequence[float]) -> Phase:
    return Phase(
        name=name,
        count=len(seconds),
        total=sum(seconds),
        mean=statistics.fmean(seconds),
        least=min(seconds),
        most=max(seconds),
        deviation=statistics.stdev(seconds) if len(seconds) > 1 else 0.0,
    )
