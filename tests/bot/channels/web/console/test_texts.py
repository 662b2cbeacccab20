"""The console's own texts."""

from __future__ import annotations

import re
import string
from pathlib import Path

from agent_core.texts import load_texts
from bot.channels.web.console import routes, texts
from bot.channels.web.console.texts import console_texts

HERE = Path(routes.__file__).parent


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_both_languages_say_the_same_things() -> None:
    zh, en = load_texts(texts.__name__, "zh"), load_texts(texts.__name__, "en")
    assert zh.keys() == en.keys()
    assert {key for key in zh if placeholders(zh[key]) != placeholders(en[key])} == set()


def test_each_text_is_used_and_each_that_is_used_is_there() -> None:
    own = load_texts(texts.__name__, "en")
    code = "\n".join(file.read_text(encoding="utf-8") for file in [*HERE.rglob("*.py"), *HERE.glob("templates/*.html")])
    used = set(re.findall(r"(?:\bt|own)\(\s*['\"]([a-z_]+\.[a-z_]+)['\"]", code))
    assert used - own.keys() == set()
    named = set(re.findall(r"['\"]([a-z_]+(?:\.[a-z_]+)?)['\"]", code))
    sought = tuple(re.findall(r"find_own\(\s*f['\"]([a-z_]+\.[a-z_]*)\{", code))  # by a word that is stored
    unused = {key for key in own if key not in named and key.partition(".")[2] not in named}
    unused = {key for key in unused if not key.startswith(sought)}
    assert unused == set()


def test_pages_are_named_in_place_of_commands_of_the_chat() -> None:
    words = console_texts("en")
    assert words.typed("See /ask for the open ones.") == "See “Questions” for the open ones."
    assert words.typed("the file /run/desk.log") == "the file /run/desk.log"
    assert words.typed("write /start CODE") == "write /start CODE"
