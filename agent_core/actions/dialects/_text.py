"""Reads the text around a call, and the literals in it as models write them. Nothing is evaluated.

A call is surrounded by think and answer tags, code fences, box tokens and list marks; its literals are strings,
numbers, pairs, lists, objects. Full-width and curly punctuation is read as its ASCII twin. A string may hold quotes
that were not escaped, as long as it is clear where it ends: a quote ends a string if something follows that can only
follow a value, and the quotes inside come in pairs. Every pattern is possessive, so reading takes time in proportion to
the text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum
from typing import Union

from agent_core.errors import ActionParseError


class Tag(Enum):
    THINK = "think"
    END_THINK = "/think"
    ANSWER = "answer"
    END_ANSWER = "/answer"


# The names, and how models misspell them.
_THINK = "thinking|thought|think|tihnk|thnik|thikn|tink|thnk|thik|thin|hink"
_ANSWER = "answer|anwser|ansewr|answr|aswer|anser"
_TAG = re.compile(
    rf"[<＜]\s{{0,3}}([/\\／]?)\s{{0,3}}(?:({_THINK})|({_ANSWER}))\s{{0,3}}(?:/?[>＞]|(?<=\w)(?=<|＜))",
    re.IGNORECASE,
)
_BOX = r"<\|(?:begin|end)_of_box\|>"
_WRAPPING = re.compile(rf"{_TAG.pattern}|{_BOX}|```[a-z]*|`", re.IGNORECASE)
_CLOSING = re.compile(rf"(?:{_TAG.pattern}|{_BOX}|```|`)\Z", re.IGNORECASE)
_MOST_CLOSING, _LONGEST_CLOSING = 6, 40  # closing tags and fences at the end of a reply; characters of one of them
_MARKS = re.compile(
    rf"(?:[\s\-*•>#`\d.、)）]|{_BOX}|```[a-z]*)*+"
    rf"(?:(?:action|answer|output|动作|答案|操作|输出)[\s*]*+[:：])?(?:[\s*`]|{_BOX})*+",
    re.IGNORECASE,
)
_LONGEST_MARKS = 120


def next_tag(text: str, pos: int) -> tuple[Tag, int, int] | None:
    """Return the next tag at or after ``pos``, with its begin and end; None if there is none."""
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
    """Tell whether only marks precede ``start`` on its line (which may begin at ``region``)."""
    line = max(region, text.rfind("\n", region, start) + 1)
    return start - line <= _LONGEST_MARKS and _MARKS.fullmatch(text, line, start) is not None


def unwrapped(text: str) -> str:
    """Return ``text`` without tags, fences and box tokens, for people and logs."""
    return _WRAPPING.sub(" ", text).strip()


def wrapping_begins(text: str) -> int:
    """Return the index at which the closing tags, fences and spaces at the end of ``text`` begin."""
    end = len(text.rstrip())
    for _ in range(_MOST_CLOSING):
        tail = max(0, end - _LONGEST_CLOSING)
        found = _CLOSING.search(text, tail, end)
        if found is None:
            break
        end = len(text[: found.start()].rstrip())
    return end


def escape_tags(text: str) -> str:
    """Return ``text`` for use inside quotes, with the first character of each think or answer tag escaped."""
    return _TAG.sub(lambda match: f"\\u{ord(match.group()[0]):04x}{match.group()[1:]}", text)


MAX_DEPTH = 8
MAX_INNER_QUOTES = 200

DOUBLE = '"＂“”„'
SINGLE = "'＇‘’"
_CORNER = {"「": "」", "『": "』"}
QUOTES = DOUBLE + SINGLE + "".join(_CORNER)


class Incomplete(ActionParseError):
    """The text ended inside the call: it was cut off, or is still arriving."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number. ``raw`` is as it was written: a text without quotes keeps its zeros."""

    value: float
    raw: str


Value = Union[str, Number, bool, None, list["Value"], dict[str, "Value"]]  # noqa: UP007 - a recursive alias needs it


class TextPosition(Enum):
    """The place of a value, which decides what may follow it."""

    CALL = re.compile(r"\s*+(?:[)）]|[,，、;；]\s*+(?:[)）]|[A-Za-z_]\w*+\s*+[=＝]))")
    POSITIONAL = re.compile(rf"\s*+(?:[)）]|[,，、;；]\s*+[)）{QUOTES}\d\[]|[,，、;；]\s*+[A-Za-z_]\w*+\s*+[=＝])")
    LIST = re.compile(rf"\s*+(?:[\]】］)）]|[,，、;；]\s*+[{QUOTES}\]】］)）\d\[])")
    OBJECT = re.compile(
        rf"\s*+(?:[}}｝]|[,，]\s*+(?:[}}｝]|[{QUOTES}][^{QUOTES}\n]{{1,60}}+[{QUOTES}」』]\s*+[:：]|[A-Za-z_]\w*+\s*+[:：]))"
    )
    KEY = re.compile(r"\s*+[:：]")


