"""The real desk of a stage, and people in front of its chat. What it takes is loaded when a test needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.stage import Stage
    from tests.support.talker import Talker


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    from tests.support.stage import open_stage

    async with open_stage(tmp_path / "stage.db") as made:
        yield made


@pytest.fixture
async def wang(stage: Stage) -> Talker:
    """An owner."""
    from tests.support.talker import talker

    person = talker(stage.desk, "11", "Operator A")
    await person.say("/start 4711")
    return person


@pytest.fixture
async def li(stage: Stage, wang: Talker) -> Talker:
    """An operator, who speaks English."""
    from tests.support.talker import talker

    person = talker(stage.desk, "12", "Operator B", "en")
    await person.say("/start 0815")
    return person
