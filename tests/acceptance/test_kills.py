"""A small form of ``kills.py``: one kill in each kind of reply, in the default look."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.phone.apps.looks import DEFAULT_LOOKS
from tests.acceptance.kills import Kind, kills


@pytest.mark.timeout(300)  # 80 s on two free cores
async def test_killed_at_random_every_customer_has_the_answer_once(tmp_path: Path) -> None:
    figures = await kills(tmp_path, len(Kind), mode="tree", seed=4, look=DEFAULT_LOOKS["qq"])
    assert figures.problems == []
    assert (figures.kills, figures.doubles, figures.lost) == (len(Kind), 0, 0)
