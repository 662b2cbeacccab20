from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.clock import Clock

if TYPE_CHECKING:
    from storage.engine import Database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def url(tmp_path: Path) -> str:
    from tests.support.database import empty_sqlite

    return await empty_sqlite(tmp_path / "desk.db")


@pytest.fixture
async def db(url: str, clock: Clock) -> AsyncIterator[Database]:
    """A database whose time stands still until the test moves it."""
    from storage.engine import Database

    database = Database(url, clock=clock)
    yield database
    await database.close()
