from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent_core
from agent_core.texts import catalogue, say

ROOT = Path(agent_core.__file__).parent


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def said() -> Iterator[tuple[str, set[str], str]]:
    """Every ``say(lang, "key", name=…)`` of the package: key, names of the values, where."""
    for file in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say"):
                continue
            key = node.args[1] if len(node.args) > 1 else None
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                names = {word.arg for word in node.keywords if word.arg}
                yield key.value, names, f"{file.relative_to(ROOT)}:{node.lineno}"


def test_both_languages_say_the_same_things() -> None:
    zh, en = catalogue("zh"), catalogue("en")
    assert zh.keys() == en.keys()
    assert [key for key in zh if placeholders(zh[key]) != placeholders(en[key])] == []
    assert [key for key in zh if not zh[key].strip() or not en[key].strip()] == []


def test_whatever_is_said_has_its_text_and_its_values() -> None:
    found = list(said())
    assert len(found) > 20
    missing = [
        (key, where) for key, names, where in found if not placeholders(catalogue("en").get(key, "{?}")) <= names
    ]
    assert missing == []


def test_values_are_filled_in_as_they_are() -> None:
    assert say("zh", "run.sent", contact="11", text="{x} {0}") == "已发送给 11：{x} {0}"
    assert say("en", "run.sent", contact="11", text="a") == "Sent to 11: a"


@pytest.mark.parametrize("key", ["run.nothing_like_it", "", "sent"])
def test_a_text_that_is_missing_is_an_error(key: str) -> None:
    with pytest.raises(KeyError):
        say("zh", key)
    with pytest.raises(KeyError):
        say("zh", "run.sent", contact="11")
