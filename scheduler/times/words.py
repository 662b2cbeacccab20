"""The words that times consist of, in Chinese and English: turns a text into a list of tokens.

Nothing is guessed here: other words stay as the rest of the text. ``natural`` decides what the words mean together.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

_DIGITS = {"零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9}
_ENGLISH = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10, "twelve": 12,
    "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45, "sixty": 60,
}  # fmt: skip
_N = r"(?:\d{1,6}|[零〇一二两三四五六七八九十]{1,3})"
_HALF_DAYS = "凌晨|清晨|清早|早上|早晨|上午|中午|下午|傍晚|晚上|夜里|早|晚"
_UNITS = {"秒": 1, "分": 60, "小时": 3600, "钟头": 3600, "天": 86_400, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_WEEK = r"(?:周|星期|礼拜)"
_DAY = r"(?:[一二三四五六日天](?![点时])|[1-7](?![点时:\d]))"
_DAY_NUMBER = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "日": 0, "天": 0, "7": 0}
_NAMES = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_NAME = r"(?:(?:sun|mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?)(?:day)?s?)\b"
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_TO = r"(?:到|至|-|~|to\b|until\b|till\b|through\b)"
_AND = r"(?:[、,&]|(?<!\s)/|/(?![a-z巡扫])|和|与|及|and\b)"  # "mon/wed"; in "every 5m /sweep" a command begins
_SAME = {"–": "-", "—": "-", "−": "-", "點": "点", "時": "时", "鐘": "钟", "週": "周", "號": "号"}


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day.

    half: the part of the day that was named: ``am``, ``pm`` or a Chinese word; "" for none.
    bare: an hour alone (``9``), which is a time of day only if something else says so.
    padded: ``09:00``, which nobody writes for the evening.
    """

    hour: int
    minute: int = 0
    half: str = ""
    bare: bool = False
    padded: bool = False


