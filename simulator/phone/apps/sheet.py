"""The drawing style of a page's parts: the look, the phone's font scale, and texts in several colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from agent_core.texts.layout import text_width, wrap
from simulator.phone.apps.looks import Look
from simulator.phone.widgets import Canvas

# Chat apps draw these in blue: addresses and long numbers.
_LINK = re.compile(r"https?://[!-~]+|www\.[!-~]+|(?<!\d)\d{7,}(?!\d)")

Runs = tuple[tuple[str, str], ...]  # texts with their colours


@dataclass(frozen=True, slots=True)
class Sheet:
    """A look at a font scale."""

    look: Look
    scale: float = 1.0
    account: str = "我"  # our own name in the app, which our avatar depends on

    def size(self, units: float) -> int:
        """Scale a text's size, or a height that follows it."""
        return max(1, round(units * self.scale))


def rich_lines(text: str, size: int, width: int, color: str, link: str) -> tuple[Runs, ...]:
    """Return ``text`` in lines of at most ``width`` units, with its links in the colour ``link``."""
    blue = {place for found in _LINK.finditer(text) for place in range(*found.span())}
    lines: list[Runs] = []
    place = 0
    for line in wrap(text, size, width):
        while line and not text.startswith(line, place):
            place += 1  # a new line, or a blank that was left out at a break
        runs: list[tuple[str, str]] = []
        for index, char in enumerate(line, place):
            ink = link if index in blue else color
            if runs and runs[-1][1] == ink:
                runs[-1] = (runs[-1][0] + char, ink)
            else:
                runs.append((char, ink))
        lines.append(tuple(runs))
        place += len(line)
    return tuple(lines)


def lines_width(lines: Sequence[Runs], size: int) -> int:
    return round(max((sum(text_width(text, size) for text, _ in runs) for runs in lines), default=0))


def paint_lines(canvas: Canvas, x: int, top: float, lines: Sequence[Runs], size: int, line: int) -> None:
    """Paint lines of ``line`` units each, the first one's upper edge at ``top``."""
    for index, runs in enumerate(lines):
        canvas.rich(x, top + line * index + line / 2, runs, size)


def time_text(moment: datetime, now: datetime, *, twelve_hours: bool = False) -> str:
    """Return a time as chat apps write it: today the hour, then 昨天, the weekday, the date."""
    hour = f"{moment:%H:%M}"
    if twelve_hours:
        part = next(name for until, name in _DAY_PARTS if moment.hour < until)
        hour = f"{part}{moment.hour % 12 or 12}:{moment:%M}"
    days = (now.date() - moment.date()).days
    if days <= 0:
        return hour
    if days == 1:
        return f"昨天 {hour}"
    if days < 7:
        return f"星期{'一二三四五六日'[moment.weekday()]} {hour}"
    year = f"{moment.year}年" if moment.year != now.year else ""
    return f"{year}{moment.month}月{moment.day}日 {hour}"


_DAY_PARTS = ((6, "凌晨"), (12, "上午"), (13, "中午"), (18, "下午"), (24, "晚上"))
