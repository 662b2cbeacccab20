"""Reads ``do(action="Tap", element=[500, 300])`` and ``finish(message="…")``, as AutoGLM models answer."""

from __future__ import annotations

import re

from agent_core.actions.dialects import Call
from agent_core.actions.dialects._build import build, plain
from agent_core.actions.dialects._text import QUOTES, Scanner, TextPosition, Value, shown
from agent_core.actions.types import Action
from agent_core.errors import ActionParseError

# The bracket must be followed by something that only a call has there; "do(...)" in prose is not a call.
_START = re.compile(
    rf"(?<![A-Za-z0-9_.])(do|finish)\s{{0,4}}[(（](?=\s{{0,20}}(?:[)）{QUOTES}\d\[{{]|[A-Za-z_]\w{{0,60}}\s{{0,4}}[=＝,，)）]|\Z))",
    re.IGNORECASE,
)
_KEY = re.compile(r"\s*+([A-Za-z_]\w{0,60})\s*+[=＝]\s*+")
_PLACEHOLDER = re.compile(r"\s*+(?:\.\.\.|…|<)")


class AutoGLM:
    hint = 'Write exactly one call as the answer: do(action="…", …) or finish(message="…").'

    def next_start(self, text: str, pos: int, end: int) -> int | None:
        match = _START.search(text, pos, end)
        # the start must be before the tag, but what follows its bracket is checked in the whole text
        return match.start() if match and _START.match(text, match.start()) else None

    def read_at(self, text: str, start: int, end: int) -> Call | None:
        match = _START.match(text, start)
        if not match:
            return None
        name = match.group(1).lower()
        scanner = Scanner(text, match.end())
        values: dict[str, Value] = {}
        positional: list[Value] = []
        while scanner.peek() not in ")）":
            key = _KEY.match(text, scanner.pos)
            if key and _PLACEHOLDER.match(text, key.end()):
                return None
            if key:
                scanner.pos = key.end()
                if key.group(1) in values:
                    raise ActionParseError(f"{key.group(1)} stands twice in {name}(…); write it once.")
                values[key.group(1)] = scanner.value(TextPosition.CALL)
            else:
                positional.append(scanner.value(TextPosition.POSITIONAL))
            if not scanner.comma() and scanner.peek() not in ")）":
                found = text[scanner.pos : scanner.pos + 30]
                raise ActionParseError(f"A comma or the closing bracket of {name}(…) is missing before: {found}")
        return Call(
            start,
            scanner.pos + 1,
            lambda: _build(name, values, positional),
            finishes=name == "finish" or plain(str(values.get("action", ""))) in {"finish", "complete"},
        )


def _build(name: str, values: dict[str, Value], positional: list[Value]) -> Action:
    values = dict(values)
    if name == "finish":
        if len(positional) > 1 or (positional and "message" in values):
            raise ActionParseError('finish takes one message: finish(message="…").')
        if positional:
            values["message"] = positional[0]
        return build("finish", values)
    if positional:
        raise ActionParseError(
            f'do(…) takes its arguments by name, as in do(action="Tap"); {shown(positional[0])} has none.'
        )
    action = values.pop("action", None)
    if not isinstance(action, str) or not action.strip():
        raise ActionParseError('do(…) needs the name of an action: do(action="…", …).')
    return build(action, values)
