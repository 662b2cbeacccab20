"""What errors advise is written for the chat; who reads it elsewhere is told what to call there."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"(?<![\w/.:@])/([a-z]+)(?: (列表|修改|搜索|添加|list|edit|search|add)\b)?")
_SHOWS = {  # what stands for the bare command
    "answers": "answers",
    "ask": "questions list",
    "contacts": "contacts list",
    "devices": "devices",
    "history": "replay",
    "kb": "kb search",
    "people": "people list",
    "replay": "replay",
    "run": "run",
    "schedule": "schedule list",
    "sweep": "sweep",
    "watch": "schedule watch",
}
_PARTS = {"列表": "list", "修改": "edit", "搜索": "search", "添加": "add"}


def in_terminal(said: str) -> str:
    """With ``phonedesk devices`` for ``/devices``, and so on; what has no such command stays."""

    def named(found: re.Match[str]) -> str:
        command, part = found[1], found[2]
        if command not in _SHOWS:
            return found[0]
        return f"phonedesk {command} {_PARTS.get(part, part)}" if part else f"phonedesk {_SHOWS[command]}"

    return _COMMAND.sub(named, said)


def for_programs(said: str, **tools: str) -> str:
    """As ``in_terminal``; ``tools``: by the chat's command, what the program itself can call."""
    for command, tool in tools.items():
        said = re.sub(rf"(?<![\w/.:@])/{command}\b", tool, said)
    return in_terminal(said)