@dataclass(frozen=True, slots=True)
class Days:
    """Days that recur.

    day, month, weekday: fields of cron: day of the month (1–31 or L), month, weekday (0 is Sunday).
    sure: False for a single weekday if nobody said that every one is meant.
    """

    day: str = "*"
    month: str = "*"
    weekday: str = "*"
    sure: bool = True
    half: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """One day: ``ahead`` days from today; or ``weeks`` weeks from this one, on ``weekday`` (0 is Monday); or a date.

    A date without ``year`` is in the next year that has it. ``half``: as in ``ClockTime``.
    """

    ahead: int | None = None
    weeks: int | None = None
    weekday: int = 0
    year: int | None = None
    month: int = 1
    day: int = 1
    half: str = ""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval. ``minute``: of the hour, for ``每小时30分``."""

    length: timedelta
    minute: int = 0


@dataclass(frozen=True, slots=True)
class FromNow:
    length: timedelta


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """From one time of day to another."""

    start: ClockTime
    end: ClockTime


@dataclass(frozen=True, slots=True)
class Link:
    """A word that only joins: ``and`` if another of the same kind follows, else ""."""

    kind: Literal["and", ""]


Meaning = ClockTime | Days | Day | Interval | FromNow | TimeSpan | Link


@dataclass(frozen=True, slots=True)
class Token:
    """A word. ``start`` and ``end``: its position in the text."""

    meaning: Meaning
    start: int
    end: int


def plain(text: str, *, lower: bool = True) -> str:
    """Return full-width characters as ASCII, dashes as ``-``, in lower case; every character keeps its position."""
    out = []
    for char in text:
        same = unicodedata.normalize("NFKC", char)
        same = _SAME.get(same, same.lower() if lower else same)
        out.append(same if len(same) == 1 else char)
    return "".join(out)


def number(text: str) -> int | None:
    """Return the number of ``20``, ``二十``, ``两``, ``ten``; None if the text is none."""
    if text.isdecimal():
        return int(text)
    if text in _ENGLISH:
        return _ENGLISH[text]
    tens, ten, ones = text.partition("十")
    if ten:
        if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
            return None
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    if len(text) == 1:
        return _DIGITS.get(text)
    if len(text) == 2 and text[0] in "零〇" and text[1] in _DIGITS:
        return _DIGITS[text[1]]
    return None


def tokens(text: str) -> tuple[list[Token], int]:
    """Return the tokens at the beginning of a ``plain`` text, and the index after them: the rest is not such a word."""
    found: list[Token] = []
    place = 0
    while True:
        while place < len(text) and text[place].isspace():
            place += 1
        token = _next(text, place, after_at=_lists_hours(text, found), monthly=_lists_days(found))
        if token is None:
            return found, found[-1].end if found else 0
        found.append(token)
        place = token.end


def _lists_hours(text: str, found: list[Token]) -> bool:
    """Tell whether an hour alone may follow: ``at 9``, ``at 9, 12 and 18``."""
    words = [text[token.start : token.end] for token in found]
    if words[-1:] == ["at"]:
        return True
    while len(found) > 1 and isinstance(found[-1].meaning, Link) and isinstance(found[-2].meaning, ClockTime):
        if words[len(found) - 3 : len(found) - 2] == ["at"]:
            return True
        found = found[:-2]
    return False


def _lists_days(found: list[Token]) -> bool:
    """Tell whether days of every month were named before."""
    days = [token.meaning for token in found if isinstance(token.meaning, Days | Day)]
    return bool(days) and isinstance(days[-1], Days) and days[-1].day != "*" and days[-1].month == "*"


def _next(text: str, place: int, *, after_at: bool, monthly: bool) -> Token | None:
    if monthly and (match := _ONE_MORE.match(text, place)) and (day := number(match["day"])):
        return Token(Days(str(day)), place, match.end())
    for read in (_from_now, _span, _interval, _days, _day, _clock):
        got = read(text, place)
        if got is not None:
            return Token(got[0], place, got[1])
    if after_at and (bare := _bare(text, place)):
        return Token(bare[0], place, bare[1])
    if match := re.compile(rf"{_AND}|[;；]").match(text, place):
        return Token(Link("and"), place, match.end())
    if match := re.compile(r"的|在|于|从|由|自|之间|期间|at\b|on\b|the\b|of\b|from\b|between\b|@(?=\s|\d)").match(
        text, place
    ):
        return Token(Link(""), place, match.end())
    return None


_MORE = re.compile(rf"{_AND}|;")

Got = tuple[Meaning, int] | None


# Times of day ---------------------------------------------------------------------------------------------------------

_CHINESE_CLOCK = re.compile(
    rf"(?P<half>{_HALF_DAYS})?\s*(?P<hour>{_N})\s*[点时]"
    rf"(?:(?P<word>钟|整|半|[一三13]刻)|[零〇过]?(?P<minute>{_N})分(?!钟)"
    # Without 分 both digits are needed, and nothing that they could belong to: 9点11的消息, 十点十一起回复.
    r"|(?P<short>\d{2}|[零〇][一二三四五六七八九]|[二三四五]?十[一二三四五六七八九]?)(?=$|[\s,;:~)\-、/&到至和与及每]))?"
)
_DIGITAL = re.compile(
    rf"(?P<half>{_HALF_DAYS})?\s*(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?!\d)(?:\s*(?P<ap>[ap]\.?m\b\.?))?"
)
_AMPM = re.compile(r"(?P<hour>\d{1,2})\s*(?P<ap>[ap]\.?m\b\.?)")
_NAMED = re.compile(
    r"(?P<noon>noon\b|正午|中午(?!\s*\d|\s*[零〇一二两三四五六七八九十]))|(?P<midnight>midnight\b|零点)"
)
_BARE = re.compile(r"\d{1,2}(?![\d:.])(?=\s|[,;~)-]|$|和|到|至|每)")
_WORDS = {"半": 30, "一刻": 15, "1刻": 15, "三刻": 45, "3刻": 45}


def _clock(text: str, place: int) -> tuple[ClockTime, int] | None:
    if match := _NAMED.match(text, place):
        return (ClockTime(12, half="中午") if match["noon"] else ClockTime(0)), match.end()
    if match := _DIGITAL.match(text, place):
        half = match["half"] or (match["ap"] or "").replace(".", "")
        padded = not half and len(match["hour"]) == 2
        return ClockTime(int(match["hour"]), int(match["minute"]), half, padded=padded), match.end()
    if match := _AMPM.match(text, place):
        return ClockTime(int(match["hour"]), 0, match["ap"].replace(".", "")), match.end()
    if match := _CHINESE_CLOCK.match(text, place):
        said = match["minute"] or match["short"]
        hour, minute = number(match["hour"]), number(said) if said else 0
        if hour is None or minute is None:
            return None
        return ClockTime(hour, _WORDS.get(match["word"] or "", minute), match["half"] or ""), match.end()
    return None


def _bare(text: str, place: int) -> tuple[ClockTime, int] | None:
    match = _BARE.match(text, place)
    return (ClockTime(int(match[0]), bare=True), match.end()) if match else None


_SPAN_BEGIN = re.compile(r"(?P<from>from\b|between\b|从|自)?\s*")
_SPAN_TO = re.compile(rf"\s*(?:{_TO}|(?P<and>and\b|和))\s*")


def _span(text: str, place: int) -> Got:
    begin = _SPAN_BEGIN.match(text, place)
    if begin is None:
        return None
    start = _clock(text, begin.end()) or _bare(text, begin.end())
    to = _SPAN_TO.match(text, start[1]) if start else None
    if start is None or to is None or (to["and"] and not begin["from"]):
        return None
    end = _clock(text, to.end()) or _bare(text, to.end())
    return (TimeSpan(start[0], end[0]), end[1]) if end else None


# Intervals ------------------------------------------------------------------------------------------------------------

_ONCE = r"(?:\s*(?:执行|运行|做)?一次)"
_EVERY = re.compile(rf"每隔?\s*(?:(?P<n>{_N}|半)\s*)?个?(?P<half>半)?\s*(?P<u>秒|分|小时|钟头|天)钟?(?!一天){_ONCE}?")
_SO_OFTEN = re.compile(rf"(?P<n>{_N}|半)\s*个?(?P<half>半)?\s*(?P<u>秒|分|小时|钟头|天)钟?{_ONCE}")
_ENGLISH_EVERY = re.compile(
    r"every\s+(?:(?P<n>\d{1,6}|half(?:\s+an)?|[a-z]+(?:-five)?)\s*)?"
    r"(?P<u>s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days)\b"
)
_MINUTE_OF_HOUR = re.compile(rf"每个?小时的?第?(?P<minute>{_N})分(?!钟)")
_HOURLY = re.compile(r"hourly\b|(?:once\s+)?(?:an|every|each)\s+hour\b")


def _interval(text: str, place: int) -> Got:
    if (match := _MINUTE_OF_HOUR.match(text, place)) and (minute := number(match["minute"])) is not None:
        return Interval(timedelta(hours=1), minute), match.end()
    if match := _HOURLY.match(text, place):
        return Interval(timedelta(hours=1)), match.end()
    if match := _EVERY.match(text, place) or _SO_OFTEN.match(text, place):
        if match["u"] == "天" and (match["n"] is None or number(match["n"]) == 1):
            return None  # every day
        length = _length(match["n"] or "1", match["u"], half=bool(match["half"]), alone=match["n"] is None)
        return (Interval(length), match.end()) if length is not None else None
    if match := _ENGLISH_EVERY.match(text, place):
        written = (match["n"] or "1").removesuffix("an").strip()
        length = _length("半" if written == "half" else written, match["u"][0])
        return (Interval(length), match.end()) if length is not None else None
    return None


def _length(written: str, unit: str, *, half: bool = False, alone: bool = False) -> timedelta | None:
    count = 0.5 if written == "半" or (half and alone) else number(written)
    if count is None:
        return None
    return timedelta(seconds=(count + (0.5 if half and not alone else 0)) * _UNITS[unit])


_LATER = re.compile(rf"(?P<n>{_N}|半)\s*个?(?P<half>半)?\s*(?P<u>分|小时|钟头)钟?\s*(?:以后|之后|后)(?!天)")
_IN = re.compile(r"in\s+(?P<n>\d{1,4}|half(?:\s+an)?|[a-z]+)\s*(?P<u>m|mins?|minutes?|h|hrs?|hours?)\b")


def _from_now(text: str, place: int) -> Got:
    match = _LATER.match(text, place)
    if match:
        length = _length(match["n"], match["u"], half=bool(match["half"]))
        return (FromNow(length), match.end()) if length is not None else None
    if match := _IN.match(text, place):
        written = match["n"].removesuffix("an").strip()
        length = _length("半" if written == "half" else written, match["u"][0])
        return (FromNow(length), match.end()) if length is not None else None
    return None


# Days that recur ------------------------------------------------------------------------------------------------------

_ALL_DAYS = re.compile(
    r"每一?天|每日|天天|每(?=\s*(?:凌晨|早|晚|上午|中午|下午|傍晚))|daily\b|every\s*day\b|each\s+day\b"
)
_EACH = r"(?:on\s+)?(?:(?:every|each|the)\s+)?"
_WORKDAYS = re.compile(rf"每?个?(?:工作日|平日)|{_EACH}(?:week|work|business\s+|working\s+)days?\b")
_WEEKEND = re.compile(rf"每?个?(?:周末|双休日)|{_EACH}weekends?\b")
_WEEKLY = re.compile(rf"(?P<every>每个?一?)?{_WEEK}(?P<days>{_DAY}(?:\s*(?:{_TO}|{_AND})?\s*{_WEEK}?{_DAY})*)(?!月)")
_ENGLISH_WEEKLY = re.compile(
    rf"(?:(?P<every>(?:on\s+)?(?:every|each)\s+|weekly\s+on\s+)|on\s+)?(?P<days>{_NAME}(?:\s*(?:{_TO}|,\s*and\b|{_AND})\s*{_NAME})*)"
)
_DAYS_OF_MONTH = re.compile(
    rf"每个?月的?(?P<days>{_N}\s*[号日]?(?:\s*{_AND}\s*{_N}\s*[号日]?)*)(?<=[号日])|每个?月的?(?:最后[一1]天|月?[末底])|(?<!\w)月[末底]"
)
_ONE_MORE = re.compile(rf"(?P<day>{_N})[号日](?=\s*(?:{_HALF_DAYS})?\s*{_N}(?:[点时]|:\d))")  # 每月1号9点和15号9点
_TH = r"\d{1,2}(?:st|nd|rd|th)"
_OF_MONTH = r"\s+(?:of\s+)?(?:every|each|the)\s+month\b"
_ENGLISH_MONTHLY = re.compile(
    rf"(?P<begin>(?:monthly|(?:every|each)\s+month)\s+)?(?:on\s+)?the\s+"
    rf"(?P<days>last\s+day|{_TH}(?:\s*(?:,|and\b)\s*(?:the\s+)?{_TH})*)(?P<end>{_OF_MONTH})?"
)
_YEARLY = re.compile(rf"每年的?(?P<month>{_N})月(?P<day>{_N})[日号]?")


def _days(text: str, place: int) -> Got:
    if match := _ALL_DAYS.match(text, place):
        return Days(), match.end()
    if match := _WORKDAYS.match(text, place):
        return Days(weekday="1-5"), match.end()
    if match := _WEEKEND.match(text, place):
        return Days(weekday="0,6"), match.end()
    if match := _YEARLY.match(text, place):
        month, day = number(match["month"]), number(match["day"])
        return (Days(str(day), str(month)), match.end()) if month and day else None
    return _weekly(text, place) or _monthly(text, place)


def _weekly(text: str, place: int) -> Got:
    english = _ENGLISH_WEEKLY.match(text, place)
    match = english or _WEEKLY.match(text, place)
    if match is None:
        return None
    if english:
        parts = re.findall(rf"{_NAME}|{_TO}", match["days"])
        row = [part if re.fullmatch(_TO, part) else _named_day(part) for part in parts]
        several = len(parts) > 1 or parts[0].endswith("days")
    else:
        parts = re.findall(rf"[一二三四五六日天1-7]|{_TO}", match["days"])
        row = [part if re.fullmatch(_TO, part) else _DAY_NUMBER.get(part) or int(part) % 7 if part.isdecimal()
               else _DAY_NUMBER[part] for part in parts]  # fmt: skip
        several = len(parts) > 1
    found: list[int] = []
    for index, part in enumerate(row):
        if isinstance(part, int):
            if index and not isinstance(row[index - 1], int) and found:
                begin = found[-1]
                found += [(begin + step) % 7 for step in range(1, (part - begin) % 7 + 1)]
            else:
                found.append(part)
    return Days(weekday=_as_field(set(found)), sure=bool(match["every"]) or several), match.end()


def _named_day(name: str) -> int:
    return next(index for index, full in enumerate(_NAMES) if full.startswith(name[:3]))


def _as_field(days: set[int]) -> str:
    if days == set(range(1, 6)):
        return "1-5"
    return "*" if len(days) == 7 else ",".join(map(str, sorted(days)))


def _monthly(text: str, place: int) -> Got:
    if match := _DAYS_OF_MONTH.match(text, place):
        if match["days"] is None:
            return Days("L"), match.end()
        read = [number(part) for part in re.findall(_N, match["days"])]
        if None in read:
            return None
        return Days(",".join(str(day) for day in sorted({day for day in read if day is not None}))), match.end()
    match = _ENGLISH_MONTHLY.match(text, place)
    if match is None or not (match["begin"] or match["end"]):
        return None
    if match["days"].startswith("last"):
        return Days("L"), match.end()
    return Days(",".join(re.findall(r"\d+", match["days"]))), match.end()


# One day --------------------------------------------------------------------------------------------------------------

_AHEAD = re.compile(
    r"(?P<three>大后天)|(?P<two>后天|the\s+day\s+after\s+tomorrow\b|day\s+after\s+tomorrow\b)"
    r"|(?P<one>明[天日]|明(?=[早晚])|tomorrow\b)|(?P<none>今[天日]|今(?=[早晚])|today\b)|(?P<tonight>tonight\b)"
)
_PARTS = {"evening": "晚上", "night": "晚上", "afternoon": "下午"}
_THIS_WEEK = re.compile(rf"(?P<which>下下|下个?|这个?|本){_WEEK}(?P<day>{_DAY})")
_DATE = re.compile(rf"(?:(?P<year>\d{{4}})年)?(?P<month>{_N})月(?P<day>{_N})[日号]?")
_ISO = re.compile(r"(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)t?")
_ENGLISH_DATE = re.compile(
    rf"(?:(?P<month>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])|(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s+(?P<month2>{_MONTH})\b\.?)"
    r"(?:,?\s+(?P<year>\d{4})(?![\d:]))?"
)


def _day(text: str, place: int) -> Got:
    if match := _AHEAD.match(text, place):
        name = next(name for name, value in match.groupdict().items() if value)
        half = {"tonight": "晚上"}.get(name, "")
        ahead = {"three": 3, "two": 2, "one": 1}.get(name, 0)
        if later := re.compile(r"\s+(morning|afternoon|evening|night)\b").match(text, match.end()):
            return Day(ahead=ahead, half=_PARTS.get(later[1], later[1])), later.end()
        return Day(ahead=ahead, half=half), match.end()
    if match := _THIS_WEEK.match(text, place):
        weeks = {"下下": 2, "下": 1, "下个": 1}.get(match["which"], 0)
        day = _DAY_NUMBER.get(match["day"], 0) if not match["day"].isdecimal() else int(match["day"]) % 7
        return Day(weeks=weeks, weekday=(day - 1) % 7), match.end()
    if match := _ISO.match(text, place) or _DATE.match(text, place):
        month, day_of = number(match["month"]), number(match["day"])
        if month is None or day_of is None:
            return None
        return Day(year=int(match["year"]) if match["year"] else None, month=month, day=day_of), match.end()
    if match := _ENGLISH_DATE.match(text, place):
        month = _MONTHS.index((match["month"] or match["month2"])[:3]) + 1
        year = int(match["year"]) if match["year"] else None
        return Day(year=year, month=month, day=int(match["day"] or match["day2"])), match.end()
    return None
