"""The line in front of each phone: who goes first, and at which place a run stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from storage.runs import RunRow

# The higher number goes first; of equals the older run.
PERSON = 10  # somebody asked for it and looks on
BEGUN = 8  # what has begun (its answer is there, its host died) goes on before anything but a person's own
WATCH = 6  # a customer has just written
SCHEDULE = 0
ASKED_SWEEP = 3  # one contact of many; somebody asked for them all
SWEEP = -10  # one contact of many, by the clock


def places(due: Sequence[RunRow], phones: Sequence[str]) -> Mapping[str, int]:
    """Each run's place in the line, from 1, by its id. ``due``: in the order in which they get a phone.

    A run that takes any phone stands in the shortest line of the usable ``phones``, as things are now; where there are
    none, all such runs stand in one line.
    """
    waiting: Counter[str] = Counter()
    found = {}
    for run in due:
        serial = run.wanted or min(phones, key=lambda phone: waiting[phone], default="")
        waiting[serial] += 1
        found[run.id] = waiting[serial]
    return found
