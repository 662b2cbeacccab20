"""Hours of the day in which nothing is done."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, time
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected

_QUIET = re.compile(r"(\d{1,2}):(\d{2})\s*[-–—~]\s*(\d{1,2}):(\d{2})")


@dataclass(frozen=True)
class QuietHours:
    """From ``start`` until before ``end``, local time; over midnight where ``end`` is earlier."""

    start: time
    end: time

    def holds(self, moment: datetime, zone: ZoneInfo) -> bool:
        local = moment.astimezone(zone).time()
        if self.start <= self.end:
            return self.start <= local < self.end
        return local >= self.start or local < self.end

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M}"


def parse_quiet(text: str) -> QuietHours | None:
    """``22:00-07:00``; None for an empty text. InputRejected otherwise."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if not plain:
        return None
    match = _QUIET.fullmatch(plain)
    try:
        if match is not None:
            return QuietHours(time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4])))
    except ValueError:
        pass
    raise InputRejected(
        f"Not quiet hours: {text!r}.", advice="Write them as 22:00-07:00.", key="bad_quiet", said=text.strip()
    )
