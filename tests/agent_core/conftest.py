from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.lab import Lab, lab


@pytest.fixture
async def bench_lab() -> AsyncIterator[Lab]:
    async with lab() as made:
        yield made
