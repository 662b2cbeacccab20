"""Writes an action as the call that a model would have written, for the history; and in words, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_core.actions import types
from agent_core.actions.dialects._text import escape_tags
from agent_core.actions.types import Action
from agent_core.texts import Lang, catalogue

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\\"\ud800-\udfff]")
_NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

_Argument = str | tuple[int, int] | tuple[str, ...]


def to_autoglm(action: Action) -> str:
    """Return ``action`` as a line such as ``do(action="Tap", element=[500,300])``, which ``parse_reply`` can read.

    A finish without success is written as ``do(action="Abort", …)``, because a model's finish always means success.
    """
    if isinstance(action, types.Finish):
        if action.success:
            return f"finish(message={_quoted(action.message)})"
        return f"do(action={_quoted('Abort')}, message={_quoted(action.message)})"
    name, arguments = _parts(action)
    written = [f"action={_quoted(name)}"]
    written += [f"{key}={_written(value)}" for key, value in arguments.items()]
    return f"do({', '.join(written)})"


def to_json(action: Action, *, thought: str = "", longest: int | None = None) -> str:
    """Return ``action`` as an object of the json dialect, such as ``{"action": "Tap", "element": [500, 300]}``.

    Texts of more than ``longest`` characters are cut: for the history, not to be read back.
    """
    if isinstance(action, types.Finish):
        named: dict[str, Any] = {"action": "finish" if action.success else "Abort", "message": action.message}
    else:
        name, arguments = _parts(action)
        named = {"action": name.replace(" ", "_"), **arguments}
    if longest is not None:
        named = {key: value[:longest] if isinstance(value, str) else value for key, value in named.items()}
    return json.dumps({**({"thought": thought} if thought else {}), **named}, ensure_ascii=False)


def _parts(action: Action) -> tuple[str, dict[str, _Argument]]:  # noqa: C901, PLR0912 - one line an action
    match action:
        case types.Launch(app=app):
            return "Launch", {"app": app}
        case types.Tap(element=element, message=None):
            return "Tap", {"element": element}
        case types.Tap(element=element, message=str(message)):
            return "Tap", {"element": element, "message": message}
        case types.DoubleTap(element=element):
            return "Double Tap", {"element": element}
        case types.LongPress(element=element, duration=duration):
            return "Long Press", {"element": element, **_duration(duration, default=1.0)}
        case types.Swipe(start=start, end=end, duration=duration):
            return "Swipe", {"start": start, "end": end, **_duration(duration, default=0.5)}
        case types.Type(text=text):
            return "Type", {"text": text}
        case types.TypeName(text=text):
            return "Type_Name", {"text": text}
        case types.Back():
            return "Back", {}
        case types.Home():
            return "Home", {}
        case types.PressKey(key=key):
            return "Hot_Key", {"key": key.upper()}
        case types.Wait(duration=duration):
            return "Wait", _duration(duration)
        case types.TakeOver(message=message):
            return "Take_over", {"message": message}
        case types.Interact(question=question, choices=choices):
            return "Interact", {
                **({"question": question} if question else {}),
                **({"choices": choices} if choices else {}),
            }
        case types.Note(message=message):
            return "Note", {"message": message}
        case types.CallAPI(instruction=instruction):
            return "Call_API", {"instruction": instruction}
        case types.GetKnowledgeData(query=query):
            return "GET_KNOWLEDGE_DATA", {"query": query}
        case _:
            raise TypeError(f"no form for {type(action).__name__}")


def _duration(seconds: float, *, default: float | None = None) -> dict[str, _Argument]:
    if seconds == default:
        return {}
    return {"duration": f"{int(seconds) if seconds == int(seconds) else seconds!r} seconds"}


def _written(value: _Argument) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return "[" + ",".join(_quoted(item) if isinstance(item, str) else str(item) for item in value) + "]"


def _quoted(text: str) -> str:
    escaped = _CONTROL.sub(lambda match: _NAMED.get(match.group(), f"\\u{ord(match.group()):04x}"), text)
    return '"' + escape_tags(escaped) + '"'


_DEFAULTS: Mapping[str, Any] = {
    "app": "", "element": "", "start": "", "end": "", "text": "", "key": "", "duration": 0.0, "message": "",
    "question": "", "instruction": "", "query": "",
}  # fmt: skip


def in_words(lang: Lang, action: Mapping[str, object]) -> str:
    """Say what an action does, such as ``Open QQ``. ``action``: its fields, as they are stored."""
    kind = str(action.get("kind", ""))
    pattern = catalogue(lang).get(f"action.{kind}", kind)
    said = pattern.format(**{**_DEFAULTS, **{key: _shown(value) for key, value in action.items()}})
    return said.rstrip(" :：")  # a question, note or message may be empty


def _shown(value: object) -> object:
    if isinstance(value, list | tuple):
        return f"({', '.join(str(part) for part in value)})"
    return "" if value is None else value
