"""A small form of ``kills.py``: one kill in each kind of reply."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.kills import Kind, kills


async def test_killed_at_random_every_customer_has_the_answer_once(tmp_path: Path) -> None:
    figures = await kills(tmp_path, len(Kind), mode="tree", seed=4)
    assert figures.problems == []
    assert (figures.kills, figures.doubles, figures.lost) == (len(Kind), 0, 0)
