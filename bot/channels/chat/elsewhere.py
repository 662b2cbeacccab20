"""What errors advise is written for the chat; who reads it elsewhere is told what to call there."""

from __future__ import annotations

import re

# Paths, such as /run/desk.log, are no commands.
_BEFORE, _BEHIND = r"(?<![\w/.:@])", r"(?![a-zA-Z0-9_/-]|\.\w)"
_COMMAND = re.compile(
    rf"{_BEFORE}/([a-z]+){_BEHIND}(?: (列表|修改|搜索|添加|待审|立即执行|list|edit|search|add|pending|run)\b)?"
)
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
_PARTS = {"列表": "list", "修改": "edit", "搜索": "search", "添加": "add", "待审": "pending", "立即执行": "run"}
_HAS = {  # of the commands that have parts in the terminal
    "contacts": {"list", "edit", "add"},
    "kb": {"edit", "search", "add", "pending"},
    "people": {"list"},
    "schedule": {"list", "edit", "add", "run"},
}


def in_terminal(said: str) -> str:
    """With ``phonedesk devices`` for ``/devices``, and so on; what has no such command stays."""

    def named(found: re.Match[str]) -> str:
        command, part = found[1], found[2]
        if command not in _SHOWS:
            return found[0]
        if not part or command not in _HAS:
            return f"phonedesk {_SHOWS[command]}" + (f" {part}" if part else "")
        part = _PARTS.get(part, part)
        return f"phonedesk {command} {part}" if part in _HAS[command] else found[0]

    return _COMMAND.sub(named, said)


def for_programs(said: str, **tools: str) -> str:
    """As ``in_terminal``; ``tools``: by the chat's command, what the program itself can call."""
    for command, tool in tools.items():
        said = re.sub(rf"{_BEFORE}/{command}{_BEHIND}", tool, said)
    return in_terminal(said)
