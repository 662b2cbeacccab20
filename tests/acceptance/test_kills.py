"""A small form of ``kills.py``: one kill in each kind of reply in the default look, and two in one look more.

The other look changes with the day of the year; ``EVAL_DAY=45`` takes that day's again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.devices.virtual.apps.looks import DEFAULT_LOOKS
from tests.acceptance.kills import Kind, kills
from tests.support.looks import look_of_the_day


@pytest.mark.parametrize(("look", "count"), [(DEFAULT_LOOKS["qq"], len(Kind)), (look_of_the_day(), 2)])
async def test_killed_at_random_every_customer_has_the_answer_once(tmp_path: Path, look: str, count: int) -> None:
    figures = await kills(tmp_path, count, mode="tree", seed=4, look=look)
    assert figures.problems == []
    assert (figures.kills, figures.doubles, figures.lost) == (count, 0, 0)
