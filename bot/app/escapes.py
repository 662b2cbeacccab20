"""Control characters in texts from outside: shown as escapes wherever people read them.

A customer's message, a name, a model's reply or the body of an HTTP error may hold characters that a terminal obeys (C0
and C1 controls, ESC sequences), that reorder a line (Unicode's directional formatting characters), that begin a new
line in a viewer (U+2028, U+2029), or half a surrogate pair, which no stream can encode.
"""

from __future__ import annotations

import json
import re

_SPECIAL = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT = re.compile(f"[{_SPECIAL}]")
_IN_LINE = re.compile(f"[{_SPECIAL}\n]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str) -> str:
    """Return ``text`` with its line ends as newlines, and every other control character as an escape."""
    return _IN_TEXT.sub(_escape, text.replace("\r\n", "\n"))


def escaped_line(text: str) -> str:
    """Return ``text`` with newlines escaped, too: it stays one line."""
    return _IN_LINE.sub(_escape, text)


def to_json(data: object, *, indent: int | None = None) -> str:
    """Return ``data`` as JSON, with Chinese as it is and control characters as JSON escapes, so nothing is lost.

    An object that JSON does not know becomes its text.
    """
    written = json.dumps(data, ensure_ascii=False, indent=indent, default=str)
    return _IN_TEXT.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _NAMED.get(found[0]) or (f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
