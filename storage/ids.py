"""Ids of runs and questions: short, unique, and in the order in which they were made."""

from __future__ import annotations

import secrets
import threading
import time

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: nothing that is misread

_lock = threading.Lock()
_last = 0


def _digits(number: int, width: int) -> str:
    out = ""
    for _ in range(width):
        number, digit = divmod(number, 32)
        out = ALPHABET[digit] + out
    return out


def new_id() -> str:
    """13 characters: nine of the time in milliseconds (never the same twice in a process), four of chance."""
    global _last  # noqa: PLW0603 - the order of the ids of one process is kept here
    with _lock:
        _last = max(time.time_ns() // 1_000_000, _last + 1)
        moment = _last
    return _digits(moment, 9) + _digits(secrets.randbits(20), 4)
