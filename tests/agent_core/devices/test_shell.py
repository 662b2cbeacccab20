from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.devices.shell import AND, PIPE, Raw, chunks, command_line


@pytest.mark.parametrize(
    "nasty", ["a b", "'", '"', "$(reboot)", "`reboot`", ";reboot", "\n reboot", "\\", "*", "~", "-n", "", "&&", "你好"]
)
def test_arguments_stay_single_arguments(nasty: str) -> None:
    line = command_line(["echo", nasty], ["true"])
    assert shlex.split(line.removesuffix("; true")) == ["echo", nasty]


def test_operators_are_ours_alone() -> None:
    assert command_line(("a", PIPE, "grep", "x|y", AND, "b"), ("c", Raw("2>&1"))) == "a | grep 'x|y' && b; c 2>&1"
    assert command_line(("a", "|", "&&")) == "a '|' '&&'"


@given(st.text(), st.integers(4, 50))
def test_parts_are_whole_and_small(text: str, size: int) -> None:
    parts = list(chunks(text, size))
    assert "".join(parts) == text
    assert all(0 < len(part.encode()) <= size for part in parts)
