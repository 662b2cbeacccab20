"""Offers the actions as tools of the chat completions API, for models that answer best by calling one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agent_core.actions import types


class _Ending(BaseModel):
    """The arguments of a finish. Success is not among them: the model tells it by the tool that it calls."""

    message: str


_KINDS: Mapping[str, type[BaseModel]] = {
    "Launch": types.Launch,
    "Tap": types.Tap,
    "Type": types.Type,
    "Type_Name": types.TypeName,
    "Swipe": types.Swipe,
    "Long_Press": types.LongPress,
    "Double_Tap": types.DoubleTap,
    "Back": types.Back,
    "Home": types.Home,
    "Wait": types.Wait,
    "Take_over": types.TakeOver,
    "Interact": types.Interact,
    "Note": types.Note,
    "Call_API": types.CallAPI,
    "GET_KNOWLEDGE_DATA": types.GetKnowledgeData,
    "finish": _Ending,
    "Abort": _Ending,
}


def tools(described: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Return one function for each of ``described`` (name → example, what it does), in its order.

    The parameters are the JSON schema of the action's fields. A call is read in the json dialect as ``{"action": name,
    "arguments": {…}}``. Raises KeyError for an unknown name.
    """
    return [
        {"type": "function", "function": {"name": name, "description": says, "parameters": _parameters(_KINDS[name])}}
        for name, (_, says) in described.items()
    ]


def _parameters(kind: type[BaseModel]) -> dict[str, Any]:
    schema = kind.model_json_schema()
    properties = {name: _plain(part) for name, part in schema.get("properties", {}).items() if name != "kind"}
    required = [name for name in schema.get("required", ()) if name != "kind"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _plain(part: dict[str, Any]) -> dict[str, Any]:
    """Remove the parts that endpoints refuse: titles, defaults, and the item-wise form of a pair."""
    if "anyOf" in part:  # an optional field
        part = next(choice for choice in part["anyOf"] if choice.get("type") != "null")
    if "prefixItems" in part:
        number = {key: value for key, value in part["prefixItems"][0].items() if key != "title"}
        return {"type": "array", "items": number, "minItems": 2, "maxItems": 2}
    return {key: value for key, value in part.items() if key not in {"title", "default"}}
