"""The coming week of schedules: when each starts its runs, by day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from bot.desk.schedules_views import ScheduleView
from scheduler.times import QuietHours, parse_quiet, parse_schedule, parse_zone, times_between

DAYS = 7
FEWEST_IN_BAND = 4
MOST_ENTRIES = 8  # of a schedule in a day; more become one band
MOST_TIMES = 25_000  # more than the shortest interval has in a week
_QUARTER = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class WeekEntry:
    """A start of a schedule, or a band of many. Times are in the desk's zone.

    count: how many starts there are from ``first`` to ``last``. every: the time between two; None if it varies.
    """

    schedule: ScheduleView
    first: datetime
    last: datetime
    count: int = 1
    every: timedelta | None = None


@dataclass(frozen=True, slots=True)
class WeekDay:
    """A day with its entries in order. ``quiet``: the hours in which a schedule has quiet hours, and so starts nothing.

    quiet: stretches of hours, as first hour and end (24: midnight).
    """

    day: date
    entries: tuple[WeekEntry, ...] = ()
    quiet: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WeekView:
    """The coming seven days, from now on.

    quiet: the schedules with quiet hours. paused, watches: they have no times. later: schedules without a time this
    week.
    """

    now: datetime
    days: tuple[WeekDay, ...]
    quiet: tuple[ScheduleView, ...] = ()
    paused: tuple[ScheduleView, ...] = ()
    watches: tuple[ScheduleView, ...] = ()
    later: tuple[ScheduleView, ...] = ()


def week_of(schedules: Sequence[ScheduleView], now: datetime, zone: ZoneInfo) -> WeekView:
    """Return the week that begins today. It takes up to 0.2 s for each schedule, so call it in a thread."""
    today = now.astimezone(zone).date()
    days = [today + timedelta(days=number) for number in range(DAYS)]
    until = datetime.combine(days[-1] + timedelta(days=1), time.min, tzinfo=zone) - timedelta(microseconds=1)
    running = [view for view in schedules if not view.paused]
    timed = [view for view in running if view.means]
    entries: dict[date, list[WeekEntry]] = {day: [] for day in days}
    later = []
    for view in timed:
        starts = _starts(view, now, until)
        if not starts:
            later.append(view)
        for day, its in groupby(starts, lambda moment: moment.astimezone(zone).date()):
            entries[day] += _banded(view, list(its), zone)
    quiet = [view for view in timed if view.quiet]
    return WeekView(
        now=now.astimezone(zone),
        days=tuple(
            WeekDay(day, tuple(sorted(entries[day], key=lambda entry: entry.first)), tuple(_quiet(quiet, day, zone)))
            for day in days
        ),
        quiet=tuple(quiet),
        paused=tuple(view for view in schedules if view.paused),
        watches=tuple(view for view in running if not view.means),
        later=tuple(later),
    )


def _starts(view: ScheduleView, now: datetime, until: datetime) -> list[datetime]:
    """Return when a schedule starts runs, in UTC: the clock skips the times in its quiet hours."""
    times = times_between(parse_schedule(view.means, view.timezone), now, until, MOST_TIMES)
    hours, zone = parse_quiet(view.quiet), parse_zone(view.timezone)
    return [moment for moment in times if hours is None or not hours.holds(moment, zone)]


def _banded(view: ScheduleView, starts: Sequence[datetime], zone: ZoneInfo) -> list[WeekEntry]:
    """Return the entries of a day: even starts become a band, and very many uneven ones do, too."""
    found: list[WeekEntry] = []
    place = 0
    while place < len(starts):
        end, gap = place + 1, None
        while end < len(starts) and gap in (None, starts[end] - starts[end - 1]):
            gap = starts[end] - starts[end - 1]
            end += 1
        end = end if end - place >= FEWEST_IN_BAND else place + 1
        first, last = starts[place].astimezone(zone), starts[end - 1].astimezone(zone)
        found.append(WeekEntry(view, first, last, end - place, gap if end - place > 1 else None))
        place = end
    if len(found) > MOST_ENTRIES:
        return [WeekEntry(view, found[0].first, found[-1].last, len(starts))]
    return found


def _quiet(views: Sequence[ScheduleView], day: date, zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """Return the stretches of hours of a day in which a schedule has quiet hours."""
    both = [(hours, parse_zone(view.timezone)) for view in views if (hours := parse_quiet(view.quiet)) is not None]
    begin = None
    for hour in range(25):
        is_quiet = hour < 24 and any(_is_quiet(hours, its, day, hour, zone) for hours, its in both)
        if is_quiet and begin is None:
            begin = hour
        elif not is_quiet and begin is not None:
            yield begin, hour
            begin = None


def _is_quiet(hours: QuietHours, its: ZoneInfo, day: date, hour: int, zone: ZoneInfo) -> bool:
    """Tell whether a part of an hour of the desk's day is quiet in the schedule's own zone."""
    start = datetime.combine(day, time(hour), tzinfo=zone).astimezone(UTC)
    return any(hours.holds(start + _QUARTER * number, its) for number in range(4))
