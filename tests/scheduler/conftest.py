from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.engine import Database
from tests.support.clock import Clock
from tests.support.database import empty_sqlite


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def url(tmp_path: Path) -> str:
    return await empty_sqlite(tmp_path / "desk.db")


@pytest.fixture
async def db(url: str, clock: Clock) -> AsyncIterator[Database]:
    """A database whose time stands still until the test moves it."""
    database = Database(url, clock=clock)
    yield database
    await database.close()
