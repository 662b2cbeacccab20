"""A small form of ``kills.py``: one kill; the kinds of reply take turns, in the default look."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.phone.apps.looks import DEFAULT_LOOKS
from tests.acceptance.kills import Kind, kills


@pytest.mark.timeout(300)  # 20 s on two free cores
@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("kind", Kind)
async def test_killed_at_random_every_customer_has_the_answer_once(tmp_path: Path, kind: Kind) -> None:
    figures = await kills(tmp_path, 1, mode="tree", seed=4, look=DEFAULT_LOOKS["qq"], kinds=(kind,))
    assert figures.problems == []
    assert (figures.kills, figures.doubles, figures.lost) == (1, 0, 0)
