"""How often somebody may guess a pairing code."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

from agent_core.errors import RateLimited

WRONG_OF_ONE = 5  # within WINDOW; after them no code of this person is looked at for PAUSE
WINDOW = timedelta(minutes=15)
PAUSE = timedelta(minutes=15)
WRONG_OF_ALL = 50  # within AN_HOUR, whoever it was
AN_HOUR = timedelta(hours=1)


class PairingLimit:
    """Wrong codes, counted in this process: a restart begins anew. Times are aware datetimes that only go on."""

    def __init__(self) -> None:
        self._wrong: deque[tuple[datetime, str]] = deque()
        self._until: dict[str, datetime] = {}

    def check(self, person: str, now: datetime) -> None:
        """RateLimited where no code of ``person`` is looked at now."""
        self._forget(now)
        until = self._until.get(person)
        if until is None and len(self._wrong) >= WRONG_OF_ALL:
            until = self._wrong[-WRONG_OF_ALL][0] + AN_HOUR
        if until is not None:
            minutes = -((now - until) // timedelta(minutes=1))  # begun ones count
            raise RateLimited("There were too many wrong pairing codes.", advice=f"Try again in {minutes} min.")

    def wrong(self, person: str, now: datetime) -> None:
        """``person`` gave a wrong code."""
        self._wrong.append((now, person))
        if sum(1 for at, who in self._wrong if who == person and now - at < WINDOW) >= WRONG_OF_ONE:
            self._until[person] = now + PAUSE

    def right(self, person: str) -> None:
        """``person`` is in: what they mistyped before is forgotten."""
        self._wrong = deque(entry for entry in self._wrong if entry[1] != person)

    def _forget(self, now: datetime) -> None:
        while self._wrong and now - self._wrong[0][0] >= AN_HOUR:
            self._wrong.popleft()
        self._until = {person: until for person, until in self._until.items() if until > now}
