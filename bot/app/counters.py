"""This process's counters since it began, for ``/metrics``. Other figures are read from the database."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

from agent_core.errors import ModelError
from agent_core.ports import Event, RunStore
from agent_core.session import Session

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
MOST_LABELS = 50  # phases; further ones count as OTHER
OTHER = "other"


class Histogram:
    """Counts of values by size.

    A value counts in the bucket of the first of BOUNDS that it does not exceed, or in the last bucket.
    """

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count a value, in seconds."""
        self.buckets[bisect_left(BOUNDS, value)] += 1
        self.total += value


class Counts:
    """The counters of this process."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()  # by ok and failed
        self.seconds: dict[str, Histogram] = {}  # of steps, by phase
        self.model_errors: Counter[tuple[str, str]] = Counter()  # by the model's name, and kind of error
        self.stand_ins: Counter[tuple[str, str]] = Counter()  # replies, by the name of the model and of the one before
        self.failures: Counter[str] = Counter()  # of runs, by kind of error

    def event(self, event: Event) -> None:
        """Count an event of a run."""
        data = event.data
        if event.kind == "step":
            self.steps["ok" if data.get("ok") else "failed"] += 1
            timings = data.get("timings")
            for phase, seconds in timings.items() if isinstance(timings, Mapping) else ():
                self._phase(str(phase)).add(float(seconds))
        elif event.kind == "outcome" and data.get("error_kind"):
            self.failures[str(data["error_kind"])] += 1

    def failed(self, model: str, error: ModelError) -> None:
        """Count a try of a model call that got no reply."""
        self.model_errors[model, error.kind] += 1

    def stood_in(self, model: str, instead_of: str) -> None:
        """Count a reply of a fallback. ``instead_of``: the model that is asked before it."""
        self.stand_ins[model, instead_of] += 1

    def _phase(self, phase: str) -> Histogram:
        name = phase if phase in self.seconds or len(self.seconds) < MOST_LABELS else OTHER
        return self.seconds.setdefault(name, Histogram())


class CountedRuns:
    """A ``RunStore`` that counts events once they are stored."""

    def __init__(self, store: RunStore, counts: Counts) -> None:
        self._store = store
        self._counts = counts

    async def save(self, session: Session) -> None:
        """Save a session."""
        await self._store.save(session)

    async def event(
        self, run_id: str, event: Event, *, picture: bytes | None = None, session: Session | None = None
    ) -> None:
        """Store an event, and count it."""
        await self._store.event(run_id, event, picture=picture, session=session)
        self._counts.event(event)
