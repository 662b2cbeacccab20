"""Which of many are shown where there is room for a few."""

from __future__ import annotations


def spread(count: int, most: int) -> list[int]:
    """At most ``most`` of the places 0 … ``count`` - 1, evenly spread, the first and the last among them."""
    if most < 1:
        return []
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