_NAME = re.compile(r"[A-Za-z_]\w{0,60}")
_SPACE = re.compile(r"\s*+")
_ENDS_IN_NAME = re.compile(r"\w{1,60}\s*+=?\s*+\Z")
_CUT_OFF = "The reply was cut off inside a call. Write the whole call again, with its closing bracket."
_COMMA = re.compile(r"\s*+[,，、;；]\s*+")
_NUMBER = re.compile(r"[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?(?![\w.])")
_WORD = re.compile(r"(true|false|none|null)(?!\w)", re.IGNORECASE)
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "none": None, "null": None}
_JOINED = re.compile(r"\s*+[+%]\s*+[\"']")
_OPENERS = {"[": "]】］", "【": "]】］", "［": "]】］", "(": ")）", "（": ")）"}

# Up to the next quote of a kind that is not escaped.
_TO_DOUBLE = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TO_SINGLE = re.compile(r"(?:[^'\\]++|\\.)*+", re.DOTALL)
_TO_WIDE_DOUBLE = re.compile(r'(?:[^"＂\\]++|\\.)*+', re.DOTALL)
_TO_WIDE_SINGLE = re.compile(r"(?:[^'＇\\]++|\\.)*+", re.DOTALL)
_TO_CURLY_DOUBLE = re.compile(r'(?:[^"“”\\]++|\\.)*+', re.DOTALL)
_TO_CURLY_SINGLE = re.compile(r"(?:[^'‘’\\]++|\\.)*+", re.DOTALL)
_TO_CORNER = re.compile(r"(?:[^「」『』\\]++|\\.)*+", re.DOTALL)

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "\n"}
_LITERAL_ESCAPES = "\"'\\/`“”‘’"


def decode_escapes(text: str) -> str:
    """Decode ``\\n``, ``\\"``, ``\\u4f60`` …; an unknown escape stays as it is."""
    return _ESCAPE.sub(_decoded, text) if "\\" in text else text


