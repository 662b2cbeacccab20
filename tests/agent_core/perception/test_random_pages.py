"""Pages drawn at random over all looks: nothing wrong is ever sure.

The long run is ``python -m tests.acceptance.random_pages``.
"""

from __future__ import annotations

import pytest

from simulator.phone.apps.looks import LOOKS
from tests.acceptance.random_pages import BAD, run
from tests.support.ocr import needs_ocr

PAGES, PARTS = 40, 4


@needs_ocr
@pytest.mark.rotating(parts=4)
@pytest.mark.parametrize("part", range(PARTS))
async def test_nothing_wrong_is_sure_and_no_page_is_missed(part: int) -> None:
    seeds = list(range(1 + part, 1 + PAGES, PARTS))
    tally = await run(seeds, sorted(LOOKS), "", verbose=False, tree="")
    assert sum(tally.counts[f"{look}: pages"] for look in LOOKS) == len(seeds)
    assert {word: tally.counts[word] for word in BAD if tally.counts[word]} == {}, "\n".join(tally.bad)
    assert tally.counts["ordinary: without a doubt"] >= tally.counts["ordinary: pages"] // 3
