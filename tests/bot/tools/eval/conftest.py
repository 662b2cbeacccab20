from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from bot.tools.eval.bench import Bench, open_bench


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench() -> AsyncIterator[Bench]:
    """One for all: what it has read from pictures stays read."""
    async with open_bench() as opened:
        yield opened
