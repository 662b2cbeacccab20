"""The times of a schedule by their parts, as a form asks for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from bot.desk.actors import BadRequest

WEEK = (1, 2, 3, 4, 5, 6, 7)  # Monday is 1
MOST_MINUTES = 720  # that a form offers between two
_REGULAR = re.compile(r"every (\d+)([mh])(?: (\d\d:\d\d)-(\d\d:\d\d)(?: \* \* ([1-7](?:[-,][1-7])*))?)?")


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
        days = _days(found[5]) if found[5] else WEEK
        return cls(int(found[1]) * (60 if found[2] == "h" else 1), start, end, days)


def _days(written: str) -> tuple[int, ...]:
    """Return the days of ``1-5,7``."""
    ranges = [tuple(map(int, part.split("-"))) for part in written.split(",")]
    return tuple(sorted({day for each in ranges for day in range(each[0], each[-1] + 1)}))


@dataclass(frozen=True, slots=True)
class RegularChange:
    """What to change of regular times, by the parts of ``RegularTimes``. None leaves one as it is."""

    minutes: int | None = None
    start: str | None = None
    end: str | None = None
    days: tuple[int, ...] | None = None

    def of(self, expression: str) -> str | None:
        """Return what becomes of the times of a schedule; None if they stay. Raises BadRequest if it cannot be."""
        old = RegularTimes.of(expression)
        if old is None and self.minutes is None:
            said = "These times are none of every few minutes or hours."
            raise BadRequest(said, advice="Say how often, too.", key="regular_every")
        given = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        new = replace(old or RegularTimes(0), **given)
        return None if new == old else new.expression