def _decoded(match: re.Match[str]) -> str:
    body = match.group()[1:]
    mark = body[0]
    if len(body) == 1:
        return body if body in _LITERAL_ESCAPES else _SIMPLE.get(body, "\\" + body)
    if len(body) > 9:  # two halves of one character
        high, low = int(body[1:5], 16), int(body[7:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    code = int(body[1:], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return chr(code) if mark in "uUx" else match.group()


def shown(value: Value) -> str:
    """Return a value for a message, as the model wrote it, cut at 60 characters."""
    if isinstance(value, Number):
        text = value.raw
    elif isinstance(value, list):
        text = "[" + ", ".join(shown(item) for item in value[:8]) + ("…]" if len(value) > 8 else "]")
    elif isinstance(value, dict):
        text = "{…}"
    elif isinstance(value, str):
        text = '"' + value[:60] + ("…" if len(value) > 60 else "") + '"'
    else:
        text = str(value)
    return text if len(text) <= 80 else text[:80] + "…"


class Scanner:
    """A reader of values from ``text``, from ``pos`` on.

    It raises Incomplete at the end of the text, else ActionParseError.
    """

    def __init__(self, text: str, pos: int) -> None:
        self.text = text
        self.pos = pos

    def space(self) -> None:
        match = _SPACE.match(self.text, self.pos)
        if match:
            self.pos = match.end()

    def peek(self) -> str:
        """Return the next character that is not whitespace. Raises Incomplete if there is none."""
        self.space()
        if self.pos >= len(self.text):
            raise Incomplete(_CUT_OFF)
        return self.text[self.pos]

    def comma(self) -> bool:
        match = _COMMA.match(self.text, self.pos)
        if match:
            self.pos = match.end()
        return match is not None

    def value(self, place: TextPosition, depth: int = 0) -> Value:
        char = self.peek()
        if depth > MAX_DEPTH:
            raise ActionParseError("The call is nested too deeply.")
        if char in QUOTES:
            return self.string(place)
        if char in _OPENERS:
            return self._list(_OPENERS[char], depth)
        if char in "{｛":
            return self.object(depth)
        number = _NUMBER.match(self.text, self.pos)
        if number:
            self.pos = number.end()
            value = float(number.group())
            if not math.isfinite(value):
                raise ActionParseError(f"{number.group()} is no number that can be used.")
            if self.pos == len(self.text):
                raise Incomplete("The reply was cut off inside a number. Write the whole call again.")
            return Number(value, number.group())
        word = _WORD.match(self.text, self.pos)
        if word:
            self.pos = word.end()
            return _WORDS[word.group().lower()]
        found = self.text[self.pos : self.pos + 30].splitlines()[0]
        if _ENDS_IN_NAME.match(self.text, self.pos):
            raise Incomplete(_CUT_OFF)
        raise ActionParseError(
            f"Only plain values are read: text in quotes, numbers, [x, y]. This is none of them: {found}"
        )

    def _list(self, closers: str, depth: int) -> list[Value]:
        self.pos += 1
        items: list[Value] = []
        while self.peek() not in closers:
            items.append(self.value(TextPosition.LIST, depth + 1))
            if not self.comma() and self.peek() not in closers:
                found = self.text[self.pos : self.pos + 20]
                raise ActionParseError(f"A comma or {closers[0]} is missing after {shown(items[-1])}: {found}")
        self.pos += 1
        return items

    def object(self, depth: int = 0) -> dict[str, Value]:
        """Read ``{"key": value, …}``; each key may occur once."""
        if depth > MAX_DEPTH:
            raise ActionParseError("The object is nested too deeply.")
        self.pos += 1
        items: dict[str, Value] = {}
        while self.peek() not in "}｝":
            key = self._key()
            if self.peek() not in ":：":
                raise ActionParseError(f"A colon is missing after {shown(key)}.")
            self.pos += 1
            if key in items:
                raise ActionParseError(f"{shown(key)} stands twice in the object; write it once.")
            items[key] = self.value(TextPosition.OBJECT, depth + 1)
            if not self.comma() and self.peek() not in "}｝":
                raise ActionParseError(f"A comma or }} is missing after the value of {shown(key)}.")
        self.pos += 1
        return items

    def _key(self) -> str:
        if self.peek() in QUOTES:
            return self.string(TextPosition.KEY)
        return self.identifier()

    def identifier(self) -> str:
        match = _NAME.match(self.text, self.pos)
        if not match:
            found = self.text[self.pos : self.pos + 30].splitlines()[0]
            raise ActionParseError(f"A name was expected here: {found}")
        self.pos = match.end()
        return match.group()

    def string(self, place: TextPosition) -> str:
        """Read a quoted text and decode its escapes. Raises Incomplete if it is not closed."""
        opener = self.text[self.pos]
        triple = self.text[self.pos : self.pos + 3]
        if triple in ('"""', "'''"):
            end = self.text.find(triple, self.pos + 3)
            if end >= 0 and place.value.match(self.text, end + 3):
                raw = self.text[self.pos + 3 : end]
                self.pos = end + 3
                return decode_escapes(raw)
        begin = self.pos + 1
        end = _string_end(self.text, begin, opener, place)
        self.pos = end + 1
        return decode_escapes(self.text[begin:end])


def _marks(opener: str) -> tuple[re.Pattern[str], str, str]:
    """Return, for a string opened by ``opener``: the pattern up to the next mark, inner openers, and closers."""
    if opener in _CORNER:
        return _TO_CORNER, "「『", "」』"
    if opener in "“”„":
        return _TO_CURLY_DOUBLE, "“", '”"'
    if opener in "‘’":
        return _TO_CURLY_SINGLE, "‘", "’'"
    if opener == "＇":
        return _TO_WIDE_SINGLE, "", "'＇"
    if opener == "＂":
        return _TO_WIDE_DOUBLE, "", '"＂'
    return (_TO_SINGLE, "", "'") if opener == "'" else (_TO_DOUBLE, "", '"')


def _string_end(text: str, begin: int, opener: str, place: TextPosition) -> int:
    """Return the index of the quote that ends the string whose text begins at ``begin``."""
    body, opening, closing = _marks(opener)
    pos = begin
    depth = 0  # open inner pairs
    inner = 0
    while True:
        match = body.match(text, pos)
        pos = match.end() if match else pos
        if pos >= len(text) or text[pos] == "\\":
            raise Incomplete(
                "A text in quotes does not end: the reply was cut off there, or a quote inside the text is not escaped."
                ' Write the whole call again, with \\" for a quote inside a text.'
            )
        char = text[pos]
        follows = char in closing and place.value.match(text, pos + 1)
        if follows and depth == 0:
            return pos
        if not inner and char in "\"'" and _JOINED.match(text, pos + 1):
            raise ActionParseError("Texts are not joined or computed; write one text in quotes.")
        inner += 1
        if inner > MAX_INNER_QUOTES:
            raise ActionParseError("A text holds too many quotes that are not escaped.")
        if not _apostrophe(text, pos):
            if char in opening:
                depth += 1
            elif not opening or char in "\"'":  # quotes that look alike open and close in turn
                depth = 0 if depth else 1
            else:
                depth = max(0, depth - 1)
        pos += 1


def _apostrophe(text: str, pos: int) -> bool:
    """Tell whether the mark is that in ``it's``: a single quote between two Latin letters."""
    if text[pos] not in "'’＇" or pos == 0 or pos + 1 >= len(text):
        return False
    before, after = text[pos - 1], text[pos + 1]
    return before.isascii() and before.isalpha() and after.isascii() and after.isalpha()
