from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.lab import Lab


@pytest.fixture
async def bench_lab() -> AsyncIterator[Lab]:
    from tests.support.lab import lab  # the whole agent, and what reads pictures

    async with lab() as made:
        yield made
