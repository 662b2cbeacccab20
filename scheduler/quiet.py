"""The house's quiet hours: digests wait until they are over, and what must be said then is said without a sound."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agent_core.session import QuestionKind
from scheduler.times import QuietHours, parse_quiet, parse_zone

# A customer has half of an answer, or perhaps none: the longer it lasts the worse. Everything else can wait for the
# morning, and what its deadline does harms nobody.
URGENT = frozenset({QuestionKind.DELIVERY_UNKNOWN, QuestionKind.REST_UNSENT})


@dataclass(slots=True)
class Quiet:
    """``hours`` None: never quiet. All of a process share one: they change with its settings."""

    hours: QuietHours | None
    zone: ZoneInfo

    def holds(self, moment: datetime) -> bool:
        return self.hours is not None and self.hours.holds(moment, self.zone)

    def over(self, moment: datetime) -> datetime:
        """The end of the quiet hours that ``moment`` lies in; ``moment`` itself where it lies in none."""
        if self.hours is None or not self.holds(moment):
            return moment
        local = moment.astimezone(self.zone)
        day = local.date() if local.time() < self.hours.end else local.date() + timedelta(days=1)
        return datetime.combine(day, self.hours.end, tzinfo=self.zone).astimezone(moment.tzinfo)


def quiet_of(hours: str, timezone: str) -> Quiet:
    """``22:00-08:00`` in a zone (a name of the tz database); "" for never. InputRejected."""
    return Quiet(parse_quiet(hours), parse_zone(timezone))
