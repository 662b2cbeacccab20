"""How many tokens a text costs, guessed from above, without the model's tokenizer."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

_WORDS, _SPACES, _RARE = re.compile(r"[A-Za-z]+"), re.compile(r"[ \t]+"), re.compile("[\U00010000-\U0010ffff]")
MESSAGE_TOKENS = 6  # the marks around one message
PICTURE_TOKENS = 1_600  # of a picture, at most; a half-size phone screen costs about 900


def text_tokens(text: str) -> int:
    """Tokens of ``text`` at most: a Chinese character, digit or mark is one, Latin letters one for each three."""
    words, spaces = _WORDS.findall(text), _SPACES.findall(text)
    others = len(text) - sum(map(len, words)) - sum(map(len, spaces)) + 2 * len(_RARE.findall(text))
    return others + sum(math.ceil(len(word) / 3) for word in words) + sum(len(space) // 4 for space in spaces)


def request_tokens(messages: Sequence[Mapping[str, Any]]) -> int:
    """What ``messages`` of the chat completions form cost at most, pictures included."""
    total = 0
    for message in messages:
        content = message.get("content") or ""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = (part["text"] for part in parts if part["type"] == "text")
        total += MESSAGE_TOKENS + sum(map(text_tokens, texts))
        total += sum(PICTURE_TOKENS for part in parts if part["type"] != "text")
    return total
