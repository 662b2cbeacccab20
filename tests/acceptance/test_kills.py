"""A small form of ``kills.py``: one kill in two kinds of reply, which take turns, in the default look."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.phone.apps.looks import DEFAULT_LOOKS
from tests.acceptance.kills import Kind, kills


@pytest.mark.timeout(300)  # 40 s on two free cores
@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("kinds", [(Kind.ONE, Kind.LONG), (Kind.TWO, Kind.PERSON)], ids=["one-long", "two-person"])
async def test_killed_at_random_every_customer_has_the_answer_once(tmp_path: Path, kinds: tuple[Kind, ...]) -> None:
    figures = await kills(tmp_path, len(kinds), mode="tree", seed=4, look=DEFAULT_LOOKS["qq"], kinds=kinds)
    assert figures.problems == []
    assert (figures.kills, figures.doubles, figures.lost) == (len(kinds), 0, 0)
