"""Finds where the time ends and the task begins: ``每天9点 QQ回复联系人11``.

A text that cannot be split surely is refused; if the task begins like a time, put the time in quotes, or a colon or a
new line between them.
"""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from agent_core.errors import InputRejected
from scheduler.times.natural import MAX_TEXT, understand
from scheduler.times.words import ClockTime, Link, plain, tokens

SHOWN = 60  # characters of the part that was not understood
_SOME_DAY = datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC"))
_COUNT = r"[\d零〇一二两三四五六七八九十半几]+"
# Words that belong, or may belong, to a time.
_OF_A_TIME = re.compile(
    r"[、;,&+~.。()（）%]|/(?![a-z巡扫])|-\s*\d"
    rf"|{_COUNT}\s*(?:[点时分秒刻]|小时|钟头|[天周月年次遍]|个(?:小时|月|半|星期|工作日)|-\s*\d|[.:~到至、,]\s*\d"
    r"|[号日](?=$|[\s\d、,和上下中早晚凌])|[ap]\.?m\b|o'?clock|hours?\b|h\b|min|sec|days?\b|weeks?\b|times\b|(?:st|nd|rd|th)\b)"
    r"|[和与及或到至除从由逢隔钟的]|起(?!床|草)|自(?!动|己)|前(?![往台])|后(?![台续])|内(?![容部])|间隔|整(?![理合个])"
    rf"|[过差约](?=\s*{_COUNT})|差不多|以[及前后内外]|之[前后间内外]|左右|上下|开始|直(?![播接])|期间|期内|持续|截(?![图屏])"
    r"|不|别|勿|停(?![止用])|暂停|休|非(?!常)|包括|含|仅|只[在有限要]|但|另|其[他它余]|并且|还有|大[概约]|最[多后]|第"
    r"|每(?![周月年](?:报|度|总|小|汇|统))|周(?![报边总])|星期|礼拜|工作日|节[假日]|假[日期]|双休|单休|农历"
    rf"|(?:凌晨|清晨|清早|早[上晨]|[上中下]午|傍晚|晚[上间]|夜|半夜|午夜|正午)(?!好)|[早晚](?={_COUNT}|[到至])|今[天晚早年日]|明[天早晚年日]|[后昨]天"
    r"|[上下本这]个?(?:周|月|星期|年)|月(?![报结])"
    r"|(?:and|or|except|excluding|excl|but|not|no|unless|without|from|to|until|till|til|through|thru|before|after|by|within"
    r"|during|between|while|when|starting|beginning|ending|(?:start|begin|end)s?\s+(?:at|on|from|by|in)|for|in|on|at|of|past|sharp|each|every|other|only|plus"
    r"|also|half|quarter|about|around|approximately|approx|mornings?|afternoons?|evenings?|nights?|tonight|today|tomorrow"
    r"|midday|noon|midnight|daily|weekly|monthly|yearly|hourly|twice|thrice|once|times|next|this|first|second|third|last|the"
    r"|holidays?|workdays?|weekdays?|weekends?|business|working|office|o'?clock|a\.?m|p\.?m|utc|gmt)\b"
)
# After a comma these can only begin a task.
_TASK = re.compile(r",\s*(?=(?:qq|微信|wechat)\s*回复|回复|巡检|打开|reply\b|sweep\b|open\b)")
_SAID_BEST = {"schedule_half_day", "schedule_no_such", "schedule_interval"}  # these errors say more
_HOUR = re.compile(r"[点时]$")
_NUMBER = re.compile(r"\d+|[零〇一二两三四五六七八九十]+")


def split(text: str) -> tuple[str, str]:
    """Return the time at the beginning of a text, and the task after it.

    Returns ("", text) if it begins with no time. A time that is incomplete or wrong is returned as it is: the error
    about it says what is missing. Raises InputRejected if the task begins like another time.
    """
    line, _, below = text.partition("\n")
    line = line.rstrip(" \t:：")
    if line.strip() and below.strip() and not line[tokens(plain(line))[1] :].strip():
        return line.strip(), below.strip()
    words = [token for token in tokens(plain(text))[0] if not isinstance(token.meaning, Link)]
    if not words:
        return "", text
    end = words[-1].end
    when, rest = text[:end].strip(), text[end:]
    if not rest.strip():
        return text.strip(), ""
    wrong = _wrong(when)
    if wrong is not None:
        # A shorter time is never taken, because words would be lost; but it shows a possible beginning of the task.
        ends = [one.end for one in words[-2::-1] if one.end <= MAX_TEXT]
        right = next((text[:end].strip() for end in ends if _wrong(text[:end]) is None), "")
        if right and wrong.key not in _SAID_BEST:
            raise unclear_beginning(right, text.strip()[len(right) :].strip())
        return when, rest.strip()
    # 每天9点 18点开会: two times, or one and a task?
    twice = len(words) > 1 and all(isinstance(one.meaning, ClockTime) for one in words[-2:])
    if twice and text[words[-2].end : words[-1].start].isspace() and rest[0].isalnum():
        raise unclear_beginning(text[: words[-2].end].strip(), text[words[-1].start :].strip())
    return when, task_after(when, rest)


def _wrong(when: str) -> InputRejected | None:
    try:
        understand(when, "UTC", _SOME_DAY)
    except InputRejected as error:
        return error
    return None


def task_after(when: str, rest: str) -> str:
    """Return the task in the text after a time. Raises InputRejected if it begins like another time."""
    begun = rest.lstrip(" \t")
    if begun[:1] in ("\n", ":", "："):
        return begun[1:].strip()
    task = rest.strip()
    said = plain(task)
    if comma := _TASK.match(said):
        return task[comma.end() :]
    number = _NUMBER.match(said) if rest == begun and _HOUR.search(plain(when)) else None
    minutes = number is not None and (len(number[0]) > 1 or not said[number.end() :][:1].strip())
    if minutes or _OF_A_TIME.match(said) or _begins_with_a_time(said):
        raise unclear_beginning(when, task)
    return task


def _begins_with_a_time(said: str) -> bool:
    return any(not isinstance(token.meaning, Link) for token in tokens(said)[0])


def unclear_beginning(when: str, rest: str) -> InputRejected:
    """Return the error about a rest that may belong to the time."""
    shown = rest if len(rest) <= SHOWN else f"{rest[:SHOWN]}…"
    return InputRejected(
        f"Understood: {when}; not: {shown!r}.",
        advice="Where the task begins so, put the time in quotes, or the task on a new line.",
        key="schedule_unclear",
        said=f"{when} {shown}",
        understood=when,
        rest=shown,
    )
