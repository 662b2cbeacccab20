"""What may be read in a reply, as ``tests.acceptance.replies`` states it anew; nothing here looks at how it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_core.actions import Dialect

PAIR, TEXT, WORDS, SOME, SECONDS, FLAG = "pair", "text", "words", "text or none", "seconds", "flag"
FIELDS: Mapping[str, Mapping[str, str]] = {
    "launch": {"app": TEXT},
    "tap": {"element": PAIR, "message": SOME},
    "double_tap": {"element": PAIR},
    "long_press": {"element": PAIR, "duration": SECONDS},
    "swipe": {"start": PAIR, "end": PAIR, "duration": SECONDS},
    "type": {"text": TEXT},
    "type_name": {"text": TEXT},
    "back": {},
    "home": {},
    "press_key": {"key": "key"},
    "wait": {"duration": SECONDS},
    "take_over": {"message": TEXT},
    "interact": {"question": TEXT, "choices": WORDS},
    "note": {"message": TEXT},
    "call_api": {"instruction": TEXT},
    "get_knowledge_data": {"query": TEXT},
    "finish": {"message": TEXT, "success": FLAG},
}
# How models call an action, folded: without case, blanks and joining marks.
NAMES: Mapping[str, tuple[str, ...]] = {
    "launch": ("launch", "awake"),
    "tap": ("tap", "click"),
    "double_tap": ("doubletap", "doubleclick"),
    "long_press": ("longpress",),
    "swipe": ("swipe", "slide"),
    "type": ("type",),
    "type_name": ("typename",),
    "back": ("back",),
    "home": ("home",),
    "press_key": ("hotkey", "enter", "appswitch"),
    "wait": ("wait",),
    "take_over": ("takeover",),
    "interact": ("interact", "info"),
    "note": ("note",),
    "call_api": ("callapi",),
    "get_knowledge_data": ("getknowledgedata",),
    "finish": ("finish", "complete", "abort"),
}
LONGEST_WAIT = 30.0
TYPED = {"type", "type_name"}


def complaint(action: Mapping[str, Any], text: str, dialect: Dialect) -> str:
    """Why this action may not have come of this text; "" where it may."""
    kind = action.get("kind")
    rules = FIELDS.get(str(kind))
    if rules is None:
        return f"unknown kind {kind!r}"
    if set(action) != {"kind", *rules}:
        return f"{kind} has the fields {sorted(action)}"
    for name, rule in rules.items():
        if wrong := _wrong(action[name], rule):
            return f"{name} of {kind} is {wrong}"
    plain = _folded(text)
    if not any(name in plain for name in NAMES[str(kind)]):
        return f"nothing in the reply names {kind}"
    if kind == "finish" and action["success"] and not ("finish" in plain or "complete" in plain):
        return "a success that nothing in the reply says"
    if kind == "press_key" and action["key"].replace("_", "") not in plain and "recent" not in plain:
        return "a key that the reply does not name"
    if kind in TYPED and not _quoted(str(action["text"]), text, dialect):
        return f"typed is what no value of the reply says in full: {action['text']!r}"
    for name, rule in rules.items():
        said = action[name]
        if rule == PAIR and not (kind == "swipe" and name == "end" and "direction" in plain):
            numbers = {round(float(found)) for found in re.findall(r"\d{1,20}(?:\.\d{1,20})?", _spelled(text))}
            if not set(said) <= numbers and not re.search(r"\d\s*[eE]", text):
                return f"{name} of {kind} is {said}, numbers that do not stand in the reply"
        if rule in (TEXT, SOME) and kind not in TYPED and said and not _stands(str(said), text):
            return f"{name} of {kind} is not in the reply: {said!r}"
    return ""


def _wrong(value: object, rule: str) -> str:
    """What is wrong with a value; "" where nothing is."""
    right = False
    match rule:
        case "pair":
            numbers = value if isinstance(value, tuple) else ()
            right = len(numbers) == 2 and all(type(one) is int and 0 <= one <= 1000 for one in numbers)
        case "seconds":
            right = isinstance(value, float) and 0 <= value <= LONGEST_WAIT
        case "text":
            right = isinstance(value, str)
        case "text or none":
            right = value is None or isinstance(value, str)
        case "words":
            right = isinstance(value, tuple) and all(isinstance(one, str) for one in value)
        case "flag":
            right = isinstance(value, bool)
        case "key":
            right = value in ("enter", "app_switch")
    return "" if right else repr(value)[:80]


def _folded(text: str) -> str:
    return re.sub(r"[\s_\-]+", "", f"{text}\n{unescaped(text)}" if "\\" in text else text).lower()


def _spelled(text: str) -> str:
    """With the digits of every script as 0–9."""
    return text if text.isascii() else re.sub(r"\d", lambda found: str(int(found.group())), text)


_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": "\n"}
_SAME = set("\"'\\/`“”‘’")
_LONG = {"x": 2, "u": 4, "U": 8}


def unescaped(text: str) -> str:
    """The text with its escapes as what they stand for, as far as they are some."""
    if "\\" not in text:
        return text
    found, pos = [], 0
    while (slash := text.find("\\", pos)) >= 0:
        found.append(text[pos:slash])
        meant, pos = _piece(text, slash)
        found.append(meant)
    return "".join((*found, text[pos:]))


def _piece(text: str, pos: int) -> tuple[str, int]:
    if text[pos] != "\\" or pos + 1 == len(text):
        return text[pos], pos + 1
    mark = text[pos + 1]
    if mark in _LONG:
        digits = text[pos + 2 : pos + 2 + _LONG[mark]]
        if len(digits) == _LONG[mark] and re.fullmatch(r"[0-9a-fA-F]+", digits):
            return _of_code(text, pos, mark, int(digits, 16), pos + 2 + len(digits))
        return "\\" + mark, pos + 2
    if mark in _SAME:
        return mark, pos + 2
    return _SHORT.get(mark, "\\" + mark), pos + 2


def _of_code(text: str, pos: int, mark: str, code: int, end: int) -> tuple[str, int]:
    if mark == "u" and 0xD800 <= code < 0xDC00 and (low := re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", text[end:])):
        return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00), end + 6
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return "\ufffd", end
    return chr(code), end


def _ends(said: str, text: str, begin: int) -> int | None:
    """Where the text that stands for ``said`` and begins at ``begin`` ends."""
    pos, done = begin, 0
    while done < len(said):
        if text.startswith(said[done:], pos) and "\\" not in said:
            return pos + len(said) - done
        if pos >= len(text):
            return None
        if said[done:] == "\\" == text[pos] and text[pos + 1 : pos + 2] != "\\":
            return pos + 1  # what comes after it is the field's end
        meant, pos = _piece(text, pos)
        if not said.startswith(meant, done):
            return None
        done += len(meant)
    return pos


def _places(said: str, text: str) -> Iterator[tuple[int, int]]:
    """Every (begin, end) of what stands for ``said``, which is not empty."""
    for first in re.finditer(re.escape(said[0]) + r"|\\", text):
        end = _ends(said, text, first.start())
        if end is not None:
            yield first.start(), end


def _stands(said: str, text: str) -> bool:
    return any(True for one in (said, said.strip()) if one for _ in _places(one, text)) or not said.strip()


_OPENS = "\"'“”„‘’＂＇「『"
_CLOSES = "\"'“”‘’＂＇」』"
_BARE = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?|true|false", re.IGNORECASE)
_BEFORE_BARE = re.compile(r"[=＝:：]\s*\Z")
_BEFORE_FIELD = re.compile(r"(?:[:：*`\n]|\\t)\s*\Z")
_AFTER_FIELD = re.compile(r"\s*(?:\Z|\\t|\t|\n|<|＜|```|(?:[a-z_]+\d?)\*{0,2} {0,3}[:：])", re.IGNORECASE)
_LONGEST_GAP = 300  # characters between a value and what it stands after


def _quoted(said: str, text: str, dialect: Dialect) -> bool:
    """Whether the reply holds ``said`` as a whole value: between quotes with a bracket somewhere after them, or, in the
    tab-separated form, after a colon and up to the end of the field."""
    last = max(text.rfind(closer) for closer in ")）}｝")
    if not said:
        empty = re.search(f"[{_OPENS}][{_CLOSES}]", text)
        return (empty is not None and empty.end() <= last) or dialect == "gelab"
    for begin, end in _places(said, text):
        before = text[max(0, begin - _LONGEST_GAP) : begin]
        if before[-1:] in _OPENS and before and text[end : end + 1] in _CLOSES and end < last:
            return True
        if end <= last and _BARE.fullmatch(said) and _BEFORE_BARE.search(before):
            return True
        if dialect == "gelab" and _BEFORE_FIELD.search(before) and _AFTER_FIELD.match(text, end):
            return True
    return False
