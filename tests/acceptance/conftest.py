from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.stage import Stage, stage


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    """The stage with the shipped world: contact 11 has asked when the order is sent."""
    async with stage(tmp_path) as made:
        yield made
