"""Turns people's words for a time, in Chinese or English, into the stored form (``scheduler.times.formal``).

A text is understood completely or not at all. A text with two possible meanings is refused, with the understood parts
and a correct example; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from scheduler.times.formal import checked_interval, is_formal, no_such_time, parse_schedule
from scheduler.times.kinds import EitherTimes, WindowTimes
from scheduler.times.words import ClockTime, Day, Days, FromNow, Interval, Link, TimeSpan, Token, plain, tokens
from scheduler.times.zones import parse_zone

HOUR = timedelta(hours=1)
MAX_TEXT = 200  # characters
# The hours that a word for a part of the day allows, and the hours added to them.
_HALVES: dict[str, tuple[tuple[range, int], ...]] = {
    "am": ((range(1, 12), 0), (range(12, 13), -12)),
    "pm": ((range(1, 12), 12), (range(12, 13), 0)),
    "morning": ((range(1, 12), 0),),
    "凌晨": ((range(7), 0), (range(12, 13), -12)),
    "上午": ((range(5, 13), 0),),
    "中午": ((range(11, 15), 0), (range(1, 3), 12)),
    "下午": ((range(1, 8), 12), (range(12, 20), 0)),
    "傍晚": ((range(4, 9), 12), (range(16, 21), 0)),
    "晚上": ((range(5, 12), 12), (range(17, 24), 0)),
    **dict.fromkeys(("清晨", "清早", "早上", "早晨", "早"), ((range(4, 12), 0),)),
}
_HALVES |= dict.fromkeys(("夜里", "晚"), _HALVES["晚上"])
_EVENING = ("晚上", "夜里", "晚")


@dataclass(slots=True)
class _Group:
    """Days, and the times on them."""

    days: list[Days] = field(default_factory=list)
    day: Day | None = None
    clocks: list[ClockTime] = field(default_factory=list)
    span: TimeSpan | None = None
    interval: Interval | None = None

    @property
    def has_days(self) -> bool:
        return bool(self.days) or self.day is not None

    @property
    def says_when(self) -> bool:
        return bool(self.clocks) or self.interval is not None


def understand(text: str, timezone: str, now: datetime) -> str:
    """Return the stored form of a person's words. ``now`` (aware): tomorrow is counted from it.

    Raises InputRejected with a key if the text is not understood, could mean two things, or is never due.
    """
    zone = parse_zone(timezone)
    written = " ".join(plain(text).split())
    if is_formal(written):
        formal = " ".join(plain(text, lower=False).split())
        parse_schedule(formal, timezone)
        return formal
    if len(written) > MAX_TEXT:
        raise _not_understood(f"{written[:MAX_TEXT]}…")
    kept = " | ".join(_Reader(written, zone, now).kept()) if written else ""
    if not kept:
        raise _not_understood(text.strip())
    parse_schedule(kept, timezone)
    return kept


def _not_understood(said: str) -> InputRejected:
    return InputRejected(
        f"This is no time: {said!r}.",
        advice="For example: every 5m, daily at 9:30, weekdays 9:00-18:00 every 5m, tomorrow 9am, or five cron fields.",
        key="bad_schedule",
        said=said,
    )


class _Reader:
    def __init__(self, text: str, zone: ZoneInfo, now: datetime) -> None:
        self._text = text
        self._zone = zone
        self._now = now.astimezone(zone)
        self._tokens, self._end = tokens(text)

    def kept(self) -> list[str]:
        if not any(not isinstance(token.meaning, Link) for token in self._tokens):
            return []
        rest = self._text[self._end :].strip(" .。!！")
        if rest:
            raise self._partly(rest)
        return [part for group in self._groups() for part in self._of(group)]

    # Errors, each with the understood parts ---------------------------------------------------------------------------

    def _partly(self, rest: str, upto: int | None = None) -> InputRejected:
        understood = self._words(self._tokens if upto is None else [one for one in self._tokens if one.end <= upto])
        return InputRejected(
            f"Of {self._text!r} this was understood: {understood or '-'}; not: {rest!r}.",
            advice="Write it as `weekdays 9:00-18:00 every 5m` or `daily at 9:30`.",
            key="schedule_partly" if understood else "bad_schedule",
            said=self._text,
            understood=understood,
            rest=rest,
        )

    def _words(self, of: Sequence[Token]) -> str:
        return " · ".join(self._text[one.start : one.end] for one in of if not isinstance(one.meaning, Link))

    def _unclear(self, key: str, message: str, *, hour: int | None = None) -> InputRejected:
        return InputRejected(
            f"{message} Understood: {self._words(self._tokens)}.",
            key=f"schedule_{key}",
            said=self._text,
            understood=self._words(self._tokens),
            hour=hour,
        )

    # Groups -----------------------------------------------------------------------------------------------------------

    def _groups(self) -> list[_Group]:
        groups = [_Group()]
        joined = False
        before: Token | None = None
        for token in self._tokens:
            group, meaning = groups[-1], token.meaning
            if isinstance(meaning, Link):
                joined = joined or meaning.kind == "and"
                before = token
                continue
            joined = joined or self._lists(before, token)
            before = token
            if isinstance(meaning, Days | Day | FromNow) and group.has_days and group.says_when:
                meaning = _as_weekly(meaning, group)
                group = _Group()
                groups.append(group)
            if not self._put(group, meaning, joined=joined):
                raise self._partly(self._text[token.start :], upto=token.start)
            joined = False
        return groups

    def _lists(self, before: Token | None, token: Token) -> bool:
        """Tell whether two times of day are a list: 9:00 18:00, 早8点晚8点; not 9点18点."""
        if before is None or not (isinstance(before.meaning, ClockTime) and isinstance(token.meaning, ClockTime)):
            return False
        return before.end < token.start or bool(before.meaning.half and token.meaning.half)

    def _put(
        self, group: _Group, meaning: ClockTime | Days | Day | Interval | FromNow | TimeSpan, *, joined: bool
    ) -> bool:
        """Add a meaning to the group; return False if it does not fit the present ones."""
        match meaning:
            case Days() if group.day is None and (not group.days or joined):
                group.days.append(meaning)
            case Day() if not group.has_days:
                group.day = meaning
            case FromNow() if not (group.has_days or group.says_when or group.span):
                moment = self._now + meaning.length + timedelta(minutes=1) - timedelta(microseconds=1)
                group.day = Day(year=moment.year, month=moment.month, day=moment.day)
                group.clocks.append(ClockTime(moment.hour, moment.minute))
            case ClockTime() if not (group.span or group.interval) and (not group.clocks or joined):
                group.clocks.append(meaning)
            case Interval() if not group.says_when:
                group.interval = meaning
            case TimeSpan() if group.span is None and not group.clocks:
                group.span = meaning
            case _:
                return False
        return True

    # A group in its stored form --------------------------------------------------------------------------------------

    def _of(self, group: _Group) -> Iterator[str]:
        if len(group.days) == 1 and not group.days[0].sure:
            raise self._unclear("which_week", "Every week, or once?")
        if group.interval is not None:
            yield from self._every(group, group.interval)
        elif group.span is not None:
            raise self._unclear("how_often", "How often between these times?")
        elif not group.clocks:
            raise self._unclear("what_time", "At what time of the day?")
        elif group.day is not None:
            for hour, minute in self._hours(group.clocks, group.day.half):
                day = self._date(group.day, hour % 24, minute) + timedelta(days=hour // 24)
                yield f"at {day:%Y-%m-%d} {hour % 24:02}:{minute:02}"
        elif group.days:
            yield from self._at(group)
        else:
            raise self._unclear("which_day", "Every day, or once?")

    def _every(self, group: _Group, said: Interval) -> Iterator[str]:
        interval = said.length
        if group.day is not None:
            raise self._unclear("once_often", "On a single day there is one time.")
        if said.minute > 59:
            raise no_such_time(self._text)
        if said.minute and group.span is not None:
            raise self._unclear("once_often", "A minute of the hour goes with no window.")
        every = _written(checked_interval(interval, self._text))
        days = [f"{one.day} {one.month} {one.weekday}" for one in group.days] or ["* * *"]
        if said.minute:
            yield from (f"{said.minute} * {one}" for one in days)
            return
        if group.span is None and days == ["* * *"]:
            yield "0 * * * *" if interval == HOUR else every
            return
        if interval >= timedelta(days=1):
            raise self._unclear("once_often", "An interval of days goes with no days and no times.")
        window = "00:00-24:00" if group.span is None else self._window(group.span)
        for one in days:
            yield f"{every} {window}" + ("" if one == "* * *" else f" {one}")

    def _window(self, span: TimeSpan) -> str:
        hour, minute = self._hour(span.start)
        end = span.end
        if end.hour == 24 and end.minute == 0 and not end.half:
            return f"{hour:02}:{minute:02}-24:00"
        if end.hour == 12 and not end.half and span.start.half and hour >= 18:
            end = replace(end, half="晚上")  # 8 to 12 in the evening
        if not end.half and span.start.half and end.hour <= 12:
            # 2 to 5 in the afternoon: both are.
            same = replace(end, half=span.start.half)
            shifted = _shifted(same)
            end = same if shifted is not None and (shifted, end.minute) > (hour, minute) else end
        to_hour, to_minute = self._hour(end, midnight=True)
        to_hour = to_hour % 24 if to_minute else to_hour or 24
        # Over midnight only if that was said, or hardly anything else can be meant: 22:00 to 2:00, 8 in the evening to
        # 2.
        night = (hour - to_hour) * 60 + minute - to_minute >= 12 * 60
        sure = to_hour < 12 if end.half else hour > 12 and (night or end.padded)
        if (to_hour, to_minute) == (hour, minute) or ((to_hour, to_minute) < (hour, minute) and not sure):
            raise self._unclear("half_day", "In the morning or in the evening?", hour=end.hour)
        return f"{hour:02}:{minute:02}-{to_hour:02}:{to_minute:02}"

    def _at(self, group: _Group) -> Iterator[str]:
        hours = self._hours(group.clocks)
        if any(hour > 23 for hour, _ in hours):  # midnight belongs to the next day
            if any(days != Days() for days in group.days):
                raise self._unclear("half_day", "At the beginning of the day, or at its end?", hour=12)
            hours = [(hour % 24, minute) for hour, minute in hours]
        for days in group.days:
            for minute in sorted({minute for _, minute in hours}):
                at = ",".join(str(hour) for hour in sorted({hour for hour, same in hours if same == minute}))
                yield f"{minute} {at} {days.day} {days.month} {days.weekday}"

    def _hours(self, clocks: Sequence[ClockTime], half: str = "") -> list[tuple[int, int]]:
        """Return the times of day. A part of the day applies to later times without one."""
        found: list[tuple[int, int]] = []
        for clock in clocks:
            said = clock
            if clock.half == "am" and not found and half in ("晚上", "下午"):
                raise self._unclear("half_day", "In the morning or in the evening?", hour=clock.hour)
            if not clock.half and half and (clock.hour <= 12 or not found):
                said = replace(clock, half=half)
                shifted = _late(said)
                if shifted is None or (found and (shifted, clock.minute) <= found[-1]):
                    raise self._unclear("half_day", "In the morning or in the evening?", hour=clock.hour)
            found.append(self._hour(said, midnight=True))
            half = said.half or half
        return found

    def _hour(self, clock: ClockTime, *, midnight: bool = False) -> tuple[int, int]:
        """Return hour and minute. ``midnight``: 24 for the 12 of an evening."""
        hour = _late(clock) if midnight else _shifted(clock)
        if clock.hour > 23 or clock.minute > 59:
            raise no_such_time(self._text)
        if hour is None:
            raise self._unclear("half_day", "In the morning or in the evening?", hour=clock.hour)
        return hour, clock.minute

    def _date(self, day: Day, hour: int, minute: int) -> date:
        today = self._now.date()
        if day.ahead is not None:
            return today + timedelta(days=day.ahead)
        if day.weeks is not None:
            monday = today - timedelta(days=today.weekday())
            return monday + timedelta(weeks=day.weeks, days=day.weekday)
        if day.year is not None:
            try:
                return date(day.year, day.month, day.day)
            except ValueError:
                raise no_such_time(self._text) from None
        wall = self._now.replace(tzinfo=None)
        for year in range(today.year, today.year + 9):
            try:
                if datetime(year, day.month, day.day, hour, minute) > wall:  # noqa: DTZ001 - the wall's
                    return date(year, day.month, day.day)
            except ValueError:
                continue
        raise no_such_time(self._text)


def _shifted(clock: ClockTime) -> int | None:
    """Return the hour of the day; None if it does not go with its part of the day."""
    if not clock.half:
        return clock.hour
    for hours, more in _HALVES[clock.half]:
        if clock.hour in hours:
            return clock.hour + more
    return None


def _late(clock: ClockTime) -> int | None:
    """Return the hour as ``_shifted`` does, but 24 for 12 in the evening."""
    return 24 if clock.hour == 12 and clock.half in _EVENING else _shifted(clock)


def _as_weekly(days: Days | Day | FromNow, group: _Group) -> Days | Day | FromNow:
    """Make a weekday after "every Monday" a weekly one, too: 每周一早上9点、周三下午3点."""
    weekly = bool(group.days) and all(one.sure and one.weekday != "*" for one in group.days)
    return replace(days, sure=True) if isinstance(days, Days) and weekly else days


def _written(interval: timedelta) -> str:
    seconds = int(interval.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"every {seconds // length}{unit}"
    return f"every {seconds}s"


def windows_of(expression: str, timezone: str) -> tuple[tuple[str, str], ...]:
    """Return each window of a stored form with its last time of day: ``("09:00-18:00", "17:55")``."""
    times = parse_schedule(expression, timezone)
    parts = times.all if isinstance(times, EitherTimes) else (times,)
    found: dict[str, str] = {}
    for part in parts:
        if isinstance(part, WindowTimes) and part.window.minutes < 24 * 60:
            last = part.window.last(part.interval)
            seconds = int(last.total_seconds()) % 86_400
            at = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}"
            found[str(part.window)] = at + (f":{seconds % 60:02}" if seconds % 60 else "")
    return tuple(found.items())
