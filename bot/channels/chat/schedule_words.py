"""The stored times of a schedule in a person's language: ``every 5m 09:00-18:00 * * 1-5`` in words."""

from __future__ import annotations

import re
from itertools import groupby

from agent_core.texts import Listed
from bot.channels.chat.texts import Texts

_EVERY = re.compile(r"every (\d+)([smhd])(?: (\d\d:\d\d)-(\d\d:\d\d)(?: \* \* ([0-7](?:[-,][0-7])*))?)?")
_AT = re.compile(r"at (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)")
_CRON = re.compile(r"(\d{1,2}) (\d{1,2}(?:,\d{1,2})*|\*) (\d{1,2}|L|\*) \* ([0-7](?:[-,][0-7])*|\*)")
_DAYS = ("", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_RANGE = 3  # days in a row that are written as from the first to the last


def in_words(expression: str, words: Texts) -> str:
    """Return a stored expression in words, or as it is if it is written in a way that has none, as cron often is."""
    parts = [_part(part.strip(), words) for part in expression.split("|")]
    return expression if "" in parts else words.get("schedule.and_also").join(parts)


def interval(seconds: int, words: Texts) -> str:
    """Return an interval in hours, minutes or seconds, the largest unit of which it is a whole number."""
    unit, length = next((unit, length) for unit, length in _SECONDS.items() if seconds % length == 0)
    return words.get(f"schedule.every_{unit}", count=seconds // length)


def _part(part: str, words: Texts) -> str:
    """Return one of several times in words; "" if there are none for it."""
    if found := _EVERY.fullmatch(part):
        count, unit, start, end, days = found.groups()
        number = int(count)
        said = words.get("schedule.every_d", count=number) if unit == "d" else interval(number * _SECONDS[unit], words)
        if start and (start, end) != ("00:00", "24:00"):
            said = words.get("schedule.every_between", every=said, start=start, end=end)
        return _on_days(days or "*", said, words)
    if found := _AT.fullmatch(part):
        return words.get("schedule.once", day=found[1], time=found[2]) if found[1] else _daily(found[2], words)
    found = _CRON.fullmatch(part)
    if found is None or (found[3] != "*" and found[4] != "*"):
        return ""
    minute, hours, day, weekdays = found.groups()
    if hours == "*":
        return words.get("schedule.hourly", minute=minute.zfill(2)) if (day, weekdays) == ("*", "*") else ""
    times = Listed(f"{hour.zfill(2)}:{minute.zfill(2)}" for hour in hours.split(",")).joined(words.lang)
    if day != "*":
        return words.get("schedule.monthly_last" if day == "L" else "schedule.monthly", day=day, times=times)
    return _daily(times, words) if weekdays == "*" else _on_days(weekdays, times, words)


def _daily(times: str, words: Texts) -> str:
    return words.get("schedule.daily", times=times)


def _on_days(written: str, times: str, words: Texts) -> str:
    """Return times with the days of the week on which they are, written as in cron: ``1-5,7``; ``*`` for every day.

    "" if a range runs backwards.
    """
    if written == "*":
        return times
    chosen: set[int] = set()
    for each in written.split(","):
        first, _, last = each.partition("-")
        days = range(int(first), int(last or first) + 1)
        if not days:
            return ""
        chosen |= {day or 7 for day in days}
    said: list[str] = []
    for _, row in groupby(enumerate(sorted(chosen)), lambda numbered: numbered[1] - numbered[0]):
        names = [words.get(f"digest.day_{_DAYS[day]}") for _, day in row]
        in_a_row = words.get("schedule.from_to", first=names[0], last=names[-1])
        said += [in_a_row] if len(names) >= _RANGE else names
    return words.get("schedule.on_days", days=Listed(said).joined(words.lang), times=times)
