"""Secrets in the settings: found by their type, and in free-form tables such as ``model.extra_body`` by the names of
their fields; and values as they may be shown, without them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretStr

from bot.app.logs import mask

DOTS = "••••"
SHOWS_END = 16  # letters: of a secret that has as many, the last two are shown
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


def secrets_of_section(section: BaseModel) -> Iterator[str]:
    """Yield every secret of a section; of free tables and headers only those of 6 characters or more."""
    for _, value in section:
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, BaseModel):
            yield from secrets_of_section(value)
        elif isinstance(value, tuple):
            yield from (secret for part in value if isinstance(part, BaseModel) for secret in secrets_of_section(part))
        elif isinstance(value, dict):  # headers, free tables; a short one would blot out whole messages
            found = (*map(_header_secret, value.values()), *secrets_in(value))
            yield from (secret for secret in found if len(secret) >= 6)


def _header_secret(value: object) -> str:
    """Return the secret part of a header: all of it, except templates and values that everybody knows."""
    plain = value.get_secret_value() if isinstance(value, SecretStr) else ""
    return "" if "{" in plain or plain == "application/json" else plain


def plain_of(value: Any) -> Any:
    """Return ``value`` as plain data without secrets, found by their type or by their form."""
    if isinstance(value, SecretStr):
        return masked(value.get_secret_value())
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, BaseModel):
        return {key: plain_of(item) for key, item in value}
    if isinstance(value, Mapping):
        return {str(key): masked(item) if is_secret(key, item) else plain_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_of(item) for item in value]
    return mask(str(value))


def masked(secret: str) -> str:
    """Return dots for a secret, "" for "".

    A long key keeps its last two letters, to tell two keys apart; a PIN keeps none.
    """
    shows_end = len(secret) >= SHOWS_END and not secret.isdecimal()
    return "" if not secret else DOTS + (secret[-2:] if shows_end else "")
