"""What a control covers: a button is more than the words on it, and a row more than its name."""

from __future__ import annotations

from agent_core.geometry import Box


def grown(box: Box, across: int, down: int) -> Box:
    """Return ``box`` with so many pixels more on its sides, and above and below."""
    return Box(box.left - across, box.top - down, box.right + across, box.bottom + down)
