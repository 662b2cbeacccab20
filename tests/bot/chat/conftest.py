from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bot.desk.conftest import shop, url
from tests.support.stage import Stage, open_stage, still
from tests.support.talker import Talker, talker

__all__ = ["shop", "url"]


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with open_stage(tmp_path / "stage.db", still()) as made:
        yield made


@pytest.fixture
async def wang(stage: Stage) -> Talker:
    """An owner."""
    person = talker(stage.desk, "11", "Operator A")
    await person.say("/start 4711")
    return person


@pytest.fixture
async def li(stage: Stage, wang: Talker) -> Talker:
    """An operator, who speaks English."""
    person = talker(stage.desk, "12", "Operator B", "en")
    await person.say("/start 0815")
    return person
