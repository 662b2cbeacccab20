"""Secrets in free-form tables, such as ``model.extra_body``: recognised by the names of their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_NAMED = re.compile(
    r"(^|[^a-z])(api[-_]?key|key|token|secret|password|passwd|authorization|credential)s?$", re.IGNORECASE
)


def is_secret(name: object, value: object) -> bool:
    """Tell whether a text under this name is a secret: ``{"api_key": "…"}``."""
    return isinstance(value, str) and _NAMED.search(str(name)) is not None


def secrets_in(data: Any) -> Iterator[str]:
    """Yield every such text, at any depth."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            if is_secret(name, value):
                yield value
            else:
                yield from secrets_in(value)
    elif isinstance(data, list | tuple):
        for item in data:
            yield from secrets_in(item)


def secrets_given(inside: str, text: str) -> list[str]:
    """Return the secrets in ``text``, the value of such a table, or of the key ``inside`` it."""
    if inside:
        return [text] if is_secret(inside, text) else []
    try:
        return list(secrets_in(json.loads(text)))
    except ValueError:
        return []
