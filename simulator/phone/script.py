"""The events of a scenario: at a time, or after an action. No tasks run; events that are due happen when asked for."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from simulator.phone.scenario import EventPart


class Script:
    """The events that are not due yet. ``start`` is when the phone was switched on."""

    def __init__(self, events: list[EventPart], start: datetime) -> None:
        self._waiting = [event for event in events if event.trigger[0] != "at"]
        self._planned = [(start + timedelta(seconds=event.at), event) for event in events if event.at is not None]
        self._seen: Counter[tuple[str, str]] = Counter()

    def happened(self, what: str, contact: str, now: datetime) -> None:
        """Start the events that waited for this: something "leaves" or was "sent", "opened", "typed" or "looked" at."""
        trigger = (what, contact)
        self._seen[trigger] += 1
        for event in [event for event in self._waiting if event.trigger == trigger]:
            if event.times == self._seen[trigger]:
                self._waiting.remove(event)
                self._planned.append((now + timedelta(seconds=event.delay), event))

    def due(self, now: datetime) -> list[tuple[datetime, EventPart]]:
        """Remove and return the events that are due, the earliest first."""
        due = sorted((entry for entry in self._planned if entry[0] <= now), key=lambda entry: entry[0])
        self._planned = [entry for entry in self._planned if entry[0] > now]
        return due
