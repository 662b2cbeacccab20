"""A small form of ``updates.py``, by polling and by webhook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.updates import Mode, updates


@pytest.mark.rotating(parts=2)
@pytest.mark.parametrize("mode", ["polling", "webhook"])
async def test_each_command_takes_effect_once(tmp_path: Path, mode: Mode) -> None:
    figures = await updates(tmp_path, 60, restart_every=25, mode=mode, seed=3)
    assert figures.problems == []
    assert figures.restarts >= 2
    assert figures.effects == figures.sent
    assert figures.deliveries >= 60
