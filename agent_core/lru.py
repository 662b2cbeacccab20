"""A small LRU cache."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Put ``value`` in as the newest; what was kept before the last ``most`` is forgotten."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
