"""Pages drawn at random over all looks: nothing wrong is ever sure. The long run is ``tests.acceptance.random_pages``."""

from __future__ import annotations

import pytest

from agent_core.devices.virtual.apps.looks import LOOKS
from agent_core.screen.ocr import OcrEngine
from tests.acceptance.random_pages import BAD, run

PAGES, PARTS = 60, 6


@pytest.mark.skipif(not OcrEngine.available(), reason="the extra [ocr] is not installed")
@pytest.mark.parametrize("part", range(PARTS))
async def test_nothing_wrong_is_sure_and_no_page_is_missed(part: int) -> None:
    seeds = list(range(1 + part, 1 + PAGES, PARTS))
    tally = await run(seeds, sorted(LOOKS), "", verbose=False)
    assert sum(tally.counts[f"{look}: pages"] for look in LOOKS) == len(seeds)
    assert {word: tally.counts[word] for word in BAD if tally.counts[word]} == {}, "\n".join(tally.bad)
    assert tally.counts["read without a doubt"] >= len(seeds) // 2
