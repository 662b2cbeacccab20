"""Sending digests: when they are due and for which chats. Each is sent once.

A digest before noon covers the whole day before (a weekly one the seven days before). One at noon or later covers the
24 hours (seven days) that end at its time. So nothing is left out, and nothing is reported twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

import structlog

from scheduler.jobs.periodic import Periodic
from scheduler.times.shop import DigestTime, Quiet, parse_digest_time
from storage.digests import EMPTY, MISSED, SENT, Digests
from storage.engine import Database

LOOK_SECONDS = 60.0  # how soon a change of the time, of a chat or of quiet hours is seen
LATE = timedelta(hours=12)  # a digest that is later than this is skipped

Kind = Literal["daily", "weekly"]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DigestChat:
    """A chat that gets digests.

    ``chat`` has the same keys as in cards. ``person_id``: the chat is shown the phones and runs that this person may
    see. ``since``: digests that were due before are not sent. ``serials``: only these phones, empty for all.
    """

    key: str
    chat: Mapping[str, Any]
    person_id: int
    since: datetime
    kinds: frozenset[str]
    serials: Sequence[str] = ()


Chats = Callable[[], Awaitable[Sequence[DigestChat]]]
IsEmpty = Callable[[datetime, datetime, Sequence[str]], Awaitable[bool]]


class DigestWatch(Periodic):
    """A loop that has digests sent when they are due, from ``start`` to ``stop``. All state is in the rows.

    Several processes may watch: each digest is sent by one of them.

    chats: returns the chats that get digests.
    is_empty: tells whether there is nothing to report about these phones between two times.
    """

    def __init__(
        self,
        db: Database,
        times: Mapping[Kind, DigestTime],
        zone: ZoneInfo,
        quiet: Quiet,
        *,
        chats: Chats,
        is_empty: IsEmpty,
    ) -> None:
        super().__init__("digest-watch", self._turn, LOOK_SECONDS)
        self._db = db
        self._digests = Digests(db)
        self._times = times
        self._zone = zone
        self._quiet = quiet
        self._chats = chats
        self._is_empty = is_empty

    async def once(self) -> None:
        """Send the digests that are due now."""
        now = self._db.now()
        due = [
            (kind, when, planned)
            for kind, when in self._times.items()
            if (planned := when.latest(now, self._zone)) is not None
        ]
        if self._quiet.holds(now) or not due:
            return
        for chat in await self._chats():
            for kind, when, planned in due:
                if kind in chat.kinds and planned > chat.since:
                    await self._deal_with(chat, kind, when, planned)

    async def _deal_with(self, chat: DigestChat, kind: Kind, when: DigestTime, planned: datetime) -> None:
        if await self._digests.is_out(chat.key, kind, planned):
            return
        since, until = when.period(planned, self._zone)
        told = None
        if self._db.now() - self._quiet.over(planned) > LATE:
            state = MISSED
        elif await self._is_empty(since, until, chat.serials):
            state = EMPTY
        else:
            state = SENT
            told = {
                "kind": kind,
                "chat": dict(chat.chat),
                "person_id": chat.person_id,
                "since": since.isoformat(),
                "until": until.isoformat(),
            }
        if await self._digests.take(chat.key, kind, planned, state=state, told=told):
            log.info("digest", chat=chat.key, kind=kind, planned_at=planned.isoformat(), state=state)

    async def _turn(self) -> float:
        await self.once()
        # The times are whole minutes, so wake up when the next minute begins.
        now = self._db.now()
        return min(LOOK_SECONDS, 60.0 - now.second - now.microsecond / 1e6 + 0.01)


def digest_times(daily: str, weekly: str) -> dict[Kind, DigestTime]:
    """Return the times by kind, without kinds that are off. Raises InputRejected if a time cannot be read."""
    found: dict[Kind, DigestTime | None] = {
        "daily": parse_digest_time(daily),
        "weekly": parse_digest_time(weekly, weekly=True),
    }
    return {kind: when for kind, when in found.items() if when is not None}
