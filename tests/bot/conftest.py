from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.process import process_kept

if TYPE_CHECKING:
    from tests.support.shop import Shop


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    with process_kept():
        yield


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """The URL of an empty, migrated database."""
    from tests.support.database import empty_sqlite

    return await empty_sqlite(tmp_path / "desk.db")


@pytest.fixture
async def shop(url: str) -> AsyncIterator[Shop]:
    """A desk over a real database."""
    from tests.support.clock import Clock
    from tests.support.database import filled_sqlite
    from tests.support.shop import known, make_shop

    clock = Clock()
    made = make_shop(await filled_sqlite(Path(url.removeprefix("sqlite:///")), known, clock), clock)
    yield made
    await made.db.close()
