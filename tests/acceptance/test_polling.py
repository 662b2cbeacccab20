"""A small form of ``polling.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.polling import OWN_WORDS, day
from tests.acceptance.stage import ANSWER


@pytest.mark.rotating(parts=3)
async def test_only_what_was_answered_or_asked_is_told(tmp_path: Path) -> None:
    seen = await day(tmp_path, 10)
    assert len(seen.cards) == 3, seen.cards
    assert len(seen.questions) == 1
    assert seen.calls.keys() == {1, 5, 8}  # the ticks before which the customer had written
    assert seen.outcomes == {"succeeded": 9, "waiting": 1}
    assert [seen.sent[0], seen.sent[1], len(seen.sent)] == [ANSWER, OWN_WORDS, 3]
