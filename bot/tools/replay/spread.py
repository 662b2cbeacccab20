"""Selects a few of many items evenly."""

from __future__ import annotations


def spread(count: int, most: int) -> list[int]:
    """Return at most ``most`` of the indexes 0 … ``count`` - 1, evenly spread, including the first and the last."""
    if most < 1:
        return []
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
