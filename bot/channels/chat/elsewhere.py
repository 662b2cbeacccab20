"""Errors' advice names commands of the chat. This replaces them by those of the terminal, or of a program."""

from __future__ import annotations

import re

# A path such as /run/desk.log is not a command.
_BEFORE, _BEHIND = r"(?<![\w/.:@])", r"(?![a-zA-Z0-9_/-]|\.\w)"
_COMMAND = re.compile(
    rf"{_BEFORE}/([a-z]+){_BEHIND}(?: (列表|修改|搜索|添加|待审|立即执行|list|edit|search|add|pending|run)\b)?"
)
_SHOWS = {  # the terminal's command for one without an argument
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
_HAS = {  # the subcommands of the terminal's commands
    "contacts": {"list", "edit", "add"},
    "kb": {"edit", "search", "add", "pending"},
    "people": {"list"},
    "schedule": {"list", "edit", "add", "run"},
}


def in_terminal(said: str) -> str:
    """Replace ``/devices`` by ``phonedesk devices`` and so on. A command that the terminal lacks stays as it is."""

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
    """Do the same as ``in_terminal``. ``tools``: what a program can call instead, by the chat's command."""
    for command, tool in tools.items():
        said = re.sub(rf"{_BEFORE}/{command}{_BEHIND}", tool, said)
    return in_terminal(said)
