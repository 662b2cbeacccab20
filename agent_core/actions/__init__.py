"""The typed actions, and the dialects that read them from a model's text."""

from agent_core.actions.parse import CallWatch, Dialect, complete_call_end, parse_reply
from agent_core.actions.types import (
    Action,
    Back,
    CallAPI,
    DoubleTap,
    Finish,
    GetKnowledgeData,
    Home,
    Interact,
    Launch,
    LongPress,
    Note,
    PressKey,
    Reply,
    Swipe,
    TakeOver,
    Tap,
    Type,
    TypeName,
    Wait,
)
from agent_core.actions.write import to_autoglm
from agent_core.errors import ActionParseError

__all__ = [
    "Action",
    "ActionParseError",
    "Back",
    "CallAPI",
    "CallWatch",
    "Dialect",
    "DoubleTap",
    "Finish",
    "GetKnowledgeData",
    "Home",
    "Interact",
    "Launch",
    "LongPress",
    "Note",
    "PressKey",
    "Reply",
    "Swipe",
    "TakeOver",
    "Tap",
    "Type",
    "TypeName",
    "Wait",
    "complete_call_end",
    "parse_reply",
    "to_autoglm",
]
