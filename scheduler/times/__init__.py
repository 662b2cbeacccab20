"""The times of schedules: the words that people write (``natural``), the stored form (``formal``), and the due
times.
"""

from __future__ import annotations

from scheduler.times.formal import parse_schedule
from scheduler.times.kinds import ScheduleTimes, last_until, times_between
from scheduler.times.shop import QuietHours, parse_quiet
from scheduler.times.zones import parse_zone

__all__ = ["QuietHours", "ScheduleTimes", "last_until", "parse_quiet", "parse_schedule", "parse_zone", "times_between"]
