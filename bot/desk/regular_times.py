"""The times of a schedule by their parts, as a form asks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bot.desk.actors import BadRequest

WEEK = (1, 2, 3, 4, 5, 6, 7)  # Monday is 1
_REGULAR = re.compile(r"every (\d+)([mh])(?: (\d\d:\d\d)-(\d\d:\d\d)(?: \* \* ([1-7](?:,[1-7])*))?)?")


@dataclass(frozen=True, slots=True)
class RegularTimes:
    """Times by their parts, as a form asks for them.

    minutes: between two. start, end: such as ``09:00``, the hours of the day; both "" for all of it.
    days: of the week, Monday is 1.
    """

    minutes: int
    start: str = ""
    end: str = ""
    days: tuple[int, ...] = WEEK

    @property
    def expression(self) -> str:
        """The expression of a schedule. Raises BadRequest if there is no such time."""
        if bool(self.start) != bool(self.end) or (self.start and self.start == self.end):
            said = "The hours need a beginning and another end."
            raise BadRequest(said, advice="Give both, or none for the whole day.", key="regular_hours")
        if not self.days:
            raise BadRequest("There is no day.", advice="Choose at least one.", key="regular_days")
        every = f"every {self.minutes}m" if self.minutes % 60 else f"every {self.minutes // 60}h"
        days = sorted(set(self.days))
        if not self.start and tuple(days) == WEEK:
            return every
        hours = f"{self.start or '00:00'}-{self.end or '24:00'}"
        return f"{every} {hours}" + ("" if tuple(days) == WEEK else f" * * {','.join(map(str, days))}")

    @classmethod
    def of(cls, expression: str) -> RegularTimes | None:
        """Return the parts of such an expression; None for any other."""
        found = _REGULAR.fullmatch(expression)
        if found is None:
            return None
        start, end = ("", "") if (found[3], found[4]) == ("00:00", "24:00") else (found[3] or "", found[4] or "")
        days = tuple(map(int, found[5].split(","))) if found[5] else WEEK
        return cls(int(found[1]) * (60 if found[2] == "h" else 1), start, end, days)
