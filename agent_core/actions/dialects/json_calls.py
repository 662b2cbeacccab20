"""Reads JSON objects: ``{"_metadata": "do", "action": "Tap", "element": [500, 300]}`` and its variants.

``{"tap": [500, 300]}`` is one, too: its single key names an action that points at a place.
"""

from __future__ import annotations

import re

from agent_core.actions.dialects import Call
from agent_core.actions.dialects._build import POINTING, Units, build, plain
from agent_core.actions.dialects._text import QUOTES, Scanner, Value, shown
from agent_core.actions.types import Action
from agent_core.errors import ActionParseError

_START = re.compile(rf"[{{｛](?=\s{{0,200}}(?:[{QUOTES}]|[A-Za-z_]\w{{0,60}}\s{{0,4}}[:：]|\Z))")
_NAMED_BY = ("action", "operation", "type", "name")
_NESTED = ("arguments", "parameters", "params", "args")
_THOUGHTS = ("thought", "thinking", "think", "reasoning", "explain", "explanation")
# Bare numbers: a swipe's are milliseconds (one below 10 can only be seconds), others from 100 on.
_UNITS = Units(wait_ms_from=100, swipe_ms_from=10)
# A model that lists what it sees writes many objects; after this many, only an object that begins as a call counts.
_MOST_OTHERS = 20
_SURE_START = re.compile(rf"[{{｛]\s{{0,200}}[{QUOTES}](?:_metadata|action|operation)[{QUOTES}]\s{{0,4}}[:：]")


class JsonCalls:
    hint = 'Write exactly one JSON object as the answer: {"_metadata": "do", "action": "…", …}.'

    def __init__(self) -> None:
        self._others = 0

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        if self._others > 2 * _MOST_OTHERS:
            return None
        match = (_SURE_START if self._others > _MOST_OTHERS else _START).search(text, pos, end)
        return match.start() if match else None

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        if not _START.match(text, start):
            return None
        scanner = Scanner(text, start)
        values = _named(scanner.object())
        inner = values.get("action")
        if isinstance(inner, dict):
            values = {**{key: value for key, value in values.items() if key != "action"}, **inner}
        if "_metadata" not in values and not any(isinstance(values.get(key), str) for key in _NAMED_BY):
            self._others += 1
            return None
        thoughts = [str(values.pop(key)) for key in _THOUGHTS if isinstance(values.get(key), str)]
        name = _name(values)
        return Call(
            start,
            scanner.pos,
            lambda: _build(name, values),
            thinking="\n".join(thoughts),
            finishes=plain(name or "") in {"finish", "complete"},
        )


def _named(values: dict[str, Value]) -> dict[str, Value]:
    """Rewrite ``{"tap": [500, 300]}`` as the call that it means; return any other object unchanged."""
    keys = [key for key in values if key not in _THOUGHTS]
    if len(keys) != 1 or plain(keys[0]) not in POINTING:
        return values
    place = values[keys[0]]
    said = {key: value for key, value in values.items() if key in _THOUGHTS}
    if isinstance(place, dict):
        return {**said, "action": keys[0], "arguments": place}
    return {**said, "action": keys[0], "element": place} if isinstance(place, list) else values


def _name(values: dict[str, Value]) -> str | None:
    for key in _NAMED_BY:
        name = values.get(key)
        if isinstance(name, str) and not (key == "type" and plain(name) in {"do", "action"}):
            return name
    return "finish" if values.get("_metadata") == "finish" else None


def _build(name: str | None, values: dict[str, Value]) -> Action:
    values = dict(values)
    metadata = values.pop("_metadata", None)
    if metadata not in (None, "do", "finish"):
        raise ActionParseError(f'"_metadata" is "do" or "finish"; you wrote {shown(metadata)}.')
    if not name or not name.strip():
        raise ActionParseError('The object needs the name of an action: {"_metadata": "do", "action": "…", …}.')
    if metadata == "finish" and plain(name) != "finish":
        raise ActionParseError(f'The object says "finish" and {shown(name)} at once; write one of them.')
    for key in _NAMED_BY:
        if values.get(key) == name:
            del values[key]
            break
    if isinstance(values.get("type"), str) and plain(str(values["type"])) in {"do", "action"}:
        del values["type"]
    for key in _NESTED:
        nested = values.get(key)
        if isinstance(nested, dict):
            del values[key]
            twice = values.keys() & nested.keys()
            if twice:
                raise ActionParseError(f"{', '.join(sorted(twice))[:80]} stands twice in the object; write it once.")
            values.update(nested)
    return build(name, values, _UNITS)
