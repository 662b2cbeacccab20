"""A small LRU cache."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Store ``value`` as the newest entry, and drop the oldest entries beyond ``most``."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)
