"""Who goes first on a phone. The higher number does; of equals the older run."""

from __future__ import annotations

PERSON = 10  # somebody asked for it and looks on
BEGUN = 8  # what has begun (its answer is there, its host died) goes on before anything but a person's own
WATCH = 6  # a customer has just written
SCHEDULE = 0
ASKED_SWEEP = 3  # one contact of many; somebody asked for them all
SWEEP = -10  # one contact of many, by the clock
