"""Checking a task's text where it enters."""

from __future__ import annotations

from agent_core.errors import InputRejected

MAX_TASK = 2000  # characters


def check_task(task: str) -> str:
    """The task, stripped. InputRejected where it is empty, too long, or holds control characters."""
    stripped = task.strip()
    if not stripped:
        raise InputRejected("The task is empty.", advice="Say what is to be done, for example: QQ回复联系人11")
    if len(stripped) > MAX_TASK:
        raise InputRejected(f"The task is longer than {MAX_TASK} characters.", advice="Shorten it.")
    if any(ord(char) < 32 and char not in "\n\t" for char in stripped):
        raise InputRejected("The task holds control characters.", advice="Send plain text.")
    return stripped
