"""Reads ``explain:… action:CLICK point:500,300 summary:…``, separated by tabs, as GELab models answer.

Values have no quotes, so only a tab and a field's name, or the end, ends one. Models also separate fields by lines or
spaces; these count if there are no tabs. ``summary`` is the last field and one line.
"""

from __future__ import annotations

import re

from agent_core.actions.dialects import Call
from agent_core.actions.dialects._build import build, is_known, plain
from agent_core.actions.dialects._text import QUOTES, Incomplete, Value, decode_escapes
from agent_core.actions.types import Action
from agent_core.errors import ActionParseError

_FIELDS = (
    "explain|action|point1|point2|point|value|return|summary|status|abort_reason|duration|direction|key|choices"
    "|keyboard_exists"
)
_START = re.compile(r"(?:\A|(?<=[\s>＞|`*\-]))(?:explain|action)\*{0,2}[ ]{0,3}[:：]", re.IGNORECASE)
_BY_TAB = re.compile(
    r"(?:\A|(?:\t|\\t)[\t ]{0,8}|\n[\t ]{0,8}(?=explain|action))([a-z_]{1,20}\d?)\*{0,2}[ ]{0,3}[:：]", re.IGNORECASE
)
_BY_LINE = re.compile(rf"(?:\A|\n[\t ]{{0,8}})({_FIELDS})\*{{0,2}}[ ]{{0,3}}[:：]", re.IGNORECASE)
_BY_BLANK = re.compile(rf"(?:\A|\s)({_FIELDS})[ ]{{0,3}}[:：]", re.IGNORECASE)
_TAB_FIELD = re.compile(rf"(?:\t|\\t)[\t ]{{0,8}}(?:{_FIELDS})[ ]{{0,3}}[:：]", re.IGNORECASE)
_LINE_FIELD = re.compile(rf"\n[\t ]{{0,8}}(?:{_FIELDS})\*{{0,2}}[ ]{{0,3}}[:：]", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][A-Za-z_ \-]{0,24}")
_TRAILING = re.compile(r"(?:\s|<\|end_of_box\|>|```)++\Z")
_MOST_MISSES = 16  # each one searches the rest of the text
_TYPED = {"type", "typename"}


class GELab:
    hint = "Write one line, fields separated by tabs: explain:… action:CLICK point:x,y summary:…"

    def __init__(self, *, known_only: bool = False) -> None:
        self._known_only = known_only  # an action with an unknown name is prose
        self._misses = 0

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        if self._misses > _MOST_MISSES:
            return None
        match = _START.search(text, pos, end)
        return match.start() if match else None

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        if not _START.match(text, start):
            return None
        fields, stop, ended = _fields(text, start, end)
        name = fields.get("action", "").strip().strip("*[]【】\"'“” ")
        if not _NAME.fullmatch(name) or (self._known_only and not is_known(name)):
            self._misses += 1
            return None
        if plain(name) in _TYPED:
            _check_whole(fields)
        summary = fields.get("summary", "").strip()
        aside = ""
        if plain(name) in _TYPED and "point" in fields:
            aside = "point:" + fields.pop("point").strip()  # the field is tapped in a separate step
        return Call(
            start,
            stop,
            lambda: _build(name, fields),
            closed=ended,
            thinking=fields.get("explain", "").strip(),
            summary=summary,
            aside=aside,
            finishes=plain(name) in {"complete", "finish"},
        )


def _check_whole(fields: dict[str, str]) -> None:
    """Raise if a text to be typed may be incomplete: the field after it shows that it is whole.

    A reply without explain may lack that field, too.
    """
    if "explain" in fields and "summary" not in fields:
        raise Incomplete("The reply was cut off: the field summary is missing after value. Write it again in full.")
    if any("\t" in fields.get(key, "") for key in ("value", "text", "content")):
        raise ActionParseError("A tab inside the text is no end of a field. Write \\t for a tab that is to be typed.")


def _fields(text: str, start: int, end: int) -> tuple[dict[str, str], int, bool]:
    """Return the fields of the block at ``start``, its end, and whether nothing more can belong to it."""
    if _TAB_FIELD.search(text, start, end):
        pattern = _BY_TAB
    elif _LINE_FIELD.search(text, start, end):
        pattern = _BY_LINE
    else:
        pattern = _BY_BLANK
    fields: dict[str, str] = {}
    ended = end < len(text)  # a tag follows
    stop = end
    key: str | None = None
    begin = start
    pos = start
    while True:
        # the pattern's \A is the beginning of the block
        match = pattern.match(text[start : start + 40]) if pos == start else pattern.search(text, pos, end)
        found = match.group(1).lower() if match else None
        if key is not None:
            fields[key] = text[begin : match.start() if match else end]
            if key == "summary":
                line = fields[key].lstrip().split("\n", 1)[0]
                limit = match.start() if match else end  # another field on the same line loses nothing
                closing = text.find("\n", text.find(line, begin) if line else begin, limit)
                fields[key] = line
                if closing >= 0:
                    return _cleaned(fields), closing, True
        if match is None or found is None:
            break
        if found in fields or (found == "explain" and "action" in fields):
            if found not in {"explain", "action", "summary"}:
                raise ActionParseError(f"The field {found} stands twice; write it once.")
            stop, ended = match.start(), True
            break
        offset = start if pos == start else 0
        key, begin = found, match.end() + offset
        pos = begin
    return _cleaned(fields), stop, ended


def _cleaned(fields: dict[str, str]) -> dict[str, str]:
    return {key: _TRAILING.sub("", value).strip(" \t") for key, value in fields.items()}


def _build(name: str, fields: dict[str, str]) -> Action:
    values: dict[str, Value] = {
        key: decode_escapes(value)
        for key, value in fields.items()
        if key not in {"explain", "action", "summary", "keyboard_exists"}
    }
    if values.get("status") == "":
        raise ActionParseError("The field status is empty; it is SUCCESS or FAILURE.")
    if isinstance(choices := values.get("choices"), str):
        values["choices"] = _listed(choices)
    return build(name, values)


def _listed(choices: str) -> list[Value]:
    """Split ``a|b``, ``a、b`` or ``["a", "b"]`` at the separator that is first in the order below."""
    inner = choices.strip().strip("[]【】")
    separator = next((mark for mark in "|｜;；、,，" if mark in inner), None)
    return [one.strip().strip(QUOTES) for one in (inner.split(separator) if separator else [inner]) if one.strip()]
