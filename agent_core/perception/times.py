"""Times as chat apps write them beside a row or above a message."""

from __future__ import annotations

import re

_TIME = re.compile(
    r"^(?:(?:(?:今天|昨天|前天|星期[一二三四五六日天]|周[一二三四五六日天])?\s*"
    r"(?:凌晨|清晨|早上|上午|中午|下午|傍晚|晚上)?\s*\d{1,2}[:：]\d{2}(?:\s*[AP]M)?)"
    r"|昨天|前天|刚刚|\d{1,2}(?:分钟|小时)前|星期[一二三四五六日天]|周[一二三四五六日天]"
    r"|(?:\d{2,4}[年/.-])?\d{1,2}[月/.-]\d{1,2}日?|Yesterday|(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Satur|Sat|Sun)(?:day)?)$",
    re.IGNORECASE,
)


def is_time(text: str) -> bool:
    """Whether ``text`` is what a row says of when: ``14:05``, ``昨天``, ``星期三`` …"""
    return bool(_TIME.match(text.strip()))
