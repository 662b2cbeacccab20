"""Checking a task's text where it enters."""

from __future__ import annotations

import unicodedata

from agent_core.errors import InputRejected

MAX_TASK = 2000  # characters


def check_task(task: str) -> str:
    """The task, stripped. InputRejected where it is empty, too long, or holds control characters or broken ones."""
    stripped = task.replace("\r\n", "\n").strip()
    if all(unicodedata.category(char)[0] in "ZC" for char in stripped):  # nothing that can be seen
        raise InputRejected("The task is empty.", advice="Say what is to be done, for example: QQ回复联系人11")
    if len(stripped) > MAX_TASK:
        raise InputRejected(f"The task is longer than {MAX_TASK} characters.", advice="Shorten it.")
    if any(unicodedata.category(char) in {"Cc", "Cs"} and char not in "\n\t" for char in stripped):
        raise InputRejected("The task holds control characters.", advice="Send plain text.")
    return stripped
