"""How long the phases of steps took."""

from __future__ import annotations

from agent_core.session import StepRecord
from bot.tools.replay.timings import timings_of


def test_timings() -> None:
    steps = [
        StepRecord(index=1, reply="r", timings={"model": 1.0, "step": 2.0}, tokens_in=10, tokens_out=1),
        StepRecord(index=2, reply="r", timings={"model": 2.0, "step": 4.0, "odd": 0.5}),
        StepRecord(index=3, timings={"step": 6.0}),
    ]
    found = timings_of([steps[:2], steps[2:]])
    assert (found.runs, found.steps, found.asked, found.tokens_in, found.tokens_out) == (2, 3, 2, 10, 1)
    _, whole, odd = found.phases
    assert [phase.name for phase in found.phases] == ["model", "step", "odd"]
    assert (whole.count, whole.total, whole.mean) == (3, 12.0, 4.0)
    assert (whole.least, whole.most, whole.deviation) == (2.0, 6.0, 2.0)
    assert (odd.count, odd.deviation) == (1, 0.0)
    assert timings_of([]).phases == ()
