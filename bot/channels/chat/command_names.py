"""Commands of the chat that a text names, said by the names of the terminal's commands, or of a program's tools."""

from __future__ import annotations

import re

_BEFORE, _BEHIND = r"(?<![\w/.:@])", r"(?![a-zA-Z0-9_/-]|\.\w)"
COMMAND = rf"{_BEFORE}/([a-z]+){_BEHIND}"  # in a text; a path such as /run/desk.log is none
_COMMAND = re.compile(rf"{COMMAND}(?: (列表|修改|搜索|添加|待审|立即执行|list|edit|search|add|pending|run)\b)?")
TERMINAL_COMMANDS = {  # for a command of the chat without an argument
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
SUBCOMMANDS = {  # of the terminal
    "contacts": {"list", "edit", "add"},
    "kb": {"edit", "search", "add", "pending"},
    "people": {"list"},
    "schedule": {"list", "edit", "add", "run"},
}


def in_terminal(said: str) -> str:
    """Replace ``/devices`` by ``phonedesk devices`` and so on. A command that the terminal lacks stays as it is."""

    def named(found: re.Match[str]) -> str:
        command, part = found[1], found[2]
        if command not in TERMINAL_COMMANDS:
            return found[0]
        if not part or command not in SUBCOMMANDS:
            return f"phonedesk {TERMINAL_COMMANDS[command]}" + (f" {part}" if part else "")
        part = _PARTS.get(part, part)
        return f"phonedesk {command} {part}" if part in SUBCOMMANDS[command] else found[0]

    return _COMMAND.sub(named, said)


def for_programs(said: str, **tools: str) -> str:
    """Do the same as ``in_terminal``. ``tools``: what a program can call instead, by the chat's command."""
    for command, tool in tools.items():
        said = re.sub(rf"{_BEFORE}/{command}{_BEHIND}", tool, said)
    return in_terminal(said)
