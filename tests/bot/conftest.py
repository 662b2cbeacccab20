from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from bot.app import logs
from bot.channels.cli.terminal.language import speak

if TYPE_CHECKING:
    from tests.support.shop import Shop


@pytest.fixture(autouse=True)
def process_as_it_was() -> Iterator[None]:
    """Undo what a command sets up for its process: its language, and logs into streams that are closed afterwards."""
    root = logging.getLogger()
    handlers, level, known = root.handlers[:], root.level, set(logs._known)
    yield
    speak(None)
    logs.close_file()
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._known.clear()
    logs._known.update(known)
    structlog.reset_defaults()


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
