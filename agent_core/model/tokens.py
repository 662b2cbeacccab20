"""How many tokens a text costs, guessed from above, without the model's tokenizer."""

from __future__ import annotations

import math
import re

_PIECES = re.compile(r"[A-Za-z]+|[ \t]+|.", re.DOTALL)
MESSAGE_TOKENS = 6  # the marks around one message


def text_tokens(text: str) -> int:
    """Tokens of ``text`` at most: a Chinese character, digit or mark is one, Latin letters one for each three."""
    total = 0
    for match in _PIECES.finditer(text):
        piece = match.group()
        if piece[0] in " \t":
            total += len(piece) // 4
        elif piece[0].isascii():
            total += math.ceil(len(piece) / 3)
        else:
            total += 1 if ord(piece) < 0x10000 else 3
    return total
