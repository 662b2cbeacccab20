"""The wrapping around a call: think and answer tags, code fences, box tokens, list marks."""

from __future__ import annotations

import re
from enum import Enum


class Tag(Enum):
    THINK = "think"
    END_THINK = "/think"
    ANSWER = "answer"
    END_ANSWER = "/answer"


# The names, and how models mistype them.
_THINK = "thinking|thought|think|tihnk|thnik|thikn|tink|thnk|thik|thin|hink"
_ANSWER = "answer|anwser|ansewr|answr|aswer|anser"
_TAG = re.compile(
    rf"[<＜]\s{{0,3}}([/\\／]?)\s{{0,3}}(?:({_THINK})|({_ANSWER}))\s{{0,3}}(?:/?[>＞]|(?<=\w)(?=<|＜))",
    re.IGNORECASE,
)
_BOX = r"<\|(?:begin|end)_of_box\|>"
_WRAPPING = re.compile(rf"{_TAG.pattern}|{_BOX}|```[a-z]*|`", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:{_TAG.pattern}|{_BOX}|```|`)\Z", re.IGNORECASE)
_MOST_CLOSING, _LONGEST_CLOSING = 6, 40  # closing tags and fences at the end of a reply; characters of one
_MARKS = re.compile(
    rf"(?:[\s\-*•>#`\d.、)）]|{_BOX}|```[a-z]*)*+"
    rf"(?:(?:action|answer|output|动作|答案|操作|输出)[\s*]*+[:：])?(?:[\s*`]|{_BOX})*+",
    re.IGNORECASE,
)
_LONGEST_MARKS = 120


def next_tag(text: str, pos: int) -> tuple[Tag, int, int] | None:
    """The next tag at or after ``pos``, with its begin and end."""
    match = _TAG.search(text, pos)
    if not match:
        return None
    closing = bool(match.group(1))
    if match.group(2):
        tag = Tag.END_THINK if closing else Tag.THINK
    else:
        tag = Tag.END_ANSWER if closing else Tag.ANSWER
    return tag, match.start(), match.end()


def stands_alone(text: str, region: int, start: int) -> bool:
    """Whether what begins at ``start`` has only marks before it on its line (which may begin at ``region``)."""
    line = max(region, text.rfind("\n", region, start) + 1)
    return start - line <= _LONGEST_MARKS and _MARKS.fullmatch(text, line, start) is not None


def unwrapped(text: str) -> str:
    """``text`` without tags, fences and box tokens, for people and logs."""
    return _WRAPPING.sub(" ", text).strip()


def wrapping_begins(text: str) -> int:
    """Return where the closing tags, fences and blanks begin that stand at the end of ``text``."""
    end = len(text.rstrip())
    for _ in range(_MOST_CLOSING):
        tail = max(0, end - _LONGEST_CLOSING)
        found = _CLOSING.search(text, tail, end)
        if found is None:
            break
        end = len(text[: found.start()].rstrip())
    return end


def escape_tags(text: str) -> str:
    """``text`` for between quotes, with the first character of each think or answer tag as an escape."""
    return _TAG.sub(lambda match: f"\\u{ord(match.group()[0]):04x}{match.group()[1:]}", text)
