"""Limits: wrong pairing codes, requests of a person, and audit rows about strangers and about repeated looks."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from agent_core.errors import RateLimited
from agent_core.lru import keep_newest
from bot.desk.actors import Actor, Role, StillLimited

WRONG_OF_ONE = 5  # within WINDOW; after that no code from this person is checked for PAUSE
WINDOW = timedelta(minutes=15)
PAUSE = timedelta(minutes=15)
WRONG_OF_ALL = 50  # within AN_HOUR, from everybody together
AN_HOUR = timedelta(hours=1)
A_MINUTE = timedelta(minutes=1)
OWNER_TIMES = 4  # an owner may ask this many times as often
NOTED_OF_ONE = 5  # audit rows about one stranger within an hour
NOTED_OF_ALL = 200  # and about all strangers together
MOST_LOOKS = 2000  # looks of programs that are remembered as written down


class PairingLimit:
    """A limit for wrong pairing codes, kept in this process; a restart resets it. Times are aware and never go back."""

    def __init__(self) -> None:
        self._wrong: deque[tuple[datetime, str]] = deque()
        self._until: dict[str, datetime] = {}
        self._told: dict[str, datetime] = {}  # the people who know of the limit, and until when it applies

    def check(self, person: str, now: datetime) -> None:
        """Raise RateLimited if no code from ``person`` is checked now, and StillLimited if they already know that."""
        self._forget(now)
        until = self._until.get(person)
        if until is None and len(self._wrong) >= WRONG_OF_ALL:
            until = self._wrong[-WRONG_OF_ALL][0] + AN_HOUR
        if until is not None:
            minutes = -((now - until) // timedelta(minutes=1))  # rounded up
            said = "There were too many wrong pairing codes."
            error = StillLimited if person in self._told else RateLimited
            self._told[person] = until
            raise error(said, advice=f"Try again in {minutes} min.", key="pairing_limited", minutes=minutes)

    def wrong(self, person: str, now: datetime) -> None:
        """Count a wrong code from ``person``."""
        self._wrong.append((now, person))
        if sum(1 for at, who in self._wrong if who == person and now - at < WINDOW) >= WRONG_OF_ONE:
            self._until[person] = now + PAUSE

    def right(self, person: str) -> None:
        """Forget the wrong codes of ``person``, who has now given a right one."""
        self._wrong = deque(entry for entry in self._wrong if entry[1] != person)

    def _forget(self, now: datetime) -> None:
        while self._wrong and now - self._wrong[0][0] >= AN_HOUR:
            self._wrong.popleft()
        self._until = {person: until for person, until in self._until.items() if until > now}
        self._told = {person: until for person, until in self._told.items() if until > now}


class RequestLimit:
    """A limit for each person's requests within a minute, counted in this process. 0 means no limit."""

    def __init__(self, per_minute: int = 0) -> None:
        self.per_minute = per_minute
        self._asked: dict[str, deque[tuple[datetime, str]]] = {}
        self._told: dict[str, str] = {}  # the request that was refused first, until one is allowed again

    def count(self, actor: Actor, now: datetime) -> None:
        """Count a request. Raises RateLimited at the first one too many, then StillLimited; these are not counted."""
        most = self.per_minute * (OWNER_TIMES if actor.role is Role.OWNER else 1)
        if not most:
            return
        person = f"{actor.channel}:{actor.id}"
        asked = self._asked.setdefault(person, deque())
        while asked and now - asked[0][0] >= A_MINUTE:
            asked.popleft()
        if actor.request and any(request == actor.request for _, request in asked):
            return
        if len(asked) < most:
            self._told.pop(person, None)
            asked.append((now, actor.request))
            return
        seconds = -((now - asked[0][0] - A_MINUTE) // timedelta(seconds=1))  # rounded up
        told = self._told.get(person)
        said, advice = f"More than {most} commands within a minute.", f"Go on in {seconds} s."
        # If the same request comes again, its channel does not know that it was answered.
        if told is None or (actor.request and told == actor.request):
            self._told[person] = actor.request
            raise RateLimited(said, advice=advice, key="too_often", most=most, seconds=seconds)
        raise StillLimited(said, advice=advice, key="too_often", most=most, seconds=seconds)


class RepeatedLooks:
    """The views by programs and pages that the audit log already has: a repeated one is recorded once a minute.

    A program that asks every second, and a page that reloads at every change, would fill the log otherwise.
    """

    def __init__(self) -> None:
        self._written: OrderedDict[tuple[str, ...], datetime] = OrderedDict()

    def is_new(self, actor: Actor, command: str, detail: Mapping[str, Any], now: datetime) -> bool:
        """Tell whether the look is to be written down, and count it as written then."""
        look = (actor.channel, actor.id, command, repr(sorted(detail.items())))
        at = self._written.get(look)
        if at is not None and timedelta() <= now - at < A_MINUTE:
            return False
        keep_newest(self._written, look, now, MOST_LOOKS)
        return True


class Notebook:
    """A limit for audit rows about strangers, so that they cannot fill the log."""

    def __init__(self) -> None:
        self._noted: deque[tuple[datetime, str]] = deque()

    def takes(self, person: str, now: datetime) -> bool:
        """Tell whether one more row about ``person`` may be written, and count it."""
        while self._noted and now - self._noted[0][0] >= AN_HOUR:
            self._noted.popleft()
        of_one: Sequence[str] = [who for _, who in self._noted if who == person]
        if len(of_one) >= NOTED_OF_ONE or len(self._noted) >= NOTED_OF_ALL:
            return False
        self._noted.append((now, person))
        return True
